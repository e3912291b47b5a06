"""Versions of messages that a recall or an edit replaced, numbered from 1 for each message.

They are written in the transaction that replaces them, under the lock of the conversation. Moderators read them, and
members that left before an edit (`reader_view.py`), so the versions of an edit are kept as long as the message is.
"""

from __future__ import annotations

from nexo.core.message_fields import decode_names, encode_names
from nexo.core.model import Message
from nexo.core.moderation import MessageVersion, VersionCause
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

TRIM_STEP = 500


def keep(
    message: Message, now_ms: int, replaced_by: str, cause: VersionCause, event_seq: int | None = None
) -> Script[None]:
    """Stores the message as it is now, as its next version. `event_seq` is that of an edit's event."""
    ((newest,),) = yield query("SELECT MAX(version) FROM message_versions WHERE server_msg_id=?", message.server_msg_id)
    yield do(
        "INSERT INTO message_versions "
        "(server_msg_id,version,content,mentions,reply_to,extra,replaced_at,replaced_by,cause,seq) "
        "VALUES (?,?,?,?,?,?,?,?,?,?)",
        message.server_msg_id,
        (newest or 0) + 1,
        message.content,
        encode_names(message.mentions) if message.mentions else None,
        message.reply_to,
        message.extra,
        now_ms,
        replaced_by,
        int(cause),
        event_seq,
    )


def count_edits(server_msg_id: int) -> Script[int]:
    ((count,),) = yield query(
        "SELECT COUNT(*) FROM message_versions WHERE server_msg_id=? AND cause=?", server_msg_id, int(VersionCause.EDIT)
    )
    return int(count)


def forget(server_msg_id: int) -> Script[None]:
    """Deletes all versions of a message."""
    yield do("DELETE FROM message_versions WHERE server_msg_id=?", server_msg_id)


def read(server_msg_id: int) -> Script[list[MessageVersion]]:
    """Returns the versions of a message, oldest first."""
    found = yield query(
        "SELECT content,mentions,reply_to,extra,replaced_at,replaced_by,cause FROM message_versions "
        "WHERE server_msg_id=? ORDER BY version",
        server_msg_id,
    )
    return [
        MessageVersion(content, decode_names(mentions) if mentions else (), *rest) for content, mentions, *rest in found
    ]


def trim(sql: Sql, keep_ms: int) -> Script[int]:
    """Deletes the versions of some messages that were recalled longer ago than this. Returns how many messages were
    found: 0 if none is left. By time and in small steps, so that no other transaction waits long."""
    until = (yield NOW) - keep_ms
    found = yield query(
        "SELECT server_msg_id FROM message_versions WHERE cause=? AND replaced_at<=? "
        f"ORDER BY replaced_at LIMIT {TRIM_STEP}",
        int(VersionCause.RECALL),
        until,
    )
    if found:
        chosen = sql.one_of("server_msg_id", sorted(row[0] for row in found), "bigint")
        yield do(f"DELETE FROM message_versions WHERE {chosen.sql}", *chosen.params)
    return len(found)

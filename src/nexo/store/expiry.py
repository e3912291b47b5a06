"""Expiry: content that is shown until a time, and erased soon after it. The row stays, blank, with its seq.

`message_expiries` says when which message is due; few messages have a row there, and `messages` needs no index of
times. Readers do not wait for the erasing: `hide_expired` blanks what is over in each answer. `retention.days` erases
everything older, in the order of message ids, which is that of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from nexo.core.content import blank_content
from nexo.core.message_fields import BLANKED
from nexo.core.model import FIRST_EVENT, Message, MessageStatus, MsgType
from nexo.core.unread import countable_sql
from nexo.ids import EPOCH_MS, now_ms
from nexo.metrics.scripts import script_name
from nexo.store import rows
from nexo.store.engine import NOW, Script, do, many
from nexo.store.engine import rows as query
from nexo.store.files.uses import end as end_uses
from nexo.store.journal import writing
from nexo.store.sql import Sql

T = TypeVar("T")

STEP = 200  # messages that are looked for at a time
RETENTION = "retention"  # in work_positions
ID_BITS = 22
NORMAL, EXPIRED = int(MessageStatus.NORMAL), int(MessageStatus.EXPIRED)
# tables with rows of a message, by its id, that are erased with its content
ERASED_WITH_IT = ("message_versions", "reactions", "reaction_counts", "reaction_marks", "reaction_changes")
_BLANK = ",".join(f"{name}=NULL" for name in rows.BLANKED)
_EMPTY = f"CASE WHEN msg_type IN ({int(MsgType.TEXT)},{int(MsgType.QUOTE)}) THEN '\"\"' ELSE '{{}}' END"


class DueMessage(NamedTuple):
    server_msg_id: int
    conv: int


class RetentionPage(NamedTuple):
    """Messages that are too old, those that will be although their ids are older, and where the next page begins."""

    over: list[DueMessage]
    later: list[tuple[DueMessage, int]]
    position: int
    rows: int  # of the page, events too


# -- sending -------------------------------------------------------------------------------------------------


def schedule(due: Sequence[tuple[Message, int]]) -> Script[None]:
    """Stores the times of new messages, each with the number of its conversation."""
    yield many(
        "UPDATE messages SET expires_at=? WHERE server_msg_id=?",
        [(message.expires_at, message.server_msg_id) for message, _ in due],
    )
    yield many(
        "INSERT INTO message_expiries (server_msg_id,conv,expires_at) VALUES (?,?,?)",
        [(message.server_msg_id, conv, message.expires_at) for message, conv in due],
    )


def expires_at(send_at: int, *seconds: int) -> int | None:
    """Returns the end of a message: the earliest of these times, of which 0 is none."""
    chosen = [one for one in seconds if one]
    return send_at + min(chosen) * 1000 if chosen else None


# -- reading -------------------------------------------------------------------------------------------------


def is_over(message: Message, now: int) -> bool:
    return message.expires_at is not None and message.expires_at <= now and message.status == NORMAL


def blank(message: Message) -> None:
    """Take the content out of a message, as erasing it does."""
    message.status = EXPIRED
    message.content = blank_content(message.msg_type)
    for field in BLANKED:
        setattr(message, field.name, field.default)


def hide_expired(messages: Iterable[Message | None], retention_ms: int = 0) -> Script[None]:
    """Blanks the messages whose time is over, by the clock of the database. It is asked only where a message has an
    end; for days, this computer's clock is exact enough."""
    oldest = now_ms() - retention_ms if retention_ms else 0
    now: int | None = None
    for message in messages:
        if message is None or message.status != NORMAL or message.msg_type >= FIRST_EVENT:
            continue
        if message.send_at <= oldest:
            blank(message)
        elif message.expires_at is not None:
            if now is None:
                now = yield NOW
            if is_over(message, now):
                blank(message)


def shown(script: Script[T], messages_of: Callable[[T], Iterable[Message | None]], retention_ms: int) -> Script[T]:
    """Returns what a script that reads messages returns, with those blanked whose time is over."""
    around = _shown(script, messages_of, retention_ms)
    around.__name__ = script_name(script)  # type: ignore[attr-defined]  # for its metric
    return around


def _shown(script: Script[T], messages_of: Callable[[T], Iterable[Message | None]], retention_ms: int) -> Script[T]:
    result = yield from script
    yield from hide_expired(messages_of(result), retention_ms)
    return result


# -- erasing -------------------------------------------------------------------------------------------------


def due() -> Script[list[DueMessage]]:
    """Returns some messages whose time is over, the oldest first."""
    now = yield NOW
    found = yield query(
        f"SELECT server_msg_id,conv FROM message_expiries WHERE expires_at<=? ORDER BY expires_at LIMIT {STEP}", now
    )
    return [DueMessage(*row) for row in found]


def erase(sql: Sql, conv: int, server_msg_ids: Sequence[int]) -> Script[int]:
    """Erases the content of messages of one conversation with every version of it, under the conversation's lock: no
    recall or edit can keep a version meanwhile. Returns how many were erased; the rest was recalled or erased before.
    Counts of unread messages and mentions do not change."""
    yield query(f"SELECT id FROM conversations WHERE id=?{sql.for_update}", conv)
    chosen = sql.one_of("server_msg_id", server_msg_ids, "bigint")
    found = yield query(
        f"SELECT seq FROM messages WHERE {chosen.sql} AND conv=? AND status=? AND {countable_sql()} ORDER BY seq",
        *chosen.params,
        conv,
        NORMAL,
    )
    if found:
        yield do(
            f"UPDATE messages SET status=?,content={_EMPTY},{_BLANK} WHERE {chosen.sql} AND conv=? AND status=? "
            f"AND {countable_sql()}",
            EXPIRED,
            *chosen.params,
            conv,
            NORMAL,
        )
        yield from writing.note((yield NOW), writing.expired(conv, [row[0] for row in found]))
    now_ms = yield NOW
    for server_msg_id in server_msg_ids:
        yield from end_uses(server_msg_id, now_ms)
    for table in ERASED_WITH_IT:
        yield do(f"DELETE FROM {table} WHERE {chosen.sql}", *chosen.params)
    yield do(f"DELETE FROM pins WHERE conv=? AND {chosen.sql}", conv, *chosen.params)
    yield do(f"DELETE FROM message_expiries WHERE {chosen.sql}", *chosen.params)
    yield do("UPDATE conversations SET erasures=erasures+1 WHERE id=?", conv)
    return len(found)


def retention_page(retention_ms: int) -> Script[RetentionPage]:
    """Returns the next messages that are older than this. Few ids are older than their messages, by a queue or an
    import; these get a row in `message_expiries`."""
    position = yield from read_position(RETENTION)
    oldest = (yield NOW) - retention_ms
    found = yield query(
        "SELECT server_msg_id,conv,send_at,msg_type FROM messages WHERE server_msg_id>? AND server_msg_id<? "
        f"ORDER BY server_msg_id LIMIT {STEP}",
        position,
        max(0, oldest - EPOCH_MS) << ID_BITS,
    )
    over: list[DueMessage] = []
    later: list[tuple[DueMessage, int]] = []
    for server_msg_id, conv, send_at, msg_type in found:
        if msg_type >= FIRST_EVENT:
            continue
        one = DueMessage(server_msg_id, conv)
        if send_at <= oldest:
            over.append(one)
        else:
            later.append((one, send_at + retention_ms))
    return RetentionPage(over, later, found[-1][0] if found else position, len(found))


def pass_retention(sql: Sql, page: RetentionPage) -> Script[None]:
    """Stores that the messages of a page are erased, or will be."""
    insert = sql.insert_ignore("message_expiries", ("server_msg_id", "conv", "expires_at"), ("server_msg_id",))
    for one, at in page.later:
        yield do(insert, *one, at)
    yield do(sql.insert_ignore("work_positions", ("name", "position"), ("name",)), RETENTION, 0)
    yield do(
        "UPDATE work_positions SET position=? WHERE name=? AND position<?", page.position, RETENTION, page.position
    )


def read_position(name: str) -> Script[int]:
    found: list[Any] = yield query("SELECT position FROM work_positions WHERE name=?", name)
    return int(found[0][0]) if found else 0

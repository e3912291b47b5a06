"""Messages: the rules by which a row of t_message becomes a message of Nexo.

Rows are read in the order of their ids, so counting per conversation gives each its seq. The same rows always give
the same messages: the survey, the import and the verification use this converter. A recalled message gets an event
behind the last message of its conversation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Any, NamedTuple

import msgspec

from nexo.core.content import (
    CONTENT_MAX_BYTES,
    TEXT_MAX_CHARS,
    blank_content,
    check_content,
    encode_content,
    encode_json,
    request_hash,
)
from nexo.core.model import MessageStatus, MsgType
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.store.engines.transfer_connection import Row
from nexo.store.legacy import id_mapping
from nexo.store.legacy.chats import Chats, LegacyChat
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.tables import MESSAGES, to_ms
from nexo.store.legacy.users import LegacyUsers, clean

COLUMNS = (
    "server_msg_id",
    "conv",
    "seq",
    "sender_id",
    "client_msg_id",
    "msg_type",
    "content",
    "request_hash",
    "reply_to",
    "mentions",
    "extra",
    "status",
    "recalled_at",
    "recall_seq",
    "send_at",
    "countable_no",
)
MENTION_COLUMNS = ("conv", "user_id", "seq", "sender_id")
MENTION_ALL = 3  # t_message_mention.mention_type; 1 mentions a user, 2 is a reply to one
ID_MAX = (1 << 63) - 1
MSG_SEQ, EXTRA = (MESSAGES.columns.index(name) for name in ("msg_seq", "nexo_extra"))
_SINGLE, _GROUP = 1, 2  # t_message.chat_type
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class MessageRules(NamedTuple):
    zone: tzinfo
    recalled_status: int


class Converted(NamedTuple):
    messages: list[Row]
    mentions: list[Row]


class Converter:
    """Converts rows of t_message. What has been counted so far is in the chats, and in `recalls`."""

    def __init__(
        self,
        users: LegacyUsers,
        chats: Chats,
        issues: Issues,
        rules: MessageRules,
        mentioned: Mapping[int, tuple[str, ...]],
        repeated: frozenset[int],
    ) -> None:
        self._users = users
        self._chats = chats
        self._issues = issues
        self._rules = rules
        self._mentioned = mentioned
        self._repeated = repeated  # messages whose client_msg_id an earlier one of their sender has
        self.recalls = 0
        self.last_id = 0
        self.without_client_id = 0
        self.retyped = 0
        self.out_of_order = 0
        self._last_seqs: dict[tuple[bool, str], int] = {}  # by kind and old id of the chat

    # -- the survey --------------------------------------------------------------------------------------

    def survey(self, rows: Iterable[Row]) -> None:
        """Count, and report everything that cannot be imported as it is."""
        for row in rows:
            chat, sender, why = self._place(row)
            if chat is None:
                whole = dict(zip(MESSAGES.columns, row, strict=True))
                self._issues.add("message_left_out", MESSAGES.name, row[0], whole, why)
                continue
            self.last_id = row[0]
            if not chat.count:
                chat.first_sender = sender
            self._step(chat, row)
            self._survey_order(row)
            self._survey_client_id(row)
            msg_type, content, changed = _content(row[7], row[4])
            if changed:
                self._issues.add("content_changed", MESSAGES.name, row[0], row[4], content[:200])
            self.retyped += msg_type == MsgType.CUSTOM and row[7] != MsgType.CUSTOM
            if self._is_recalled(row):
                chat.recalled += 1
                self.recalls += 1

    def _survey_order(self, row: Row) -> None:
        if row[MSG_SEQ] is None:
            return
        key = row[2] is not None, str(row[2] if row[2] is not None else row[1])
        seq = int(row[MSG_SEQ])
        last = self._last_seqs.get(key, 0)
        self.out_of_order += seq < last
        self._last_seqs[key] = max(seq, last)

    def _survey_client_id(self, row: Row) -> None:
        given = row[9]
        if not given:
            self.without_client_id += 1
        elif row[0] in self._repeated or not id_mapping.is_client_msg_id(str(given)):
            becomes = id_mapping.client_msg_id_of(row[0])
            self._issues.add("client_msg_id_changed", MESSAGES.name, row[0], given, becomes)

    # -- the import ----------------------------------------------------------------------------------

    def convert(self, rows: Iterable[Row], first_event_id: int) -> Converted:
        messages: list[Row] = []
        mentions: list[Row] = []
        for row in rows:
            chat, sender, _ = self._place(row)
            if chat is None:
                continue
            seq, send_at = self._step(chat, row)
            msg_type, content, _ = _content(row[7], row[4])
            named = self._mentioned.get(row[0], ())
            client_msg_id = self._client_id(row)
            extra = row[EXTRA]
            digest = request_hash(chat.name, msg_type, content, named, None, extra)
            status, recalled_at, recall_seq = 0, None, None
            if self._is_recalled(row):
                chat.recalled += 1
                status = int(MessageStatus.RECALLED)
                recall_seq, recalled_at = chat.total + chat.recalled, chat.last_at + chat.recalled
                messages.append(self._event(chat, row[0], sender, seq, recall_seq, recalled_at, first_event_id))
                content = blank_content(msg_type)
            shown = _encode(named).decode() if named and not status else None
            content_values = (client_msg_id, msg_type, content, digest, None, shown, None if status else extra)
            messages.append(
                (row[0], chat.conv, seq, sender, *content_values, status, recalled_at, recall_seq, send_at, seq)
            )
            mentions += [(chat.conv, user, seq, sender) for user in named if user != sender]
        return Converted(messages, mentions)

    def _event(
        self, chat: LegacyChat, message_id: int, sender: str, seq: int, at_seq: int, at: int, first_id: int
    ) -> Row:
        """Returns the event of a recall. The source does not keep who recalled; the sender is assumed."""
        content = _encode({"server_msg_id": str(message_id), "seq": seq, "by": sender}).decode()
        event_id = first_id + self.recalls
        self.recalls += 1
        event: Row = (event_id, chat.conv, at_seq, sender, None, int(MsgType.RECALLED), content)
        return (*event, None, None, None, None, 0, None, None, at, chat.total)

    # -- both --------------------------------------------------------------------------------------------

    def _place(self, row: Row) -> tuple[LegacyChat | None, str, str]:
        """Returns the conversation and the sender, or no conversation and the reason."""
        message_id, single_id, group_id, from_id, _, to_id, chat_type = row[:7]
        if not isinstance(message_id, int) or not 0 < message_id <= ID_MAX - (1 << 40):
            return None, "", "its id cannot be a server_msg_id"
        if from_id is None:
            return None, "", "it has no sender"
        sender = self._users.find(from_id)
        is_group = chat_type == _GROUP or (chat_type != _SINGLE and bool(group_id))
        if is_group:
            return (self._chats.group(group_id), sender, "") if group_id is not None else (None, "", "it has no group")
        chat = self._chats.single(single_id or None, from_id, to_id)
        if chat is None or chat.pair is None:
            return None, "", "it is unknown whose chat it belongs to, or it was sent to oneself"
        if sender not in chat.pair:
            return None, "", "its sender is none of the two whose chat it is"
        return chat, sender, ""

    def _step(self, chat: LegacyChat, row: Row) -> tuple[int, int]:
        chat.count += 1
        chat.at = max(chat.at + 1, to_ms(row[10], self._rules.zone))
        return chat.count, chat.at

    def _client_id(self, row: Row) -> str:
        given = row[9]
        if given and row[0] not in self._repeated and id_mapping.is_client_msg_id(str(given)):
            return str(given)
        return id_mapping.client_msg_id_of(row[0])

    def _is_recalled(self, row: Row) -> bool:
        return row[8] is not None and int(row[8]) == self._rules.recalled_status


def _content(legacy_type: Any, body: Any) -> tuple[int, str, bool]:
    """Returns type and content as Nexo keeps them, and whether a part of the content was lost."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else "" if body is None else str(body)
    msg_type = 1 if legacy_type is None else int(legacy_type)
    if msg_type == MsgType.TEXT:
        if len(text) <= TEXT_MAX_CHARS and "\x00" not in text and (text.isascii() or clean(text) == text):
            return msg_type, _encode(text).decode(), False
        return msg_type, _encode(clean(text)[:TEXT_MAX_CHARS]).decode(), True
    try:
        value = _decode(text)
        check_content(msg_type, value)
        if msg_type != MsgType.QUOTE:  # there is nothing it could point at
            return msg_type, encode_content(msg_type, value), False
    except (NexoError, msgspec.DecodeError):
        pass
    return _custom(msg_type, text)


def _custom(legacy_type: int, text: str) -> tuple[int, str, bool]:
    kept = clean(text)
    while True:
        try:
            content = {"legacy_type": legacy_type, "body": kept}
            return int(MsgType.CUSTOM), encode_json(content, "content", CONTENT_MAX_BYTES), kept != text
        except NexoError:
            kept = kept[: len(kept) // 2]


def named_in(rows: Iterable[tuple[Any, Any]], users: LegacyUsers) -> tuple[str, ...]:
    """Returns the users mentioned by one message, from pairs of user and type; `@all` stands for all of them."""
    named: set[str] = set()
    for user_id, kind in rows:
        if kind is not None and int(kind) == MENTION_ALL:
            return (AT_ALL,)
        named.add(users.find(user_id))
    return tuple(sorted(named))

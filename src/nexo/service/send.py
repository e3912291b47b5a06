"""Sending: the shape of a message is checked here, everything else under the lock where it is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from nexo.core import content as form
from nexo.core.events import Accepted, Saved
from nexo.core.filter import filter_content
from nexo.core.model import Draft, Kind, MsgType, Sent
from nexo.errors import NexoError
from nexo.ids import (
    check_client_msg_id,
    check_user_id,
    group_conversation_id,
    is_group_id,
    parse_server_msg_id,
    single_conversation_id,
)
from nexo.ports import Accepting, MessageStore, Outcome
from nexo.service.filter import FilterFile

# looking a member of an enum up by name takes as long as a comparison and a call
QUOTE, SINGLE, GROUP = int(MsgType.QUOTE), int(Kind.SINGLE), int(Kind.GROUP)


class Sending:
    def __init__(self, messages: MessageStore, words: FilterFile, timeout_s: float = 3.0) -> None:
        """`timeout_s`: how long `send` waits for an accepted message to be saved."""
        self._messages = messages
        self._words = words
        self._timeout_s = timeout_s
        self.accepting: Accepting | None = None  # two-phase acknowledgement, where it is switched on

    def draft(
        self,
        sender_id: str,
        client_msg_id: str,
        recv_id: str | None = None,
        group_id: str | None = None,
        msg_type: int = MsgType.TEXT,
        content: Any = None,
        mentions: Any = (),
        reply_to: str | int | None = None,
        extra: Any = None,
    ) -> Draft:
        """A draft of what a client asks to send, or the error that names what is wrong with it."""
        check_client_msg_id(client_msg_id)
        kind, conversation_id = _target(sender_id, recv_id, group_id)
        form.check_content(msg_type, content)
        named = form.check_mentions(mentions) if mentions else ()
        target = parse_server_msg_id(reply_to, "reply_to") if reply_to is not None else None
        if msg_type == QUOTE and target is None:
            raise NexoError("missing_reply_to", "A quote needs the message it replies to")
        text = form.encode_content(msg_type, content)
        extra_text = None if extra is None else form.encode_json(extra, "extra", form.EXTRA_MAX_BYTES)
        request_hash = form.request_hash(conversation_id, msg_type, text, named, target, extra_text)
        draft = Draft(
            sender_id, client_msg_id, conversation_id, kind, msg_type, text, request_hash, named, target, extra_text
        )
        words = self._words.current()
        if not words.is_empty:
            filtered, changed, draft.rejected = filter_content(words, msg_type, content)
            if changed:
                draft.content = form.encode_stored(filtered)
                draft.filtered = True
        return draft

    def submit(self, draft: Draft, conn_id: str, answer: Callable[[Outcome], None]) -> None:
        """From a connection of the draft's sender."""
        if self.accepting is not None and self.accepting.takes(draft):
            self.accepting.submit(draft, draft.sender_id, conn_id, answer)
        else:
            self._messages.submit(draft, answer)

    async def send(self, sender_id: str, **fields: Any) -> Sent:
        """Saved, when this returns."""
        return await self._messages.send(self.draft(sender_id, **fields))

    async def send_or_accept(self, sender_id: str, **fields: Any) -> Sent | Saved | Accepted:
        """Stored (Sent), stored and told to everybody (Saved), or accepted and not stored for a while."""
        draft = self.draft(sender_id, **fields)
        if self.accepting is not None and self.accepting.takes(draft):
            return await self.accepting.send(draft, self._timeout_s)
        return await self._messages.send(draft)

    async def send_again(self, sender_id: str, **fields: Any) -> Sent:
        """As `send`, by one who knows that it was most likely sent before."""
        draft = self.draft(sender_id, **fields)
        draft.is_retry = True
        return await self._messages.send(draft)


def _target(sender_id: str, recv_id: str | None, group_id: str | None) -> tuple[int, str]:
    if recv_id and group_id:
        raise NexoError("bad_receiver", "Name a receiver or a group, not both")
    if group_id:
        if not is_group_id(group_id):
            raise NexoError("group_not_found")
        return GROUP, group_conversation_id(group_id)
    if not recv_id:
        raise NexoError("missing_receiver", "Name a receiver or a group")
    return SINGLE, _chat_of(sender_id, recv_id)


@lru_cache(10_000)  # who talks to somebody does so again, and the name is one text for all their messages
def _chat_of(sender_id: str, recv_id: str) -> str:
    if recv_id == sender_id:
        raise NexoError("cannot_send_to_self")
    check_user_id(recv_id, "receiver")
    return single_conversation_id(sender_id, recv_id)

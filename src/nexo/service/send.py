"""Sending: the shape of a message is checked here, everything else under the lock where it is written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

from nexo.core import content as form
from nexo.core.commands import Send
from nexo.core.events import Accepted, Saved
from nexo.core.files import MEDIA_TYPES
from nexo.core.filter import filter_content
from nexo.core.message_fields import PLAIN, plain_values
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
from nexo.ports import MessageStore, Origin, SendAcceptor
from nexo.service.filter import FilterFile

# looking a member of an enum up by name takes as long as a comparison and a call
QUOTE, SINGLE, GROUP = int(MsgType.QUOTE), int(Kind.SINGLE), int(Kind.GROUP)


class SendGate(Protocol):
    """Decides about drafts before they are written: see `hooks/before_send.py`."""

    def takes(self, draft: Draft, conn_id: str) -> bool:
        """Returns whether this draft has to pass the gate: it is asked about, or an earlier one of its connection to
        its conversation is."""

    def submit(self, draft: Draft, conn_id: str, origin: Origin) -> None:
        """Let a draft of a connection pass, behind earlier ones to the same conversation. `origin` gets the refusal,
        unless the draft is handed on."""

    async def check(self, draft: Draft) -> None:
        """Returns when the draft may be written; its content may have been replaced. Raises `content_rejected`, and
        `server_busy` without an answer."""


class Sending:
    def __init__(
        self, messages: MessageStore, words: FilterFile, timeout_s: float = 3.0, *, foreign_urls: bool = True
    ) -> None:
        """`timeout_s`: how long `send` waits for an accepted message to be saved. `foreign_urls`: media may be an
        address of another server."""
        self._foreign_urls = foreign_urls
        self._messages = messages
        self.store = messages.submit  # for drafts that nothing else takes
        self._words = words
        self._timeout_s = timeout_s
        self.acceptor: SendAcceptor | None = None  # two-phase acknowledgement, where it is switched on
        self.gate: SendGate | None = None  # the question before a send, where it is switched on

    def draft(self, sender_id: str, command: Send) -> Draft:
        """A draft of what a client asks to send, or the error that names what is wrong with it."""
        client_msg_id, msg_type, content = command.client_msg_id, command.msg_type, command.content
        check_client_msg_id(client_msg_id)
        kind, conversation_id = conversation_of(sender_id, command.recv_id, command.group_id)
        text = form.encode_content(msg_type, content)
        named = form.check_mentions(command.mentions) if command.mentions else ()
        reply_to, extra = command.reply_to, command.extra
        target = parse_server_msg_id(reply_to, "reply_to") if reply_to is not None else None
        if msg_type == QUOTE and target is None:
            raise NexoError("missing_reply_to", "A quote needs the message it replies to")
        extra_text = None if extra is None else form.encode_extra(extra)
        request_hash = form.request_hash(conversation_id, msg_type, text, named, target, extra_text)
        draft = Draft(
            sender_id, client_msg_id, conversation_id, kind, msg_type, text, request_hash, named, target, extra_text
        )
        if msg_type in MEDIA_TYPES:
            self._take_media(draft, content)
        if command.expires_s is not None:
            draft.expires_s = form.check_expires(command.expires_s)
            draft.request_hash = form.extended_hash(request_hash, {"expires_s": draft.expires_s})
        if command.sent_at is not None:
            draft.sent_at = form.client_time(command.sent_at)
        if PLAIN:
            _add_plain(draft, command)
        if self._words.is_on:
            self._filter(draft, content)
        return draft

    def replace_content(self, draft: Draft, content: Any) -> None:
        """Give a draft another content, after the same checks; the ACK reports it. Raises what is wrong with it."""
        draft.content = form.encode_content(draft.msg_type, content)
        draft.filtered = True
        if draft.msg_type in MEDIA_TYPES:
            self._take_media(draft, content)
        if self._words.is_on:
            self._filter(draft, content)

    def _take_media(self, draft: Draft, content: Any) -> None:
        """Keep of a named file what the sender decides; the store fills in the rest. The hash is over what was sent."""
        if "file_id" in content:
            draft.content = form.encode_stored(content)
        elif not self._foreign_urls:
            raise NexoError("bad_url", "Upload the file and name its file_id: addresses of other servers are refused")

    def _filter(self, draft: Draft, content: Any) -> None:
        words = self._words.current()
        if words.is_empty:
            return
        filtered, changed, draft.rejected = filter_content(words, draft.msg_type, content)
        if changed:
            draft.content = form.encode_stored(filtered)
            draft.filtered = True

    def submit(self, draft: Draft, conn_id: str, origin: Origin) -> None:
        """A send of the connection `conn_id`; `origin` gets the outcome."""
        if self.gate is not None and self.gate.takes(draft, conn_id):
            self.gate.submit(draft, conn_id, origin)
        else:
            self.hand_on(draft, conn_id, origin)

    def hand_on(self, draft: Draft, conn_id: str, origin: Origin) -> None:
        """Write a draft, or accept it, without asking."""
        if self.acceptor is not None:
            if self.acceptor.takes(draft, conn_id):
                self.acceptor.submit(draft, conn_id, origin)
                return
            self.acceptor.observe(draft)
        self.store(draft, origin)

    async def is_taken(self, draft: Draft) -> bool:
        """Returns whether the same send was accepted, or one with its client_msg_id was saved."""
        if self.acceptor is not None and self.acceptor.knows(draft):
            return True
        return await self._messages.is_saved(draft.sender_id, draft.client_msg_id)

    async def send(self, sender_id: str, **fields: Any) -> Sent:
        """Returns when the message is saved."""
        draft = self.draft(sender_id, Send(**fields))
        if self.gate is not None:
            await self.gate.check(draft)
        return await self._messages.send(draft)

    async def send_or_accept(self, sender_id: str, **fields: Any) -> Sent | Saved | Accepted:
        """Returns Sent (stored), Saved (stored and pushed to all receivers) or Accepted (stored later)."""
        draft = self.draft(sender_id, Send(**fields))
        if self.gate is not None:
            await self.gate.check(draft)
        if self.acceptor is not None:
            if self.acceptor.takes(draft):
                return await self.acceptor.send(draft, self._timeout_s)
            self.acceptor.observe(draft)
        return await self._messages.send(draft)

    async def prepare(self, draft: Draft, content: Any) -> None:
        """Apply the filter to a draft, and ask the gate; `content` is what its JSON holds."""
        if self._words.is_on:
            self._filter(draft, content)
        if self.gate is not None:
            await self.gate.check(draft)

    def filter_words(self, msg_type: int, content: Any) -> Any:
        """Returns content without the words of the filter; raises `content_rejected` where they are refused."""
        words = self._words.current()
        if not self._words.is_on or words.is_empty:
            return content
        filtered, changed, rejected = filter_content(words, msg_type, content)
        if rejected:
            raise NexoError("content_rejected")
        return filtered if changed else content

    async def send_draft(self, draft: Draft) -> int:
        """Send a prepared draft. Returns the id of its message, which is saved, or accepted and saved later."""
        if self.acceptor is not None and self.acceptor.takes(draft):
            sent = await self.acceptor.send(draft, self._timeout_s)
            return sent.server_msg_id if isinstance(sent, Accepted) else sent.message.server_msg_id
        return (await self._messages.send(draft)).message.server_msg_id

    async def send_again(self, sender_id: str, **fields: Any) -> Sent:
        """As `send`, for a message that was most likely sent before."""
        draft = self.draft(sender_id, Send(**fields))
        draft.is_retry = True
        return await self._messages.send(draft)


def _add_plain(draft: Draft, command: Send) -> None:
    plain = plain_values(command)
    for name, value in plain.items():
        setattr(draft, name, value)
    if plain:
        draft.request_hash = form.extended_hash(draft.request_hash, plain)


def conversation_of(sender_id: str, recv_id: str | None, group_id: str | None) -> tuple[int, str]:
    """Returns kind and id of the conversation with a receiver or in a group, exactly one of which is named."""
    if recv_id and group_id:
        raise NexoError("bad_receiver", "Name a receiver or a group, not both")
    if group_id:
        if not is_group_id(group_id):
            raise NexoError("group_not_found")
        return GROUP, group_conversation_id(group_id)
    if not recv_id:
        raise NexoError("missing_receiver", "Name a receiver or a group")
    return SINGLE, _chat_of(sender_id, recv_id)


@lru_cache(10_000)  # a sender writes to the same receiver again, and all their messages share one string
def _chat_of(sender_id: str, recv_id: str) -> str:
    if recv_id == sender_id:
        raise NexoError("cannot_send_to_self")
    check_user_id(recv_id, "receiver")
    return single_conversation_id(sender_id, recv_id)

"""What the generator receives, as envelope frames; frames of other dialects are translated.

Only the fields that are used are decoded, in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field


class Entry(Struct, rename="camel"):
    """What SYNC reports about a conversation."""

    conversation_id: str
    head_seq: int = 0


class Frame(Struct, rename="camel"):
    type: str = ""
    client_msg_id: str | None = None
    server_msg_id: str | None = None
    conversation_id: str | None = None
    msg_seq: int = 0
    ack_type: str = ""
    body: Any = None
    msg_type: int = 1
    resend: bool = False
    provisional: bool = False
    reason: str = ""
    retry_after_ms: int = 0
    head_seq: int = 0
    next_seq: int = 0
    has_more: bool = False
    after_ms: int = 0
    messages: list[Frame] = []
    conversations: list[Entry | str] = []
    facts: Any = field(default=None, name="-")  # what follows from it, found out by the first who asks (`track.py`)


class PlainEntry(Struct):
    conversation_id: str
    max_seq: int = 0
    head_seq: int = 0


class PlainData(Struct):
    """What the request and the command dialect carry in `data`, whatever it is about."""

    client_msg_id: str | None = None
    server_msg_id: str | None = None
    msg_id: str | None = None  # as the command dialect calls it
    conversation_id: str | None = None
    seq: int = 0
    status: Any = None
    content: Any = None
    msg_type: int = 1
    provisional: bool = False
    reason: str = ""
    retry_after_ms: int = 0
    head_seq: int = 0
    next_seq: int = 0
    has_more: bool = False
    after_ms: int = 0
    messages: list[PlainData] = []
    conversations: list[PlainEntry | str] = []

    def frame(self, named: Callable[[str], str] = str) -> Frame:
        """The same as an envelope, which still lacks its type; `named` translates names of conversations."""
        return Frame(
            "",
            self.client_msg_id,
            self.server_msg_id or self.msg_id,
            None if self.conversation_id is None else named(self.conversation_id),
            self.seq,
            body=self.content,
            msg_type=self.msg_type,
            provisional=self.provisional,
            reason=self.reason,
            retry_after_ms=self.retry_after_ms,
            head_seq=self.head_seq,
            next_seq=self.next_seq,
            has_more=self.has_more,
            after_ms=self.after_ms,
            messages=[message.frame(named) for message in self.messages],
            conversations=[
                Entry(named(entry.conversation_id), entry.max_seq or entry.head_seq)
                for entry in self.conversations
                if isinstance(entry, PlainEntry)
            ],
        )


class BenchDialect(Protocol):
    subprotocol: str
    resends: bool  # the server sends by itself what was missed
    acks_by_seq: bool  # can acknowledge a place instead of a message

    def path(self, user_id: str) -> str: ...
    def bearer(self, token: str) -> str:
        """The token, when it comes with the upgrade."""
        ...

    def hello(self, token: str, device_id: str, baselines: dict[str, int]) -> bytes | None: ...
    def renewal(self, token: str) -> bytes:
        """Shows a newer token on a connection that is signed in."""
        ...

    def after_auth(self) -> bytes | None: ...
    def single(self, client_msg_id: str, to: str, body: str) -> bytes: ...
    def group(self, client_msg_id: str, group_id: str, body: str) -> bytes: ...
    def delivered(self, conversation_id: str, seq: int, server_msg_id: str) -> bytes: ...
    def pull(self, conversation_id: str, begin_seq: int, limit: int = 200) -> bytes: ...
    def sync(self) -> bytes: ...
    def know(self, conversation_id: str) -> None:
        """Note that this conversation is part of the run; some dialects have another name for it."""
        ...

    def decode(self, payload: bytes) -> Frame: ...

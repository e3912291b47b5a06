"""Forwarding: the server makes copies of what the caller may see, and sends them in the caller's name.

Each copy has a client_msg_id that follows from that of the request, and the hash of the request: a retry finds what was
sent, whatever became of the sources, and sends the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nexo.core import content as form
from nexo.core.model import Draft, Message, MessageStatus, MsgType
from nexo.errors import NexoError
from nexo.ids import check_client_msg_id, parse_server_msg_id
from nexo.ports import MessageChangeStore, SentBefore
from nexo.service.send import Sending, conversation_of

MESSAGES_MAX = 100
TARGETS_MAX = 20
COPIES_MAX = 200
TITLE_MAX_CHARS = 128
TITLE_NAMES = 3  # senders that a title names unless the caller gives one

_encode = msgspec.json.Encoder().encode


class ForwardTarget(NamedTuple):
    recv_id: str | None
    group_id: str | None

    @property
    def name(self) -> str:
        return f"g:{self.group_id}" if self.group_id else f"u:{self.recv_id}"


class ForwardPlan(NamedTuple):
    """A checked request to forward."""

    client_msg_id: str
    server_msg_ids: list[int]
    targets: list[ForwardTarget]
    merge: bool
    title: str | None

    @property
    def per_target(self) -> int:
        return 1 if self.merge else len(self.server_msg_ids)

    @property
    def copies(self) -> int:
        return self.per_target * len(self.targets)

    @property
    def names(self) -> list[list[str]]:
        """The client_msg_ids of the copies, for each target."""
        places = range(len(self.targets))
        return [[form.copy_id(self.client_msg_id, place, n) for n in range(self.per_target)] for place in places]

    @property
    def request_hash(self) -> bytes:
        title = (self.title or "") if self.merge else None
        return form.forward_hash(self.server_msg_ids, [target.name for target in self.targets], title)


class Forwarded(NamedTuple):
    """What was sent to one target: the ids of the copies, or the error that prevented it."""

    target: ForwardTarget
    server_msg_ids: list[int]
    error: NexoError | None = None


class _Copy(NamedTuple):
    """A copy before it has a target."""

    msg_type: int
    content: str
    extra: str | None
    forwarded_from: str | None


class Forwarding:
    def __init__(self, changes: MessageChangeStore, sending: Sending) -> None:
        self._changes = changes
        self._sending = sending

    def plan(
        self,
        client_msg_id: str,
        server_msg_ids: Sequence[str | int],
        targets: Sequence[ForwardTarget],
        *,
        merge: bool = False,
        title: str | None = None,
    ) -> ForwardPlan:
        """Returns a checked request, or raises what is wrong with it."""
        check_client_msg_id(client_msg_id)
        ids = _check_ids(server_msg_ids)
        _check_targets(targets, len(ids))
        if title is not None:
            form.check_text(title, "content", TITLE_MAX_CHARS)
        return ForwardPlan(client_msg_id, ids, list(targets), merge, title)

    async def forward(self, user_id: str, plan: ForwardPlan) -> list[Forwarded]:
        """Returns one result per target, in order. Raises where nothing can be sent to any target."""
        names, request_hash = plan.names, plan.request_hash
        sent = await self._changes.sent_before(user_id, [name for each in names for name in each])
        if any(found.request_hash != request_hash for found in sent.values()):
            raise NexoError("client_msg_id_reused")
        copies: list[_Copy] = []
        if len(sent) < plan.copies:
            copies = await self._copies(user_id, plan)
        return list(
            await asyncio.gather(
                *(
                    self._send_to(user_id, target, own_names, copies, request_hash, sent)
                    for target, own_names in zip(plan.targets, names, strict=True)
                )
            )
        )

    async def _copies(self, user_id: str, plan: ForwardPlan) -> list[_Copy]:
        originals = await self._changes.originals(user_id, plan.server_msg_ids)
        for message in originals:
            _check_forwardable(message)
        if plan.merge:
            return [self._merged(originals, plan.title)]
        return [_copy(message) for message in originals]

    def _merged(self, originals: list[Message], title: str | None) -> _Copy:
        items = [
            {
                "sender_id": message.sender_id,
                "send_at": message.send_at,
                "msg_type": message.msg_type,
                "content": self._sending.filter_words(message.msg_type, msgspec.json.decode(message.content)),
            }
            for message in originals
        ]
        if title is None:
            title = ", ".join(list(dict.fromkeys(message.sender_id for message in originals))[:TITLE_NAMES])
        shown = {"title": self._sending.filter_words(int(MsgType.TEXT), title[:TITLE_MAX_CHARS]), "items": items}
        text = form.encode_json(shown, "content", form.CONTENT_MAX_BYTES)
        return _Copy(int(MsgType.MERGED), text, None, None)

    async def _send_to(
        self,
        user_id: str,
        target: ForwardTarget,
        names: list[str],
        copies: list[_Copy],
        request_hash: bytes,
        sent: dict[str, SentBefore],
    ) -> Forwarded:
        """Sends the copies one after the other, so that a retry after a failure continues in their order."""
        ids: list[int] = []
        try:
            kind, conversation_id = conversation_of(user_id, target.recv_id, target.group_id)
            for number, name in enumerate(names):
                if (found := sent.get(name)) is not None:
                    ids.append(found.server_msg_id)
                    continue
                one = copies[number]
                draft = Draft(
                    user_id, name, conversation_id, kind, one.msg_type, one.content, request_hash, extra=one.extra
                )
                draft.forwarded_from = one.forwarded_from
                await self._sending.prepare(draft, msgspec.json.decode(one.content))
                ids.append(await self._sending.send_draft(draft))
        except NexoError as error:
            return Forwarded(target, [], error)
        return Forwarded(target, ids)


def _check_ids(server_msg_ids: Sequence[str | int]) -> list[int]:
    if not server_msg_ids:
        raise NexoError("missing_server_msg_ids")
    if len(server_msg_ids) > MESSAGES_MAX:
        raise NexoError("bad_server_msg_ids", f"At most {MESSAGES_MAX} messages can be forwarded at once")
    return list(dict.fromkeys(parse_server_msg_id(one, "server_msg_ids") for one in server_msg_ids))


def _check_targets(targets: Sequence[ForwardTarget], messages: int) -> None:
    if not targets:
        raise NexoError("missing_to", "Name at least one receiver or group")
    if len(targets) > TARGETS_MAX:
        raise NexoError("bad_to", f"Messages can be forwarded to at most {TARGETS_MAX} chats at once")
    if messages * len(targets) > COPIES_MAX:
        raise NexoError("bad_to", f"Messages times chats is at most {COPIES_MAX}")
    for target in targets:
        if bool(target.recv_id) is bool(target.group_id):
            raise NexoError("bad_to", "Each entry names either recv_id or group_id")


def _check_forwardable(message: Message) -> None:
    if message.is_event or message.status != MessageStatus.NORMAL:
        raise NexoError("not_forwardable", f"The message {message.server_msg_id} has nothing to forward")
    if getattr(message, "expires_at", None) is not None:
        raise NexoError("not_forwardable", f"The message {message.server_msg_id} expires")


def _copy(message: Message) -> _Copy:
    """Returns the copy of a message: content and fields of its own, without mentions and without what it replies to."""
    source = {"sender_id": message.sender_id, "send_at": message.send_at}
    forwarded_from = message.forwarded_from or _encode(source).decode()
    msg_type = int(MsgType.TEXT) if message.msg_type == MsgType.QUOTE else message.msg_type
    return _Copy(msg_type, message.content, message.extra, forwarded_from)

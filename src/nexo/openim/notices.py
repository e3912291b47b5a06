"""Completes pushes to OpenIM's clients that need more than their event has, and answers requests by number.

Work of one event is done once for all connections of this instance. What cannot be completed is followed by closing the
connection, so that its client connects again and asks.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import structlog

from nexo.background import Background
from nexo.core import events
from nexo.core.model import Head, Message, MsgType
from nexo.core.numbering import NumberedMessages, NumberHead, NumberSpan
from nexo.delivery.hub import Hub
from nexo.delivery.outputs import Output
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.openim import shapes, tips
from nexo.openim.directory import Directory
from nexo.openim.tips import Tips, notification
from nexo.ports.openim import OpenimStore
from nexo.wire.openim.codec import OpenimCodec
from nexo.wire.openim.names import GROUP, name_of, twin_of, twin_of_pair
from nexo.wire.openim.shown import is_shown

log = structlog.get_logger()

PENDING_MAX = 10_000  # pushes that wait to be completed
MADE_MAX = 500  # notifications that are remembered for further connections
SEQS_MAX = 100  # messages that one receipt names

Pushed = tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]  # messages, notifications


class OpenimNotices:
    def __init__(
        self, store: OpenimStore, making: Tips, directory: Directory, hub: Hub, background: Background
    ) -> None:
        self._hub = hub
        self._store = store
        self._tips = making
        self._directory = directory
        self._background = background
        self._pending = 0
        self._made: OrderedDict[tuple[int, str], asyncio.Task[dict[str, Any] | None]] = OrderedDict()
        self._operations: OrderedDict[int, str] = OrderedDict()
        self._results = Tally(pushed=0, nothing=0, failed=0)

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(self._pending, "openim_notices")
        yield f.QUEUE_LIMIT(PENDING_MAX, "openim_notices")
        yield f.CACHE(len(self._made), "openim_tips")
        yield f.CACHE_LIMIT(MADE_MAX, "openim_tips")
        for result, count in self._results.items():
            yield f.OPENIM_NOTICES(count, result)

    def name(self, user_id: str) -> tuple[str, str]:
        return self._directory.name(user_id)

    def expect(self, server_msg_id: int, operation_id: str) -> None:
        """Note the request that recalls a message: its client knows its own notification by it."""
        self._operations[server_msg_id] = operation_id
        while len(self._operations) > MADE_MAX:
            self._operations.popitem(last=False)

    def tell(self, user_id: str, kind: int, shown: dict[str, Any], operation_id: str = "") -> None:
        """Push a notification to the OpenIM clients of a user that are connected here. It makes a client look
        again; one that is connected to another instance looks when it connects the next time."""
        made = _own(user_id, kind, shown)
        for connection in list(self._hub.of(user_id)):
            codec = connection.dialect
            if isinstance(codec, OpenimCodec):
                connection.push(codec.frame(codec.push({}, made, operation_id)))

    # -- pushes ------------------------------------------------------------------------------------------

    def complete(self, connection: Output, event: events.Event) -> bool:
        """Push what an event means to this connection, soon. Returns False when too much waits already."""
        if self._pending >= PENDING_MAX:
            connection.resync("overflow")
            return False
        self._pending += 1
        self._background.start("openim_notice", self._complete(connection, event))
        return True

    async def _complete(self, connection: Output, event: events.Event) -> None:
        try:
            codec = connection.dialect
            assert isinstance(codec, OpenimCodec)
            messages, notifications = await self._push_of(connection, codec, event)
            if connection.closing or not (messages or notifications):
                self._results["nothing"] += 1
                return
            payload = codec.push(messages, notifications, self._operation_of(event))
            connection.push(codec.frame(payload))
            self._results["pushed"] += 1
        except NexoError as error:
            self._results["failed"] += 1
            if error.row.retry:  # the client has missed something, and learns of it when it connects again
                connection.resync("push_lost")
        except Exception:
            self._results["failed"] += 1
            connection.resync("push_lost")
            raise
        finally:
            self._pending -= 1

    async def _push_of(self, connection: Output, codec: OpenimCodec, event: events.Event) -> Pushed:
        user_id = connection.session.user_id
        match event:
            case events.Pushed():
                return await self._message(codec, event.message)
            case events.Receipt():
                return {}, await self._receipt(user_id, event)
            case events.Synced():
                if all(_is_new_group(head) for head in event.heads):  # the event of joining follows
                    return {}, {}
                return {}, _own(user_id, tips.CONVERSATION_CHANGED, {"userID": user_id})
            case events.Notify():
                return await self._last(user_id, codec, [event.conversation_id]), {}
            case events.HeadsChanged():
                return await self._last(user_id, codec, [name for name, _ in event.heads]), {}
            case events.Deleted():
                return {}, await self._deleted(user_id, event)
            case events.ContactRequested():
                shown = await self._request((event.user_id, user_id), 0, event.message, event.at, codec.base_url)
                return {}, _from(event.user_id, user_id, tips.FRIEND_ASKED, shown)
            case events.ContactDecided():
                return {}, await self._decided(user_id, codec, event)
            case events.JoinRequested():
                return {}, await self._join_asked(user_id, codec, event)
        return {}, {}

    async def _message(self, codec: OpenimCodec, message: Message) -> Pushed:
        """Returns a message whose number is looked up, or the notification of an event."""
        name = name_of(message.conversation_id)
        if not name:
            return {}, {}
        if is_shown(message):
            found = (await self._store.numbered([message.server_msg_id])).get(message.server_msg_id)
            return ({name: [codec.shown(message, found[0])]}, {}) if found is not None else ({}, {})
        made = await self._made_once(message, codec.base_url)
        return {}, {twin_of(message.conversation_id): [made]} if made is not None else {}

    def _operation_of(self, event: events.Event) -> str:
        if not isinstance(event, events.Pushed):
            return ""
        message = event.message
        if message.msg_type == MsgType.RECALLED:
            recalled = int(msgspec.json.decode(message.content)["server_msg_id"])
            if recalled in self._operations:
                return self._operations[recalled]
        return f"nexo_{message.server_msg_id}"

    async def _made_once(self, event: Message, base_url: str) -> dict[str, Any] | None:
        """Returns the notification of an event, which is made once for all connections."""
        key = (event.server_msg_id, base_url)
        task = self._made.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._made[key] = asyncio.ensure_future(self._tips.of_event(event, base_url))
            while len(self._made) > MADE_MAX:
                self._made.popitem(last=False)
        return await asyncio.shield(task)

    async def _receipt(self, user_id: str, event: events.Receipt) -> dict[str, list[dict[str, Any]]]:
        name = name_of(event.conversation_id)
        if not name:
            return {}
        seqs: list[int] = []
        if event.user_id == user_id:  # of another device of the same user
            number = await self._store.number_at(event.conversation_id, event.seq)
        else:
            seqs = await self._store.numbers_between(event.conversation_id, user_id, event.after, event.seq, SEQS_MAX)
            if not seqs:
                return {}
            number = seqs[0]
        shown = {"markAsReadUserID": event.user_id, "conversationID": name, "seqs": seqs[::-1], "hasReadSeq": number}
        made = notification(tips.READ, shown, sender_id=event.user_id, recv_id=user_id)
        return {twin_of(event.conversation_id): [made]}

    async def _last(
        self, user_id: str, codec: OpenimCodec, conversation_ids: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """Returns the last message of each conversation: a client asks for those before it."""
        found: dict[str, list[dict[str, Any]]] = {}
        for conversation_id in conversation_ids:
            name = name_of(conversation_id)
            page = await self._store.pull(user_id, conversation_id, 1, 1 << 62, 1) if name else NumberedMessages()
            if page.messages:
                found[name] = [codec.shown(page.messages[0].message, page.messages[0].number)]
        return found

    async def _deleted(self, user_id: str, event: events.Deleted) -> dict[str, list[dict[str, Any]]]:
        name = name_of(event.conversation_id)
        if not name:
            return {}
        if event.up_to_seq is not None:
            return _own(user_id, tips.CLEARED, {"userID": user_id, "conversationIDs": [name]})
        found = await self._store.numbered(event.server_msg_ids)
        seqs = sorted(number for number, _ in found.values())
        return _own(user_id, tips.DELETED, {"userID": user_id, "conversationID": name, "seqs": seqs})

    async def _decided(
        self, user_id: str, codec: OpenimCodec, event: events.ContactDecided
    ) -> dict[str, list[dict[str, Any]]]:
        kind, result = (tips.FRIEND_APPROVED, 1) if event.accepted else (tips.FRIEND_REJECTED, -1)
        shown = await self._request((user_id, event.user_id), result, "", event.at, codec.base_url)
        made = _from(event.user_id, user_id, kind, {**shown, "handleMsg": ""})
        if event.accepted:
            for listed in made.values():
                listed.append(
                    notification(
                        tips.FRIEND_ADDED,
                        friend_added(user_id, event.user_id, event.at),
                        sender_id=event.user_id,
                        recv_id=user_id,
                    )
                )
        return made

    async def _request(
        self, pair: tuple[str, str], result: int, message: str, at: int, base_url: str
    ) -> dict[str, Any]:
        users = await self._directory.users(pair)
        request = shapes.friend_request(users, pair, result, message, at, base_url)
        return {"fromToUserID": {"fromUserID": pair[0], "toUserID": pair[1]}, "reqMsg": message, "request": request}

    async def _join_asked(
        self, user_id: str, codec: OpenimCodec, event: events.JoinRequested
    ) -> dict[str, list[dict[str, Any]]]:
        shown = await self._tips.join_asked(event.group_id, event.user_id, event.message, codec.base_url)
        return _from(event.user_id, user_id, tips.JOIN_ASKED, shown)

    # -- requests ----------------------------------------------------------------------------------------

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None) -> list[NumberHead]:
        return await self._store.heads(user_id, conversation_ids)

    async def pull(
        self, user_id: str, spans: Sequence[NumberSpan], base_url: str
    ) -> list[tuple[str, NumberedMessages]]:
        """Returns an entry per span, also for a conversation that the user does not have."""
        return [(span.name, await self._pull(user_id, span, base_url)) for span in spans]

    async def _pull(self, user_id: str, span: NumberSpan, base_url: str) -> NumberedMessages:
        if not span.conversation_id:
            return NumberedMessages()
        try:
            if span.is_twin:
                return await self._pull_notices(user_id, span, base_url)
            if span.numbers is not None:
                return await self._store.pull_list(user_id, span.conversation_id, span.numbers)
            return await self._store.pull(user_id, span.conversation_id, span.begin, span.end, span.limit)
        except NexoError as error:
            if error.row.retry:
                raise
            return NumberedMessages()

    async def _pull_notices(self, user_id: str, span: NumberSpan, base_url: str) -> NumberedMessages:
        begin, end = span.begin, span.end
        if span.numbers is not None:
            begin, end = min(span.numbers, default=0), max(span.numbers, default=-1)
        found = await self._store.pull_events(user_id, span.conversation_id, begin, end)
        made = [await self._made_once(event, base_url) for event in found]
        return NumberedMessages(notices=[one for one in made if one is not None], end_number=end)


def _is_new_group(head: Head) -> bool:
    """Returns whether a user has just joined a group. A client that asked for the conversation first would take the
    group for a known one, and not announce that it was joined."""
    return head.conversation_id.startswith(GROUP) and head.head_seq == head.min_seq


def friend_added(owner_id: str, friend_id: str, at: int) -> dict[str, Any]:
    friend = {"ownerUserID": owner_id, "friendUser": {"userID": friend_id}, "createTime": at}
    return {"friend": friend, "operationTime": at, "opUser": {"userID": friend_id}}


def _own(user_id: str, kind: int, shown: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {twin_of_pair(user_id, user_id): [notification(kind, shown, sender_id=user_id, recv_id=user_id)]}


def _from(sender_id: str, user_id: str, kind: int, shown: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {twin_of_pair(sender_id, user_id): [notification(kind, shown, sender_id=sender_id, recv_id=user_id)]}

"""Publishes commits, events and presence of this instance to other instances (`delivery.remote.Remote`)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Sequence

from nexo.background import Background
from nexo.cluster.messages import (
    AudienceChanged,
    CallAnswerWanted,
    ClusterMessage,
    DeviceSignedIn,
    EventSaved,
    MessageSaved,
    MessageWithdrawn,
    PresenceUpdate,
    ProvisionalMessage,
    PushLost,
    SendOutcome,
    SessionsEnded,
    TypingChanged,
    UserEvent,
    VisibilityChanged,
    encode_event,
    encode_message,
)
from nexo.core import events
from nexo.core.model import Message, Sent
from nexo.ports import Address, Audience, Bus, PresenceChange, PresenceStore

COUNTS_MAX = 1000
COUNT_S = 5.0


class ClusterPublisher:
    def __init__(
        self,
        bus: Bus,
        presence: PresenceStore,
        lookup_max_members: int,
        background: Background,
    ) -> None:
        self.bus = bus
        self.instance_id = bus.instance_id
        self.presence = presence
        self._lookup_max = lookup_max_members
        self._background = background
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    # -- to all instances that hold one of the members ---------------------------------------------------

    def message_saved(self, sent: Sent, audience: Audience, origin: Address | None) -> None:
        quoted = (sent.quoted_edit_seq, sent.unquoted_for)
        news = MessageSaved(sent.message, sent.member_epoch, sent.quoted_seq, sent.fresh, origin, *quoted)
        self._to_members(news, audience.listeners)

    def provisional(self, message: Message, epoch: int, audience: Audience, origin: Address | None) -> None:
        self._to_members(ProvisionalMessage(message, epoch, origin), audience.listeners)

    def withdrawn(self, event: events.Withdrawn, sender_id: str, audience: Audience) -> None:
        news = MessageWithdrawn(event.server_msg_id, event.conversation_id, event.reason, sender_id)
        self._to_members(news, {*audience.listeners, sender_id})

    def event_saved(
        self, event: Message, epoch: int, audience: Audience, added: Sequence[str], left: Sequence[str]
    ) -> None:
        news = EventSaved(event, epoch, list(added), list(left))
        self._to_members(news, {**audience.listeners, **dict.fromkeys(left)} if left else audience.listeners)

    def typing(self, sender_id: str, conversation_id: str, audience: Audience, on: bool) -> None:
        self._to_members(TypingChanged(sender_id, conversation_id, audience.epoch, on), audience.listeners)

    def _to_members(self, news: ClusterMessage, user_ids: Collection[str]) -> None:
        if len(user_ids) > self._lookup_max:
            self.bus.publish_to_all(encode_message(news))
        else:
            self.bus.publish(encode_message(news), user_ids)

    # -- to one user -------------------------------------------------------------------------------------

    def tell_user(self, user_id: str, event: events.Event) -> None:
        self.bus.publish(encode_message(UserEvent(user_id, *encode_event(event))), (user_id,))

    def outcome(self, address: Address, event: events.Event) -> None:
        outcome = SendOutcome(address.user_id, address.conn_id, *encode_event(event))
        self.bus.publish_to(encode_message(outcome), (address.instance_id,))

    # -- to named instances, or to all -------------------------------------------------------------------

    def newcomer(self, newcomer: DeviceSignedIn, instance_ids: Collection[str]) -> None:
        self.bus.publish_to(encode_message(newcomer), instance_ids)

    def presence_changed(self, change: PresenceChange) -> None:
        news = PresenceUpdate(change.user_id, change.platforms, change.number)
        self.bus.publish_to(encode_message(news), change.watchers)

    def audience_changed(self, conversation_id: str) -> None:
        self.bus.publish_to_all(encode_message(AudienceChanged(conversation_id)))

    def visibility_changed(self, user_id: str) -> None:
        self.bus.publish_to_all(encode_message(VisibilityChanged(user_id)))

    def ask_for_answer(self, call_id: int) -> None:
        self.bus.publish_to_all(encode_message(CallAnswerWanted(call_id)))

    def push_lost(self, conversation_id: str) -> None:
        self.bus.publish_to_all(encode_message(PushLost(conversation_id)))

    def sessions_ended(self, sids: list[str], reason: str) -> None:
        self.bus.publish_to_all(encode_message(SessionsEnded(sids, reason)))

    # -- how many are online -----------------------------------------------------------------------------

    def count_online(self, conversation_id: str, members: Collection[str], here: Collection[str]) -> int:
        """Returns how many members of a large group are online on all instances, as of a few seconds ago; until that
        is known, how many are connected here."""
        now = time.monotonic()
        known = self._counts.get(conversation_id)
        if known is None or known[0] < now:
            count = known[1] if known is not None else 0
            self._counts[conversation_id] = (now + COUNT_S, count)
            if len(self._counts) > COUNTS_MAX:
                self._counts.popitem(last=False)
            self._background.start("count_online", self._count(conversation_id, members, set(here)))
        else:
            count = known[1]
        return max(count, len(here))

    async def _count(self, conversation_id: str, members: Collection[str], here: set[str]) -> None:
        others = await self.presence.on_other_instances([user_id for user_id in members if user_id not in here])
        self._counts[conversation_id] = (time.monotonic() + COUNT_S, len(here) + len(others))

"""Tells the other instances what happened here. With a bus that is not shared there is none of this."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

from nexo.core import events
from nexo.core.model import Message, Sent
from nexo.gateway.telegrams import (
    Forget,
    ForUser,
    Happened,
    Newcomer,
    PresenceIs,
    Provisional,
    PushLost,
    Said,
    SessionsEnded,
    Telegram,
    Types,
    Withdrew,
    encode_event,
    encode_telegram,
)
from nexo.ports import Address, Audience, Bus, Presence, PresenceChange

COUNTS_MAX = 1000
COUNT_S = 5.0


class Elsewhere:
    def __init__(
        self,
        bus: Bus,
        presence: Presence,
        lookup_max_members: int,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self.bus = bus
        self.presence = presence
        self._lookup_max = lookup_max_members
        self._spawn = spawn
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    # -- to all instances that hold one of the members ---------------------------------------------------

    def said(self, sent: Sent, audience: Audience, origin: Address | None) -> None:
        telegram = Said(sent.message, sent.member_epoch, sent.quoted_seq, sent.fresh, origin)
        self._to_members(telegram, audience.listeners)

    def provisional(self, message: Message, epoch: int, audience: Audience, origin: Address | None) -> None:
        self._to_members(Provisional(message, epoch, origin), audience.listeners)

    def withdrew(self, event: events.Withdrawn, sender_id: str, audience: Audience) -> None:
        telegram = Withdrew(event.server_msg_id, event.conversation_id, event.reason, sender_id)
        self._to_members(telegram, {*audience.listeners, sender_id})

    def happened(
        self, event: Message, epoch: int, audience: Audience, added: Sequence[str], left: Sequence[str]
    ) -> None:
        telegram = Happened(event, epoch, list(added), list(left))
        self._to_members(telegram, {**audience.listeners, **dict.fromkeys(left)} if left else audience.listeners)

    def types(self, sender_id: str, conversation_id: str, audience: Audience, on: bool) -> None:
        self._to_members(Types(sender_id, conversation_id, audience.epoch, on), audience.listeners)

    def _to_members(self, telegram: Telegram, user_ids: Collection[str]) -> None:
        if len(user_ids) > self._lookup_max:
            self.bus.publish_to_all(encode_telegram(telegram))
        else:
            self.bus.publish(encode_telegram(telegram), user_ids)

    # -- to one user -------------------------------------------------------------------------------------

    def tell_user(self, user_id: str, event: events.Event) -> None:
        self.bus.publish(encode_telegram(ForUser(user_id, "", *encode_event(event))), (user_id,))

    def tell_connection(self, address: Address, event: events.Event) -> None:
        telegram = ForUser(address.user_id, address.conn_id, *encode_event(event))
        self.bus.publish_to(encode_telegram(telegram), (address.instance_id,))

    # -- to those who are named, or to all ---------------------------------------------------------------

    def newcomer(self, newcomer: Newcomer, instance_ids: Collection[str]) -> None:
        self.bus.publish_to(encode_telegram(newcomer), instance_ids)

    def presence_is(self, change: PresenceChange) -> None:
        telegram = PresenceIs(change.user_id, change.platforms, change.number)
        self.bus.publish_to(encode_telegram(telegram), change.watchers)

    def forget(self, conversation_id: str) -> None:
        self.bus.publish_to_all(encode_telegram(Forget(conversation_id)))

    def push_lost(self, conversation_id: str) -> None:
        self.bus.publish_to_all(encode_telegram(PushLost(conversation_id)))

    def sessions_ended(self, sids: list[str]) -> None:
        self.bus.publish_to_all(encode_telegram(SessionsEnded(sids)))

    # -- how many are online -----------------------------------------------------------------------------

    def count_online(self, conversation_id: str, members: Collection[str], here: Collection[str]) -> int:
        """How many of a large group are online on all instances, as of a few seconds ago; the first time, and
        while it is found out, those who are here."""
        now = time.monotonic()
        known = self._counts.get(conversation_id)
        if known is None or known[0] < now:
            count = known[1] if known is not None else 0
            self._counts[conversation_id] = (now + COUNT_S, count)
            if len(self._counts) > COUNTS_MAX:
                self._counts.popitem(last=False)
            self._spawn(self._count(conversation_id, members, set(here)))
        else:
            count = known[1]
        return max(count, len(here))

    async def _count(self, conversation_id: str, members: Collection[str], here: set[str]) -> None:
        others = await self.presence.elsewhere([user_id for user_id in members if user_id not in here])
        self._counts[conversation_id] = (time.monotonic() + COUNT_S, len(here) + len(others))

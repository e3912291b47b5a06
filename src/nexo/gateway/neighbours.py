"""What the other instances tell this one (`ports.BusListener`)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import structlog

from nexo.core import events
from nexo.errors import NexoError
from nexo.gateway import telegrams
from nexo.gateway.audiences import Audiences
from nexo.gateway.connection import Connection
from nexo.gateway.database_watch import DatabaseWatch
from nexo.gateway.hub import Hub
from nexo.gateway.pushing import Pushing
from nexo.gateway.receipts import Receipts
from nexo.gateway.slots import Slots
from nexo.gateway.watchers import Watchers
from nexo.gateway.websocket import text_frame
from nexo.ids import CANARY_IDS
from nexo.ports import PresenceChange
from nexo.service.accounts import Accounts

log = structlog.get_logger()

SPREAD_MIN_MS = 1000
SPREAD_MAX_MS = 30_000
SPREAD_EACH_MS = 2  # who resyncs asks the database for everything: a few hundred a second


class Neighbours:
    def __init__(
        self,
        *,
        hub: Hub[Connection],
        pushing: Pushing,
        receipts: Receipts,
        audiences: Audiences,
        accounts: Accounts,
        watchers: Watchers,
        slots: Slots,
        database_watch: DatabaseWatch,
        end_sessions: Callable[[list[str]], None],
        tell_here: Callable[[str, str, events.Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._hub = hub
        self._pushing = pushing
        self._receipts = receipts
        self._audiences = audiences
        self._accounts = accounts
        self._watchers = watchers
        self._slots = slots
        self._database_watch = database_watch
        self._end_sessions = end_sessions
        self._tell_here = tell_here
        self._spawn = spawn

    # -- news ----------------------------------------------------------------------------------------------

    def received(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            self._take(telegrams.decode_telegram(payload))

    def _take(self, telegram: telegrams.Telegram) -> None:
        match telegram:
            case telegrams.Said(message, epoch, quoted_seq, is_fresh, origin):
                if is_fresh:
                    self._receipts.remember(message)
                self._pushing.said_elsewhere(message, epoch, quoted_seq, origin)
            case telegrams.Provisional(message, epoch, origin):
                self._pushing.provisional_elsewhere(message, epoch, origin)
            case telegrams.Withdrew(server_msg_id, conversation_id, reason, sender_id):
                self._pushing.withdrawn_elsewhere(events.Withdrawn(server_msg_id, conversation_id, reason), sender_id)
            case telegrams.ForUser():
                self._tell(telegram)
            case telegrams.Happened(event, epoch, added, left):
                self._receipts.remember(event)
                self._pushing.happened_elsewhere(event, epoch, added, left)
            case telegrams.Types(sender_id, conversation_id, epoch, on):
                self._pushing.typing_elsewhere(sender_id, conversation_id, epoch, on)
            case telegrams.PresenceIs(user_id, platforms, number):
                self._watchers.changed_elsewhere(user_id, platforms, number)
            case telegrams.Newcomer():
                self._slots.came(telegram)
            case telegrams.Forget(conversation_id):
                self._audiences.forget(conversation_id)
            case telegrams.PushLost(conversation_id):
                self._pushing.lost(conversation_id)
            case telegrams.SessionsEnded(sids):
                for sid in sids:
                    self._accounts.forget(sid)
                self._end_sessions(sids)

    def _tell(self, telegram: telegrams.ForUser) -> None:
        event = telegrams.decode_event(telegram.event_name, telegram.event)
        if telegram.conn_id:
            self._tell_here(telegram.user_id, telegram.conn_id, event)
            return
        for connection in list(self._hub.of(telegram.user_id)):
            connection.push(text_frame(connection.dialect.encode(event)))

    # -- what is missing -----------------------------------------------------------------------------------

    def lost(self, reason: str) -> None:
        self._audiences.forget_all()
        self._accounts.forget_all()
        self._resync(list(self._hub.online_users()), reason)
        self._spawn(self._assert_slots())

    def registered_again(self, user_ids: Sequence[str]) -> None:
        self._resync(user_ids, "presence_lost")
        self._spawn(self._assert_slots())

    def _resync(self, user_ids: Sequence[str], reason: str) -> None:
        spread_ms = min(SPREAD_MAX_MS, max(SPREAD_MIN_MS, SPREAD_EACH_MS * len(user_ids)))
        for user_id in user_ids:
            for connection in list(self._hub.of(user_id)):
                connection.resync(reason, spread_ms)

    async def _assert_slots(self) -> None:
        try:
            await self._slots.assert_all()
        except NexoError as error:  # the next loss or renewal tries again
            log.warning("slots_not_asserted", error=error.name)

    def reachable(self, is_up: bool) -> None:
        self._watchers.is_reachable = is_up
        if is_up:
            self._database_watch.stop()
        else:
            self._database_watch.start()

    # -- presence ------------------------------------------------------------------------------------------

    def presence_changed(self, change: PresenceChange) -> None:
        self._watchers.changed(change)

    def instance_gone(self, instance_id: str) -> None:
        self._spawn(self._watchers.look_again())

    def here(self) -> Mapping[str, Sequence[int]]:
        return {name: self._hub.seats(name) for name in self._hub.online_users() if name not in CANARY_IDS}

    def watched(self) -> Sequence[str]:
        return self._hub.watched()

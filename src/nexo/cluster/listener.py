"""Listener of the bus (`ports.BusListener`): delivers what other instances publish, resyncs clients after losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import structlog

from nexo.background import Background
from nexo.cluster import messages
from nexo.cluster.database_watch import DatabaseWatch
from nexo.cluster.session_policy import SessionPolicy
from nexo.cluster.tracing import ClusterTracing
from nexo.core import events
from nexo.core.model import Sent
from nexo.delivery.delivery import Delivery
from nexo.errors import NexoError
from nexo.ids import CANARY_IDS
from nexo.ports import PresenceChange

log = structlog.get_logger()

SPREAD_MIN_MS = 1000
SPREAD_MAX_MS = 30_000
SPREAD_EACH_MS = 2  # clients that resync read all their heads from the database: at most 500 a second


class SessionEvents(Protocol):
    """The gateway, as notified of sessions that change on other instances."""

    def ended_elsewhere(self, sids: list[str], reason: str) -> None: ...

    def forget_sessions(self) -> None:
        """Drop cached sessions: notices of ended ones may have been lost."""


class ClusterListener:
    def __init__(
        self,
        delivery: Delivery,
        database_watch: DatabaseWatch,
        background: Background,
        tracing: ClusterTracing,
        sessions: SessionEvents | None = None,
        policy: SessionPolicy | None = None,
    ) -> None:
        """`sessions` and `policy` are None in a process without clients (`nexo worker`)."""
        self._delivery = delivery
        self._database_watch = database_watch
        self._background = background
        self._tracing = tracing
        self._sessions = sessions
        self._policy = policy
        self.on_change: Callable[[], None] = lambda: None  # called when an instance or the bus is lost or found

    # -- messages of other instances -------------------------------------------------------------------------

    def received(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            self._take(messages.decode_message(payload))

    def _take(self, news: messages.ClusterMessage) -> None:
        delivery = self._delivery
        match news:
            case messages.MessageSaved(message, epoch, quoted_seq, is_fresh, origin, edit_seq, unquoted_for):
                if is_fresh:
                    delivery.receipts.remember(message)
                sent = Sent(message, is_fresh, quoted_seq, False, epoch, edit_seq, unquoted_for)
                delivery.fanout.saved_elsewhere(sent, origin)
            case messages.ProvisionalMessage(message, epoch, origin):
                delivery.provisionals.push_elsewhere(message, epoch, origin)
            case messages.MessageWithdrawn(server_msg_id, conversation_id, reason, sender_id):
                withdrawn = events.Withdrawn(server_msg_id, conversation_id, reason)
                delivery.provisionals.withdraw_elsewhere(withdrawn, sender_id)
            case messages.UserEvent(user_id, name, data):
                event = messages.decode_event(name, data)
                if isinstance(event, events.Deleted):
                    delivery.deleted_elsewhere(user_id, event)
                else:
                    delivery.fanout.to_user_here(user_id, event)
            case messages.SendOutcome(user_id, conn_id, name, data):
                delivery.on_outcome(user_id, conn_id, messages.decode_event(name, data))
            case messages.EventSaved(saved, epoch, added, left):
                delivery.receipts.remember(saved)
                delivery.fanout.event_saved_elsewhere(saved, epoch, added, left)
            case messages.TypingChanged(sender_id, conversation_id, epoch, on):
                delivery.typing.push_elsewhere(sender_id, conversation_id, epoch, on)
            case messages.PresenceUpdate(user_id, platforms, number):
                delivery.presence.changed_elsewhere(user_id, platforms, number)
            case messages.DeviceSignedIn():
                if self._policy is not None:
                    self._policy.signed_in_elsewhere(news)
            case messages.AudienceChanged(conversation_id):
                delivery.audience_changed_elsewhere(conversation_id)
            case messages.VisibilityChanged(user_id):
                delivery.visibility_changed_elsewhere(user_id)
            case messages.PushLost(conversation_id):
                delivery.fanout.lost_elsewhere(conversation_id)
            case messages.SessionsEnded(sids, reason):
                if self._sessions is not None:
                    self._sessions.ended_elsewhere(sids, reason)
            case messages.CallAnswerWanted(call_id):
                delivery.on_answer_wanted(call_id)
            case messages.TraceQuestion():
                self._tracing.asked(news)
            case messages.TraceAnswer():
                self._tracing.answered(news)

    # -- losses ----------------------------------------------------------------------------------------------

    def lost(self, reason: str) -> None:
        self._delivery.audiences.forget_all()
        if self._sessions is not None:
            self._sessions.forget_sessions()
        self._resync(list(self._delivery.hub.online_users()), reason)
        self._assert_policy()

    def registered_again(self, user_ids: Sequence[str]) -> None:
        self._resync(user_ids, "presence_lost")
        self._assert_policy()

    def _resync(self, user_ids: Sequence[str], reason: str) -> None:
        spread_ms = min(SPREAD_MAX_MS, max(SPREAD_MIN_MS, SPREAD_EACH_MS * len(user_ids)))
        for user_id in user_ids:
            for connection in list(self._delivery.hub.of(user_id)):
                connection.resync(reason, spread_ms)
        self._delivery.on_loss()

    def _assert_policy(self) -> None:
        if self._policy is not None:
            self._background.start("session_policy", self._assert_all(self._policy))

    async def _assert_all(self, policy: SessionPolicy) -> None:
        try:
            await policy.assert_all()
        except NexoError as error:  # the next loss or renewal tries again
            log.warning("session_policy_not_asserted", error=error.name)

    def reachable(self, is_up: bool) -> None:
        self._delivery.presence.is_reachable = is_up
        self._database_watch.need("bus_down", not is_up)
        self.on_change()

    # -- presence --------------------------------------------------------------------------------------------

    def presence_changed(self, change: PresenceChange) -> None:
        self._delivery.presence.changed(change)

    def instance_gone(self, instance_id: str) -> None:
        self._background.start("presence", self._delivery.presence.look_again())
        self.on_change()

    def here(self) -> Mapping[str, Sequence[int]]:
        hub = self._delivery.hub
        return {user_id: hub.platform_of_each(user_id) for user_id in hub.online_users() if user_id not in CANARY_IDS}

    def watched(self) -> Sequence[str]:
        return self._delivery.hub.watched()

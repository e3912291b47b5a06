"""The session: what to do with each frame, and what to say when. A state machine without I/O and without a clock.

Whoever drives it (`client.py`, or a test with a clock of its own) calls one of its methods and then takes what it
has left: `frames` to write, `events` to tell, `stores` to keep, `wishes` to fulfil; and calls `tick` at
`deadline()`. Times are seconds of a clock that never goes back; `wall_ms` is the date.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from nexo.client import events
from nexo.client.connecting import Connecting
from nexo.client.desk import Desk, Frame, Store
from nexo.client.failures import ClientError
from nexo.client.inbox import Inbox
from nexo.client.nearby import Present
from nexo.client.options import Options
from nexo.client.outbox import ClientMsgIds, Outbox, Outgoing
from nexo.client.sent import own_message
from nexo.errors import ERRORS


class Core(Desk):
    def __init__(self, options: Options, user_id: str, rng: random.Random | None = None) -> None:
        super().__init__(options, user_id)
        rng = rng or random.Random()
        self.ids = ClientMsgIds()
        self.outbox = Outbox(options, rng)
        self.link = Connecting(options, rng)
        self.inbox = Inbox(options, self, self.link, rng)
        self.presence = Present()
        self._ping_sent = False
        self._handlers: dict[str, Callable[[Frame, float], None]] = {
            "AUTH_OK": self._auth_ok,
            "AUTH_FAIL": self._auth_fail,
            "ERROR": self._error,
            "ACK": self._acked,
            "PRESENCE": self._present,
            "SYNC": self.inbox.synced,
            "RESYNC": self.inbox.resync,
            "RESEND_DONE": self.inbox.resend_done,
            "SINGLE_CHAT": self.inbox.message,
            "GROUP_CHAT": self.inbox.message,
            "GROUP_EVENT": self.inbox.message,
            "MESSAGE_REVOKED": self.inbox.revoked,
            "MESSAGE_WITHDRAWN": self.inbox.withdrawn,
            "PULL_OK": self.inbox.pulled,
            "GROUP_NOTIFY": self.inbox.notified,
            "HEADS": self.inbox.notified,
            "TYPING": self.inbox.typing,
        }

    def pending(self, conversation_id: str) -> list[Outgoing]:
        """Sent and not in `messages` yet."""
        placed = [o for o in self.inbox.in_place.values() if o.conversation_id == conversation_id]
        return placed + self.outbox.of(conversation_id)

    # -- the connection ----------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """The user wants to be connected."""
        if self.link.start(now):
            self.wish("open")
        self._tell_state()

    def stop(self) -> None:
        """The user wants no connection any more. What should still be said is in `frames`."""
        if self.link.is_signed_in:
            self.frames += self.inbox.acks.take(self.views)
        self._forget_connection()
        self.link.stop()
        self._tell_state()

    def opened(self, now: float, token: str, device_id: str) -> None:
        """The socket is open: show the token."""
        self.link.opened(now)
        baselines = self.inbox.baselines.for_auth(self.views)
        auth: Frame = {"type": "AUTH", "token": token, "deviceId": device_id}
        self.frames.append(auth | ({"baselines": baselines} if baselines else {}))

    def lost(self, now: float, code: int = 1006, reason: str = "") -> None:
        """The connection has ended, or could not be made."""
        self._forget_connection()
        if self.link.lost(now, code, reason):
            self.tell(events.SessionChanged(None))
        if self.link.state == "closed" and self.link.reason in ("kicked", "replaced"):
            self._tell_state()
            self.tell(events.Kicked(self.link.reason))
        else:
            self._tell_state()

    def refreshed(self, token: str) -> None:
        """There is a new access token."""
        if self.link.is_signed_in:
            self.frames.append({"type": "REAUTH", "token": token})

    def end(self, reason: str) -> None:
        """No way to go on, as when the session cannot be refreshed."""
        self._forget_connection()
        if self.link.end(reason):
            self.tell(events.SessionChanged(None))
        self.wish("drop")
        self._tell_state()

    def _forget_connection(self) -> None:
        self.outbox.disconnected()
        self.inbox.forget_connection()
        self._ping_sent = False

    def _tell_state(self) -> None:
        if self.link.has_changed():
            self.tell(events.StateChanged(self.link.state, self.link.reason, self.link.retry_at))

    # -- time --------------------------------------------------------------------------------------------------

    def deadline(self, now: float) -> float | None:
        due = [self.link.deadline(), self.inbox.deadline()]
        if self.link.is_signed_in:
            due += [self._silence_due(), self.outbox.deadline(now)]
        return min((at for at in due if at is not None), default=None)

    @property
    def _timeout_s(self) -> float:
        return self.options.ack_timeout_ms / 1000

    @property
    def _heartbeat_s(self) -> float:
        return (self.options.heartbeat_ms or self.link.heartbeat_ms) / 1000

    def _silence_due(self) -> float:
        """When a PING is due, or the connection has been silent for too long after something was asked."""
        asked = self._asked_at()
        ping_at = self.link.heard_at + self._heartbeat_s
        if asked is None:
            return ping_at
        silent_at = max(asked, self.link.heard_at) + self._timeout_s
        return silent_at if self._ping_sent else min(silent_at, ping_at)

    def _asked_at(self) -> float | None:
        """Since when anything is unanswered."""
        asked = [self.inbox.oldest_asked(), self.outbox.oldest_unanswered()]
        if self._ping_sent:
            asked.append(self.link.heard_at + self._heartbeat_s)
        return min((at for at in asked if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Whatever is due."""
        was_offline = self.link.state == "offline"
        if self.link.tick(now):
            self.wish("open" if was_offline else "drop")
            self._tell_state()
        if self.link.is_signed_in and self._is_silent(now):
            self.wish("drop")
            return
        self.inbox.tick(now)
        if not self.link.is_signed_in:
            return
        if not self._ping_sent and now >= self.link.heard_at + self._heartbeat_s:
            self._ping_sent = True
            self.frames.append({"type": "PING"})
        self.outbox.repeat_unanswered(now)
        self._send_outbox(now)

    def _is_silent(self, now: float) -> bool:
        asked = self._asked_at()
        return asked is not None and now >= max(asked, self.link.heard_at) + self._timeout_s

    # -- sending -----------------------------------------------------------------------------------------------

    def send(
        self, conversation_id: str, fields: Mapping[str, Any], wall_ms: int, client_msg_id: str | None = None
    ) -> Outgoing:
        """Into the outbox. It goes on the wire once `stored` was called for it."""
        if len(self.outbox) >= self.options.max_pending:
            raise ClientError("outbox_full")
        outgoing = Outgoing(self.ids.new(wall_ms), conversation_id, fields, wall_ms, client_msg_id or "")
        self.outbox.add(outgoing)
        self._store_outgoing(outgoing)
        self.change(self.view(conversation_id))
        return outgoing

    def restore(self, outgoing: Outgoing) -> None:
        """One that was found in the storage."""
        self.ids.seen(outgoing.order)
        self.outbox.add(outgoing)

    def stored(self, client_msg_id: str, now: float) -> None:
        outgoing = self.outbox.get(client_msg_id)
        if outgoing is not None:
            outgoing.is_stored = True
            self._send_outbox(now)

    def could_not_store(self, client_msg_id: str, detail: str) -> None:
        """It would be lost with this process: better to say so now."""
        outgoing = self.outbox.get(client_msg_id)
        if outgoing is not None and outgoing.state == "sending" and not outgoing.is_stored:
            self.outbox.failed(outgoing, "storage", detail)
            self._tell_outgoing(outgoing)

    def retry(self, outgoing: Outgoing) -> bool:
        if not self.outbox.retry(outgoing):
            return False
        self._store_outgoing(outgoing)
        self._tell_outgoing(outgoing)
        return True

    def cancel(self, outgoing: Outgoing) -> bool:
        if not self.outbox.cancel(outgoing):
            return False
        self.stores.append(Store(self._outbox_key(outgoing), None))
        self._tell_outgoing(outgoing)
        return True

    def _outbox_key(self, outgoing: Outgoing) -> str:
        return f"outbox/{self.user_id}/{outgoing.client_msg_id}"

    def _store_outgoing(self, outgoing: Outgoing) -> None:
        self.stores.append(Store(self._outbox_key(outgoing), outgoing.as_stored()))

    def _send_outbox(self, now: float) -> None:
        if self.link.is_signed_in:
            self.frames += [outgoing.frame for outgoing in self.outbox.take(now)]

    def _tell_outgoing(self, outgoing: Outgoing) -> None:
        self.tell(events.OutgoingChanged(outgoing))
        self.change(self.view(outgoing.conversation_id))

    # -- reading -----------------------------------------------------------------------------------------------

    def mark_read(self, conversation_id: str, seq: int | None, now: float) -> None:
        """Up to `seq`, never beyond what was given. Kept, and said again after a reconnect."""
        view = self.view(conversation_id)
        upto = view.synced_seq if seq is None else min(seq, view.synced_seq)
        if not view.is_known or not view.read_to(upto):
            return
        view.wanted_read = upto
        self.inbox.acks.soon(view.conversation_id, now)
        self.inbox.ask_if_stale(view, now)
        self.change(view)

    def typing(self, target: Mapping[str, str], on: bool) -> None:
        if self.link.is_signed_in:
            self.frames.append({"type": "TYPING", "on": on} | dict(target))

    def watch(self, user_ids: list[str]) -> None:
        """A subscription replaces the one before."""
        self.presence.watch(user_ids)
        if self.link.is_signed_in:
            self.frames.append({"type": "PRESENCE", "subscribe": user_ids})

    # -- receiving ---------------------------------------------------------------------------------------------

    def received(self, frame: Frame, now: float) -> None:
        """Any frame. One that makes no sense is an `error` event, and nothing else happens."""
        self.link.heard(now)
        self._ping_sent = False
        handle = self._handlers.get(frame.get("type", ""))
        if handle is None:
            return  # of a newer server
        try:
            handle(frame, now)
        except Exception as error:  # whatever a server sends, the client lives on
            text = f"{frame.get('type')}: {type(error).__name__} {error}"
            self.tell(events.Failed(ClientError("bad_answer", text)))
        if self.link.is_signed_in:
            self.inbox.fill_holes(now)
            self._send_outbox(now)
            self._check_online(now)

    def _auth_ok(self, frame: Frame, now: float) -> None:
        if self.link.is_signed_in:
            return  # REAUTH
        self.link.signed_in(now, frame.get("heartbeatMs", 30_000))
        self.inbox.syncing.expect_page(now)
        if self.presence.watched:
            self.frames.append({"type": "PRESENCE", "subscribe": self.presence.watched})
        self._tell_state()

    def _auth_fail(self, frame: Frame, now: float) -> None:
        self.link.told_error(frame["reason"], frame.get("retryAfterMs"))

    def _error(self, frame: Frame, now: float) -> None:
        reason, request_id = frame["reason"], frame.get("clientMsgId")
        detail, retry_after_ms = frame.get("detail", ""), frame.get("retryAfterMs")
        outgoing = self.outbox.get(request_id)
        if outgoing is not None:
            if self.outbox.refused(outgoing, reason, detail, retry_after_ms, now):
                self._store_outgoing(outgoing)
                self._tell_outgoing(outgoing)
            return
        pulled = self.inbox.holes.asked_with(request_id)
        if pulled is not None:
            self.inbox.pull_refused(pulled, reason, retry_after_ms, now)
        elif request_id is not None and self.inbox.syncing.is_page(request_id):
            self.inbox.syncing.page_refused(now + self.link.pause_s(1, retry_after_ms))
        elif reason in ERRORS and (ERRORS[reason].closes or reason == "too_many_requests"):
            self.link.told_error(reason, retry_after_ms)
        else:
            self.tell(events.Failed(ClientError(reason, detail, retry_after_ms=retry_after_ms)))

    def _check_online(self, now: float) -> None:
        if self.link.state == "syncing" and self.inbox.syncing.is_over:
            self.link.caught_up(now)
            self._tell_state()

    # acknowledgements

    def _acked(self, frame: Frame, now: float) -> None:
        match frame["ackType"]:
            case "saved":
                self._saved(frame, now)
            case "accepted":
                outgoing = self.outbox.get(frame["clientMsgId"])
                if outgoing is not None and self.outbox.accepted(outgoing, now):
                    outgoing.server_msg_id = frame["serverMsgId"]
                    self._tell_outgoing(outgoing)
            case "delivered" | "read" as kind:
                self._receipt(kind, frame, now)

    def _saved(self, frame: Frame, now: float) -> None:
        outgoing = self.outbox.get(frame["clientMsgId"])
        if outgoing is None:
            return  # the answer to a repetition
        self.outbox.saved(outgoing)
        self.stores.append(Store(self._outbox_key(outgoing), None))
        outgoing.state = "saved"
        outgoing.server_msg_id, outgoing.seq, outgoing.send_at = frame["serverMsgId"], frame["msgSeq"], frame["ts"]
        name = outgoing.conversation_id = frame["conversationId"]
        if "body" in frame:
            outgoing.fields["body"] = frame["body"]
        view = self.view(name)
        self.inbox.in_place[outgoing.client_msg_id] = outgoing
        self.inbox.awaited.add(name, outgoing)
        self.inbox.place(view, own_message(view, outgoing), now)
        if view.synced_seq >= frame["msgSeq"] or view.has_later:
            self.inbox.in_place.pop(outgoing.client_msg_id, None)
        self.inbox.update_states(view)
        if outgoing.state == "saved":
            self._tell_outgoing(outgoing)

    def _receipt(self, kind: str, frame: Frame, now: float) -> None:
        view, seq = self.view(frame["conversationId"]), frame["msgSeq"]
        user_id = frame.get("from")
        if user_id is None or user_id == self.user_id:
            if kind == "read" and view.read_to(seq):
                self.inbox.ask_if_stale(view, now)
                self.change(view)
            return
        if view.told_receipt(kind, seq):
            self.inbox.update_states(view)
            self.change(view)
        self.tell(events.Receipt(kind, user_id, seq, frame["serverMsgId"], view.conversation_id))

    def _present(self, frame: Frame, now: float) -> None:
        self.tell(events.PresenceChanged(self.presence.told(frame["users"])))

    # -- what is kept --------------------------------------------------------------------------------------------

    def take_baselines(self) -> list[Store]:
        """The contiguous points that have moved since the last time."""
        prefix = f"baselines/{self.user_id}/"
        return [Store(prefix + name, self.views[name].synced_seq) for name in self.inbox.baselines.take_moved()]

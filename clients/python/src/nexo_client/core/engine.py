"""The client of one signed-in user: what to do with each frame, and what to send when. No I/O and no clock.

The driver (`driver.py`, or a test with its own clock) calls one method and then takes the outputs: `frames` to send,
`events` to emit, `writes` to store, `actions` to perform; and it calls `tick` at `deadline()`. Times are seconds of a
monotonic clock; `wall_ms` is the date.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs

from nexo_client import events
from nexo_client.core.connection import Connection
from nexo_client.core.frames import CALL_FRAMES, Frame, auth_frame, send_frame
from nexo_client.core.ids import MessageIds
from nexo_client.core.inbox import Inbox
from nexo_client.core.messages import message_from_saved
from nexo_client.core.options import Options
from nexo_client.core.outbox import Outbox, OutboxItem
from nexo_client.core.outputs import Outputs, StorageWrite
from nexo_client.errors import ClientError, reason_of
from nexo_client.types import Upload

_PRESENT = ("delivered", "read", "edited", "reacted", "pinned", "revoked")  # ACKs whose `ts` is the present time


class Engine(Outputs):
    def __init__(self, options: Options, user_id: str, rng: random.Random | None = None) -> None:
        super().__init__(options, user_id)
        rng = rng or random.Random()
        self.ids = MessageIds()
        self.outbox = Outbox(options, rng)
        self.connection = Connection(options, rng)
        self.inbox = Inbox(options, self, self.connection, rng)
        self._watched_users: list[str] = []
        self._ping_sent = False
        self._handlers: dict[str, Callable[[Frame, float], None]] = {
            "AUTH_OK": self._receive_auth_ok,
            "AUTH_FAIL": self._receive_auth_fail,
            "ERROR": self._receive_error,
            "ACK": self._receive_ack,
            "PRESENCE": self._receive_presence,
            "SYNC": self.inbox.receive_sync,
            "RESYNC": self.inbox.receive_resync,
            "RESEND_DONE": self.inbox.receive_resend_done,
            "SINGLE_CHAT": self.inbox.receive_message,
            "GROUP_CHAT": self.inbox.receive_message,
            "GROUP_EVENT": self.inbox.receive_message,
            "MESSAGE_REVOKED": self.inbox.receive_revoked,
            "MESSAGE_WITHDRAWN": self.inbox.receive_withdrawn,
            "MESSAGE_EDITED": self.inbox.receive_change,
            "REACTIONS": self.inbox.receive_change,
            "PINNED": self.inbox.receive_change,
            "DELETED": self.inbox.receive_deleted,
            "FRIEND_REQUEST": self._receive_contact_request,
            "FRIEND_DECISION": self._receive_contact_decision,
            "GROUP_JOIN_REQUEST": self._receive_join_request,
            "PULL_OK": self.inbox.receive_page,
            "GROUP_NOTIFY": self.inbox.receive_heads,
            "HEADS": self.inbox.receive_heads,
            "TYPING": self.inbox.receive_typing,
            **dict.fromkeys(CALL_FRAMES, self._receive_call),
        }

    def pending(self, conversation_id: str) -> list[OutboxItem]:
        """Returns what was sent and is not among the conversation's messages yet."""
        ahead = [item for item in self.inbox.saved_ahead.values() if item.conversation_id == conversation_id]
        return ahead + self.outbox.items_of(conversation_id)

    # -- the connection ----------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Connects, and stays connected until `stop`."""
        if self.connection.start(now):
            self.request("open")
        self._emit_state()

    def stop(self) -> None:
        """Disconnects. `frames` holds the acknowledgements that are still to be sent."""
        if self.connection.is_signed_in:
            self.frames += self.inbox.acks.take(self.conversations)
        self._disconnected()
        self.connection.stop()
        self._emit_state()

    def opened(self, now: float, token: str, device_id: str) -> None:
        """Signs in on the socket that was opened."""
        self.connection.opened(now)
        self.frames.append(auth_frame(token, device_id, self.inbox.baselines.for_auth(self.conversations)))

    def lost(self, now: float, code: int = 1006, reason: str = "") -> None:
        """Handles a connection that has ended or could not be opened."""
        self._disconnected()
        if self.connection.lost(now, code, reason):
            self.emit(events.SessionChanged(None))
        self._emit_state()
        if self.connection.state == "closed" and self.connection.reason in ("kicked", "replaced"):
            self.emit(events.Kicked(self.connection.reason))

    def refreshed(self, token: str) -> None:
        """Sends a new access token to the server."""
        if self.connection.is_signed_in:
            self.frames.append({"type": "REAUTH", "token": token})

    def end(self, reason: str) -> None:
        """Stops for good, as when the session cannot be refreshed."""
        self._disconnected()
        if self.connection.end(reason):
            self.emit(events.SessionChanged(None))
        self.request("drop")
        self._emit_state()

    def _disconnected(self) -> None:
        self.outbox.disconnected()
        self.inbox.disconnected()
        self._ping_sent = False

    def _emit_state(self) -> None:
        connection = self.connection
        if connection.has_changed():
            self.emit(events.StateChanged(connection.state, connection.reason, connection.retry_at))

    # -- time --------------------------------------------------------------------------------------------------

    def deadline(self, now: float) -> float | None:
        due = [self.connection.deadline(), self.inbox.deadline()]
        if self.connection.is_signed_in:
            due += [self._silence_due(), self.outbox.deadline(now)]
        return min((at for at in due if at is not None), default=None)

    @property
    def _timeout_s(self) -> float:
        return self.options.ack_timeout_ms / 1000

    @property
    def _heartbeat_s(self) -> float:
        return (self.options.heartbeat_ms or self.connection.heartbeat_ms) / 1000

    def _silence_due(self) -> float:
        """Returns when a PING is due, or when the connection is silent for too long after a request."""
        requested = self._oldest_request()
        ping_at = self.connection.heard_at + self._heartbeat_s
        if requested is None:
            return ping_at
        silent_at = max(requested, self.connection.heard_at) + self._timeout_s
        return silent_at if self._ping_sent else min(silent_at, ping_at)

    def _oldest_request(self) -> float | None:
        """Returns the time of the oldest request without an answer."""
        requested = [self.inbox.oldest_request(), self.outbox.oldest_unanswered()]
        if self._ping_sent:
            requested.append(self.connection.heard_at + self._heartbeat_s)
        return min((at for at in requested if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Does everything that is due."""
        was_offline = self.connection.state == "offline"
        if self.connection.tick(now):
            self.request("open" if was_offline else "drop")
            self._emit_state()
        if self.connection.is_signed_in and self._is_silent(now):
            self.request("drop")
            return
        self.inbox.tick(now)
        if not self.connection.is_signed_in:
            return
        if not self._ping_sent and now >= self.connection.heard_at + self._heartbeat_s:
            self._ping_sent = True
            self.frames.append({"type": "PING"})
        self.outbox.repeat_unanswered(now)
        self._send_outbox(now)

    def _is_silent(self, now: float) -> bool:
        requested = self._oldest_request()
        return requested is not None and now >= max(requested, self.connection.heard_at) + self._timeout_s

    # -- sending -----------------------------------------------------------------------------------------------

    def send(
        self,
        conversation_id: str,
        fields: Mapping[str, Any],
        wall_ms: int,
        client_msg_id: str | None = None,
        upload: Upload | None = None,
    ) -> OutboxItem:
        """Adds a message to the outbox. It is sent, or its file is uploaded, after `stored` was called for it."""
        if len(self.outbox) >= self.options.max_pending:
            raise ClientError("outbox_full")
        item = OutboxItem(self.ids.new(wall_ms), conversation_id, fields, wall_ms, client_msg_id or "", upload)
        self.outbox.add(item)
        self._write_item(item)
        self.mark_changed(self.conversation(conversation_id))
        return item

    def restore(self, item: OutboxItem) -> None:
        """Adds an item that was found in the storage."""
        self.ids.seen(item.order)
        self.outbox.add(item)

    def stored(self, client_msg_id: str, now: float) -> None:
        item = self.outbox.get(client_msg_id)
        if item is not None:
            item.is_stored = True
            if item.upload is not None:
                self.request("upload")
            self._send_outbox(now)

    def store_failed(self, client_msg_id: str, detail: str) -> None:
        """Fails a message that could not be stored: it would be lost with this process."""
        item = self.outbox.get(client_msg_id)
        if item is not None and item.state in ("sending", "uploading") and not item.is_stored:
            self.outbox.failed(item, "storage", detail)
            self._emit_item(item)

    def retry(self, item: OutboxItem) -> bool:
        if not self.outbox.retry(item):
            return False
        self._write_item(item)
        self._emit_item(item)
        return True

    def cancel(self, item: OutboxItem) -> bool:
        if not self.outbox.cancel(item):
            return False
        self.writes.append(StorageWrite(self._item_key(item), None))
        self.request("upload")
        self._emit_item(item)
        return True

    def upload_began(self, item: OutboxItem, address: str) -> None:
        """Stores where the upload of an item continues."""
        self.outbox.upload_began(item, address)
        self._write_item(item)

    def upload_moved(self, item: OutboxItem, uploaded_bytes: int) -> None:
        item.uploaded_bytes = uploaded_bytes
        self._emit_item(item)

    def uploaded(self, item: OutboxItem, file_id: str) -> None:
        """Sends the message of a file that is complete, after it was stored."""
        self.outbox.uploaded(item, file_id)
        self._write_item(item)
        self._emit_item(item)

    def upload_failed(self, item: OutboxItem, reason: str, detail: str) -> None:
        self.outbox.failed(item, reason, detail)
        self._write_item(item)
        self._emit_item(item)

    def _item_key(self, item: OutboxItem) -> str:
        return f"outbox/{self.user_id}/{item.client_msg_id}"

    def _write_item(self, item: OutboxItem) -> None:
        self.writes.append(StorageWrite(self._item_key(item), item.as_stored()))

    def _send_outbox(self, now: float) -> None:
        if self.connection.is_signed_in:
            self.frames += [send_frame(item) for item in self.outbox.take(now)]

    def _emit_item(self, item: OutboxItem) -> None:
        self.emit(events.OutgoingChanged(item))
        self.mark_changed(self.conversation(item.conversation_id))

    # -- reading, typing, presence -----------------------------------------------------------------------------

    def mark_read(self, conversation_id: str, seq: int | None, now: float) -> None:
        """Moves the read cursor to `seq`, never beyond what was given. It is sent again after a reconnect."""
        conversation = self.conversation(conversation_id)
        upto = conversation.synced_seq if seq is None else min(seq, conversation.synced_seq)
        if not conversation.is_known or not conversation.read_to(upto):
            return
        conversation.unsent_read_seq = upto
        if conversation.settings.marked_unread:
            conversation.settings = structs.replace(conversation.settings, marked_unread=False)
        self.inbox.acks.note(conversation_id, now)
        self.inbox.request_stale_counts(conversation, now)
        self.mark_changed(conversation)

    def send_typing(self, target: Mapping[str, str], on: bool) -> None:
        if self.connection.is_signed_in:
            self.frames.append({"type": "TYPING", "on": on} | dict(target))

    def watch_presence(self, user_ids: list[str]) -> None:
        """Replaces the subscription; it is repeated after a reconnect."""
        self._watched_users = user_ids
        if self.connection.is_signed_in:
            self.frames.append({"type": "PRESENCE", "subscribe": user_ids})

    def baseline_writes(self) -> list[StorageWrite]:
        """Returns how far the application has the conversations that have moved since the last call."""
        prefix = f"baselines/{self.user_id}/"
        moved = self.inbox.baselines.take_moved()
        return [StorageWrite(prefix + one, self.conversations[one].handled_seq) for one in moved]

    # -- receiving ---------------------------------------------------------------------------------------------

    def receive(self, frame: Frame, now: float) -> None:
        """Handles any frame. One that cannot be understood becomes an `error` event."""
        self.connection.heard(now)
        is_present = frame.get("type") == "ERROR" or frame.get("ackType") in _PRESENT
        self.inbox.server_clock.heard(now, frame.get("ts"), is_present)
        self._ping_sent = False
        handle = self._handlers.get(frame.get("type", ""))
        if handle is None:
            return  # of a newer server
        try:
            handle(frame, now)
        except Exception as error:  # no frame may stop the client
            text = f"{frame.get('type')}: {type(error).__name__} {error}"
            self.emit(events.Failed(ClientError("bad_answer", text)))
        if self.connection.is_signed_in:
            self.inbox.send_pulls(now)
            self._send_outbox(now)
            self._check_online(now)

    def _receive_auth_ok(self, frame: Frame, now: float) -> None:
        if self.connection.is_signed_in:
            return  # the answer to REAUTH
        self.connection.signed_in(now, frame.get("heartbeatMs", 30_000))
        self.inbox.sync.expect_page(now)
        if self._watched_users:
            self.frames.append({"type": "PRESENCE", "subscribe": self._watched_users})
        self._emit_state()

    def _receive_auth_fail(self, frame: Frame, now: float) -> None:
        self.connection.explain(str(frame["reason"]), frame.get("retryAfterMs"))

    def _receive_error(self, frame: Frame, now: float) -> None:
        reason, request_id = frame["reason"], frame.get("clientMsgId")
        detail, retry_after_ms = frame.get("detail", ""), frame.get("retryAfterMs")
        item = self.outbox.get(request_id)
        if item is not None:
            if self.outbox.refused(item, reason, detail, retry_after_ms, now):
                self._write_item(item)
                self._emit_item(item)
            return
        pulled = self.inbox.pulls.conversation_of(request_id)
        if pulled is not None:
            self.inbox.pull_refused(pulled, reason, retry_after_ms, now)
        elif request_id is not None and self.inbox.sync.is_page(request_id):
            self.inbox.sync.page_refused(now + self.connection.backoff.pause_s(1, retry_after_ms))
        elif reason_of(reason).close_code or reason == "too_many_requests":
            self.connection.explain(reason, retry_after_ms)
        else:
            self.emit(events.Failed(ClientError(reason, detail, retry_after_ms=retry_after_ms)))

    def _check_online(self, now: float) -> None:
        if self.connection.state == "syncing" and self.inbox.sync.is_caught_up:
            self.connection.caught_up(now)
            self._emit_state()

    def send_call(self, frame: Frame) -> bool:
        """Returns whether there is a connection to send it with; it is not kept."""
        if self.connection.is_signed_in:
            self.frames.append(frame)
        return self.connection.is_signed_in

    def _receive_call(self, frame: Frame, now: float) -> None:
        self.emit(events.CallSignaled(frame))

    def _receive_presence(self, frame: Frame, now: float) -> None:
        users = [(user["userId"], user["online"], tuple(user["platforms"])) for user in frame["users"]]
        self.emit(events.PresenceChanged(tuple(events.UserPresence(*user) for user in users)))

    def _receive_contact_request(self, frame: Frame, now: float) -> None:
        self.emit(events.ContactRequested(frame["requestId"], frame["from"], frame["body"], frame["ts"]))

    def _receive_contact_decision(self, frame: Frame, now: float) -> None:
        self.emit(events.ContactDecided(frame["requestId"], frame["from"], frame["accepted"], frame["ts"]))

    def _receive_join_request(self, frame: Frame, now: float) -> None:
        self.emit(events.JoinRequested(frame["groupId"], frame["from"], frame["body"], frame["ts"]))

    def _receive_ack(self, frame: Frame, now: float) -> None:
        match frame["ackType"]:
            case "saved":
                self._receive_saved(frame, now)
            case "accepted":
                item = self.outbox.get(frame["clientMsgId"])
                if item is not None and self.outbox.accepted(item, now):
                    item.server_msg_id = frame["serverMsgId"]
                    self._emit_item(item)
            case "delivered" | "read" as ack_type:
                self._receive_receipt(ack_type, frame, now)

    def _receive_saved(self, frame: Frame, now: float) -> None:
        item = self.outbox.get(frame["clientMsgId"])
        if item is None:
            return  # the answer to a repetition
        self.outbox.saved(item)
        self.writes.append(StorageWrite(self._item_key(item), None))
        item.state = "saved"
        item.server_msg_id, item.seq, item.send_at = frame["serverMsgId"], frame["msgSeq"], frame["ts"]
        item.conversation_id, item.expires_at = frame["conversationId"], frame.get("expiresAt")
        if "body" in frame:
            item.fields["body"] = frame["body"]
        conversation = self.conversation(item.conversation_id)
        reply_to = item.fields.get("replyToServerMsgId")
        message = message_from_saved(item, self.user_id, None if reply_to is None else conversation.find(reply_to))
        self.inbox.saved_ahead[item.client_msg_id] = item
        self.inbox.receipts.add(item.conversation_id, item)
        self.inbox.apply_message(conversation, message, now)
        if conversation.synced_seq >= frame["msgSeq"] or conversation.window.has_later:
            self.inbox.saved_ahead.pop(item.client_msg_id, None)
        self.inbox.update_receipts(conversation)
        if item.state == "saved":
            self._emit_item(item)

    def _receive_receipt(self, ack_type: str, frame: Frame, now: float) -> None:
        conversation, seq = self.conversation(frame["conversationId"]), frame["msgSeq"]
        user_id = frame.get("from")
        if user_id is None or user_id == self.user_id:
            if ack_type == "read" and conversation.read_to(seq):
                self.inbox.request_stale_counts(conversation, now)
                self.mark_changed(conversation)
            return
        if conversation.apply_receipt(ack_type, seq):
            self.inbox.update_receipts(conversation)
            self.mark_changed(conversation)
        self.emit(events.Receipt(ack_type, user_id, seq, frame["serverMsgId"], conversation.conversation_id))

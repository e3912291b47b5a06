"""What the server sends about conversations: entries, messages, notices; and the requests that follow. No I/O."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from nexo_client import events
from nexo_client.core.acks import Acks, AwaitedReceipts
from nexo_client.core.baselines import Baselines
from nexo_client.core.catchup import PullRequests, SyncRequests
from nexo_client.core.connection import Connection
from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.frames import Frame
from nexo_client.core.message_changes import Edit
from nexo_client.core.messages import change_from_frame, entry_from_frame, message_from_frame, recall_from_frame
from nexo_client.core.options import Options
from nexo_client.core.outbox import OutboxItem
from nexo_client.core.outputs import Outputs
from nexo_client.core.server_clock import ServerClock
from nexo_client.core.typists import Typists
from nexo_client.errors import is_transient
from nexo_client.types import Entry, Message, MsgType, Reaction


class Inbox:
    def __init__(self, options: Options, outputs: Outputs, connection: Connection, rng: random.Random) -> None:
        self.pulls = PullRequests(options, rng)
        self.sync = SyncRequests(options)
        self.acks = Acks(options)
        self.baselines = Baselines()
        self.receipts = AwaitedReceipts()
        self.typists = Typists()
        self.server_clock = ServerClock()
        self.saved_ahead: dict[str, OutboxItem] = {}  # saved above a gap: still shown as pending
        self._options = options
        self._outputs = outputs
        self._connection = connection
        self.holds_unhandled = False  # the application takes messages from its inbox and reports each as handled
        self._with_provisional: set[str] = set()
        self._expiring: dict[str, int] = {}  # conversations, and when the next message is over by the server's clock
        self._list_at: float | None = None

    def disconnected(self) -> None:
        self.pulls.clear()
        self.sync.clear()
        self.acks.clear()
        self.typists.clear()
        self._list_at = None
        for conversation in self._outputs.conversations.values():
            conversation.acknowledged = 0
        self.drop_provisional()

    # -- time ----------------------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        due = [self._outputs.conversations[one].timeline.next_expiry for one in self._with_provisional]
        due.append(self.typists.deadline())
        due += [self.server_clock.when(at) for at in self._expiring.values()]
        if self._connection.is_signed_in:
            due += [self.acks.at, self.pulls.deadline(), self.sync.deadline(), self._list_at]
        return min((at for at in due if at is not None), default=None)

    def tick(self, now: float) -> None:
        for conversation_id in list(self._with_provisional):
            conversation = self._outputs.conversations[conversation_id]
            if conversation.timeline.expire_provisional(now):
                self._outputs.mark_changed(conversation)
            if conversation.timeline.next_expiry is None:
                self._with_provisional.discard(conversation_id)
        for conversation_id, user_id in self.typists.take_expired(now):
            self._emit_typing(conversation_id, user_id, False)
        server_ms = self.server_clock.at(now)
        for conversation_id in [one for one, at in self._expiring.items() if at <= server_ms]:
            self._expire(self._outputs.conversation(conversation_id), server_ms)
        if self._connection.is_signed_in:
            if self._list_at is not None and now >= self._list_at:
                self._list_at = None
                self._outputs.request("list")
            self._sync_again(now)
            if self.acks.at is not None and now >= self.acks.at:
                self._outputs.frames += self.acks.take(self._outputs.conversations)
            self.pulls.repeat_late(now)
            self.send_pulls(now)

    def oldest_request(self) -> float | None:
        requested = (self.pulls.oldest_request(), self.sync.oldest_request())
        return min((at for at in requested if at is not None), default=None)

    # -- entries -------------------------------------------------------------------------------------------

    def receive_sync(self, frame: Frame, now: float) -> None:
        conversation_ids = [shape["conversationId"] for shape in frame["conversations"]]
        requested_alone = self.sync.was_requested_alone(conversation_ids)
        for shape in frame["conversations"]:
            self._apply_entry(entry_from_frame(shape), now)
        if frame["hasMore"]:
            self._request_sync(now, cursor=frame["cursor"])
        elif not conversation_ids and not self.sync.waits_for_page:
            self._entry_not_found()
        elif self.sync.waits_for_page and not requested_alone:
            self.sync.last_page_arrived()
            self._sync_complete(now)

    def _entry_not_found(self) -> None:
        """Gives up the conversation that was requested: it is none of this user's."""
        conversation_id = self.sync.take_oldest_entry()
        if conversation_id is not None:
            self._outputs.conversation(conversation_id).timeline.abandon_gap()

    def _sync_complete(self, now: float) -> None:
        self._outputs.request("list")
        for conversation in list(self._outputs.conversations.values()):
            if conversation.timeline.needs_entry:
                self._request_entry(conversation.conversation_id, now)

    def apply_list_row(self, entry: Entry, now: float) -> None:
        """Takes a row of the conversation list, which has more fields than SYNC."""
        self._apply_entry(entry, now)
        self.update_receipts(self._outputs.conversation(entry.conversation_id))

    def hide(self, heads: Mapping[str, int]) -> None:
        """Hides conversations that a complete list did not contain, unless they have grown beyond these heads."""
        for conversation_id, head_seq in heads.items():
            conversation = self._outputs.conversation(conversation_id)
            if conversation.is_known and conversation.head_seq == head_seq:
                conversation.is_hidden = True
                self._outputs.mark_changed(conversation)

    def _apply_entry(self, entry: Entry, now: float) -> None:
        conversation_id = entry.conversation_id
        self.sync.entry_arrived(conversation_id)
        conversation = self._outputs.conversation(conversation_id)
        before, was_known = conversation.read_seq, conversation.is_known
        given = conversation.apply_entry(entry, self.baselines.take_stored(conversation_id))
        if before > entry.read_seq:  # the server has not received this device's read cursor, or not yet
            conversation.unsent_read_seq = max(conversation.unsent_read_seq, before)
            self.acks.note(conversation_id, now)
        self._given(conversation, given, now)
        if conversation.apply_settings(entry) and was_known:
            self._outputs.emit(events.SettingsChanged(conversation_id))
        if conversation.misses_deletions(entry.deleted_rev):
            self._outputs.missing_deletions.add(conversation_id)
        self.watch_expiry(conversation)
        if conversation.must_acknowledge:
            self.acks.note(conversation_id, now)
        if conversation.has_gap:
            self.pulls.gap_seen(conversation_id, now)
            if self._connection.state == "syncing":
                self.sync.is_behind(conversation_id, conversation.head_seq)
        self.request_stale_counts(conversation, now)
        self._outputs.mark_changed(conversation)

    def _request_sync(self, now: float, cursor: str | None = None) -> None:
        request = {"type": "SYNC", "clientMsgId": self.sync.request_page(now)}
        self._outputs.frames.append(request | ({"cursor": cursor} if cursor else {}))

    def _request_entry(self, conversation_id: str, now: float) -> None:
        if self._connection.is_signed_in and self.sync.request_entry(conversation_id, now):
            self._outputs.frames.append({"type": "SYNC", "conversations": [conversation_id]})

    def request_stale_counts(self, conversation: ConversationState, now: float) -> None:
        """Plans a request for counts that the messages in memory do not give. Not at once: the server must first
        receive what was read here, or its answer is no better."""
        at = now + (self._options.gap_wait_ms + 2 * self._options.ack_delay_ms) / 1000
        if conversation.unread_counter.is_stale:
            self.sync.again(at, [conversation.conversation_id])
        if conversation.mention_counter.is_stale and self._list_at is None:
            self._list_at = at

    def _sync_again(self, now: float) -> None:
        everything, conversation_ids = self.sync.take_again(now)
        if everything:
            self._request_sync(now)
        for conversation_id in conversation_ids:
            self._request_entry(conversation_id, now)

    def receive_resync(self, frame: Frame, now: float) -> None:
        """Plans a SYNC, because pushes may have been lost, among them the final copies of provisional messages."""
        self.drop_provisional()
        self.sync.again(now + frame.get("afterMs", 0) / 1000, frame.get("conversations"))

    def receive_resend_done(self, frame: Frame, now: float) -> None:
        """Pulls at once what the server has not resent."""
        for conversation_id in self.sync.behind:
            self.pulls.pull_now(conversation_id, now)

    # -- messages ------------------------------------------------------------------------------------------

    def receive_message(self, frame: Frame, now: float) -> None:
        message = message_from_frame(frame)
        conversation = self._outputs.conversation(message.conversation_id)
        if not message.provisional:
            self.apply_message(conversation, message, now)
        elif conversation.receive_provisional(message, now + self._options.provisional_ms / 1000):
            self._with_provisional.add(message.conversation_id)
            self.typists.stop(message.conversation_id, message.sender_id)
            self._outputs.emit(events.Provisional(message, message.conversation_id))
            self._outputs.mark_changed(conversation)

    def apply_message(self, conversation: ConversationState, message: Message, now: float) -> None:
        given = conversation.receive(message)
        self._given(conversation, given, now)
        if conversation.timeline.needs_entry and not self.sync.waits_for_page:
            self._request_entry(conversation.conversation_id, now)
        if conversation.has_gap:
            self.pulls.gap_seen(conversation.conversation_id, now, progressed=bool(given))
        else:
            self.pulls.gap_filled(conversation.conversation_id)
        self._outputs.mark_changed(conversation)

    def _given(self, conversation: ConversationState, given: list[Message], now: float) -> None:
        """Emits the events of messages that are in order now."""
        for message in given:
            self._emit_given(conversation.conversation_id, message)
        if given:
            self.watch_expiry(conversation)
            self.baselines.note(conversation.conversation_id)
            if conversation.must_acknowledge:
                self.acks.note(conversation.conversation_id, now)
        self.sync.progressed(conversation.conversation_id, conversation.synced_seq)

    def _emit_given(self, conversation_id: str, message: Message) -> None:
        if message.msg_type == MsgType.RECALLED:
            content = message.content
            recalled = events.Recalled(content["server_msg_id"], message.place, content["by"], conversation_id)
            self._outputs.emit(recalled)
        elif message.is_quiet:
            self._emit_change(conversation_id, message)
        elif message.is_event:
            self._outputs.emit(events.GroupEvent(message, conversation_id))
        elif message.sender_id == self._outputs.user_id:
            self.saved_ahead.pop(message.client_msg_id or "", None)
            self._outputs.emit(events.Sent(message, conversation_id))
        else:
            self.typists.stop(conversation_id, message.sender_id)
            if self.holds_unhandled:
                self._outputs.conversation(conversation_id).unhandled[message.place] = None
            self._outputs.emit(events.Received(message, conversation_id))

    def _emit_change(self, conversation_id: str, event: Message) -> None:
        content = event.content
        server_msg_id = content["server_msg_id"]
        if event.msg_type == MsgType.PINNED:
            pinned = events.Pinned(server_msg_id, event.place, content["on"], content["by"], conversation_id)
            self._outputs.emit(pinned)
        else:
            change: events.Change = "edited" if event.msg_type == MsgType.EDITED else "reactions"
            self._emit_changed(conversation_id, server_msg_id, change)

    def _emit_changed(self, conversation_id: str, server_msg_id: str, change: events.Change) -> None:
        message = self._outputs.conversation(conversation_id).window.find(server_msg_id)
        self._outputs.emit(events.MessageChanged(server_msg_id, change, message, conversation_id))

    # -- changes of earlier messages -----------------------------------------------------------------------

    def receive_change(self, frame: Frame, now: float) -> None:
        message = change_from_frame(frame, self._outputs.user_id)
        self.apply_message(self._outputs.conversation(message.conversation_id), message, now)

    def apply_edit(self, conversation: ConversationState, server_msg_id: str, edit: Edit) -> None:
        """Takes the answer to an own edit, before its event."""
        conversation.mark_edited(server_msg_id, edit)
        self._outputs.mark_changed(conversation)

    def apply_reactions(
        self, conversation: ConversationState, server_msg_id: str, reactions: Sequence[Reaction], emoji: str
    ) -> None:
        """Takes the answer to an own reaction, before its event."""
        own = [(emoji, False), *((one.emoji, one.mine) for one in reactions)]
        conversation.mark_reacted(server_msg_id, {one.emoji: one.count for one in reactions}, own)
        self._outputs.mark_changed(conversation)

    def receive_deleted(self, frame: Frame, now: float) -> None:
        """Takes what the user has deleted on another device."""
        conversation, rev = self._outputs.conversation(frame["conversationId"]), frame["deletedRev"]
        if rev == (conversation.deleted_rev or 0) + 1:
            conversation.deleted_rev = rev
        self.apply_deleted(conversation, frame.get("serverMsgIds") or (), frame.get("upToSeq"), rev, now)
        if conversation.misses_deletions(rev):
            self._outputs.missing_deletions.add(conversation.conversation_id)

    def apply_deleted(
        self,
        conversation: ConversationState,
        server_msg_ids: Sequence[str],
        up_to_seq: int | None,
        rev: int | None,
        now: float,
    ) -> None:
        """Hides what the user has deleted, here or on another device. `rev` is the revision that this led to, None
        when it is not known."""
        if not conversation.mark_deleted(server_msg_ids, up_to_seq, rev):
            return
        self.request_stale_counts(conversation, now)
        if conversation.last_message is None and self._list_at is None:
            self._list_at = now
        self._outputs.mark_changed(conversation)
        deleted = events.Deleted(tuple(server_msg_ids), up_to_seq, conversation.conversation_id)
        self._outputs.emit(deleted)

    def watch_expiry(self, conversation: ConversationState) -> None:
        """Blanks messages at their time."""
        at = conversation.next_expiry
        if at is None:
            self._expiring.pop(conversation.conversation_id, None)
        else:
            self._expiring[conversation.conversation_id] = at

    def _expire(self, conversation: ConversationState, server_ms: float) -> None:
        for server_msg_id in conversation.expire(server_ms):
            self._emit_changed(conversation.conversation_id, server_msg_id, "expired")
        self._outputs.mark_changed(conversation)
        self.watch_expiry(conversation)

    def handled(self, conversation_id: str, seq: int, now: float) -> None:
        """Notes that the application has handled a message of its inbox."""
        conversation = self._outputs.conversation(conversation_id)
        if seq in conversation.unhandled:
            del conversation.unhandled[seq]
            self.baselines.note(conversation_id)
            if conversation.must_acknowledge:
                self.acks.note(conversation_id, now)

    def receive_revoked(self, frame: Frame, now: float) -> None:
        conversation = self._outputs.conversation(frame["conversationId"])
        target = conversation.mark_recalled(frame["serverMsgId"], frame["ts"])
        self.apply_message(conversation, recall_from_frame(frame, None if target is None else target.seq), now)

    def receive_withdrawn(self, frame: Frame, now: float) -> None:
        conversation = self._outputs.conversation(frame["conversationId"])
        if conversation.timeline.drop_provisional(frame["serverMsgId"]):
            self._outputs.emit(events.Withdrawn(frame["serverMsgId"], frame["reason"], conversation.conversation_id))
            self._outputs.mark_changed(conversation)

    def drop_provisional(self) -> None:
        for conversation_id in self._with_provisional:
            conversation = self._outputs.conversations[conversation_id]
            if conversation.timeline.expire_provisional(math.inf):
                self._outputs.mark_changed(conversation)
        self._with_provisional.clear()

    # -- gaps ----------------------------------------------------------------------------------------------

    def send_pulls(self, now: float) -> None:
        for conversation_id, request_id in self.pulls.take(now):
            conversation = self._outputs.conversations[conversation_id]
            if conversation.has_gap:
                begin = {"conversationId": conversation_id, "beginSeq": conversation.synced_seq + 1}
                self._outputs.frames.append({"type": "PULL", "clientMsgId": request_id} | begin)
            else:
                self.pulls.not_needed(conversation_id)

    def receive_page(self, frame: Frame, now: float) -> None:
        conversation_id = frame["conversationId"]
        if not self.pulls.answered(conversation_id):
            return  # of a pull that was repeated; its messages come again
        conversation = self._outputs.conversation(conversation_id)
        messages = [message_from_frame(shape) for shape in frame["messages"]]
        given = conversation.receive_page(messages, frame["nextSeq"], frame["headSeq"], frame["hasMore"])
        self._given(conversation, given, now)
        if frame["hasMore"]:
            self.pulls.pull_at(conversation_id, now)
        elif conversation.has_gap:
            self.pulls.gap_seen(conversation_id, now)
        else:
            self.sync.give_up(conversation_id)
        if conversation.must_acknowledge:
            self.acks.note(conversation_id, now)
        self.request_stale_counts(conversation, now)
        self._outputs.mark_changed(conversation)

    def pull_refused(self, conversation_id: str, reason: str, retry_after_ms: int | None, now: float) -> None:
        failures = self.pulls.refused(conversation_id)
        if is_transient(reason):
            self.pulls.pull_at(conversation_id, now + self._connection.backoff.pause_s(failures, retry_after_ms))
            return
        conversation = self._outputs.conversations[conversation_id]
        conversation.timeline.abandon_gap()
        self.sync.give_up(conversation_id)
        self._outputs.mark_changed(conversation)

    def receive_heads(self, frame: Frame, now: float) -> None:
        """Pulls what GROUP_NOTIFY or HEADS reports, without a further wait: the server has waited already."""
        for head in frame.get("conversations") or [frame]:
            conversation = self._outputs.conversation(head["conversationId"])
            if not conversation.is_known:
                self._request_entry(conversation.conversation_id, now)
            elif conversation.timeline.learn_head(head["headSeq"]):
                self.pulls.pull_at(conversation.conversation_id, now)
                self._outputs.mark_changed(conversation)

    # -- receipts and typing -------------------------------------------------------------------------------

    def update_receipts(self, conversation: ConversationState) -> None:
        """Emits the changes of messages that were delivered or read meanwhile."""
        for item in self.receipts.update(conversation):
            self._outputs.emit(events.OutgoingChanged(item))
            self._outputs.mark_changed(conversation)

    def receive_typing(self, frame: Frame, now: float) -> None:
        conversation_id, user_id, on = frame["conversationId"], frame["from"], bool(frame["on"])
        if on:
            self.typists.start(conversation_id, user_id, now)
        else:
            self.typists.stop(conversation_id, user_id)
        self._emit_typing(conversation_id, user_id, on)

    def _emit_typing(self, conversation_id: str, user_id: str, on: bool) -> None:
        self._outputs.emit(events.Typing(user_id, on, conversation_id))
        self._outputs.mark_changed(self._outputs.conversation(conversation_id))

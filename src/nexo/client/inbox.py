"""What the server tells of conversations: entries, messages, notices; and what is asked for because of that. No I/O."""

from __future__ import annotations

import random
from collections.abc import Mapping

from nexo.client import events
from nexo.client.baselines import Baselines
from nexo.client.connecting import Connecting
from nexo.client.delivery import Acks, Awaited
from nexo.client.desk import Desk, Frame
from nexo.client.failures import is_transient
from nexo.client.holes import Holes
from nexo.client.model import Entry, Message, entry_of_frame, message_of_frame, recall_event
from nexo.client.nearby import Typists
from nexo.client.options import Options
from nexo.client.outbox import Outgoing
from nexo.client.syncing import Syncing
from nexo.client.view import View
from nexo.core.model import MsgType


class Inbox:
    def __init__(self, options: Options, desk: Desk, link: Connecting, rng: random.Random) -> None:
        self.holes = Holes(options, rng)
        self.syncing = Syncing(options)
        self.acks = Acks(options)
        self.baselines = Baselines()
        self.awaited = Awaited()
        self.typists = Typists()
        self.in_place: dict[str, Outgoing] = {}  # saved, and shown as pending until everything before it is here
        self._options = options
        self._desk = desk
        self._link = link
        self._with_provisional: set[str] = set()
        self._list_at: float | None = None

    def forget_connection(self) -> None:
        self.holes.forget()
        self.syncing.forget()
        self.acks.forget()
        self.typists.forget()
        self._list_at = None
        for view in self._desk.views.values():
            view.acknowledged = 0
        self.drop_provisional()

    # -- time ----------------------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        due = [self._desk.views[name].next_provisional_end for name in self._with_provisional]
        due.append(self.typists.deadline())
        if self._link.is_signed_in:
            due += [self.acks.at, self.holes.deadline(), self.syncing.deadline(), self._list_at]
        return min((at for at in due if at is not None), default=None)

    def tick(self, now: float) -> None:
        for name in list(self._with_provisional):
            view = self._desk.views[name]
            if view.drop_old_provisional(now):
                self._desk.change(view)
            if view.next_provisional_end is None:
                self._with_provisional.discard(name)
        for name, user_id in self.typists.take_over(now):
            self.tell_typing(name, user_id, False)
        if self._link.is_signed_in:
            if self._list_at is not None and now >= self._list_at:
                self._list_at = None
                self._desk.wish("list")
            self.sync_again(now)
            if self.acks.at is not None and now >= self.acks.at:
                self._desk.frames += self.acks.take(self._desk.views)
            self.holes.repeat_late(now)
            self.fill_holes(now)

    def oldest_asked(self) -> float | None:
        asked = (self.holes.oldest_asked(), self.syncing.oldest_asked())
        return min((at for at in asked if at is not None), default=None)

    # -- entries -------------------------------------------------------------------------------------------

    def synced(self, frame: Frame, now: float) -> None:
        names = [shape["conversationId"] for shape in frame["conversations"]]
        asked_alone = self.syncing.was_asked_alone(names)
        for shape in frame["conversations"]:
            self._told_entry(entry_of_frame(shape), now)
        if frame["hasMore"]:
            self._ask_sync(now, cursor=frame["cursor"])
        elif not names and not self.syncing.waits_for_page:
            self._not_found()
        elif self.syncing.waits_for_page and not asked_alone:
            self.syncing.all_pages_came()
            self._sync_complete(now)

    def _not_found(self) -> None:
        """The conversation that was asked for is none of ours."""
        name = self.syncing.take_oldest_entry()
        if name is not None:
            self._desk.view(name).nothing_there()

    def _sync_complete(self, now: float) -> None:
        self._desk.wish("list")
        for name in list(self._desk.views):
            view = self._desk.views[name]
            if view.is_waiting_for_entry:
                self._ask_entry(name, now)

    def told_by_list(self, entry: Entry, now: float) -> None:
        """An entry of the list, which tells more than SYNC."""
        self._told_entry(entry, now)
        self.update_states(self._desk.view(entry.conversation_id))

    def hide(self, heads: Mapping[str, int]) -> None:
        """These were not in the list when their heads were so: hidden or deleted, until they grow."""
        for name, head_seq in heads.items():
            view = self._desk.view(name)
            if view.is_known and view.head_seq == head_seq:
                view.hidden_at = head_seq
                self._desk.change(view)

    def _told_entry(self, entry: Entry, now: float) -> None:
        name = entry.conversation_id
        self.syncing.entry_came(name)
        view = self._desk.view(name)
        before = view.read_seq
        given = view.told(entry, self.baselines.take_found(name))
        if before > entry.read_seq:  # what we said of it did not arrive, or is still under way
            view.wanted_read = max(view.wanted_read, before)
            self.acks.soon(view.conversation_id, now)
        self._given(view, given, now)
        if view.must_acknowledge:
            self.acks.soon(view.conversation_id, now)
        if view.has_gap:
            self.holes.seen(name, now)
            if self._link.state == "syncing":
                self.syncing.is_behind(name, view.head_seq)
        self.ask_if_stale(view, now)
        self._desk.change(view)

    def _ask_sync(self, now: float, cursor: str | None = None) -> None:
        request = {"type": "SYNC", "clientMsgId": self.syncing.ask_page(now)}
        self._desk.frames.append(request | ({"cursor": cursor} if cursor else {}))

    def _ask_entry(self, name: str, now: float) -> None:
        if self._link.is_signed_in and self.syncing.ask_entry(name, now):
            self._desk.frames.append({"type": "SYNC", "conversations": [name]})

    def ask_if_stale(self, view: View, now: float) -> None:
        """A count that cannot be told from what is in memory is asked for. Not at once: what we have read must
        have reached the server before, or its answer is no better."""
        at = now + (self._options.gap_wait_ms + 2 * self._options.ack_delay_ms) / 1000
        if view.is_unread_stale:
            self.syncing.again(at, [view.conversation_id])
        if view.is_mentions_stale and self._list_at is None:
            self._list_at = at

    def sync_again(self, now: float) -> None:
        everything, names = self.syncing.take_again(now)
        if everything:
            self._ask_sync(now)
        for name in names:
            self._ask_entry(name, now)

    def resync(self, frame: Frame, now: float) -> None:
        """Pushes may have been lost. What is not final is dropped: its final copy may be among them."""
        self.drop_provisional()
        self.syncing.again(now + frame.get("afterMs", 0) / 1000, frame.get("conversations"))

    def resend_done(self, frame: Frame, now: float) -> None:
        """What still lags was not part of it: no use in waiting."""
        for name in self.syncing.behind:
            self.holes.hasten(name, now)

    # -- messages ------------------------------------------------------------------------------------------

    def message(self, frame: Frame, now: float) -> None:
        message = message_of_frame(frame)
        view = self._desk.view(message.conversation_id)
        if message.provisional:
            if view.show_provisional(message, now + self._options.provisional_ms / 1000):
                self._with_provisional.add(message.conversation_id)
                self.typists.told(message.conversation_id, message.sender_id, False, now)
                self._desk.tell(events.Provisional(message, message.conversation_id))
                self._desk.change(view)
            return
        self.place(view, message, now)

    def place(self, view: View, message: Message, now: float) -> None:
        given = view.place(message)
        self._given(view, given, now)
        if view.is_waiting_for_entry and not self.syncing.waits_for_page:
            self._ask_entry(view.conversation_id, now)
        if view.has_gap:
            self.holes.seen(view.conversation_id, now, progressed=bool(given))
        else:
            self.holes.filled(view.conversation_id)
        self._desk.change(view)

    def _given(self, view: View, given: list[Message], now: float) -> None:
        """These are next in their conversation, once and in order."""
        name = view.conversation_id
        for message in given:
            self._tell_given(view, message)
        if given:
            self.baselines.moved(name)
            if view.must_acknowledge:
                self.acks.soon(view.conversation_id, now)
        self.syncing.has(name, view.synced_seq)

    def _tell_given(self, view: View, message: Message) -> None:
        name = view.conversation_id
        if message.msg_type == MsgType.RECALLED:
            content = message.content
            told = events.Recalled(content["server_msg_id"], message.place, content["by"], name)
            self._desk.tell(told)
        elif message.is_event:
            self._desk.tell(events.GroupEvent(message, name))
        elif message.sender_id == self._desk.user_id:
            self.in_place.pop(message.client_msg_id or "", None)
            self._desk.tell(events.Sent(message, name))
        else:
            self.typists.told(name, message.sender_id, False, 0)
            self._desk.tell(events.Received(message, name))

    def revoked(self, frame: Frame, now: float) -> None:
        view = self._desk.view(frame["conversationId"])
        target = view.recall(frame["serverMsgId"], frame["ts"])
        self.place(view, recall_event(frame, None if target is None else target.seq), now)

    def withdrawn(self, frame: Frame, now: float) -> None:
        view = self._desk.view(frame["conversationId"])
        if view.drop_provisional(frame["serverMsgId"]):
            self._desk.tell(events.Withdrawn(frame["serverMsgId"], frame["reason"], view.conversation_id))
            self._desk.change(view)

    # -- holes ---------------------------------------------------------------------------------------------

    def fill_holes(self, now: float) -> None:
        for name, request_id in self.holes.take(now):
            view = self._desk.views[name]
            if view.has_gap:
                begin = {"conversationId": name, "beginSeq": view.synced_seq + 1}
                self._desk.frames.append({"type": "PULL", "clientMsgId": request_id} | begin)
            else:
                self.holes.not_needed(name)

    def pulled(self, frame: Frame, now: float) -> None:
        name = frame["conversationId"]
        if not self.holes.answered(name):
            return  # of a pull that was repeated; its messages come again
        view = self._desk.view(name)
        messages = [message_of_frame(shape) for shape in frame["messages"]]
        given = view.pulled(messages, frame["nextSeq"], frame["headSeq"], frame["hasMore"])
        self._given(view, given, now)
        if frame["hasMore"]:
            self.holes.at(name, now)
        elif view.has_gap:
            self.holes.seen(name, now)
        else:
            self.syncing.give_up(name)
        if view.must_acknowledge:
            self.acks.soon(view.conversation_id, now)
        self.ask_if_stale(view, now)
        self._desk.change(view)

    def pull_refused(self, name: str, reason: str, retry_after_ms: int | None, now: float) -> None:
        failures = self.holes.refused(name)
        if is_transient(reason):
            self.holes.at(name, now + self._link.pause_s(failures, retry_after_ms))
            return
        self._desk.views[name].nothing_there()
        self.syncing.give_up(name)
        self._desk.change(self._desk.views[name])

    def notified(self, frame: Frame, now: float) -> None:
        """The notice itself was the wait."""
        for told in frame.get("conversations") or [frame]:
            name = told["conversationId"]
            view = self._desk.view(name)
            if not view.is_known:
                self._ask_entry(name, now)
            elif view.told_head(told["headSeq"]):
                self.holes.at(name, now)
                self._desk.change(view)

    def update_states(self, view: View) -> None:
        """The senders of what was delivered or read meanwhile are told."""
        for outgoing in self.awaited.update(view):
            self._desk.tell(events.OutgoingChanged(outgoing))
            self._desk.change(view)

    def drop_provisional(self) -> None:
        for name in self._with_provisional:
            if self._desk.views[name].drop_all_provisional():
                self._desk.change(self._desk.views[name])
        self._with_provisional.clear()

    # -- who is there --------------------------------------------------------------------------------------

    def typing(self, frame: Frame, now: float) -> None:
        name, user_id, on = frame["conversationId"], frame["from"], bool(frame["on"])
        self.typists.told(name, user_id, on, now)
        self.tell_typing(name, user_id, on)

    def tell_typing(self, name: str, user_id: str, on: bool) -> None:
        self._desk.tell(events.Typing(user_id, on, name))
        self._desk.change(self._desk.view(name))

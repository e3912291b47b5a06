"""One conversation as this device knows it: messages in order, what is shown, cursors and unread counts. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import structs

from nexo_client.core.message_changes import Edit, MessageChanges
from nexo_client.core.timeline import Timeline
from nexo_client.core.unread_counter import UnreadCounter
from nexo_client.core.window import Window
from nexo_client.types import ConversationSettings, Entry, Message, MsgType, ReceiptState


class ConversationState:
    def __init__(self, conversation_id: str, user_id: str, window_size: int) -> None:
        self.conversation_id = conversation_id
        self.user_id = user_id
        self.min_seq = 1
        self.read_seq = 0
        self.delivered_seq = 0
        self.peer_read_seq = 0
        self.peer_delivered_seq = 0
        self.settings = ConversationSettings()
        self.deleted_rev: int | None = None  # up to which this device has the deletions; None before it was named
        self._unread_rev = 0  # the revision that the server's last count is without
        self._mentions_rev = 0
        self.updated_at = 0
        self.is_hidden = False  # until the next message
        self.last_message: Message | None = None
        self.unhandled: dict[int, None] = {}  # seqs that were given to the application's inbox, in order
        self.acknowledged = 0  # `delivered` was sent up to here on this connection
        self.unsent_read_seq = 0  # the server has to learn that the user read up to here
        self.timeline = Timeline()
        self.window = Window(window_size)
        self.changes = MessageChanges()
        self.unread_counter = UnreadCounter(self._is_countable)
        self.mention_counter = UnreadCounter(
            lambda message: message.mentions_user(user_id) and not self.changes.hides(message)
        )
        self._has_expiring = False

    def _is_countable(self, message: Message) -> bool:
        if message.is_event or message.sender_id == self.user_id or self.changes.hides(message):
            return False
        # of calls, those that were missed or canceled
        is_call = message.msg_type == MsgType.CALL and isinstance(message.content, dict)
        return not is_call or message.content["outcome"] in ("missed", "canceled")

    @property
    def _counters(self) -> tuple[UnreadCounter, UnreadCounter]:
        return self.unread_counter, self.mention_counter

    @property
    def is_known(self) -> bool:
        return self.timeline.is_known

    @property
    def synced_seq(self) -> int:
        return self.timeline.synced_seq

    @property
    def handled_seq(self) -> int:
        """How far the application has it: the contiguous point, unless messages wait in its inbox."""
        return next(iter(self.unhandled), self.synced_seq + 1) - 1

    @property
    def head_seq(self) -> int:
        return self.timeline.head_seq

    @property
    def has_gap(self) -> bool:
        return self.timeline.has_gap

    @property
    def is_listed(self) -> bool:
        return self.is_known and self.head_seq > 0 and not self.is_hidden

    # -- what is shown -------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """The messages in memory by seq, and at the end the provisional ones."""
        shown = [message for message in self.window.messages if not self.changes.hides(message)]
        return shown + ([] if self.window.has_later else self.timeline.provisional)

    @property
    def unread(self) -> int:
        return self._total(self.unread_counter)

    @property
    def unread_mentions(self) -> int:
        return self._total(self.mention_counter)

    def _total(self, counter: UnreadCounter) -> int:
        counted = max(counter.upto, self.read_seq)
        return counter.value + sum(1 for m in self.timeline.ahead if m.place > counted and counter.counts(m))

    @property
    def first_seq(self) -> int:
        """Where paging back continues: everything from here on is in the window, or newer than it."""
        first = self.window.first_seq
        return self.synced_seq + 1 if first is None else first

    @property
    def last_seq(self) -> int:
        """The newest seq of the window."""
        last = self.window.last_seq
        return self.synced_seq if last is None else last

    def find(self, server_msg_id: str) -> Message | None:
        return self.window.find(server_msg_id) or self.timeline.find_ahead(server_msg_id)

    # -- entries -------------------------------------------------------------------------------------------

    def apply_entry(self, entry: Entry, baseline: int | None = None) -> list[Message]:
        """Takes an entry of SYNC or a row of the list; returns the messages that are in order now."""
        floor = entry.min_seq - 1
        if not self.is_known:
            base = entry.delivered_seq if baseline is None else min(baseline, entry.head_seq)
            self.timeline.begin(max(floor, base))
            self.window.has_earlier = self.synced_seq > 0
            self.mention_counter.upto = self.synced_seq
        elif floor > self.synced_seq:
            self._begin_membership(floor)
        self.min_seq = max(self.min_seq, entry.min_seq)
        self.timeline.learn_head(max(entry.head_seq, self.synced_seq))
        self.delivered_seq = max(self.delivered_seq, entry.delivered_seq)
        self._apply_count(self.unread_counter, entry.unread, entry)
        self._unread_rev = entry.deleted_rev or 0
        if self._unread_rev < (self.deleted_rev or 0):
            self.unread_counter.is_stale = True  # counted before the latest deletions
        if entry.unread_mentions is not None:
            self._apply_count(self.mention_counter, entry.unread_mentions, entry)
            self._mentions_rev = self._unread_rev
        self.read_seq = max(self.read_seq, entry.read_seq)
        self._step_over_own()
        self._apply_list_fields(entry)
        return self._give(self.timeline.drain())

    def _begin_membership(self, floor: int) -> None:
        """Continues above `floor` after the user has joined a group again. The messages in between were never visible,
        and those missed before are history: the window starts again, so that it has no gap."""
        self.timeline.begin(floor)
        self.window.reset([], has_earlier=True, has_later=False)
        for counter in self._counters:
            counter.set(0, floor)

    def apply_settings(self, entry: Entry) -> bool:
        """Returns whether any setting has changed."""
        if entry.settings is None or entry.settings == self.settings:
            return False
        self.settings = entry.settings
        return True

    def misses_deletions(self, deleted_rev: int | None) -> bool:
        """Returns whether the user has deleted messages that this device does not know of."""
        if deleted_rev is None:
            return False
        if self.deleted_rev is None:
            # what is fetched from now on does not contain what was deleted before
            self.deleted_rev = 0 if self.window.messages else deleted_rev
        return deleted_rev > self.deleted_rev

    def _apply_list_fields(self, entry: Entry) -> None:
        if entry.updated_at is not None:
            self.updated_at = max(self.updated_at, entry.updated_at)
            self.is_hidden = False
        elif entry.deleted_rev is not None:
            self.is_hidden = bool(entry.hidden)
        self.peer_read_seq = max(self.peer_read_seq, entry.peer_read_seq or 0)
        self.peer_delivered_seq = max(self.peer_delivered_seq, entry.peer_delivered_seq or 0)
        last = entry.last_message
        is_newest = self.last_message is None or (last is not None and last.place >= (self.last_message.seq or 0))
        if last is not None and is_newest and not self.changes.hides(last):
            self.last_message = self.changes.apply(last)
            self._note_expiry(last)

    def _apply_count(self, counter: UnreadCounter, value: int, entry: Entry) -> None:
        """Sets the server's count, which was right for its head and its read cursor; this device may know more."""
        upto = entry.head_seq
        if upto < self.synced_seq:
            if not self._can_count(counter, upto + 1, self.synced_seq):
                return  # older than the count here
            value += self.window.count(upto, self.synced_seq, counter.counts)
            upto = self.synced_seq
        counter.set(value, upto)
        if self.read_seq > entry.read_seq:
            self._recount(counter, entry.read_seq, self.read_seq)

    # -- messages ------------------------------------------------------------------------------------------

    def receive(self, message: Message) -> list[Message]:
        """Takes a message that has a seq; returns the messages that are in order now: none if it is a copy or above
        a gap."""
        if self.is_known and message.place <= self.synced_seq:
            self._improve(message)
            return []
        return self._give(self.timeline.accept(message))

    def receive_page(self, messages: Iterable[Message], next_seq: int, head_seq: int, has_more: bool) -> list[Message]:
        """Takes the answer to a pull from the contiguous point: what is missing below `next_seq` does not exist for
        this user. Returns the messages that are in order now."""
        given: list[Message] = []
        for message in messages:
            given += self.receive(message)
        given += self._give(self.timeline.take_below(next_seq))
        if self.timeline.skip_to(next_seq - 1):
            for counter in self._counters:
                counter.upto = max(counter.upto, self.synced_seq)
        given += self._give(self.timeline.drain())
        self.timeline.learn_head(head_seq)
        if not has_more:
            self.timeline.settle_head(head_seq)
        return given

    def receive_provisional(self, message: Message, until: float) -> bool:
        """Returns whether it is shown: its final copy may have arrived first."""
        if self.find(message.server_msg_id) is not None:
            return False
        return self.timeline.hold_provisional(message, until)

    def _give(self, messages: list[Message]) -> list[Message]:
        return [self._give_one(message) for message in messages]

    def _give_one(self, message: Message) -> Message:
        """Applies the next message in order. It is shown in the same step in which it stops to be provisional."""
        message = self.changes.apply(message)
        self._note_expiry(message)
        seq = message.place
        for counter in self._counters:
            if seq > counter.upto:
                counter.upto = seq
                if seq > self.read_seq and counter.counts(message):
                    counter.value += 1
        self.timeline.drop_provisional(message.server_msg_id)
        self.window.append(message)
        if message.is_quiet:
            self._apply_change(message.msg_type, message.content)
        else:
            self._move_up(message)
        if self._is_own(message) and max(self.delivered_seq, self.acknowledged) == seq - 1:
            self.acknowledged = seq  # the server's cursor steps over it as well
        self._step_over_own()
        return message

    def _move_up(self, message: Message) -> None:
        """Notes the newest activity."""
        self.last_message = message
        self.updated_at = max(self.updated_at, message.send_at)
        self.is_hidden = False
        settings = self.settings
        if settings.archived and not settings.recv_msg_opt and message.send_at > settings.silent_until:
            self.settings = structs.replace(settings, archived=False)
        if message.msg_type == MsgType.RECALLED:
            self.mark_recalled(message.content["server_msg_id"], message.send_at)

    def _improve(self, message: Message) -> None:
        """Replaces a copy that was made from an ACK or a recall frame: the server's own has more fields."""
        index = self.window.index_of(message.place)
        if index is not None:
            known = self.window.messages[index]
            if known.server_msg_id in ("", message.server_msg_id) and message.server_msg_id and not known.status:
                self.window.messages[index] = self.changes.apply(message)
        self.timeline.drop_provisional(message.server_msg_id)

    def mark_recalled(self, server_msg_id: str, recalled_at: int) -> Message | None:
        """Blanks the message and its quotes, in memory and in pages loaded later; returns what it was before."""
        target = self.find(server_msg_id)
        self.changes.recalled(server_msg_id, recalled_at)
        self._correct_all()
        return target

    # -- changes of earlier messages -------------------------------------------------------------------------

    def _apply_change(self, msg_type: int, content: dict[str, Any]) -> None:
        """Applies an edit or reactions; without their content, they are of a message that this user may not see."""
        server_msg_id = content["server_msg_id"]
        if msg_type == MsgType.EDITED and "content" in content:
            edit = Edit(content["content"], tuple(content.get("mentions") or ()), content["edited_at"])
            self.mark_edited(server_msg_id, edit)
        elif msg_type == MsgType.REACTIONS and "reactions" in content:
            counts = {one["emoji"]: one["count"] for one in content["reactions"]}
            own = [
                (one["emoji"], on)
                for name, on in (("removed", False), ("added", True))
                for one in content.get(name, ())
                if one["user_id"] == self.user_id
            ]
            self.mark_reacted(server_msg_id, counts, own)

    def mark_edited(self, server_msg_id: str, edit: Edit) -> None:
        if self.changes.edited(server_msg_id, edit):
            self._correct_all()

    def mark_reacted(self, server_msg_id: str, counts: dict[str, int], own: Iterable[tuple[str, bool]]) -> None:
        """Notes the reactions to a message, and what this user has added or removed."""
        self.changes.reacted(server_msg_id, counts, own)
        self._correct_all()

    def mark_deleted(self, server_msg_ids: Sequence[str], up_to_seq: int | None, rev: int | None) -> bool:
        """Hides what this user has deleted, here or on another device: these, and everything up to a seq. `rev` is the
        revision that this led to, None when it is not known. Returns whether any of it is new."""
        is_new = (up_to_seq or 0) > self.changes.cleared_seq
        self.changes.cleared_seq = max(self.changes.cleared_seq, up_to_seq or 0)
        for server_msg_id in server_msg_ids:
            is_new |= self.changes.deleted(server_msg_id)
        if is_new:
            self._count_again(self.unread_counter, rev is not None and rev <= self._unread_rev)
            self._count_again(self.mention_counter, rev is not None and rev <= self._mentions_rev)
            self._correct_all()
        return is_new

    def _count_again(self, counter: UnreadCounter, is_counted: bool) -> None:
        """Corrects a count after deletions. `is_counted`: its value is without them already."""
        low = max(self.changes.cleared_seq, self.read_seq)
        if low >= counter.upto:
            counter.set(0, max(counter.upto, self.synced_seq))
        elif counter.upto <= self.synced_seq and self._can_count(counter, low + 1, self.synced_seq):
            counter.set(self.window.count(low, self.synced_seq, counter.counts), self.synced_seq)
        elif not is_counted and counter.value > 0:
            counter.is_stale = True

    def _correct_all(self) -> None:
        self.window.change(self.changes.apply)
        self.timeline.change_ahead(self.changes.apply)
        last = self.last_message
        if last is not None and self.changes.hides(last):
            shown = (one for one in reversed(self.window.messages) if not (one.is_quiet or self.changes.hides(one)))
            self.last_message = next(shown, None)
        elif last is not None:
            self.last_message = self.changes.apply(last)

    def _corrected(self, messages: Iterable[Message]) -> list[Message]:
        """Returns a page as it is now: it may have been read before later changes."""
        shown = [self.changes.apply(message) for message in messages if not self.changes.hides(message)]
        for message in shown:
            self._note_expiry(message)
        return shown

    # -- expiry ----------------------------------------------------------------------------------------------

    def _note_expiry(self, message: Message) -> None:
        if message.expires_at is not None and not message.status:
            self._has_expiring = True

    @property
    def next_expiry(self) -> int | None:
        """When `expire` has something to do, by the server's clock."""
        if not self._has_expiring:
            return None
        last = [] if self.last_message is None else [self.last_message]
        due = [one.expires_at for one in self.window.messages + last if one.expires_at is not None and not one.status]
        self._has_expiring = bool(due) or self.has_gap
        return min(due, default=None)

    def expire(self, server_ms: float) -> list[str]:
        """Blanks what is over, and its quotes; returns the ids of the messages."""
        over = {message.server_msg_id for message in self.window.messages if message.is_over(server_ms)}

        def change(message: Message) -> Message:
            if message.is_over(server_ms):
                return message.expired()
            is_quoted = message.quote is not None and message.quote.server_msg_id in over
            return structs.replace(message, quote=None) if is_quoted else message

        self.window.change(change)
        if self.last_message is not None:
            self.last_message = change(self.last_message)
        return list(over)

    # -- cursors and counts ----------------------------------------------------------------------------------

    @property
    def must_acknowledge(self) -> bool:
        """Whether there are messages of others that the server does not know to be delivered."""
        return self.is_known and self.handled_seq > max(self.delivered_seq, self.acknowledged)

    def read_to(self, seq: int) -> bool:
        """Moves the read cursor, here or on another device; returns whether it moved."""
        if seq <= self.read_seq:
            return False
        before, self.read_seq = self.read_seq, seq
        for counter in self._counters:
            self._recount(counter, before, seq)
        self._step_over_own()
        return True

    def apply_receipt(self, ack_type: str, seq: int) -> bool:
        """Notes that another user has received or read up to `seq`; returns whether that is new."""
        before = self.peer_delivered_seq, self.peer_read_seq
        self.peer_delivered_seq = max(self.peer_delivered_seq, seq)
        if ack_type == "read":
            self.peer_read_seq = max(self.peer_read_seq, seq)
        return before != (self.peer_delivered_seq, self.peer_read_seq)

    def state_of(self, seq: int) -> ReceiptState:
        """Returns `saved`, `delivered` or `read` for an own message."""
        if seq <= self.peer_read_seq:
            return "read"
        return "delivered" if seq <= self.peer_delivered_seq else "saved"

    def _recount(self, counter: UnreadCounter, before: int, now: int) -> None:
        """Adjusts a count after the read cursor has moved from `before` to `now`."""
        if now >= counter.upto:
            counter.set(0, max(counter.upto, self.synced_seq))
        elif counter.upto <= self.synced_seq and self._can_count(counter, now + 1, self.synced_seq):
            counter.set(self.window.count(now, self.synced_seq, counter.counts), self.synced_seq)
        elif self._can_count(counter, before + 1, now):
            counter.value = max(0, counter.value - self.window.count(before, now, counter.counts))
        else:
            counter.is_stale = True

    def _covers(self, first: int, last: int) -> bool:
        return self.window.covers(first, last, self.synced_seq)

    def _can_count(self, counter: UnreadCounter, first: int, last: int) -> bool:
        """Returns whether the window has the count of that range. A message that was edited may have been
        mentioning the user or not when it was sent."""
        if not self._covers(first, last):
            return False
        return counter is self.unread_counter or not self.window.count(
            first - 1, last, lambda message: message.edited_at is not None
        )

    def _is_own(self, message: Message) -> bool:
        return message.sender_id == self.user_id and not message.is_event

    def _step_over_own(self) -> None:
        """Moves the read cursor over own messages when everything before them was read."""
        while self.read_seq < self.synced_seq:
            following = self.window.at(self.read_seq + 1)
            if following is None or not self._is_own(following):
                return
            self.read_seq += 1

    # -- the window ------------------------------------------------------------------------------------------

    def forget_window(self) -> None:
        """Frees the memory; the messages can be loaded again."""
        self.window.reset([], has_earlier=self.window.has_earlier or bool(self.window.messages), has_later=False)

    def add_earlier(self, before_seq: int, messages: list[Message], has_more: bool) -> int:
        """Adds a page of history below `before_seq`, newest first; returns how many messages were added."""
        if before_seq != self.first_seq:
            return 0  # the window has changed since the page was requested
        page = self._corrected(message for message in reversed(messages) if message.place < before_seq)
        if not self.window.messages and page and page[-1].place < self.synced_seq and before_seq <= self.synced_seq:
            self.window.has_later = True
        self.window.prepend(page, has_more)
        self._step_over_own()
        return len(page)

    def add_later(self, after_seq: int, messages: list[Message], next_seq: int, has_more: bool) -> int:
        """Adds a page above the window, up to the contiguous point; returns how many messages were added."""
        if after_seq != self.last_seq or not self.window.has_later:
            return 0
        page = self._corrected(one for one in messages if after_seq < one.place <= self.synced_seq)
        self.window.extend(page)
        reached = self.last_seq if has_more else max(self.last_seq, next_seq - 1)
        self.window.has_later = reached < self.synced_seq
        return len(page)

    def set_window(self, messages: list[Message], has_more: bool, upto: int) -> int:
        """Replaces the window by a page of history, newest first, that holds everything visible up to `upto`.
        Messages given since the page was read are kept when they are in memory. Returns the size of the page."""
        newer = [message for message in self.window.messages if message.place > upto]
        reaches = self._covers(upto + 1, self.synced_seq)
        page = self._corrected(message for message in reversed(messages) if message.place <= self.synced_seq)
        self.window.reset(page + newer if reaches else page, has_earlier=has_more, has_later=not reaches)
        self._step_over_own()
        return len(page)

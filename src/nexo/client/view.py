"""One conversation as this device knows it: what it has in order, what it shows, and what is unread. No I/O.

`synced_seq` is the contiguous point: everything visible up to it was given. Messages above a hole wait in
`_ahead`. The window is a part of what was given, of bounded size and without holes; `_missing_later` tells that
it does not reach the contiguous point, because its owner paged back.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from msgspec import structs

from nexo.client.model import Entry, Message
from nexo.client.options import AHEAD_MAX, RECALLED_MAX
from nexo.core.model import MsgType


class Count:
    """How many messages of a kind lie above the read cursor, of those up to `upto`."""

    def __init__(self, counts: Callable[[Message], bool]) -> None:
        self.counts = counts
        self.value = 0
        self.upto = 0
        self.is_stale = False  # cannot be told from what is in memory: somebody has to ask

    def set(self, value: int, upto: int) -> None:
        self.value, self.upto, self.is_stale = value, upto, False


class View:
    def __init__(self, conversation_id: str, me: str, window_size: int) -> None:
        self.conversation_id = conversation_id
        self.me = me
        self.is_known = False  # the server has told of it
        self.head_seq = 0
        self.min_seq = 1
        self.read_seq = 0
        self.delivered_seq = 0
        self.synced_seq = 0
        self.peer_read_seq = 0
        self.peer_delivered_seq = 0
        self.pinned = False
        self.recv_msg_opt = 0
        self.updated_at = 0
        self.hidden_at = -1  # not in the list while the head is not above it
        self.last_message: Message | None = None
        self.has_earlier = False
        self.has_later = False
        self.keeps_place = False  # a full window leaves out what comes, instead of letting go of its oldest
        self.acknowledged = 0  # delivered up to here was sent on this connection
        self.wanted_read = 0
        self._window_size = window_size
        self._window: list[Message] = []
        self._ahead: dict[int, Message] = {}
        self._provisional: dict[str, tuple[Message, float]] = {}
        self._recalled: OrderedDict[str, int] = OrderedDict()
        self._unread = Count(lambda message: not message.is_event and message.sender_id != me)
        self._mentions = Count(lambda message: message.mentions_user(me))
        self._lower_heads = 0

    # -- what is shown -------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What is in memory, by seq, and at the end what is not final."""
        provisional = [] if self.has_later else [message for message, _ in self._provisional.values()]
        return self._window + provisional

    @property
    def unread(self) -> int:
        return self._total(self._unread)

    @property
    def unread_mentions(self) -> int:
        return self._total(self._mentions)

    def _total(self, count: Count) -> int:
        ahead = sum(1 for seq, m in self._ahead.items() if seq > max(count.upto, self.read_seq) and count.counts(m))
        return count.value + ahead

    @property
    def is_unread_stale(self) -> bool:
        return self._unread.is_stale

    @property
    def is_mentions_stale(self) -> bool:
        return self._mentions.is_stale

    @property
    def is_listed(self) -> bool:
        return self.is_known and self.head_seq > max(self.hidden_at, 0)

    @property
    def first_seq(self) -> int:
        """Where paging backwards goes on: everything from here on is in the window, or newer than it."""
        return self._window[0].place if self._window else self.synced_seq + 1

    @property
    def last_seq(self) -> int:
        """The newest seq of the window."""
        return self._window[-1].place if self._window else self.synced_seq

    @property
    def in_memory(self) -> int:
        return len(self._window)

    def find(self, server_msg_id: str) -> Message | None:
        found = next((m for m in reversed(self._window) if m.server_msg_id == server_msg_id), None)
        return found or next((m for m in self._ahead.values() if m.server_msg_id == server_msg_id), None)

    # -- what is missing -----------------------------------------------------------------------------------

    @property
    def has_gap(self) -> bool:
        return self.is_known and (self.head_seq > self.synced_seq or bool(self._ahead))

    @property
    def is_waiting_for_entry(self) -> bool:
        """Messages came before the server said where this conversation begins for us."""
        return not self.is_known and bool(self._ahead)

    def told_head(self, head_seq: int) -> bool:
        """A notice or HEADS; whether there is something to pull."""
        self.head_seq = max(self.head_seq, head_seq)
        return self.has_gap

    # -- entries -------------------------------------------------------------------------------------------

    def told(self, entry: Entry, baseline: int | None = None) -> list[Message]:
        """A SYNC or list entry; what can be given now."""
        floor = entry.min_seq - 1
        if not self.is_known:
            base = entry.delivered_seq if baseline is None else min(baseline, entry.head_seq)
            self.is_known = True
            self.synced_seq = max(floor, base)
            self.has_earlier = self.synced_seq > 0
            self._mentions.upto = self.synced_seq
            for seq in [seq for seq in self._ahead if seq <= self.synced_seq]:
                del self._ahead[seq]
        elif floor > self.synced_seq:
            self._jump(floor)
        self.min_seq = max(self.min_seq, entry.min_seq)
        self.head_seq = max(self.head_seq, entry.head_seq, self.synced_seq)
        self.delivered_seq = max(self.delivered_seq, entry.delivered_seq)
        self._told_unread(self._unread, entry.unread, entry)
        if entry.unread_mentions is not None:
            self._told_unread(self._mentions, entry.unread_mentions, entry)
        self.read_seq = max(self.read_seq, entry.read_seq)
        self._step_over_own()
        self._told_by_list(entry)
        return self._drain()

    def _jump(self, floor: int) -> None:
        """Came back into a group: what lies between was never ours. What we missed of the time before, if
        anything, is history; so that the window has no hole, it begins anew."""
        self.synced_seq = floor
        self._window.clear()
        self.has_earlier, self.has_later = True, False
        for seq in [seq for seq in self._ahead if seq <= floor]:
            del self._ahead[seq]
        for count in (self._unread, self._mentions):
            count.set(0, floor)

    def _told_by_list(self, entry: Entry) -> None:
        if entry.pinned is not None:
            self.pinned = entry.pinned
        if entry.recv_msg_opt is not None:
            self.recv_msg_opt = entry.recv_msg_opt
        if entry.updated_at is not None:
            self.updated_at = max(self.updated_at, entry.updated_at)
        self.peer_read_seq = max(self.peer_read_seq, entry.peer_read_seq or 0)
        self.peer_delivered_seq = max(self.peer_delivered_seq, entry.peer_delivered_seq or 0)
        last = entry.last_message
        if last is not None and (self.last_message is None or last.place >= (self.last_message.seq or 0)):
            self.last_message = self._as_known(last)

    def _told_unread(self, count: Count, value: int, entry: Entry) -> None:
        """The server's count was right for its head and its read cursor; we may know more than it did then."""
        upto = entry.head_seq
        if upto < self.synced_seq:
            if not self._covers(upto + 1, self.synced_seq):
                return  # older than what we have counted; who has to know asks again
            value += self._count(count, upto, self.synced_seq)
            upto = self.synced_seq
        count.set(value, upto)
        if self.read_seq > entry.read_seq:
            self._recount(count, entry.read_seq, self.read_seq)

    # -- messages ------------------------------------------------------------------------------------------

    def place(self, message: Message) -> list[Message]:
        """A message that has its seq; what can be given now, in order: nothing if it came before or too early."""
        seq = message.place
        if not self.is_known and seq == 1:
            self.is_known = True  # a chat that begins now
        if self.is_known and seq <= self.synced_seq:
            self._improve(message)
            return []
        if len(self._ahead) < AHEAD_MAX or seq == self.synced_seq + 1:
            self._ahead[seq] = message
        if self.is_known:
            self.head_seq = max(self.head_seq, seq)
        return self._drain()

    def pulled(self, messages: Iterable[Message], next_seq: int, head_seq: int, has_more: bool) -> list[Message]:
        """The answer to a pull from the contiguous point: what lies below `next_seq` and was not given does not
        exist for us."""
        given: list[Message] = []
        for message in messages:
            given += self.place(message)
        for seq in sorted(seq for seq in self._ahead if seq < next_seq):
            given.append(self._give(self._ahead.pop(seq)))
        if next_seq - 1 > self.synced_seq:
            self.synced_seq = next_seq - 1
            for count in (self._unread, self._mentions):
                count.upto = max(count.upto, self.synced_seq)
        given += self._drain()
        self.head_seq = max(self.head_seq, head_seq)
        if not has_more:
            self._doubt_head(head_seq)
        return given

    def _doubt_head(self, head_seq: int) -> None:
        """We were told of a head that a pull does not find. It may have looked just before that message came:
        only a second look is believed."""
        if max(head_seq, self.synced_seq) >= self.head_seq:
            self._lower_heads = 0
            return
        self._lower_heads += 1
        if self._lower_heads > 1:
            self.nothing_there()

    def nothing_there(self) -> None:
        """What we were told of cannot be had."""
        self._lower_heads = 0
        self.head_seq = self.synced_seq
        self._ahead.clear()

    def _drain(self) -> list[Message]:
        given: list[Message] = []
        if self.is_known:
            while (following := self._ahead.pop(self.synced_seq + 1, None)) is not None:
                given.append(self._give(following))
        return given

    def _give(self, message: Message) -> Message:
        """The next in order. It leaves `_ahead` and `_provisional` in the same step in which it is shown."""
        message = self._as_known(message)
        seq = self.synced_seq = message.place
        self.head_seq = max(self.head_seq, seq)
        for count in (self._unread, self._mentions):
            if seq > count.upto:
                count.upto = seq
                if seq > self.read_seq and count.counts(message):
                    count.value += 1
        self._provisional.pop(message.server_msg_id, None)
        if self.keeps_place and len(self._window) >= self._window_size:
            self.has_later = True
        if not self.has_later:
            self._window.append(message)
            self._trim_front()
        self.last_message = message
        self.updated_at = max(self.updated_at, message.send_at)
        if message.msg_type == MsgType.RECALLED:
            self.recall(message.content["server_msg_id"], message.send_at)
        if self._is_own(message) and max(self.delivered_seq, self.acknowledged) == seq - 1:
            self.acknowledged = seq  # the server steps over it too
        self._step_over_own()
        return message

    def _improve(self, message: Message) -> None:
        """A copy of what we have: the server's own tells more than what was made from an ACK or a recall."""
        for i, known in self._at(message.place):
            if known.server_msg_id in ("", message.server_msg_id) and message.server_msg_id and not known.status:
                self._window[i] = self._as_known(message)
        self._provisional.pop(message.server_msg_id, None)

    def _at(self, seq: int) -> list[tuple[int, Message]]:
        """The message with this seq and its index, if it is in the window."""
        low, high = 0, len(self._window)
        while low < high:
            middle = (low + high) // 2
            if self._window[middle].place < seq:
                low = middle + 1
            else:
                high = middle
        return [(low, self._window[low])] if low < len(self._window) and self._window[low].seq == seq else []

    # -- recalls, and copies that are not final --------------------------------------------------------------

    def recall(self, server_msg_id: str, recalled_at: int) -> Message | None:
        """Blank it wherever it is, also in quotes, and in what is loaded later; what it was before."""
        target = self.find(server_msg_id)
        self._recalled[server_msg_id] = recalled_at
        if len(self._recalled) > RECALLED_MAX:
            self._recalled.popitem(last=False)
        self._window[:] = [self._as_known(message) for message in self._window]
        self._ahead = {seq: self._as_known(message) for seq, message in self._ahead.items()}
        if self.last_message is not None:
            self.last_message = self._as_known(self.last_message)
        return target

    def _as_known(self, message: Message) -> Message:
        """With the recalls that we know of: a page may have been read before them."""
        if not self._recalled:
            return message
        recalled_at = self._recalled.get(message.server_msg_id)
        if recalled_at is not None and not message.status:
            return message.blanked(recalled_at)
        if message.quote is not None and message.quote.server_msg_id in self._recalled:
            return structs.replace(message, quote=None)
        return message

    def show_provisional(self, message: Message, until: float) -> bool:
        """Whether it is new: its final copy may have come first."""
        if message.server_msg_id in self._provisional or self.find(message.server_msg_id) is not None:
            return False
        self._provisional[message.server_msg_id] = (message, until)
        return True

    def drop_provisional(self, server_msg_id: str) -> bool:
        return self._provisional.pop(server_msg_id, None) is not None

    def drop_all_provisional(self) -> bool:
        had, self._provisional = bool(self._provisional), {}
        return had

    def drop_old_provisional(self, now: float) -> bool:
        old = [name for name, (_, until) in self._provisional.items() if until <= now]
        for name in old:
            del self._provisional[name]
        return bool(old)

    @property
    def next_provisional_end(self) -> float | None:
        return min((until for _, until in self._provisional.values()), default=None)

    # -- cursors and counts ----------------------------------------------------------------------------------

    @property
    def must_acknowledge(self) -> bool:
        """There is something of others that the server does not know we have."""
        known = max(self.delivered_seq, self.acknowledged)
        return self.is_known and self.synced_seq > known

    def read_to(self, seq: int) -> bool:
        """The read cursor has moved, here or on another device; whether that was news."""
        if seq <= self.read_seq:
            return False
        before, self.read_seq = self.read_seq, seq
        for count in (self._unread, self._mentions):
            self._recount(count, before, seq)
        self._step_over_own()
        return True

    def told_receipt(self, kind: str, seq: int) -> bool:
        """Somebody else has got or read our messages up to here; whether that was news."""
        before = self.peer_delivered_seq, self.peer_read_seq
        self.peer_delivered_seq = max(self.peer_delivered_seq, seq)
        if kind == "read":
            self.peer_read_seq = max(self.peer_read_seq, seq)
        return before != (self.peer_delivered_seq, self.peer_read_seq)

    def _recount(self, count: Count, before: int, now: int) -> None:
        """The read cursor went from `before` to `now`."""
        if now >= count.upto:
            count.set(0, max(count.upto, self.synced_seq))
        elif count.upto <= self.synced_seq and self._covers(now + 1, self.synced_seq):
            count.set(self._count(count, now, self.synced_seq), self.synced_seq)
        elif self._covers(before + 1, now):
            count.value = max(0, count.value - self._count(count, before, now))
        else:
            count.is_stale = True

    def _count(self, count: Count, above: int, upto: int) -> int:
        return sum(1 for message in self._window if above < message.place <= upto and count.counts(message))

    def _covers(self, first: int, last: int) -> bool:
        """Whether the window has everything visible from `first` to `last`."""
        if first > last:
            return True
        begins = not self.has_earlier or (bool(self._window) and self._window[0].place <= first)
        ends = last <= (self.last_seq if self.has_later else self.synced_seq)
        return begins and ends

    def _is_own(self, message: Message) -> bool:
        return message.sender_id == self.me and not message.is_event

    def _step_over_own(self) -> None:
        """The read cursor goes over one's own messages when everything before them was read."""
        while self.read_seq < self.synced_seq:
            following = self._at(self.read_seq + 1)
            if not following or not self._is_own(following[0][1]):
                return
            self.read_seq += 1

    # -- the window ------------------------------------------------------------------------------------------

    def _trim_front(self) -> None:
        extra = len(self._window) - self._window_size
        if extra > 0:
            del self._window[:extra]
            self.has_earlier = True

    def forget_window(self) -> None:
        """Give the memory back; it can be loaded again."""
        if self._window:
            self.has_earlier = True
        self._window.clear()
        self.has_later = False

    def add_earlier(self, before_seq: int, messages: list[Message], has_more: bool) -> int:
        """A page of history, newest first, that was asked for below `before_seq`; how many were new."""
        if before_seq != self.first_seq:
            return 0  # the window has changed meanwhile
        page = [self._as_known(message) for message in reversed(messages) if message.place < before_seq]
        if not self._window and page and page[-1].place < self.synced_seq and before_seq <= self.synced_seq:
            self.has_later = True
        self._window[:0] = page
        self.has_earlier = has_more
        extra = len(self._window) - self._window_size
        if extra > 0:
            del self._window[-extra:]
            self.has_later = True
        self._step_over_own()
        return len(page)

    def add_later(self, after_seq: int, messages: list[Message], next_seq: int, has_more: bool) -> int:
        """A page upwards from the window's newest end; never beyond what was given in order."""
        if after_seq != self.last_seq or not self.has_later:
            return 0
        page = [self._as_known(message) for message in messages if after_seq < message.place <= self.synced_seq]
        self._window += page
        reached = self.last_seq if has_more else max(self.last_seq, next_seq - 1)
        self.has_later = reached < self.synced_seq
        self._trim_front()
        return len(page)

    def set_window(self, messages: list[Message], has_more: bool, upto: int) -> int:
        """The window anew, from a page of history, newest first, that holds everything visible up to `upto`.
        What was given since it was read is kept, when it is in memory."""
        newer = [message for message in self._window if message.place > upto]
        reaches = self._covers(upto + 1, self.synced_seq)
        page = [self._as_known(message) for message in reversed(messages) if message.place <= self.synced_seq]
        self._window = page + newer if reaches else page
        self.has_earlier, self.has_later = has_more, not reaches
        self._trim_front()
        self._step_over_own()
        return len(page)

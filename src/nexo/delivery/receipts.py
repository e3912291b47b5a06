"""Acknowledgements: from a receiver's ACK to a cursor, and from the committed cursor to receipts for the authors.

Most ACKs name a message that was pushed a moment ago; its conversation, seq and sender are remembered, so it costs no
query. Receipts are pushed after the cursor is committed, one per author and flush.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable
from sys import intern
from typing import NamedTuple

import structlog
from msgspec import Struct

from nexo.background import Background
from nexo.core import commands, events
from nexo.core.model import FIRST_EVENT, CursorChange, Message
from nexo.delivery.audiences import Audiences
from nexo.delivery.fanout import Fanout
from nexo.delivery.outputs import Output
from nexo.errors import NexoError
from nexo.ids import is_conversation_id, now_ms, parse_server_msg_id, peer_in
from nexo.logs import delivery_lines
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import LONG_SECONDS, Buckets, Tally
from nexo.metrics.sending import SendMeter
from nexo.ports import Audience, ConversationStore, MessageStore
from nexo.service.receipts import Acknowledging, check_ack_type

log = structlog.get_logger()

RECENT_MAX = 200_000
AUTHORS_MAX = 20_000  # conversations whose last authors are remembered
AUTHORS_EACH = 64
ORIGINS_MAX = 10_000
CLOCKS_MAX = 20_000  # members whose time from delivered to read is taken
ORIGIN_S = 5.0  # a cursor is committed by then
RECENT_MS = 60_000
SEQ_MAX = 1 << 63
COUNTED_AT_ONCE = 256


class RecentMessage(Struct, frozen=True, gc=False):
    conversation_id: str
    seq: int
    sender_id: str
    saved_at: float
    msg_type: int = 0


class RecentMessages:
    """The last messages by id, in two halves, of which the older one is dropped as a whole: keeping them in the order
    of their age would cost twice the memory."""

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: dict[int, RecentMessage] = {}
        self._old: dict[int, RecentMessage] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, server_msg_id: int, place: RecentMessage) -> None:
        if len(self._new) >= RECENT_MAX // 2:
            self._old, self._new = self._new, {}
        self._new[server_msg_id] = place

    def get(self, server_msg_id: int) -> RecentMessage | None:
        return self._new.get(server_msg_id) or self._old.get(server_msg_id)


class ReceivedAck(NamedTuple):
    """An ACK as it was received, for the log."""

    connection: Output
    ack_type: str
    server_msg_id: int | None
    sender_id: str | None


class ReadOrigin(NamedTuple):
    connection: Output
    seq: int
    until: float


def _type_word(msg_type: int) -> str:
    if not msg_type:
        return "other"
    return "event" if msg_type >= FIRST_EVENT else str(msg_type)


class ReceiptPusher:
    def __init__(
        self,
        acknowledging: Acknowledging,
        messages: MessageStore,
        conversations: ConversationStore,
        audiences: Audiences,
        pushing: Fanout,
        background: Background,
        group_push_max_members: int,
        sends: SendMeter,
        instance: str,
    ) -> None:
        self._acknowledging = acknowledging
        self._messages = messages
        self._conversations = conversations
        self._audiences = audiences
        self._pushing = pushing
        self._background = background
        self._group_max = group_push_max_members
        self._places = RecentMessages()
        self._authors: OrderedDict[str, deque[tuple[int, int, str]]] = OrderedDict()  # seq, id, sender
        self._origins: dict[tuple[str, str], ReadOrigin] = {}  # who reads, until the cursor is committed
        self._sends = sends
        self._instance = instance
        self._acks = Tally(delivered=0, read=0)
        self._refused = Tally(delivered=0, read=0)
        # by type, group or not, type of the message and platform: at most some hundred
        self._kinds: dict[tuple[str, bool, int, int], int] = {}
        self._delivery = Buckets()
        self._delivered_in: list[float] = []  # not counted yet: many at once cost less
        self._reading = Buckets(LONG_SECONDS)
        self._unread: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()  # delivered seq, since when
        self._received: OrderedDict[tuple[str, str], ReceivedAck] = OrderedDict()  # to be logged

    def samples(self) -> Iterable[Sample]:
        for ack_type, count in self._acks.items():
            yield f.ACKS(count, ack_type, "noted")
        for ack_type, count in self._refused.items():
            yield f.ACKS(count, ack_type, "refused")
        for (ack_type, is_group, msg_type, platform_id), count in self._kinds.items():
            chat = "group" if is_group else "single"
            yield f.ACKS_BY_KIND(count, ack_type, chat, _type_word(msg_type), str(platform_id))
        self._count_deliveries()
        yield f.DELIVERY_SECONDS(self._delivery)
        yield f.READ_SECONDS(self._reading)
        for name, held, limit in (
            ("places", self._places, RECENT_MAX),
            ("authors", self._authors, AUTHORS_MAX),
            ("origins", self._origins, ORIGINS_MAX),
            ("read_clocks", self._unread, CLOCKS_MAX),
        ):
            yield f.CACHE(len(held), name)
            yield f.CACHE_LIMIT(limit, name)

    def remember(self, message: Message) -> None:
        """A message or event was just committed: ACKs for it will come soon."""
        is_event = message.msg_type >= FIRST_EVENT
        saved_at = time.monotonic() if is_event else self._sends.committed_at  # events do not pass the committer
        name = intern(message.conversation_id)  # one text for all its messages
        place = RecentMessage(name, message.seq, intern(message.sender_id), saved_at, message.msg_type)
        self._places.add(message.server_msg_id, place)
        authors = self._authors.get(name)
        if authors is None:
            authors = self._authors[name] = deque(maxlen=AUTHORS_EACH)
            if len(self._authors) > AUTHORS_MAX:
                self._authors.popitem(last=False)
        is_late = bool(authors) and authors[-1][0] > message.seq  # a send over HTTP is published a moment later
        # events have no author who gets receipts
        authors.append((message.seq, message.server_msg_id, "" if is_event else message.sender_id))
        if is_late:
            self._authors[name] = deque(sorted(authors), AUTHORS_EACH)

    def given(self, messages: Iterable[Message]) -> None:
        """Remember recent messages that a client pulls: it acknowledges them one by one, as pushed ones. While Redis is
        unreachable, all messages of other instances are pulled."""
        wall_ms, now = now_ms(), time.monotonic()
        for message in messages:
            age_ms = max(0, wall_ms - message.send_at)
            if age_ms < RECENT_MS and self._places.get(message.server_msg_id) is None:
                saved_at = now - age_ms / 1000
                place = RecentMessage(
                    message.conversation_id, message.seq, message.sender_id, saved_at, message.msg_type
                )
                self._places.add(message.server_msg_id, place)

    def last_seq(self, conversation_id: str) -> int:
        """Returns the highest seq that this instance has pushed, as far as it is remembered; otherwise 0."""
        authors = self._authors.get(conversation_id)
        return authors[-1][0] if authors else 0

    def acknowledge_known(self, connection: Output, ack_type: str, server_msg_id: str | int) -> bool:
        """Note an ACK without a query, if the message and the right to see it are known. Returns whether it was."""
        kind = check_ack_type(ack_type)
        user_id = connection.session.user_id
        place = self._places.get(parse_server_msg_id(server_msg_id))
        if place is None:
            return False
        if peer_in(place.conversation_id, user_id) is None:
            audience = self._audiences.peek(place.conversation_id)
            listener = audience.listeners.get(user_id) if audience is not None else None
            if listener is None or place.seq < listener.from_seq:
                return False  # not known to be allowed: the database decides
        read_seq = place.seq if kind == "read" else 0
        self._conversations.advance(user_id, place.conversation_id, delivered_seq=place.seq, read_seq=read_seq)
        self._acks[kind] += 1
        self._count_kind(kind, connection, place.conversation_id, place.msg_type)
        if read_seq:
            self.note_reader(connection, place.conversation_id, read_seq)
        else:
            self._delivered_in.append(time.monotonic() - place.saved_at)
            if len(self._delivered_in) >= COUNTED_AT_ONCE:
                self._count_deliveries()
        if delivery_lines.is_on:
            self._note(place.conversation_id, ReceivedAck(connection, kind, int(server_msg_id), place.sender_id))
        return True

    def _count_kind(self, ack_type: str, connection: Output, conversation_id: str, msg_type: int) -> None:
        key = (
            ack_type,
            conversation_id.startswith("sg_"),
            min(msg_type, FIRST_EVENT),
            connection.session.platform_id,
        )
        self._kinds[key] = self._kinds.get(key, 0) + 1

    def _count_deliveries(self) -> None:
        self._delivery.observe_all(self._delivered_in)
        self._delivered_in.clear()

    async def acknowledge(self, connection: Output, command: commands.Ack) -> None:
        """Check any ACK in the database and note it."""
        kind = check_ack_type(command.ack_type)
        try:
            ack, conversation_id, seq = await self._acknowledge_stored(connection, command)
        except NexoError as error:
            self._refused[kind] += 1
            self._log_refused(connection, kind, command, error)
            raise
        self._acks[kind] += 1
        known = self._places.get(ack.server_msg_id) if ack.server_msg_id is not None else None
        self._count_kind(kind, connection, conversation_id, 0 if known is None else known.msg_type)
        if delivery_lines.is_on:
            self._note(conversation_id, ack)
        if kind == "read":
            self.note_reader(connection, conversation_id, seq)
        elif ack.server_msg_id is not None and (place := self._places.get(ack.server_msg_id)) is not None:
            self._delivery.observe(time.monotonic() - place.saved_at)

    async def _acknowledge_stored(self, connection: Output, command: commands.Ack) -> tuple[ReceivedAck, str, int]:
        user_id = connection.session.user_id
        if command.server_msg_id is not None:
            place = await self._acknowledging.ack_message(user_id, command.ack_type, command.server_msg_id)
            server_msg_id = parse_server_msg_id(command.server_msg_id)
            ack = ReceivedAck(connection, command.ack_type.lower(), server_msg_id, place.sender_id)
            return ack, place.conversation_id, place.seq
        if command.conversation_id is not None and command.seq is not None:
            conversation_id = command.conversation_id
            seq = await self._acknowledging.ack_seq(user_id, command.ack_type, conversation_id, command.seq)
            known = next((entry for entry in reversed(self._authors.get(conversation_id, ())) if entry[0] == seq), None)
            ack = ReceivedAck(connection, command.ack_type.lower(), known and known[1], known and known[2])
            return ack, conversation_id, seq
        raise NexoError("missing_server_msg_id")

    def note_reader(self, connection: Output, conversation_id: str, seq: int = SEQ_MAX) -> None:
        """Remember the connection that moves a read cursor up to `seq`: it needs no receipt of its own."""
        if len(self._origins) >= ORIGINS_MAX:  # cursors that did not move leave theirs behind
            self._origins.clear()
        self._origins[conversation_id, connection.session.user_id] = ReadOrigin(
            connection, seq, time.monotonic() + ORIGIN_S
        )

    # -- receipts for the authors --------------------------------------------------------------------------

    def moved(self, changes: list[CursorChange]) -> None:
        """Push receipts for committed cursors: to the authors of the messages passed and the reader's other devices."""
        now = time.monotonic()
        for change in changes:
            self._time_reading(change, now)
            if delivery_lines.is_on:
                self._log_moved(change)
            if change.delivered_to > change.delivered_from:
                self._notify_authors(change, "delivered", change.delivered_from, change.delivered_to)
            if change.read_to > change.read_from:
                self._notify_authors(change, "read", change.read_from, change.read_to)
                self._notify_own_devices(change)

    def _time_reading(self, change: CursorChange, now: float) -> None:
        """Measure the time from delivered to read, of the oldest message of a member that is not read."""
        key = (change.conversation_id, change.user_id)
        if change.read_to > change.read_from:
            unread = self._unread.get(key)
            if unread is not None and change.read_to >= unread[0]:
                self._reading.observe(now - unread[1])
                del self._unread[key]
        if change.delivered_to > max(change.delivered_from, change.read_to) and key not in self._unread:
            self._unread[key] = (change.delivered_from + 1, now)
            if len(self._unread) > CLOCKS_MAX:
                self._unread.popitem(last=False)

    def _notify_authors(self, change: CursorChange, ack_type: str, low: int, high: int) -> None:
        conversation_id, user_id = change.conversation_id, change.user_id
        remembered = self._authors.get(conversation_id)
        receivers = self._receivers(conversation_id, user_id)
        if receivers is None or remembered is None or remembered[0][0] > low + 1:
            self._background.start("receipt", self._load_and_push(conversation_id, user_id, ack_type, low, high))
        elif receivers:
            last: dict[str, tuple[int, int]] = {}
            for seq, server_msg_id, sender_id in reversed(remembered):  # newest first, and in order
                if seq <= low:
                    break
                if seq <= high:
                    last.setdefault(sender_id, (seq, server_msg_id))
            self._push(conversation_id, user_id, ack_type, last, receivers, low)

    def _receivers(self, conversation_id: str, user_id: str) -> Collection[str] | None:
        """Returns the users to whom receipts of this reader are pushed: the peer, or the present members of a small
        group; None when the members have to be loaded."""
        peer = peer_in(conversation_id, user_id)
        if peer is not None:
            return (peer,)
        audience = self._audiences.peek(conversation_id)
        return None if audience is None else self._members_of_small(audience)

    def _members_of_small(self, audience: Audience) -> Collection[str]:
        return audience.listeners if len(audience.listeners) <= self._group_max else ()

    async def _load_and_push(self, conversation_id: str, user_id: str, ack_type: str, low: int, high: int) -> None:
        try:
            receivers = self._receivers(conversation_id, user_id)
            if receivers is None:
                receivers = self._members_of_small(await self._audiences.load(conversation_id))
            if not receivers:
                return
            last = await self._messages.last_by_author(conversation_id, low, high)
        except NexoError:
            return  # a receipt may be lost: clients can request the cursor
        self._push(conversation_id, user_id, ack_type, last, receivers, low)

    def _push(
        self,
        conversation_id: str,
        user_id: str,
        ack_type: str,
        last: dict[str, tuple[int, int]],
        receivers: Collection[str],
        after: int,
    ) -> None:
        for sender_id, (seq, server_msg_id) in last.items():
            if sender_id != user_id and sender_id in receivers:
                receipt = events.Receipt(ack_type, conversation_id, server_msg_id, seq, user_id, after)
                self._pushing.to_user(sender_id, receipt)

    # -- receipts for the reader's other devices -------------------------------------------------------------

    def _notify_own_devices(self, change: CursorChange) -> None:
        conversation_id, user_id, seq = change.conversation_id, change.user_id, change.read_to
        reader = self._origins.pop((conversation_id, user_id), None)
        knows = reader is not None and reader.seq >= seq and time.monotonic() < reader.until
        origin = reader.connection if reader is not None and knows else None
        if not self._pushing.reaches(user_id, origin):
            return
        for known_seq, server_msg_id, _ in reversed(self._authors.get(conversation_id, ())):
            if known_seq == seq:
                self._push_own(conversation_id, user_id, server_msg_id, seq, origin)
                return
        self._background.start("receipt", self._load_and_push_own(conversation_id, user_id, seq, origin))

    async def _load_and_push_own(self, conversation_id: str, user_id: str, seq: int, origin: Output | None) -> None:
        try:
            page = await self._messages.pull_seqs(user_id, conversation_id, [seq])
        except NexoError:
            return
        if page.messages:
            self._push_own(conversation_id, user_id, page.messages[0].server_msg_id, seq, origin)

    def _push_own(
        self, conversation_id: str, user_id: str, server_msg_id: int, seq: int, origin: Output | None
    ) -> None:
        self._pushing.to_user(user_id, events.Receipt("read", conversation_id, server_msg_id, seq, user_id), origin)

    # -- the log -----------------------------------------------------------------------------------------------

    def _note(self, conversation_id: str, ack: ReceivedAck) -> None:
        self._received[conversation_id, ack.connection.session.user_id] = ack
        if len(self._received) > ORIGINS_MAX:
            self._received.popitem(last=False)

    def _log_moved(self, change: CursorChange) -> None:
        key = (change.conversation_id, change.user_id)
        ack = self._received.pop(key, None)
        connection = ack.connection if ack is not None else None
        delivery_lines.write(
            "acknowledged",
            change.user_id,
            change.conversation_id,
            ack_type=ack.ack_type if ack is not None else None,
            server_msg_id=ack.server_msg_id if ack is not None else None,
            sender=ack.sender_id if ack is not None else None,
            device=connection.device_id if connection is not None else None,
            conn=connection.conn_id if connection is not None else None,
            instance=self._instance,
            delivered_from=change.delivered_from,
            delivered_to=change.delivered_to,
            read_from=change.read_from,
            read_to=change.read_to,
            result="moved",
        )

    def _log_refused(self, connection: Output, kind: str, command: commands.Ack, error: NexoError) -> None:
        if not delivery_lines.is_on:
            return
        conversation_id, server_msg_id = command.conversation_id or "", str(command.server_msg_id)
        delivery_lines.write(
            "acknowledged",
            connection.session.user_id,
            # a client can send anything
            conversation_id if is_conversation_id(conversation_id) else None,
            ack_type=kind,
            server_msg_id=int(server_msg_id) if server_msg_id.isdecimal() and len(server_msg_id) < 20 else None,
            device=connection.device_id,
            conn=connection.conn_id,
            instance=self._instance,
            result=error.name,
        )

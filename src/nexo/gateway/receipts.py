"""Acknowledgements on their way: from a receiver's ACK to a cursor, and from the cursor to the authors.

The common ACK names a message that was pushed a moment ago; where it is and who wrote it is remembered, so
it costs no query. Receipts leave after the cursor is committed, one per author and flush.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterable
from sys import intern
from typing import Any, NamedTuple

import structlog
from msgspec import Struct

from nexo.core import commands, events
from nexo.core.model import CursorChange, Message
from nexo.errors import NexoError
from nexo.gateway.audiences import Audiences
from nexo.gateway.connection import Connection
from nexo.gateway.pushing import Pushing
from nexo.ids import is_conversation_id, now_ms, parse_server_msg_id, peer_in
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import LONG_SECONDS, Buckets, Tally
from nexo.metrics.sending import SendMeter
from nexo.ports import ConversationStore, MessageStore
from nexo.service.receipts import Acknowledging, check_ack_type

log = structlog.get_logger()

PLACES_MAX = 200_000
AUTHORS_MAX = 20_000  # conversations whose last authors are remembered
AUTHORS_EACH = 64
ORIGINS_MAX = 10_000
CLOCKS_MAX = 20_000  # members whose time from delivered to read is taken
ORIGIN_S = 5.0  # a cursor that was to be moved has been moved by then
RECENT_MS = 60_000
SEQ_MAX = 1 << 63
COUNTED_AT_ONCE = 256


class Place(Struct, frozen=True, gc=False):
    conversation_id: str
    seq: int
    sender_id: str
    saved_at: float


class Places:
    """Where the last messages are, by id. In two halves, of which the older one goes as a whole: to keep them in the
    order of their age would cost twice the memory."""

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new: dict[int, Place] = {}
        self._old: dict[int, Place] = {}

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def add(self, server_msg_id: int, place: Place) -> None:
        if len(self._new) >= PLACES_MAX // 2:
            self._old, self._new = self._new, {}
        self._new[server_msg_id] = place

    def get(self, server_msg_id: int) -> Place | None:
        return self._new.get(server_msg_id) or self._old.get(server_msg_id)


class Said(NamedTuple):
    """An ACK as it came, for the log."""

    connection: Connection
    ack_type: str
    server_msg_id: int | None
    sender_id: str | None


class Origin(NamedTuple):
    connection: Connection
    seq: int
    until: float


class Receipts:
    def __init__(
        self,
        acknowledging: Acknowledging,
        messages: MessageStore,
        conversations: ConversationStore,
        audiences: Audiences,
        pushing: Pushing,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        group_push_max_members: int,
        sends: SendMeter,
        instance: str,
    ) -> None:
        self._acknowledging = acknowledging
        self._messages = messages
        self._conversations = conversations
        self._audiences = audiences
        self._pushing = pushing
        self._spawn = spawn
        self._group_max = group_push_max_members
        self._places = Places()
        self._authors: OrderedDict[str, deque[tuple[int, int, str]]] = OrderedDict()  # seq, id, sender
        self._origins: dict[tuple[str, str], Origin] = {}  # who said "read", until it is committed
        self._sends = sends
        self._instance = instance
        self._acks = Tally(delivered=0, read=0)
        self._refused = Tally(delivered=0, read=0)
        self._delivery = Buckets()
        self._delivered_in: list[float] = []  # not counted yet: many at once cost less
        self._reading = Buckets(LONG_SECONDS)
        self._unread: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()  # delivered seq, since when
        self._said: OrderedDict[tuple[str, str], Said] | None = None
        if log.is_enabled_for(logging.DEBUG):
            self._said = OrderedDict()

    def samples(self) -> Iterable[Sample]:
        for ack_type, count in self._acks.items():
            yield f.ACKS(count, ack_type, "noted")
        for ack_type, count in self._refused.items():
            yield f.ACKS(count, ack_type, "refused")
        self._count_deliveries()
        yield f.DELIVERY_SECONDS(self._delivery)
        yield f.READ_SECONDS(self._reading)
        for name, held, limit in (
            ("places", self._places, PLACES_MAX),
            ("authors", self._authors, AUTHORS_MAX),
            ("origins", self._origins, ORIGINS_MAX),
            ("read_clocks", self._unread, CLOCKS_MAX),
        ):
            yield f.CACHE(len(held), name)
            yield f.CACHE_LIMIT(limit, name)

    def remember(self, message: Message) -> None:
        """A message or event was just committed: ACKs for it will come soon."""
        is_event = message.is_event
        saved_at = time.monotonic() if is_event else self._sends.committed_at  # events do not pass the committer
        name = intern(message.conversation_id)  # one text for all its messages
        self._places.add(message.server_msg_id, Place(name, message.seq, intern(message.sender_id), saved_at))
        authors = self._authors.get(name)
        if authors is None:
            authors = self._authors[name] = deque(maxlen=AUTHORS_EACH)
            if len(self._authors) > AUTHORS_MAX:
                self._authors.popitem(last=False)
        is_late = bool(authors) and authors[-1][0] > message.seq  # through HTTP one hears of it a moment later
        # nobody is told that an event was read
        authors.append((message.seq, message.server_msg_id, "" if is_event else message.sender_id))
        if is_late:
            self._authors[name] = deque(sorted(authors), AUTHORS_EACH)

    def given(self, messages: Iterable[Message]) -> None:
        """Whoever pulls what is new acknowledges it one by one, as what is pushed; most of all while Redis is gone,
        when everything from other instances is pulled."""
        wall_ms, now = now_ms(), time.monotonic()
        for message in messages:
            age_ms = max(0, wall_ms - message.send_at)
            if age_ms < RECENT_MS and self._places.get(message.server_msg_id) is None:
                place = Place(message.conversation_id, message.seq, message.sender_id, now - age_ms / 1000)
                self._places.add(message.server_msg_id, place)

    def last_seq(self, conversation_id: str) -> int:
        """The highest seq that this instance has told of, as far as it remembers; 0 when it does not."""
        authors = self._authors.get(conversation_id)
        return authors[-1][0] if authors else 0

    def acknowledge_known(self, connection: Connection, ack_type: str, server_msg_id: str | int) -> bool:
        """Note an ACK without asking the database, if the message and the right to see it are known here."""
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
        if read_seq:
            self.said(connection, place.conversation_id, read_seq)
        else:  # the last read of the connection brought it: no need to ask the clock again
            self._delivered_in.append(connection.last_seen - place.saved_at)
            if len(self._delivered_in) >= COUNTED_AT_ONCE:
                self._count_deliveries()
        if self._said is not None:
            self._note(place.conversation_id, Said(connection, kind, int(server_msg_id), place.sender_id))
        return True

    def _count_deliveries(self) -> None:
        self._delivery.observe_all(self._delivered_in)
        self._delivered_in.clear()

    async def acknowledge(self, connection: Connection, command: commands.Ack) -> None:
        """Any ACK, judged by what is in the database."""
        kind = check_ack_type(command.ack_type)
        try:
            said, name, seq = await self._judge(connection, command)
        except NexoError as error:
            self._refused[kind] += 1
            self._log_refused(connection, kind, command, error)
            raise
        self._acks[kind] += 1
        if self._said is not None:
            self._note(name, said)
        if kind == "read":
            self.said(connection, name, seq)
        elif said.server_msg_id is not None and (place := self._places.get(said.server_msg_id)) is not None:
            self._delivery.observe(time.monotonic() - place.saved_at)

    async def _judge(self, connection: Connection, command: commands.Ack) -> tuple[Said, str, int]:
        user_id = connection.session.user_id
        if command.server_msg_id is not None:
            place = await self._acknowledging.ack_message(user_id, command.ack_type, command.server_msg_id)
            server_msg_id = parse_server_msg_id(command.server_msg_id)
            said = Said(connection, command.ack_type.lower(), server_msg_id, place.sender_id)
            return said, place.conversation_id, place.seq
        if command.conversation_id is not None and command.seq is not None:
            name = command.conversation_id
            seq = await self._acknowledging.ack_seq(user_id, command.ack_type, name, command.seq)
            known = next((entry for entry in reversed(self._authors.get(name, ())) if entry[0] == seq), None)
            said = Said(connection, command.ack_type.lower(), known and known[1], known and known[2])
            return said, name, seq
        raise NexoError("missing_server_msg_id")

    def said(self, connection: Connection, conversation_id: str, seq: int = SEQ_MAX) -> None:
        """This connection moves a read cursor: it need not be told so, if this is how far it goes."""
        if len(self._origins) >= ORIGINS_MAX:  # cursors that did not move leave theirs behind
            self._origins.clear()
        self._origins[conversation_id, connection.session.user_id] = Origin(
            connection, seq, time.monotonic() + ORIGIN_S
        )

    # -- telling the authors -------------------------------------------------------------------------------

    def moved(self, changes: list[CursorChange]) -> None:
        """Cursors were committed: the authors of what they passed are told, and the reader's other devices."""
        now = time.monotonic()
        for change in changes:
            self._time_reading(change, now)
            if self._said is not None:
                self._log_moved(change)
            if change.delivered_to > change.delivered_from:
                self._tell(change, "delivered", change.delivered_from, change.delivered_to)
            if change.read_to > change.read_from:
                self._tell(change, "read", change.read_from, change.read_to)
                self._tell_own(change)

    def _time_reading(self, change: CursorChange, now: float) -> None:
        """From the oldest that was delivered and not read; each member's clock is set once and read once."""
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

    def _tell(self, change: CursorChange, ack_type: str, low: int, high: int) -> None:
        name, user_id = change.conversation_id, change.user_id
        remembered = self._authors.get(name)
        is_small = self._is_small(name, user_id)
        if is_small is None or remembered is None or remembered[0][0] > low + 1:
            self._spawn(self._look_and_push(name, user_id, ack_type, low, high))
        elif is_small:
            last: dict[str, tuple[int, int]] = {}
            for seq, server_msg_id, sender_id in reversed(remembered):  # newest first, and in order
                if seq <= low:
                    break
                if seq <= high:
                    last.setdefault(sender_id, (seq, server_msg_id))
            self._push(name, user_id, ack_type, last)

    def _is_small(self, name: str, user_id: str) -> bool | None:
        """Whether receipts are pushed here; None when that has to be found out."""
        if peer_in(name, user_id) is not None:
            return True
        audience = self._audiences.peek(name)
        return None if audience is None else len(audience.listeners) <= self._group_max

    async def _look_and_push(self, name: str, user_id: str, ack_type: str, low: int, high: int) -> None:
        try:
            if peer_in(name, user_id) is None:
                audience = await self._audiences.load(name)
                if len(audience.listeners) > self._group_max:
                    return
            last = await self._messages.last_by_author(name, low, high)
        except NexoError:
            return  # a receipt is a courtesy: the cursor is what counts, and it can be asked for
        self._push(name, user_id, ack_type, last)

    def _push(self, name: str, user_id: str, ack_type: str, last: dict[str, tuple[int, int]]) -> None:
        for sender_id, (seq, server_msg_id) in last.items():
            if sender_id != user_id:
                self._pushing.to_user(sender_id, events.Receipt(ack_type, name, server_msg_id, seq, user_id))

    # -- telling the reader's other devices ------------------------------------------------------------------

    def _tell_own(self, change: CursorChange) -> None:
        name, user_id, seq = change.conversation_id, change.user_id, change.read_to
        said = self._origins.pop((name, user_id), None)
        knows = said is not None and said.seq >= seq and time.monotonic() < said.until
        origin = said.connection if said is not None and knows else None
        if not self._pushing.reaches(user_id, origin):
            return
        for known_seq, server_msg_id, _ in reversed(self._authors.get(name, ())):
            if known_seq == seq:
                self._push_own(name, user_id, server_msg_id, seq, origin)
                return
        self._spawn(self._look_and_push_own(name, user_id, seq, origin))

    async def _look_and_push_own(self, name: str, user_id: str, seq: int, origin: Connection | None) -> None:
        try:
            page = await self._messages.pull_seqs(user_id, name, [seq])
        except NexoError:
            return
        if page.messages:
            self._push_own(name, user_id, page.messages[0].server_msg_id, seq, origin)

    def _push_own(self, name: str, user_id: str, server_msg_id: int, seq: int, origin: Connection | None) -> None:
        self._pushing.to_user(user_id, events.Receipt("read", name, server_msg_id, seq, user_id), origin)

    # -- the log, at debug level -------------------------------------------------------------------------------

    def _note(self, name: str, said: Said) -> None:
        if self._said is None:
            return
        self._said[name, said.connection.session.user_id] = said
        if len(self._said) > ORIGINS_MAX:
            self._said.popitem(last=False)

    def _log_moved(self, change: CursorChange) -> None:
        said = self._said.pop((change.conversation_id, change.user_id), None) if self._said is not None else None
        connection = said.connection if said is not None else None
        log.debug(
            "acknowledged",
            ack_type=said.ack_type if said is not None else None,
            server_msg_id=said.server_msg_id if said is not None else None,
            conversation_id=change.conversation_id,
            sender=said.sender_id if said is not None else None,
            user=change.user_id,
            device=connection.device_id if connection is not None else None,
            conn=connection.conn_id if connection is not None else None,
            instance=self._instance,
            delivered_from=change.delivered_from,
            delivered_to=change.delivered_to,
            read_from=change.read_from,
            read_to=change.read_to,
            result="moved",
        )

    def _log_refused(self, connection: Connection, kind: str, command: commands.Ack, error: NexoError) -> None:
        name, server_msg_id = command.conversation_id, str(command.server_msg_id)
        log.debug(
            "acknowledged",
            ack_type=kind,
            # a client can write anything there
            server_msg_id=int(server_msg_id) if server_msg_id.isdecimal() and len(server_msg_id) < 20 else None,
            conversation_id=name if name is not None and is_conversation_id(name) else None,
            user=connection.session.user_id,
            device=connection.device_id,
            conn=connection.conn_id,
            instance=self._instance,
            result=error.name,
        )

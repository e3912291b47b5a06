"""Acknowledgements on their way: from a receiver's ACK to a cursor, and from the cursor to the authors.

The common ACK names a message that was pushed a moment ago; where it is and who wrote it is remembered, so
it costs no query. Receipts leave after the cursor is committed, one per author and flush.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import structlog
from msgspec import Struct

from nexo.core import commands, events
from nexo.core.model import CursorChange, Message
from nexo.errors import NexoError
from nexo.gateway.audiences import Audiences
from nexo.gateway.connection import Connection
from nexo.gateway.pushing import Pushing
from nexo.ids import parse_server_msg_id, peer_of
from nexo.ports import ConversationStore, MessageStore
from nexo.service.receipts import Acknowledging, check_ack_type

log = structlog.get_logger()

PLACES_MAX = 200_000
AUTHORS_MAX = 20_000  # conversations whose last authors are remembered
AUTHORS_EACH = 64
ORIGINS_MAX = 10_000
ORIGIN_S = 5.0  # a cursor that was to be moved has been moved by then
SEQ_MAX = 1 << 63


class Place(Struct, frozen=True, gc=False):
    conversation_id: str
    seq: int
    sender_id: str


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
    ) -> None:
        self._acknowledging = acknowledging
        self._messages = messages
        self._conversations = conversations
        self._audiences = audiences
        self._pushing = pushing
        self._spawn = spawn
        self._group_max = group_push_max_members
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._authors: OrderedDict[str, deque[tuple[int, int, str]]] = OrderedDict()  # seq, id, sender
        self._origins: dict[tuple[str, str], Origin] = {}  # who said "read", until it is committed

    def remember(self, message: Message) -> None:
        """A message or event was just committed: ACKs for it will come soon."""
        places = self._places
        places[message.server_msg_id] = Place(message.conversation_id, message.seq, message.sender_id)
        if len(places) > PLACES_MAX:
            places.popitem(last=False)
        authors = self._authors.get(message.conversation_id)
        if authors is None:
            authors = self._authors[message.conversation_id] = deque(maxlen=AUTHORS_EACH)
            if len(self._authors) > AUTHORS_MAX:
                self._authors.popitem(last=False)
        is_late = bool(authors) and authors[-1][0] > message.seq  # through HTTP one hears of it a moment later
        # nobody is told that an event was read
        authors.append((message.seq, message.server_msg_id, "" if message.is_event else message.sender_id))
        if is_late:
            self._authors[message.conversation_id] = deque(sorted(authors), AUTHORS_EACH)

    def acknowledge_known(self, connection: Connection, ack_type: str, server_msg_id: str | int) -> bool:
        """Note an ACK without asking the database, if the message and the right to see it are known here."""
        kind = check_ack_type(ack_type)
        user_id = connection.session.user_id
        place = self._places.get(parse_server_msg_id(server_msg_id))
        if place is None:
            return False
        if peer_of(place.conversation_id, user_id) is None:
            audience = self._audiences.peek(place.conversation_id)
            listener = audience.listeners.get(user_id) if audience is not None else None
            if listener is None or place.seq < listener.from_seq:
                return False  # not known to be allowed: the database decides
        read_seq = place.seq if kind == "read" else 0
        self._conversations.advance(user_id, place.conversation_id, delivered_seq=place.seq, read_seq=read_seq)
        if read_seq:
            self.said(connection, place.conversation_id, read_seq)
        return True

    async def acknowledge(self, connection: Connection, command: commands.Ack) -> None:
        """Any ACK, judged by what is in the database."""
        user_id = connection.session.user_id
        if command.server_msg_id is not None:
            place = await self._acknowledging.ack_message(user_id, command.ack_type, command.server_msg_id)
            name, seq = place.conversation_id, place.seq
        elif command.conversation_id is not None and command.seq is not None:
            name = command.conversation_id
            seq = await self._acknowledging.ack_seq(user_id, command.ack_type, name, command.seq)
        else:
            raise NexoError("missing_server_msg_id")
        if check_ack_type(command.ack_type) == "read":
            self.said(connection, name, seq)

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
        for change in changes:
            if change.delivered_to > change.delivered_from:
                self._tell(change, "delivered", change.delivered_from, change.delivered_to)
            if change.read_to > change.read_from:
                self._tell(change, "read", change.read_from, change.read_to)
                self._tell_own(change)

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
        if peer_of(name, user_id) is not None:
            return True
        audience = self._audiences.peek(name)
        return None if audience is None else len(audience.listeners) <= self._group_max

    async def _look_and_push(self, name: str, user_id: str, ack_type: str, low: int, high: int) -> None:
        try:
            if peer_of(name, user_id) is None:
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

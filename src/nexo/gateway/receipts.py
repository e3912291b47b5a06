"""Acknowledgements on their way: from a receiver's ACK to a cursor, and from the cursor to the authors.

The common ACK names a message that was pushed a moment ago; where it is and who wrote it is remembered, so
it costs no query. Receipts leave after the cursor is committed, one per author and flush.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import Any

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

PLACES_MAX = 200_000
AUTHORS_MAX = 20_000  # conversations whose last authors are remembered
AUTHORS_EACH = 64
ORIGINS_MAX = 10_000


class Place(Struct, frozen=True, gc=False):
    conversation_id: str
    seq: int
    sender_id: str


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
        self._origins: dict[tuple[str, str], Connection] = {}  # who said "read", until it is committed

    def remember(self, message: Message) -> None:
        """A message was just committed: ACKs for it will come soon."""
        places = self._places
        places[message.server_msg_id] = Place(message.conversation_id, message.seq, message.sender_id)
        if len(places) > PLACES_MAX:
            places.popitem(last=False)
        authors = self._authors.get(message.conversation_id)
        if authors is None:
            authors = self._authors[message.conversation_id] = deque(maxlen=AUTHORS_EACH)
            if len(self._authors) > AUTHORS_MAX:
                self._authors.popitem(last=False)
        authors.append((message.seq, message.server_msg_id, message.sender_id))

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
            self.said(connection, place.conversation_id)
        return True

    async def acknowledge(self, connection: Connection, command: commands.Ack) -> None:
        """Any ACK, judged by what is in the database."""
        user_id = connection.session.user_id
        if command.server_msg_id is not None:
            place = await self._acknowledging.ack_message(user_id, command.ack_type, command.server_msg_id)
            name = place.conversation_id
        elif command.conversation_id is not None and command.seq is not None:
            name = command.conversation_id
            await self._acknowledging.ack_seq(user_id, command.ack_type, name, command.seq)
        else:
            raise NexoError("missing_server_msg_id")
        self.said(connection, name)

    def said(self, connection: Connection, conversation_id: str) -> None:
        """This connection moves a read cursor: it need not be told so."""
        if len(self._origins) >= ORIGINS_MAX:  # cursors that did not move leave theirs behind
            self._origins.clear()
        self._origins[conversation_id, connection.session.user_id] = connection

    # -- telling the authors -------------------------------------------------------------------------------

    def moved(self, changes: list[CursorChange]) -> None:
        """Cursors were committed: the authors of what they passed are told."""
        for change in changes:
            origin = self._origins.pop((change.conversation_id, change.user_id), None)
            if change.delivered_to > change.delivered_from:
                self._tell(change, "delivered", change.delivered_from, change.delivered_to, None)
            if change.read_to > change.read_from:
                self._tell(change, "read", change.read_from, change.read_to, origin)

    def _tell(self, change: CursorChange, ack_type: str, low: int, high: int, origin: Connection | None) -> None:
        name, user_id = change.conversation_id, change.user_id
        if peer_of(name, user_id) is None:
            audience = self._audiences.peek(name)
            if audience is None or len(audience.listeners) > self._group_max:
                return
        remembered = self._authors.get(name)
        if remembered and remembered[0][0] <= low + 1:
            last: dict[str, tuple[int, int]] = {}
            for seq, server_msg_id, sender_id in reversed(remembered):  # newest first, and in order
                if seq <= low:
                    break
                if seq <= high:
                    last.setdefault(sender_id, (seq, server_msg_id))
            self._push(name, user_id, ack_type, last, origin)
        else:
            self._spawn(self._look_and_push(name, user_id, ack_type, low, high, origin))

    async def _look_and_push(
        self, name: str, user_id: str, ack_type: str, low: int, high: int, origin: Connection | None
    ) -> None:
        try:
            last = await self._messages.last_by_author(name, low, high)
        except NexoError:
            return  # a receipt is a courtesy: the cursor is what counts, and it can be asked for
        self._push(name, user_id, ack_type, last, origin)

    def _push(
        self, name: str, user_id: str, ack_type: str, last: dict[str, tuple[int, int]], origin: Connection | None
    ) -> None:
        for sender_id, (seq, server_msg_id) in last.items():
            if sender_id != user_id:
                self._pushing.to_user(sender_id, events.Receipt(ack_type, name, server_msg_id, seq, user_id))
        if ack_type == "read" and last:
            # the reader's other devices learn how far they are
            seq, server_msg_id = max(last.values())
            self._pushing.to_user(user_id, events.Receipt("read", name, server_msg_id, seq, user_id), origin)

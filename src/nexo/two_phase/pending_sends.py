"""Sends under way per connection and conversation, which keeps their order across both ways of saving."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nexo.core.model import Draft
from nexo.ports import Address

UNSAVED_MAX = 1000  # of one connection in one conversation
CHECK_S = 5.0  # without an outcome for so long, Redis is asked whether it still has the send
CHECK_MAX_S = 60.0


class SendLane(Struct, eq=False):
    """The sends of one connection to one conversation."""

    address: Address
    conversation_id: str
    unsaved: dict[str, Draft]  # accepted, by client_msg_id, in order
    waiting: int = 0  # for Redis
    direct: int = 0  # being saved directly
    refusing: str = ""  # the client_msg_id that was refused for now: what waits behind it is refused as well
    news_at: float = 0.0  # when an outcome was last reported, or asked for
    patience_s: float = CHECK_S
    is_gone: bool = False

    @property
    def is_used(self) -> bool:
        return bool(self.waiting or self.direct or self.unsaved)


class PendingSends:
    def __init__(self, unsaved_max: int) -> None:
        self._unsaved_max = unsaved_max
        self._by_connection: dict[str, dict[str, SendLane]] = {}
        self._of: dict[tuple[str, str], SendLane] = {}  # by connection and client_msg_id of what is unsaved

    @property
    def unsaved(self) -> int:
        return len(self._of)

    def is_full(self, conn_id: str, conversation_id: str) -> bool:
        place = self._by_connection.get(conn_id, {}).get(conversation_id)
        mine = 0 if place is None else len(place.unsaved)
        return mine >= UNSAVED_MAX or len(self._of) >= self._unsaved_max

    def is_open(self, conn_id: str, conversation_id: str) -> bool:
        """Returns whether sends of this connection to the conversation wait or are not saved."""
        return conversation_id in self._by_connection.get(conn_id, ())

    def open(self, address: Address, conversation_id: str) -> SendLane:
        places = self._by_connection.setdefault(address.conn_id, {})
        place = places.get(conversation_id)
        if place is None:
            place = places[conversation_id] = SendLane(address, conversation_id, {})
        return place

    def tidy(self, place: SendLane) -> None:
        """Remove it when it has no sends left."""
        if not place.waiting:
            place.refusing = ""  # from now on the connection itself refuses
        if place.is_used:
            return
        places = self._by_connection.get(place.address.conn_id)
        if places is not None and places.get(place.conversation_id) is place:
            del places[place.conversation_id]
            if not places:
                del self._by_connection[place.address.conn_id]

    def accepted(self, place: SendLane, draft: Draft, now: float) -> None:
        if place.is_gone:
            return
        if not place.unsaved:
            place.news_at, place.patience_s = now, CHECK_S
        place.unsaved[draft.client_msg_id] = draft
        self._of[place.address.conn_id, draft.client_msg_id] = place

    def settled(self, conn_id: str, client_msg_id: str, now: float) -> SendLane | None:
        """Remove a send that is saved or finally refused. Returns where it was unsaved, if it was."""
        place = self._of.pop((conn_id, client_msg_id), None)
        if place is not None:
            place.unsaved.pop(client_msg_id, None)
            place.news_at, place.patience_s = now, CHECK_S
            self.tidy(place)
        return place

    def take_unsaved(self, place: SendLane) -> list[Draft]:
        """Remove and return all unsaved drafts, in order."""
        drafts = list(place.unsaved.values())
        place.unsaved.clear()
        for draft in drafts:
            self._of.pop((place.address.conn_id, draft.client_msg_id), None)
        return drafts

    def with_unsaved(self) -> list[SendLane]:
        return list({id(place): place for place in self._of.values()}.values())

    def overdue(self, now: float) -> Iterator[SendLane]:
        """Yields places with unsaved sends whose outcome is overdue; the interval of each doubles every time."""
        for place in self.with_unsaved():
            if now - place.news_at >= place.patience_s and not place.waiting and not place.direct:
                place.news_at = now
                place.patience_s = min(CHECK_MAX_S, place.patience_s * 2)
                yield place

    def gone(self, conn_id: str) -> None:
        for place in self._by_connection.pop(conn_id, {}).values():
            self.take_unsaved(place)
            place.is_gone = True

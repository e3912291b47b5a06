"""What the core leaves for whoever drives it, and the views that all its parts look at."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from nexo.client.events import Event
from nexo.client.options import Options
from nexo.client.view import View

Frame = dict[str, Any]
Wish = Literal["open", "drop", "list"]  # a connection, the end of one, the first page of the list


class Store(NamedTuple):
    """Keep `value` under `key`; None: forget it."""

    key: str
    value: Any


class Desk:
    def __init__(self, options: Options, user_id: str) -> None:
        self.options = options
        self.user_id = user_id
        self.views: dict[str, View] = {}
        self.frames: list[Frame] = []
        self.events: list[Event] = []
        self.stores: list[Store] = []
        self.wishes: list[Wish] = []
        self.changed: set[str] = set()  # conversations of which anything has changed

    def view(self, conversation_id: str) -> View:
        found = self.views.get(conversation_id)
        if found is None:
            found = View(conversation_id, self.user_id, self.options.window_size)
            self.views[conversation_id] = found
        return found

    def change(self, view: View) -> None:
        self.changed.add(view.conversation_id)

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def wish(self, wish: Wish) -> None:
        if wish not in self.wishes:
            self.wishes.append(wish)

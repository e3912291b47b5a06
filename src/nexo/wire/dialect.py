"""What a dialect is. A new one is a module with an object of this shape, and a line in `registry.py`."""

from __future__ import annotations

from typing import Any, Protocol

from nexo.core.commands import Command
from nexo.core.events import Event
from nexo.errors import NexoError


class BadFrame(Exception):
    """A frame that is no command. `violation`: it does not even keep to the dialect (counted, and closing
    when repeated). `ref` is what the error has to echo."""

    def __init__(self, error: NexoError, ref: Any = None, *, violation: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.ref = ref
        self.violation = violation


class Dialect(Protocol):
    """Pure: `bytes → command`, `event → bytes`. A `ref` is the dialect's own note of what to echo in the
    answer to a request; nobody else looks into it."""

    name: str  # the WebSocket subprotocol

    def decode(self, frame: bytes, user_id: str | None) -> tuple[Command, Any]:
        """The command of a frame and its ref, or BadFrame. `user_id` is the signed-in user, to compare a
        claimed sender with."""

    def encode(self, event: Event, ref: Any = None) -> bytes:
        """The payload of a frame. Without a ref it is a push, the same for every receiver."""

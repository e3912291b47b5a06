"""What a dialect is. A new one is a module with an object of this shape, and a line in `registry.py`."""

from __future__ import annotations

from typing import Any, Protocol

from nexo.core.commands import Command
from nexo.core.events import Event
from nexo.errors import NexoError


class BadFrame(Exception):
    """A frame that is no command. `violation`: it does not even keep to the dialect (counted, and closing
    when repeated). `for_all`: it was a request that those not signed in may make too, so that it is answered
    like any other. `signs_in`: it was meant to sign in, which has failed with this. `ref` is what the error has
    to echo."""

    def __init__(
        self,
        error: NexoError,
        ref: Any = None,
        *,
        violation: bool = False,
        for_all: bool = False,
        signs_in: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.ref = ref
        self.violation = violation
        self.for_all = for_all
        self.signs_in = signs_in


class Dialect(Protocol):
    """Pure: `bytes → command`, `event → bytes`. A `ref` is the dialect's own note of what to echo in the
    answer to a request; nobody else looks into it."""

    name: str  # connections of the same name get the same bytes for the same push
    signs_in: bool  # has a frame to sign in with; otherwise the token comes with the upgrade or not at all
    confirms: bool  # answers also what has no result; otherwise the client hears of it only when it is refused
    catches_up: bool  # SYNC and what was missed follow signing in by themselves; otherwise the client asks

    def for_connection(self, token: str | None) -> Dialect:
        """The codec of one connection: itself, unless the dialect has something to remember. `token` is what
        came with the upgrade."""

    def decode(self, frame: bytes, user_id: str | None) -> tuple[Command, Any]:
        """The command of a frame and its ref, or BadFrame. `user_id` is the signed-in user, to compare a
        claimed sender with."""

    def encode(self, event: Event, ref: Any = None) -> bytes:
        """The payload of a frame. Without a ref it is a push, the same for every receiver. Empty where the
        dialect says nothing: every push has a frame in every dialect, some answers have none."""

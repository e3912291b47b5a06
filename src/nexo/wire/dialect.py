"""What a dialect is. A new one is a module with an object of this shape, and a line in `registry.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nexo.core.commands import Command
from nexo.core.events import Event
from nexo.core.model import Message
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


class Deferred(bytes):
    """Placeholder for a push that cannot be encoded from its event alone. The gateway calls `complete` of `OpenimSide`,
    which builds and sends the push for each connection. The placeholder is empty: by itself it writes nothing."""

    event: Event

    @classmethod
    def of(cls, event: Event) -> Deferred:
        made = cls()
        made.event = event
        return made


class Dialect(Protocol):
    """Pure: `bytes → command`, `event → bytes`. A `ref` is the dialect's own note of what to echo in the
    answer to a request; no other code reads it."""

    name: str  # connections of the same name get the same bytes for the same push
    signs_in: bool  # has a frame to sign in with; otherwise the token comes with the upgrade or not at all
    confirms: bool  # answers also what has no result; otherwise the client hears of it only when it is refused
    is_binary: bool  # its messages are binary in both directions; otherwise they are text
    catches_up: bool  # SYNC and what was missed follow signing in by themselves; otherwise the client asks
    resyncs: bool  # has a frame for RESYNC; otherwise a connection that may have missed something is closed
    echo_s: float  # how long after its answer the sender gets its own message as a push too; 0: not at all

    @property
    def frame(self) -> Callable[[bytes], bytes]:
        """The WebSocket frame around a payload that is not empty. Held by the class as a static method (`text_frame`,
        `binary_frame`), so that a frame costs one call."""

    def for_connection(self, token: str | None) -> Dialect:
        """The codec of one connection: itself, unless the dialect has something to remember. `token` is what
        arrived with the upgrade."""

    def decode(self, frame: bytes, user_id: str | None) -> tuple[Command, Any]:
        """The command of a frame and its ref, or BadFrame. `user_id` is the signed-in user, to compare a
        claimed sender with."""

    def log_fields(self, ref: Any) -> Mapping[str, str | int]:
        """Returns what identifies a request in the log: what the client itself calls it. `ref` may be None."""

    def encode_outcome(self, error: NexoError | None) -> bytes:
        """The outcome of a handshake: the body of a refusal, or the first frame if the client asked for one."""

    def answer_text(self, payload: bytes) -> bytes | None:
        """The answer to a message of the other kind than the dialect's (text in a binary one), as a text; None where
        that is a violation."""

    def echo(self, message: Message, ref: Any) -> bytes:
        """The payload of a push of the sender's own message, in dialects with `echo_s`."""

    def encode(self, event: Event, ref: Any = None) -> bytes:
        """The payload of a frame. Without a ref it is a push, the same for every receiver. Empty where the
        dialect sends nothing: pushes and the answers to sends have a frame in every dialect, some answers have
        none."""

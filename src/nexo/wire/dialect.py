"""What a dialect is. A new one is a module with an object of this shape, and a line in `registry.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nexo.core.commands import Command
from nexo.core.events import Event
from nexo.core.model import Message
from nexo.errors import NexoError


class BadFrame(Exception):
    """A frame that is no command. `violation`: it breaks the rules of the dialect itself; such frames are counted, and
    several of them close the connection. `for_all`: it was a request that clients may make without signing in, so it is
    answered like any other. `signs_in`: it was meant to sign in, which has failed with this error. `ref`: what the
    error has to echo."""

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
    signs_in: bool  # has a frame to sign in with; otherwise the token must come with the upgrade
    confirms: bool  # also answers commands without a result; otherwise the client only learns of a refusal
    is_binary: bool  # its messages are binary in both directions; otherwise they are text
    catches_up: bool  # SYNC and missed messages follow signing in without a request; otherwise the client asks
    resyncs: bool  # has a frame for RESYNC; otherwise a connection that may have missed something is closed
    echo_s: float  # how long after its answer the sender gets its own message as a push too; 0: not at all

    @property
    def frame(self) -> Callable[[bytes], bytes]:
        """The WebSocket frame around a payload that is not empty. Held by the class as a static method (`text_frame`,
        `binary_frame`), so that a frame costs one call."""

    def for_connection(self, token: str | None) -> Dialect:
        """Returns the codec of one connection: this object, unless the dialect has something to remember. `token` is
        the token of the upgrade request."""

    def decode(self, frame: bytes, user_id: str | None) -> tuple[Command, Any]:
        """Returns the command of a frame and its ref, or raises BadFrame. `user_id` is the signed-in user, to compare
        with a sender that the frame names."""

    def log_fields(self, ref: Any) -> Mapping[str, str | int]:
        """Returns what identifies a request in the log: the name that the client gave it. `ref` may be None."""

    def encode_outcome(self, error: NexoError | None) -> bytes:
        """Returns the outcome of a handshake: the body of a refusal, or the first frame if the client asked for one."""

    def answer_text(self, payload: bytes) -> bytes | None:
        """Returns the answer to a message of the other kind (text in a binary dialect), as text; None where such a
        message is a violation."""

    def echo(self, message: Message, ref: Any) -> bytes:
        """Returns the payload of a push of the sender's own message, in dialects with `echo_s`."""

    def encode(self, event: Event, ref: Any = None) -> bytes:
        """Returns the payload of a frame. Without a ref it is a push, the same for every receiver. It is empty where
        the dialect sends nothing: pushes and the answers to sends have a frame in every dialect, some answers have
        none."""

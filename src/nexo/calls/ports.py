"""What calls need of the store and of delivery."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from nexo.core.calls import Candidate, Device, Ending, MissedCall, NewCall, OpenCall, UserCall
from nexo.core.events import CallFrame


class Invitation(Protocol):
    """`is_new`: the call was stored now. `is_crossed`: the two called each other, and the call that was stored first,
    this one, stands; `sdp` is its offer."""

    @property
    def call(self) -> UserCall: ...

    @property
    def is_new(self) -> bool: ...

    @property
    def is_crossed(self) -> bool: ...

    @property
    def sdp(self) -> str: ...


class Answered(Protocol):
    """A call that was answered, and the device of its caller."""

    @property
    def call(self) -> UserCall: ...

    @property
    def caller(self) -> Device: ...


class CallStore(Protocol):
    """Calls in the database. Changes of one call happen one after the other, on any instance. Frames for
    the participants and the record of a call are published by the seam, after the commit.

    Errors: `call_not_found`, `call_not_participant`, and those named at the methods."""

    def new_id(self) -> int: ...

    async def invite(self, new: NewCall) -> Invitation:
        """Store a call that rings; repeated with the same client_msg_id, it is the same call. Raises `user_not_found`,
        `blocked`, `not_contact`, `busy`, `callee_offline`, `client_msg_id_reused`."""

    async def accept(self, call_id: int, user_id: str, device: Device, sdp: str) -> Answered:
        """Answer a call that rings: of several devices at once, one succeeds. Raises `only_callee_can_accept`,
        `call_not_ringing`."""

    async def signal(self, call_id: int, user_id: str, fields: Candidate, *, is_candidate: bool) -> None:
        """Relay to the other participant; a candidate is also kept while the call rings."""

    async def finish(
        self, call_id: int, ending: Ending, user_id: str = "", reason: str = "", at: int = 0
    ) -> UserCall | None:
        """End a call and write its record, once. `user_id` is empty when the server ends it; then None says that it
        has ended before. Raises `only_caller_can_cancel`, `only_callee_can_accept`, `call_not_ringing`."""

    async def waiting_for(self, user_id: str, sid: str, answered_ms: int) -> MissedCall | None:
        """Returns what a device of this session, which has just connected, may have missed of a call: that it rings, or
        that it was answered at most so many milliseconds ago."""

    async def open_calls(self, after: int, limit: int) -> tuple[int, list[OpenCall]]:
        """Returns the time of the database and calls that have not ended, by ascending id."""

    async def note_gone(self, call_id: int, caller_gone_at: int, callee_gone_at: int) -> None: ...

    async def of_user(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[UserCall], str, bool]:
        """Returns a page, newest first, the next cursor, and whether there is more."""


class CallPushes(Protocol):
    """Frames of calls beside those that the seam publishes."""

    on_answer_wanted: Callable[[int], None]  # another instance asks for the answer of a call

    def push_call(self, user_id: str, event: CallFrame) -> None:
        """Push to the user's connections on all instances."""

    def push_call_here(self, user_id: str, event: CallFrame) -> None:
        """Push to the user's connections to this instance."""

    def ask_for_answer(self, call_id: int) -> None:
        """Ask all other instances for the answer of a call."""


class Connected(Protocol):
    """Which users are connected, to any instance."""

    async def among(self, user_ids: Collection[str]) -> set[str] | None:
        """Returns the connected ones of these users; None when that is unknown now."""

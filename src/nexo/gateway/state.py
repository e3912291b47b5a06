"""The states of a connection."""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """The life of a connection, in order; RENEWING returns to OPEN."""

    NEW = "new"  # not signed in
    SIGNING_IN = "signing in"  # a token or password is being checked; frames behind it are parked
    OPEN = "open"
    RENEWING = "renewing"  # a newer token is being checked; frames behind it are parked
    CLOSING = "closing"  # nothing more is read or written

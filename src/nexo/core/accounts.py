"""What the store tells of passwords and sessions. Hashes only: no value here can sign anybody in."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core.model import Session


class Credentials(NamedTuple):
    password_hash: str
    session_version: int


class Issued(NamedTuple):
    """A session that has a fresh refresh token. `now_ms` is the time from which its life is counted."""

    session: Session
    now_ms: int


class Reused(NamedTuple):
    """A token came back long after it was exchanged: somebody has a copy. The session has been ended."""

    session: Session


class PasswordChanged(NamedTuple):
    issued: Issued
    ended: list[str]  # the sids of the other sessions

"""Values of passwords, sessions and registration. The store returns hashes only: they are not enough to sign in."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from nexo.core.model import Session
from nexo.errors import NexoError

EXTERNAL_AGE_MS = 30 * 86_400_000  # a product's token that was issued longer ago is not accepted


class Credentials(NamedTuple):
    password_hash: str
    session_version: int
    disabled_at: int = 0
    disabled_reason: str = ""
    deleted_at: int = 0

    def check_open(self) -> None:
        """Raises unless the account may be used."""
        if self.deleted_at:
            raise NexoError("user_deleted")
        if self.disabled_at:
            raise NexoError("user_disabled", self.disabled_reason or None)


class TokenHash(NamedTuple):
    """The stored form of a refresh token: a hash of the whole, and one of the part that all tokens of a session have in
    common. The latter is empty for tokens that were made before there were families."""

    token: str
    family: str


class Issued(NamedTuple):
    """A session with a new refresh token. Its lifetime begins at `now_ms`."""

    session: Session
    now_ms: int


class Reused(NamedTuple):
    """A refresh token that was used again long after it was exchanged, so a copy exists. Its session has been ended."""

    session: Session


class PasswordChanged(NamedTuple):
    issued: Issued
    ended: list[str]  # the sids of the other sessions


class SessionRow(NamedTuple):
    """A session that has not ended, for administrators."""

    device_id: str
    platform_id: int
    created_at: int
    expires_at: int


class UserDraft(Struct, frozen=True):
    """A user to create or update: `given` has some of nickname, avatar and extra (as JSON text)."""

    user_id: str
    given: dict[str, str | None]


class RegistrationCode(Struct, frozen=True):
    """A code that allows to register, shown once; only its hash is kept."""

    code: str
    expires_at: int
    uses: int

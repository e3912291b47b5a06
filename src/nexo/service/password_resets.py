"""Codes that set a new password, made by moderators and the command line. A code works once and for a limited time.

A code is signed over the user, the end of its time, and the present password: with another password it is void. Nothing
is stored.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Protocol

import structlog
from msgspec import Struct

from nexo.core.accounts import Credentials
from nexo.errors import NexoError
from nexo.ids import check_user_id, now_ms
from nexo.service.accounts import Accounts

log = structlog.get_logger()

CODE_MAX_CHARS = 256
_PURPOSE = b"nexo password reset"  # no other signature by the same secret can be taken for a code


class ResetCode(Struct, frozen=True):
    code: str
    expires_at: int

    def __repr__(self) -> str:
        return f"ResetCode(expires_at={self.expires_at})"


class ResetStore(Protocol):
    async def state(self, user_id: str) -> Credentials | None: ...

    async def note_reset(self, user_id: str, actor: str) -> None:
        """Write the audit log: a code was made."""

    async def reset_password(self, user_id: str, old_hash: str, new_hash: str) -> list[str]:
        """Set a password in place of another. Returns the sids of all sessions, which have ended. Raises
        `invalid_credentials` if the password is no longer that one."""


class PasswordResets:
    def __init__(
        self, store: ResetStore, accounts: Accounts, secret: str, ttl_s: int, clock: Callable[[], int] = now_ms
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._secret = secret.encode()
        self._ttl_s = ttl_s
        self._clock = clock

    async def issue(self, user_id: str, actor: str) -> ResetCode:
        """Returns a code for a user whose account is open. It is shown once and known to no log."""
        self._accounts.check_passwords()
        check_user_id(user_id)
        state = await self._store.state(user_id)
        if state is None:
            raise NexoError("user_not_found", f"There is no user {user_id}")
        state.check_open()
        expires_s = self._clock() // 1000 + self._ttl_s
        await self._store.note_reset(user_id, actor)
        claim = f"{user_id}:{expires_s}".encode()
        return ResetCode(f"{_text(claim)}.{_text(self._sign(claim, state.password_hash))}", expires_s * 1000)

    async def use(self, code: str, new_password: str, address: str = "") -> None:
        """Sets the password; all sessions of the user end."""
        self._accounts.check_passwords()
        claim, mark = _parts(code)
        user_id, _, expires = claim.decode().rpartition(":")
        state = await self._store.state(user_id)
        if state is None or not hmac.compare_digest(mark, self._sign(claim, state.password_hash)):
            raise NexoError("code_invalid")
        if int(expires) * 1000 <= self._clock():
            raise NexoError("code_invalid", "The code has expired; ask for another one")
        state.check_open()
        new_hash = await self._accounts.hash_new(new_password, address)
        try:
            ended = await self._store.reset_password(user_id, state.password_hash, new_hash)
        except NexoError as error:
            raise NexoError("code_invalid") if error.name == "invalid_credentials" else error from None
        self._accounts.end_sessions(user_id, ended)
        log.info("password_reset", user_id=user_id, ended=len(ended))

    def _sign(self, claim: bytes, password_hash: str) -> bytes:
        present = hashlib.sha256(password_hash.encode()).digest()
        return hmac.digest(self._secret, b"\n".join((_PURPOSE, claim, present)), hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _parts(code: str) -> tuple[bytes, bytes]:
    """Returns the claim and the signature. The claim is not checked, only its form."""
    try:
        if len(code) > CODE_MAX_CHARS:
            raise ValueError
        claim, mark = (
            base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True) for part in code.split(".")
        )
        user_id, _, expires = claim.decode().rpartition(":")
        check_user_id(user_id)
        int(expires)
    except (ValueError, binascii.Error, NexoError):
        raise NexoError("code_invalid") from None
    return claim, mark

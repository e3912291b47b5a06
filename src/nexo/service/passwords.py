"""Passwords: argon2id in two threads of its own, because one hash takes tens of milliseconds and as many
megabytes. The event loop never computes one, what waits for a thread is bounded, and addresses take turns: one that
sends many passwords does not keep users of other addresses from signing in."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from nexo.config import Config
from nexo.core.addresses import limit_key
from nexo.core.content import check_text
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.service.fair_turns import FairTurns

T = TypeVar("T")

MAX_CHARS = 128
_THREADS = 2
_WAITING_MAX = 64  # at 25 ms each about a second of work; who comes then would only time out
_SALT_BYTES = 16
_HASH_BYTES = 32


class Passwords:
    def __init__(self, config: Config) -> None:
        auth = config.auth
        self._min_chars = auth.min_password_length
        self._hasher = PasswordHasher(
            time_cost=auth.argon2_time_cost,
            memory_cost=auth.argon2_memory_kib,
            parallelism=auth.argon2_parallelism,
            hash_len=_HASH_BYTES,
            salt_len=_SALT_BYTES,
            type=Type.ID,
        )
        # No password matches it, and checking one costs as much as a real check.
        salt, digest = (_base64(secrets.token_bytes(size)) for size in (_SALT_BYTES, _HASH_BYTES))
        costs = f"m={auth.argon2_memory_kib},t={auth.argon2_time_cost},p={auth.argon2_parallelism}"
        self._nobodys = f"$argon2id$v=19${costs}${salt}${digest}"
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="argon2")
        self._turns = FairTurns(_THREADS, _WAITING_MAX, "Too many passwords are waiting to be checked")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def waiting(self) -> int:
        """How many are being computed or wait for it."""
        return self._turns.running + self._turns.waiting

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(self.waiting, "passwords")
        yield f.QUEUE_LIMIT(_WAITING_MAX + _THREADS, "passwords")

    def check_new(self, password: str) -> None:
        check_text(password, "password", MAX_CHARS)
        if len(password) < self._min_chars:
            raise NexoError("bad_password", f"password must have at least {self._min_chars} characters")

    async def hash(self, password: str, address: str = "") -> str:
        return await self._compute(lambda: self._hasher.hash(password), address)

    async def matches(self, password: str, password_hash: str | None, address: str = "") -> bool:
        """Whether it is this password. Without a hash (no such user) the answer costs as much."""
        try:
            check_text(password, "password", MAX_CHARS)
        except NexoError:  # no user can have it: the same answer for every user, without hashing
            return False
        return await self._compute(lambda: self._matches(password, password_hash), address)

    def is_outdated(self, password_hash: str) -> bool:
        """Made with other costs than those configured now."""
        return self._hasher.check_needs_rehash(password_hash)

    def _matches(self, password: str, password_hash: str | None) -> bool:
        try:
            if password_hash is not None:
                return self._hasher.verify(password_hash, password)
        except InvalidHashError:  # a user who cannot sign in, say an imported one
            pass
        except VerificationError:
            return False
        with contextlib.suppress(VerificationError):
            self._hasher.verify(self._nobodys, password)
        return False

    async def _compute(self, work: Callable[[], T], address: str) -> T:
        async with self._turns.turn(limit_key(address)):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")

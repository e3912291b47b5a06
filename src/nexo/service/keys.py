"""Keys of a product's backend: making, checking and revoking them.

A key found valid, or unknown, is trusted for `CACHE_S` without asking the database: a key that a command adds or
revokes beside running servers takes effect within that time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from nexo.core.keys import ApiKey, check_name, check_scopes, hash_key, new_key_id, new_key_text
from nexo.core.limits import RateLimit
from nexo.errors import NexoError
from nexo.ids import check_user_id, now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally

log = structlog.get_logger()

CACHE_S = 4.0
MAX_CACHED = 1000
USE_NOTED_EVERY_S = 300.0


class KeyStore(Protocol):
    async def add(self, key: ApiKey, key_hash: str) -> ApiKey:
        """Or `bad_name` when the name is taken, `user_not_found`."""

    async def by_hash(self, key_hash: str) -> ApiKey | None: ...

    async def find(self, name_or_id: str) -> ApiKey | None: ...

    async def all(self) -> list[ApiKey]: ...

    async def revoke(self, key_id: str) -> None: ...

    async def used(self, key_id: str) -> None:
        """Note the time of the last use."""


class Keys:
    def __init__(
        self,
        store: KeyStore,
        per_s: int = 0,
        burst: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`per_s` and `burst` limit the calls of each key; 0: any number."""
        self._store = store
        self._clock = clock
        self._cache: dict[str, tuple[ApiKey | None, float]] = {}  # by hash, oldest first
        self._rates = RateLimit(per_s, burst)
        self._noted: dict[str, float] = {}
        self._calls = Tally()

    async def add(
        self, name: str, scopes: Iterable[str], user_id: str | None = None, expires_at: int = 0
    ) -> tuple[ApiKey, str]:
        """Returns the key and its text, which cannot be shown again."""
        check_name(name)
        if user_id is not None:
            check_user_id(user_id)
        if expires_at and expires_at <= now_ms():
            raise NexoError("bad_duration", "The key would have expired already")
        chosen = check_scopes(scopes, is_bot=user_id is not None)
        text = new_key_text()
        key = ApiKey(new_key_id(), name, chosen, user_id, 0, expires_at)
        return await self._store.add(key, hash_key(text)), text

    async def all(self) -> list[ApiKey]:
        return await self._store.all()

    async def revoke(self, name_or_id: str) -> ApiKey:
        key = await self._store.find(name_or_id)
        if key is None:
            raise NexoError("key_not_found", f"There is no key {name_or_id}")
        await self._store.revoke(key.key_id)
        self._cache.clear()
        return key

    async def authenticate(self, text: str) -> ApiKey:
        """Returns the key of this text and counts a call, or raises the reason why it is refused."""
        key = await self._load(hash_key(text))
        if key is None or key.revoked_at:
            raise NexoError("unauthorized", "This key is not known, or has been revoked")
        if key.expires_at and key.expires_at <= now_ms():
            raise NexoError("key_expired", f"The key {key.name} ({key.key_id}) has expired")
        self._calls.add(key.key_id)
        self._rates.demand(key.key_id)
        await self._note_use(key.key_id)
        return key

    async def _load(self, key_hash: str) -> ApiKey | None:
        now = self._clock()
        found = self._cache.get(key_hash)
        if found is not None and now < found[1]:
            return found[0]
        key = await self._store.by_hash(key_hash)
        self._cache.pop(key_hash, None)
        self._cache[key_hash] = key, now + CACHE_S
        if len(self._cache) > MAX_CACHED:
            del self._cache[next(iter(self._cache))]
        return key

    async def _note_use(self, key_id: str) -> None:
        now = self._clock()
        if now - self._noted.get(key_id, -USE_NOTED_EVERY_S) >= USE_NOTED_EVERY_S:
            self._noted[key_id] = now
            try:
                await self._store.used(key_id)
            except NexoError as error:  # a call must not fail because of a note
                log.warning("key_use_not_noted", key=key_id, error=str(error))

    def samples(self) -> Iterable[Sample]:
        yield from f.KEY_CALLS.each(self._calls)
        yield f.CACHE(len(self._cache), "keys")
        yield f.CACHE_LIMIT(MAX_CACHED, "keys")

"""The limits that do not belong to one connection, made once from the configuration and used by every way in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable

from nexo.config import Config
from nexo.core.addresses import limit_key
from nexo.core.limits import MAX_KEYS, RateLimit, SendLimits
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample

USER_ID_MAX = 64  # longer ones cannot exist, and must not fill the memory


Take = Callable[[str, int], Awaitable[int]]


class Limits:
    """Those on passwords, registering and creating groups count over all instances: each has its own as well,
    for when the others cannot be asked."""

    def __init__(self, config: Config, take: Take | None = None) -> None:
        """`take` counts one against a limit per minute that all instances share (`ports.Bus.take`)."""
        limits = config.limits
        self._config = limits
        self._take = take
        self.sends = SendLimits(limits.sends_per_s, limits.sends_burst)
        self._logins = RateLimit(limits.logins_per_min / 60, limits.logins_per_min)
        self._registers = RateLimit(limits.registers_per_min / 60, limits.registers_per_min)
        self._group_creates = RateLimit(limits.group_creates_per_min / 60, limits.group_creates_per_min)

    async def try_password(self, address: str, user_id: str) -> None:
        """Counts every try, also a successful one: it costs the same to answer."""
        key = (limit_key(address), user_id[:USER_ID_MAX])
        await self._demand(self._logins, key, f"login:{key[0]}:{key[1]}", self._config.logins_per_min)

    async def register(self, address: str) -> None:
        key = limit_key(address)
        await self._demand(self._registers, key, f"register:{key}", self._config.registers_per_min)

    async def create_group(self, user_id: str) -> None:
        await self._demand(self._group_creates, user_id, f"group:{user_id}", self._config.group_creates_per_min)

    async def _demand(self, own: RateLimit, key: Hashable, shared_key: str, per_min: int) -> None:
        own.demand(key)
        if self._take is not None and per_min:
            wait_ms = await self._take(shared_key, per_min)
            if wait_ms:
                own.refused += 1
                raise NexoError("too_many_requests", retry_after_ms=wait_ms)

    def send(self, user_id: str) -> None:
        self.sends.demand(user_id)

    def refusals(self) -> dict[str, int]:
        """How often each was exceeded."""
        return {
            "sends": self.sends.refused,
            "logins": self._logins.refused,
            "registers": self._registers.refused,
            "group_creates": self._group_creates.refused,
        }

    def samples(self) -> Iterable[Sample]:
        yield from f.REFUSALS.each(self.refusals())
        all_of_them = (self.sends, self._logins, self._registers, self._group_creates)
        yield f.CACHE(sum(map(len, all_of_them)), "rates")
        yield f.CACHE_LIMIT(MAX_KEYS * len(all_of_them), "rates")

"""The limits that do not belong to one connection, made once from the configuration and used by every way in."""

from __future__ import annotations

from collections.abc import Iterable

from nexo.config import Config
from nexo.core.addresses import limit_key
from nexo.core.limits import MAX_KEYS, RateLimit, SendLimits
from nexo.metrics import families as f
from nexo.metrics.families import Sample

USER_ID_MAX = 64  # longer ones cannot exist, and must not fill the memory


class Limits:
    def __init__(self, config: Config) -> None:
        limits = config.limits
        self.sends = SendLimits(limits.sends_per_s, limits.sends_burst)
        self._logins = RateLimit(limits.logins_per_min / 60, limits.logins_per_min)
        self._registers = RateLimit(limits.registers_per_min / 60, limits.registers_per_min)
        self._group_creates = RateLimit(limits.group_creates_per_min / 60, limits.group_creates_per_min)

    def try_password(self, address: str, user_id: str) -> None:
        """Counts every try, also a successful one: it costs the same to answer."""
        self._logins.demand((limit_key(address), user_id[:USER_ID_MAX]))

    def register(self, address: str) -> None:
        self._registers.demand(limit_key(address))

    def create_group(self, user_id: str) -> None:
        self._group_creates.demand(user_id)

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

"""The limits that do not belong to one connection, made once from the configuration and used by every way in."""

from __future__ import annotations

from nexo.config import Config
from nexo.core.addresses import limit_key
from nexo.core.limits import RateLimit, SendLimits

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
        """How often each was exceeded, for the metrics."""
        return {
            "sends": self.sends.refused,
            "logins": self._logins.refused,
            "registers": self._registers.refused,
            "group_creates": self._group_creates.refused,
        }

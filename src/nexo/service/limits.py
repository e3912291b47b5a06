"""The limits that do not belong to one connection, made once from the configuration and used by every way in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol

from nexo.config import Config
from nexo.core.addresses import limit_key
from nexo.core.limits import MAX_KEYS, RateLimit, SendLimits
from nexo.errors import NexoError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.service.tokens import hash_refresh_token

WRONG = ("invalid_credentials", "code_invalid")  # what a guess is answered with
USER_ID_MAX = 64  # longer ones cannot exist, and must not fill the memory
PRESENCE_BURST_SHARE = 4  # a quarter of what is allowed in a minute may be used at once


# Calls of a key that acts for users count for the key (`service/keys.py`), not for those users.
_BY_KEY: ContextVar[bool] = ContextVar("by_key", default=False)


def count_for_key() -> None:
    """Count what the rest of this task does for the key that was checked, not for the user for whom it acts."""
    _BY_KEY.set(True)


class SharedLimits(Protocol):
    """Limits that all instances share (`ports.Bus`)."""

    async def take(self, key: str, per_min: int) -> int: ...

    async def give_back(self, key: str, per_min: int) -> None: ...


class _PerMinute:
    """A limit per minute on this instance, and over all instances while they can be asked."""

    def __init__(self, name: str, per_min: int, shared: SharedLimits | None) -> None:
        self._name = name
        self._per_min = per_min
        self._shared = shared if per_min else None
        self.own = RateLimit(per_min / 60, per_min)

    async def demand(self, key: str) -> None:
        """Takes a token, or raises too_many_requests."""
        self.own.demand(key)
        if self._shared is not None:
            wait_ms = await self._shared.take(f"{self._name}:{key}", self._per_min)
            if wait_ms:
                self.own.refused += 1
                raise NexoError("too_many_requests", retry_after_ms=wait_ms)

    async def give_back(self, key: str) -> None:
        self.own.give_back(key)
        if self._shared is not None:
            await self._shared.give_back(f"{self._name}:{key}", self._per_min)


class Limits:
    """Those on passwords, registering and creating groups count over all instances: each has its own as well,
    for when other instances cannot be asked."""

    def __init__(self, config: Config, shared: SharedLimits | None = None) -> None:
        """`shared` is None with a single instance."""
        limits = config.limits
        self.sends = SendLimits(limits.sends_per_s, limits.sends_burst)
        self._logins = _PerMinute("login", limits.logins_per_min, shared)
        self._login_failures = _PerMinute("logins", limits.login_failures_per_address_per_min, shared)
        self._refreshes = _PerMinute("refresh", limits.refreshes_per_min, shared)
        self._registers = _PerMinute("register", limits.registers_per_min, shared)
        self._group_creates = _PerMinute("group", limits.group_creates_per_min, shared)
        self._membership = _PerMinute("membership", limits.membership_per_min, shared)
        self._contacts = _PerMinute("contact", config.contact.requests_per_min, shared)
        self._calls = _PerMinute("call", config.calls.invites_per_min, shared)
        self._reports = _PerMinute("report", config.report.per_min, shared)
        self._requests = RateLimit(limits.requests_per_s, limits.requests_burst)
        self._presence = RateLimit(limits.presence_per_min / 60, -(-limits.presence_per_min // PRESENCE_BURST_SHARE))

    @asynccontextmanager
    async def try_password(self, address: str, user_id: str) -> AsyncIterator[None]:
        """Count the password that is checked inside if it is wrong: against the limits of this user from this address
        and of the address. It counts while it is being checked, too, so that many at once are refused."""
        key = limit_key(address)
        keys = ((self._login_failures, key), (self._logins, f"{key}:{user_id[:USER_ID_MAX]}"))
        taken: list[tuple[_PerMinute, str]] = []
        is_wrong = False
        try:
            for limit, name in keys:
                await limit.demand(name)
                taken.append((limit, name))
            yield
        except NexoError as error:
            is_wrong = error.name in WRONG
            raise
        finally:
            if not is_wrong:
                for limit, name in taken:
                    await limit.give_back(name)

    async def refresh(self, refresh_token: str) -> None:
        """Counts an exchange for the session of the token, which the family of the token stands for."""
        known = hash_refresh_token(refresh_token)
        await self._refreshes.demand(known.family or known.token)

    async def register(self, address: str) -> None:
        await self._registers.demand(limit_key(address))

    async def create_group(self, user_id: str) -> None:
        if not _BY_KEY.get():
            await self._group_creates.demand(user_id)

    async def change_group(self, user_id: str) -> None:
        """Counts a change of a group or its members: each appends an event, which `sends` does not count."""
        if not _BY_KEY.get():
            await self._membership.demand(user_id)

    async def change_contact(self, user_id: str) -> None:
        """Counts a contact request, a decision or a removal."""
        if not _BY_KEY.get():
            await self._contacts.demand(user_id)

    async def invite_call(self, user_id: str) -> None:
        await self._calls.demand(user_id)

    async def report(self, user_id: str) -> None:
        if not _BY_KEY.get():
            await self._reports.demand(user_id)

    def request_of(self, user_id: str) -> None:
        """Counts an HTTP request of a user who is signed in."""
        self._requests.demand(user_id)

    def request_from(self, address: str) -> None:
        """Counts a request before signing in, or with a token that is not valid."""
        self._requests.demand((limit_key(address),))

    def subscribe_presence(self, user_id: str) -> None:
        """Counts on this instance only: each has its own subscriptions."""
        self._presence.demand(user_id)

    def send(self, user_id: str, count: int = 1) -> None:
        """Counts sends, and what counts as such: edits, reactions, pins, forwarded copies."""
        if not _BY_KEY.get():
            self.sends.demand(user_id, count)

    def _all(self) -> dict[str, RateLimit]:
        return {
            "sends": self.sends,
            "logins": self._logins.own,
            "login_failures": self._login_failures.own,
            "refreshes": self._refreshes.own,
            "registers": self._registers.own,
            "group_creates": self._group_creates.own,
            "membership": self._membership.own,
            "contacts": self._contacts.own,
            "calls": self._calls.own,
            "reports": self._reports.own,
            "requests": self._requests,
            "presence": self._presence,
        }

    def refusals(self) -> dict[str, int]:
        """How often each was exceeded."""
        return {name: limit.refused for name, limit in self._all().items()}

    def samples(self) -> Iterable[Sample]:
        yield from f.REFUSALS.each(self.refusals())
        limits = self._all().values()
        yield f.CACHE(sum(map(len, limits)), "rates")
        yield f.CACHE_LIMIT(MAX_KEYS * len(limits), "rates")

"""Presence in Redis: which instances hold a user. Written in order, renewed, and registered again after a loss.

One writer for the whole instance: the wanted state of a user is noted, and everything noted is written in one round
trip while the next is collected. So a user's entries are written in order without a lock, and a storm of sign-ins
costs a few round trips.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import structlog
from msgspec import Struct

from nexo.background import Background, Running
from nexo.bus.redis_client import KEYS_AT_ONCE, BusDown, RedisClient, RedisCommand, Script
from nexo.ports import BusListener, PresenceChange, Registration

log = structlog.get_logger()

_PRESENCE = Script("presence")
_WHERE = Script("where")
_WATCH = Script("watch")

Platforms = tuple[int, ...]


class Wanted(Struct):
    """The state to be written for a user."""

    platforms: Platforms
    waiting: list[asyncio.Future[Registration | None]]
    age_ms: int = 0
    is_renewal: bool = False  # it should be there already


class RedisPresence:
    """`ports.PresenceStore`; the bus calls `renew_some`."""

    def __init__(
        self,
        link: RedisClient,
        instance_id: str,
        ttl_s: float,
        prefix: str,
        is_gone: Callable[[str], bool],
        background: Background,
    ) -> None:
        self._link = link
        self._instance_id = instance_id
        self._ttl_ms = int(ttl_s * 1000)
        self._prefix = prefix
        self._is_gone = is_gone
        self._background = background
        self._listener: BusListener
        self._wanted: dict[str, Wanted] = {}
        self._written: dict[str, Platforms] = {}  # as Redis has confirmed
        self._version = 0
        self._wake = asyncio.Event()
        self._writer: Running | None = None
        self._writing = asyncio.Lock()
        self._to_renew: list[str] = []
        self._to_unwatch: dict[str, None] = {}  # in the order of the calls; no more than are watched in Redis
        self._unwatching: frozenset[str] = frozenset()  # being written
        self._unwatched = asyncio.Event()

    def start(self, listener: BusListener) -> None:
        self._listener = listener
        self._writer = self._background.serve("presence_writer", self._write)

    async def stop(self) -> None:
        """Write what waits, if Redis can be reached."""
        if self._writer is None:
            return
        while self._wanted and not self._link.is_broken:
            await self._write_some()
        await self._writer.stop()
        for wanted in self._wanted.values():
            _answer(wanted, None)

    # -- the gateway's side ----------------------------------------------------------------------------

    async def register(
        self, user_id: str, platforms: Sequence[int], *, anew: bool = False, age_ms: int = 0
    ) -> Registration | None:
        wanted = tuple(platforms)
        if not anew and user_id not in self._wanted and self._written.get(user_id) == wanted:
            return Registration(0, {})
        if self._link.is_broken:
            self.changed(user_id, wanted)
            return None
        done: asyncio.Future[Registration | None] = asyncio.get_running_loop().create_future()
        entry = self._note(user_id, wanted)
        entry.waiting.append(done)
        entry.age_ms = age_ms
        return await done

    def changed(self, user_id: str, platforms: Sequence[int]) -> None:
        self._note(user_id, tuple(platforms))

    async def on_other_instances(self, user_ids: Collection[str]) -> dict[str, Platforms]:
        try:
            found = await self.look_up(user_ids)
        except BusDown:
            return {}
        return {user_id: _platforms_of(entries.values()) for user_id, entries in found.items()}

    async def watch(self, user_ids: Collection[str]) -> dict[str, Platforms]:
        names = list(user_ids)
        for user_id in names:
            self._to_unwatch.pop(user_id, None)
        while not self._unwatching.isdisjoint(names):  # round trips may overtake each other
            await self._unwatched.wait()
        try:
            answers = await self._link.run([self._watching(user_id, self._ttl_ms) for user_id in names])
        except BusDown:
            return {}
        found = {user_id: self._others(answer) for user_id, answer in zip(names, answers, strict=True)}
        return {user_id: _platforms_of(entries.values()) for user_id, entries in found.items() if entries}

    def unwatch(self, user_ids: Collection[str]) -> None:
        if not self._link.is_broken:  # what is not written expires
            self._to_unwatch.update(dict.fromkeys(user_ids))
            self._wake.set()

    # -- the bus's side --------------------------------------------------------------------------------

    async def look_up(self, user_ids: Collection[str]) -> dict[str, dict[str, Platforms]]:
        """Returns the other instances that hold each user; users without one are left out. Raises BusDown."""
        names = list(user_ids)
        size = 1 if self._link.is_cluster else KEYS_AT_ONCE
        calls = [
            _WHERE.call([self._online(user_id) for user_id in names[start : start + size]])
            for start in range(0, len(names), size)
        ]
        answers = [entries for part in await self._link.run(calls) for entries in part] if calls else []
        found: dict[str, dict[str, Platforms]] = {}
        for user_id, answer in zip(names, answers, strict=True):
            if answer:
                others = self._others(answer)
                if others:
                    found[user_id] = others
        return found

    def renew_some(self, share: float) -> None:
        """Renew this share of all entries, in rounds over all of them."""
        if not self._to_renew:
            self._to_renew = [*self._written]
        count = max(1, int(len(self._written) * share))
        part, self._to_renew = self._to_renew[:count], self._to_renew[count:]
        for user_id in part:
            platforms = self._written.get(user_id)
            if platforms and user_id not in self._wanted:
                self._note(user_id, platforms).is_renewal = True

    async def renew_watches(self) -> None:
        """Renew the watches of this instance. Watches that are not needed any more expire."""
        names = self._listener.watched()
        for start in range(0, len(names), KEYS_AT_ONCE):
            await self._link.run([self._watching(name, self._ttl_ms) for name in names[start : start + KEYS_AT_ONCE]])

    async def register_all(self) -> None:
        """Write all entries again: everything that Redis held may be lost."""
        here = self._listener.here()
        gone = [user_id for user_id in self._written if user_id not in here]
        self._written.clear()
        for user_id in gone:
            self._note(user_id, ())
        for user_id, platforms in here.items():
            self._note(user_id, tuple(platforms))
        while self._wanted:
            await self._write_some(raises=True)
        await self.renew_watches()

    @property
    def count(self) -> int:
        return len(self._written)

    # -- writing ---------------------------------------------------------------------------------------

    def _note(self, user_id: str, platforms: Platforms) -> Wanted:
        wanted = self._wanted.get(user_id)
        if wanted is None:
            wanted = self._wanted[user_id] = Wanted(platforms, [])
            self._wake.set()
        else:
            wanted.platforms = platforms
            wanted.is_renewal = False
        return wanted

    async def _write(self) -> None:
        self._wake.set()  # a run that failed has left entries
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._wanted and not self._link.is_broken:
                await self._write_some()
            while self._to_unwatch:
                await self._unwatch_some()
            if self._link.is_broken:  # callers do not wait: it is written once Redis is reachable
                for wanted in self._wanted.values():
                    _answer(wanted, None)

    async def _unwatch_some(self) -> None:
        watched = frozenset(self._listener.watched())
        names = list(self._to_unwatch)[:KEYS_AT_ONCE]
        for name in names:
            del self._to_unwatch[name]
        self._unwatching = frozenset(names) - watched
        self._unwatched.clear()
        try:
            if self._unwatching:
                await self._link.run([self._watching(name, 0) for name in self._unwatching])
        except BusDown:
            self._to_unwatch.clear()
        finally:
            self._unwatching = frozenset()
            self._unwatched.set()

    async def _write_some(self, *, raises: bool = False) -> None:
        async with self._writing:
            await self._write_next(raises)

    async def _write_next(self, raises: bool) -> None:
        taken = {user_id: self._wanted.pop(user_id) for user_id in list(self._wanted)[:KEYS_AT_ONCE]}
        self._version += 1
        calls = [self._entry(user_id, wanted) for user_id, wanted in taken.items()]
        try:
            answers = await self._link.run(calls, probe=raises)
        except BusDown:
            self._take_back(taken)
            if raises:
                raise
            return
        again: list[str] = []
        try:
            for (user_id, wanted), answer in zip(taken.items(), answers, strict=True):
                self._confirm(user_id, wanted, answer, again)
        except Exception:
            self._take_back(taken)  # to write an entry twice does no harm
            raise
        if again:
            log.warning("presence_lost", users=len(again))
            self._listener.registered_again(again)

    def _take_back(self, taken: dict[str, Wanted]) -> None:
        """Queue entries again that may not be written. Callers do not wait for that."""
        for user_id, wanted in taken.items():
            _answer(wanted, None)
            self._wanted.setdefault(user_id, wanted)

    def _entry(self, user_id: str, wanted: Wanted) -> RedisCommand:
        return _PRESENCE.call(
            [self._online(user_id), self._watch_key(user_id)],
            self._instance_id,
            self._ttl_ms,
            self._version,
            ",".join(map(str, wanted.platforms)),
            wanted.age_ms * 1000,
        )

    def _confirm(self, user_id: str, wanted: Wanted, answer: Any, again: list[str]) -> None:
        number, mine, others, watchers = answer
        if wanted.platforms:
            self._written[user_id] = wanted.platforms
        else:
            self._written.pop(user_id, None)
        other_instances = self._others(others)
        _answer(wanted, Registration(int(number), other_instances))
        if wanted.is_renewal and not mine:
            again.append(user_id)
        rest = {platform for platforms in other_instances.values() for platform in platforms}
        before = rest | set(_parse_entry(mine) if mine else ())
        after = rest | set(wanted.platforms)
        if before != after:
            notified = tuple(name for name in map(bytes.decode, watchers) if name != self._instance_id)
            self._listener.presence_changed(PresenceChange(user_id, tuple(sorted(after)), int(number), notified))

    def _others(self, answer: Sequence[bytes]) -> dict[str, Platforms]:
        """Returns the live entries of other instances that are not known to have ended."""
        found: dict[str, Platforms] = {}
        for i in range(0, len(answer), 2):
            name = answer[i].decode()
            if name != self._instance_id and not self._is_gone(name):
                found[name] = _parse_entry(answer[i + 1])
        return found

    # -- keys: a user's are in one slot of a cluster ---------------------------------------------------

    def _online(self, user_id: str) -> str:
        return f"{self._prefix}online:{{{user_id}}}"

    def _watch_key(self, user_id: str) -> str:
        return f"{self._prefix}watch:{{{user_id}}}"

    def _watching(self, user_id: str, ttl_ms: int) -> RedisCommand:
        return _WATCH.call([self._watch_key(user_id), self._online(user_id)], self._instance_id, ttl_ms)


def _answer(wanted: Wanted, registration: Registration | None) -> None:
    for done in wanted.waiting:
        if not done.done():
            done.set_result(registration)
    wanted.waiting.clear()


def _parse_entry(entry: bytes) -> Platforms:
    platforms = entry.rpartition(b":")[2]
    return tuple(map(int, platforms.split(b","))) if platforms else ()


def _platforms_of(entries: Iterable[Platforms]) -> Platforms:
    return tuple(sorted(platform for platforms in entries for platform in platforms))

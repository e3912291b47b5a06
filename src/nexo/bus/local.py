"""The bus of a single process, which has no other instance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from nexo.ids import new_instance_id
from nexo.metrics.families import Sample
from nexo.ports import BusListener, Registration


class LocalBus:
    """`ports.Bus` and `ports.PresenceStore`."""

    is_shared = False
    is_up = False
    committed_at: Callable[[], float] | None = None

    def __init__(self) -> None:
        self.instance_id = new_instance_id()
        self._locks: set[str] = set()

    @property
    def presence(self) -> LocalBus:
        return self

    async def start(self, listener: BusListener) -> None: ...

    async def stop(self) -> None: ...

    def misses(self, instance_id: str) -> bool:
        return False

    def peers(self) -> Collection[str]:
        return ()

    def last_commits(self) -> list[float]:
        return []

    def samples(self) -> Iterable[Sample]:
        return ()

    async def exchange(self, status: bytes) -> dict[str, bytes]:
        return {}

    def publish(self, payload: bytes, user_ids: Collection[str]) -> None: ...

    def publish_to(self, payload: bytes, instance_ids: Collection[str]) -> None: ...

    def publish_to_all(self, payload: bytes) -> None: ...

    async def take(self, key: str, per_min: int) -> int:
        return 0

    async def give_back(self, key: str, per_min: int) -> None: ...

    async def lock(self, key: str, ttl_s: float) -> bool:
        """Take a lock without expiry: its holder is in this process and releases it."""
        if key in self._locks:
            return False
        self._locks.add(key)
        return True

    async def unlock(self, key: str) -> None:
        self._locks.discard(key)

    async def register(
        self, user_id: str, platforms: Sequence[int], *, anew: bool = False, age_ms: int = 0
    ) -> Registration | None:
        return Registration(0, {})

    def changed(self, user_id: str, platforms: Sequence[int]) -> None: ...

    async def on_other_instances(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        return {}

    async def watch(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        return {}

    def unwatch(self, user_ids: Collection[str]) -> None: ...

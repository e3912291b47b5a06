"""Health of this instance in the cluster: it announces itself in the database, detects instances that are not heard on
the bus, and decides when its clients should move to another instance (`verdict.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

import structlog

from nexo.background import Background, Running
from nexo.cluster.verdict import LEASE_S, ClusterVerdict, ClusterView, judge
from nexo.errors import NexoError, StartupError, Unavailable
from nexo.ids import now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.ports import Bus, InstanceRow, InstancesSeen, InstanceStore
from nexo.service.secret import digest_secret, is_digest_of

log = structlog.get_logger()

ANNOUNCEMENTS_PER_DETECTION = 4
ANNOUNCE_MAX_S = 1.0
LOOKS_PER_DETECTION = 5
LOOK_MAX_S = 0.5
CLOCK_OFF_S = 10.0  # more than any round trip; it falsifies presence, tokens and times of messages
CLOCK_AGAIN_S = 600.0
LEAVE_S = 2.0
JOIN_S = 10.0

OTHER_SECRET = (
    "auth.secret is not the one of the instances that run on this database ({place}): users signed in there would be "
    "refused here. Give every instance the same auth.secret; to change it, stop all instances first, then start them "
    "with the new one"
)


class ClusterHealth:
    def __init__(
        self,
        instances: InstanceStore,
        bus: Bus,
        background: Background,
        *,
        place: str,
        is_worker: bool,
        detect_s: float,
    ) -> None:
        self._instances = instances
        self._bus = bus
        self._background = background
        self._place = place
        self._is_worker = is_worker
        self._detect_s = detect_s
        self._announce_s = min(ANNOUNCE_MAX_S, detect_s / ANNOUNCEMENTS_PER_DETECTION)
        self._look_s = min(LOOK_MAX_S, detect_s / LOOKS_PER_DETECTION)
        self._digest = ""
        self._seen = InstancesSeen(0, 0, [])
        self._seen_at = time.monotonic()
        self._bus_down_since: float | None = None
        self._had_peers = False
        self._clock_logged_at = -CLOCK_AGAIN_S
        self._changed = asyncio.Event()  # judge again at once
        self._announce_now = asyncio.Event()
        self._running: list[Running] = []
        self._verdict = ClusterVerdict()
        self.watch: Callable[[bool], None] = lambda is_needed: None
        self.drain: Callable[[str], None] = lambda reason: None
        self.take_clients: Callable[[], None] = lambda: None

    @property
    def reason(self) -> str:
        """Why this instance is not ready; empty while it is."""
        return self._verdict.reason

    def samples(self) -> Iterable[Sample]:
        alive = [row for row in self._seen.others if row.age_ms <= LEASE_S * 1000]
        missed = sum(self._bus.misses(row.instance_id) for row in alive)
        yield f.INSTANCES(len(alive) - missed, "heard")
        yield f.INSTANCES(missed, "missed")
        yield f.DATABASE_WATCHED(float(self._verdict.watches or (self._bus.is_shared and not self._bus.is_up)))
        yield f.DRAINING(float(self._verdict.drains))

    # -- start and stop ------------------------------------------------------------------------------------

    async def join(self, secret: str) -> None:
        """Announce this instance. Raises StartupError if a running instance has another secret."""
        self._digest = await asyncio.to_thread(digest_secret, secret)
        try:
            seen = await self._announce_first()
            await self._check_secret(secret, seen)
        except BaseException:
            await self.leave()
            raise
        self._take(seen)

    async def _announce_first(self) -> InstancesSeen:
        deadline = time.monotonic() + JOIN_S
        while True:
            try:
                return await self._instances.announce(self._row())
            except NexoError as error:
                if time.monotonic() > deadline:
                    raise Unavailable(f"the database does not take this instance's row: {error.detail}") from error
            await asyncio.sleep(self._announce_s)

    async def _check_secret(self, secret: str, seen: InstancesSeen) -> None:
        """Compare the secret with instances that announced themselves earlier. A row that is not renewed belongs to an
        instance that was killed, and does not count."""
        renewed_at = {row.instance_id: seen.now_ms - row.age_ms for row in seen.others}
        digests: dict[str, bool] = {}
        while True:
            others = [row for row in seen.others if row.age_ms <= LEASE_S * 1000 and _is_before(row, seen, self._row())]
            for row in others:
                if row.secret_digest not in digests:
                    same = await asyncio.to_thread(is_digest_of, row.secret_digest, secret)
                    digests[row.secret_digest] = same
            different = [row for row in others if not digests[row.secret_digest]]
            if not different:
                return
            for row in different:
                if seen.now_ms - row.age_ms > renewed_at.setdefault(row.instance_id, seen.now_ms - row.age_ms):
                    raise StartupError(OTHER_SECRET.format(place=row.place))
            await asyncio.sleep(self._announce_s)
            seen = await self._announce_first()

    def start(self) -> None:
        if not self._is_worker:
            self._bus.committed_at = lambda: self._instances.committed_at
        self._running = [
            self._background.serve("announce_instance", self._announce_loop),
            self._background.serve("judge_reachability", self._judge_loop),
        ]

    async def stop(self) -> None:
        for running in self._running:
            await running.stop()
        if self._running:
            await self.leave()

    async def leave(self) -> None:
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._instances.leave(self._bus.instance_id)
        except (NexoError, TimeoutError):  # the row expires
            log.warning("instance_row_left", instance=self._bus.instance_id)

    # -- announcing ----------------------------------------------------------------------------------------

    async def _announce_loop(self) -> None:
        while True:
            started = time.monotonic()
            try:
                async with asyncio.timeout(self._detect_s):
                    self._take(await self._instances.announce(self._row()))
            except (NexoError, TimeoutError):
                pass  # the age of the last commit is what counts
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, started + self._announce_s - time.monotonic())):
                    await self._announce_now.wait()
            self._announce_now.clear()

    def _row(self) -> InstanceRow:
        return InstanceRow(self._bus.instance_id, self._place, self._is_worker, self._bus.is_up, self._digest, 0)

    def _take(self, seen: InstancesSeen) -> None:
        self._seen, self._seen_at = seen, time.monotonic()
        self._check_clock(seen.now_ms)
        self._changed.set()

    def _check_clock(self, database_ms: int) -> None:
        off_s = (now_ms() - database_ms) / 1000
        if abs(off_s) > CLOCK_OFF_S and time.monotonic() - self._clock_logged_at > CLOCK_AGAIN_S:
            self._clock_logged_at = time.monotonic()
            log.warning("clock_off", seconds=round(off_s), hint="this machine's clock differs from the database's")

    # -- judging -------------------------------------------------------------------------------------------

    def bus_changed(self) -> None:
        """Judge and announce at once: an instance has become silent, or the bus was lost or found."""
        self._changed.set()
        self._announce_now.set()

    async def _judge_loop(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._changed.wait()
            self._changed.clear()
            self._act(judge(self._view(time.monotonic())))

    def _view(self, now: float) -> ClusterView:
        bus = self._bus
        if bus.is_up:
            self._bus_down_since = None
        elif self._bus_down_since is None:
            self._bus_down_since = now
        rows_age_s = now - self._seen_at
        if rows_age_s <= self._detect_s:
            self._had_peers = any(not row.is_worker and row.age_ms <= LEASE_S * 1000 for row in self._seen.others)
        return ClusterView(
            detect_s=self._detect_s,
            is_shared=bus.is_shared,
            bus_down_s=None if self._bus_down_since is None else now - self._bus_down_since,
            commit_age_s=now - self._instances.committed_at,
            own_age_ms=self._seen.now_ms - self._seen.started_at,
            rows=self._seen.others,
            rows_age_s=rows_age_s,
            missed=frozenset(row.instance_id for row in self._seen.others if bus.misses(row.instance_id)),
            peer_commit_ages_s=[now - at for at in bus.last_commits()],
            had_peers=self._had_peers,
        )

    def _act(self, verdict: ClusterVerdict) -> None:
        before, self._verdict = self._verdict, verdict
        self.watch(verdict.watches)
        if verdict.reason != before.reason:
            if verdict.reason:
                log.warning("not_serving", reason=verdict.reason)
            else:
                log.info("serving_again", after=before.reason)
        if verdict.drains:
            self.drain(verdict.reason)
        elif before.drains:
            self.take_clients()


def _is_before(row: InstanceRow, seen: InstancesSeen, own: InstanceRow) -> bool:
    return (row.started_at, row.instance_id) < (seen.started_at, own.instance_id)

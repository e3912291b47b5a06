"""The numbers of all instances, for the live page of any instance: each publishes its own numbers for the other
instances.

Only what that page shows: a few kilobytes every few seconds. If the numbers cannot be exchanged, the page shows this
instance alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec

from nexo.metrics import families as f
from nexo.metrics.exposition import encode_snapshot, merge_snapshots, without_process
from nexo.metrics.families import Sample

EVERY_S = 5.0
_SHOWN = frozenset(
    family.name
    for family in (
        f.INFO, f.SENDS, f.SEND_SECONDS, f.SEND_STAGES, f.BATCH_SIZE, f.QUEUE, f.QUEUE_LIMIT, f.DELIVERY_SECONDS,
        f.PUSHES_DROPPED, f.RESYNCS, f.CONNECTIONS, f.CONNECTIONS_LIMIT, f.USERS, f.BLOCKED, f.CLOSED, f.ERRORS,
        f.LOOP_LAG, f.CPU, f.MEMORY, f.STARTED, f.ACCEPTS, f.ACCEPT_ACK_SECONDS, f.SAVE_LAG_SECONDS, f.STREAM_LENGTH,
        f.TWO_PHASE_FAILURES,
    )
)  # fmt: skip

Exchange = Callable[[bytes], Awaitable[Mapping[str, bytes]]]  # own status → status of the other instances, by instance


class _Status(msgspec.Struct, array_like=True):
    name: str
    snapshot: msgspec.Raw


class Cluster:
    def __init__(self, name: str, own: Callable[[], Iterable[Sample]], exchange: Exchange) -> None:
        self._name = name
        self._own = own
        self._exchange = exchange
        self._others: dict[str, list[Sample]] = {}

    def samples(self) -> dict[str, list[Sample]]:
        """Returns the status by instance: this one as of now, other instances as of a few seconds ago."""
        return {self._name: list(self._own()), **self._others}

    async def run(self) -> None:
        """Exchange the status every few seconds. Never returns."""
        while True:
            shown = encode_snapshot(sample for sample in self._own() if sample.name in _SHOWN)
            given = await self._exchange(msgspec.json.encode(_Status(self._name, msgspec.Raw(shown))))
            self._others = dict(self._read(given.values()))
            await asyncio.sleep(EVERY_S)

    def _read(self, statuses: Iterable[bytes]) -> Iterable[tuple[str, list[Sample]]]:
        for text in statuses:
            with contextlib.suppress(msgspec.MsgspecError):  # another version of Nexo may say it differently
                status = msgspec.json.decode(text, type=_Status)
                samples = merge_snapshots({status.name: bytes(status.snapshot)})
                yield status.name, [without_process(sample) for sample in samples]

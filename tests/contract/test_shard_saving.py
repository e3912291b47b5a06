"""From accepted entries to their outcomes, in order, whatever the committer says: on a real Redis, with a committer
that does what the test wants."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from contract.test_streams import accept, draft, opened, run, take
from harness.servers import Redis
from harness.waiting import nothing_for, until
from nexo.core import events
from nexo.core.model import Draft, Message, Sent
from nexo.errors import NexoError
from nexo.metrics.two_phase import SaveMeter
from nexo.ports import Address, Origin
from nexo.two_phase.entries import decode_entry
from nexo.two_phase.shard_saver import NotOwner, ShardSaver
from nexo.two_phase.streams import Raw, Stream, Streams

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis("appendonly no") as running:
        yield running


def saved(one: Draft, seq: int) -> Sent:
    message = Message(
        one.server_msg_id or 0, one.client_msg_id, one.conversation_id, seq, one.sender_id, 1, one.content, 1
    )
    return Sent(message=message, fresh=True, member_epoch=1, content_changed=False)


class Committer:
    """Takes what fits; the test decides what becomes of it."""

    def __init__(self) -> None:
        self.room = 1000
        self.offered: list[tuple[Draft, Origin]] = []
        self.names: list[str] = []  # of all that was handed over, in order

    def submit(self, one: Draft, origin: Origin) -> None:
        if len(self.offered) >= self.room:
            raise NexoError("server_busy")
        self.offered.append((one, origin))
        self.names.append(one.client_msg_id)

    def decide(self, name: str, outcome: NexoError | None = None) -> None:
        place = next(i for i, (one, _) in enumerate(self.offered) if one.client_msg_id == name)
        one, origin = self.offered.pop(place)
        origin.decided(outcome or saved(one, len(self.names)))


class Teller:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def provisional(self, message: Message, member_epoch: int, origin: Address | None) -> None: ...

    def withdrawn(self, message: Message, reason: str) -> None:
        self.told.append(("withdrawn", reason))

    def outcome(self, address: Address, event: events.Event) -> None:
        self.told.append((event.error.name if isinstance(event, events.Failed) else "saved", ""))


class Scene:
    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.committer = Committer()
        self.teller = Teller()
        self.is_owner = True
        store: Any = self.committer
        self.saver = ShardSaver((0, 1), streams, store, self.teller, SaveMeter(), lambda: self.is_owner)
        self.stream = streams.accepted(0)

    async def save(self, *names: str, stream: Stream | None = None) -> None:
        await accept(self.streams, *(draft(name) for name in names))
        taken: list[Raw] = await take(self.streams, self.stream)
        await self.saver.save(self.stream, [(raw, decode_entry(*raw)) for raw in taken])

    async def left(self) -> int:
        return int(await run(self.streams, "XLEN", self.stream.name))


@contextlib.asynccontextmanager
async def scene(redis: Redis, **settings: Any) -> AsyncIterator[Scene]:
    async with opened(redis, shards=1, **settings) as streams:
        here = Scene(streams)
        running = asyncio.create_task(here.saver.run())
        try:
            yield here
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_the_next_entries_are_handed_over_before_the_first_are_decided(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.save("a", "b")
        await here.save("c")
        assert here.committer.names == ["a", "b", "c"]
        for name in ("a", "b", "c"):
            here.committer.decide(name)
        await here.saver.rest()
        assert [what for what, _ in here.teller.told] == ["saved"] * 3
        assert await here.left() == 0


async def test_what_the_committer_has_no_room_for_goes_before_what_comes_later(redis: Redis) -> None:
    async with scene(redis) as here:
        here.committer.room = 1
        await here.save("a", "b", "c")
        later = asyncio.create_task(here.save("d"))
        here.committer.room = 1000
        here.committer.decide("a")
        await later
        assert here.committer.names == ["a", "b", "c", "d"]


async def test_nothing_is_handed_over_while_something_has_to_be_tried_again(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.save("a", "b")
        here.committer.decide("a", NexoError("internal_error"))
        later = asyncio.create_task(here.save("c"))
        await nothing_for(0.2)
        assert here.committer.names == ["a", "b"], "b is under way: nobody knows yet whether a was overtaken"
        here.committer.decide("b", NexoError("server_busy"))
        await later
        assert here.committer.names == ["a", "b", "a", "b", "c"]


async def test_what_was_overtaken_is_a_dead_letter_at_once(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.save("a", "b")
        here.committer.decide("a", NexoError("internal_error", "it bites"))
        here.committer.decide("b")
        await until(lambda: ("internal_error", "") in here.teller.told)
        await here.saver.rest()
        assert here.committer.names == ["a", "b"]
        (letter,) = await here.streams.dead_letters(0, 10)
        assert (letter.fields[b"client_msg_id"], letter.fields[b"reason"]) == (b"a", b"it bites")
        assert await here.left() == 0


async def test_what_fails_again_and_again_is_a_dead_letter_and_the_others_go_on(redis: Redis) -> None:
    async with scene(redis, max_tries=3) as here:
        await here.save("a")
        for tries in range(1, 4):
            await until(lambda tries=tries: here.committer.names.count("a") == tries)  # type: ignore[misc]
            here.committer.decide("a", NexoError("internal_error"))
        await here.save("b")
        here.committer.decide("b")
        await here.saver.rest()
        assert here.committer.names == ["a", "a", "a", "b"]
        assert len(await here.streams.dead_letters(0, 10)) == 1


async def test_a_refusal_is_not_told_by_one_who_may_have_lost_the_shard(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.save("a", "b")
        here.is_owner = False
        here.committer.decide("a", NexoError("blocked"))
        here.committer.decide("b")  # that it is saved is true in any case
        with pytest.raises(NotOwner):
            await here.saver.save(here.stream, [])
        await here.saver.rest()
        assert ("blocked", "") not in here.teller.told
        assert await here.left() == 1, "whoever owns the shard now decides"


async def test_whoever_stops_waits_for_what_is_under_way_and_leaves_the_rest(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.save("a", "b")
        here.saver.stop()
        resting = asyncio.create_task(here.saver.rest())
        await here.save("c")
        here.committer.decide("a")
        here.committer.decide("b", NexoError("server_busy"))
        await asyncio.wait_for(resting, 20)
        assert here.committer.names == ["a", "b"]
        assert await here.left() == 2

"""ShardReader: new entries of all shards of a process in one call to Redis; ownership is checked before each read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from contract.test_streams import accept, draft, opened
from harness.redis_cluster import RedisCluster
from harness.servers import Redis
from harness.waiting import until
from nexo.bus.redis_client import BusDown, NoGroup
from nexo.metrics.two_phase import SaveMeter
from nexo.two_phase.entries import decode_entry
from nexo.two_phase.shard_reader import ShardReader
from nexo.two_phase.shard_saver import NotOwner
from nexo.two_phase.streams import Raw, Stream, Streams

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=["single", "cluster"])
def server(request: pytest.FixtureRequest) -> Iterator[Redis | RedisCluster]:
    with Redis("appendonly no") if request.param == "single" else RedisCluster() as running:
        yield running


def yes() -> bool:
    return True


def names(taken: list[Raw]) -> list[str]:
    return [decode_entry(*raw).draft.client_msg_id for raw in taken]


async def with_groups(streams: Streams) -> list[Stream]:
    found = [streams.accepted(shard) for shard in range(streams.settings.shards)]
    await streams.make_groups(found)
    return found


def chat_of(streams: Streams, stream: Stream) -> str:
    """A conversation of this shard."""
    chats = (f"si_ann:u{i}" for i in range(1000))
    return next(chat for chat in chats if streams.accepted(streams.shard_of(chat)) == stream)


async def taken_by_anybody(streams: Streams) -> int:
    return (await streams.pending(range(streams.settings.shards)))[0]


@pytest.mark.parametrize("under_way", [0, 3])
async def test_everybody_gets_their_own_in_order(server: Redis | RedisCluster, under_way: int) -> None:
    async with opened(server, block_ms=5000) as streams:
        meter = SaveMeter()
        meter.under_way = under_way
        reading = ShardReader(streams, meter)
        shards = await with_groups(streams)
        asking = [asyncio.create_task(reading.next(stream, yes)) for stream in shards]
        first, second = shards[1], shards[3]
        await accept(streams, *(draft(name, chat_of(streams, first)) for name in ("a", "b")))
        async with asyncio.timeout(20):
            assert names(await asking[1]) == ["a", "b"]
            again = asyncio.create_task(reading.next(first, yes))
            await accept(streams, draft("c", chat_of(streams, second)))
            assert names(await asking[3]) == ["c"]
            await accept(streams, draft("d", chat_of(streams, first)))
            assert names(await again) == ["d"]
        assert not asking[0].done()
        for task in asking:
            task.cancel()


async def test_whoever_hears_nothing_is_told_so_although_others_hear_much(server: Redis | RedisCluster) -> None:
    async with opened(server, block_ms=100) as streams:
        reading = ShardReader(streams, SaveMeter())
        busy, quiet, *_ = await with_groups(streams)
        chat = chat_of(streams, busy)
        waiting = asyncio.create_task(reading.next(quiet, yes))
        async with asyncio.timeout(20):
            number = 0
            while not waiting.done():
                await accept(streams, draft(f"m{number}", chat))
                await reading.next(busy, yes)
                number += 1
        assert waiting.result() == []


async def test_one_who_lost_a_shard_takes_nothing_from_it_any_more(server: Redis | RedisCluster) -> None:
    async with opened(server, block_ms=5000) as streams:
        reading = ShardReader(streams, SaveMeter())
        kept, lost, *_ = await with_groups(streams)
        is_owner = True
        asking = asyncio.create_task(reading.next(kept, yes)), asyncio.create_task(reading.next(lost, lambda: is_owner))
        await until(server.blocked)
        is_owner = False
        await accept(streams, draft("a", chat_of(streams, kept)))
        async with asyncio.timeout(20):
            assert names(await asking[0]) == ["a"]
            with pytest.raises(NotOwner):  # before it is asked for again
                await reading.next(lost, lambda: is_owner)
        asking[1].cancel()


async def test_nothing_is_taken_for_one_who_has_gone_and_the_others_look_again(server: Redis | RedisCluster) -> None:
    async with opened(server, block_ms=5000) as streams:
        reading = ShardReader(streams, SaveMeter())
        stays, goes, *_ = await with_groups(streams)
        asking = asyncio.create_task(reading.next(stays, yes))
        going = asyncio.create_task(reading.next(goes, yes))
        await until(server.blocked)
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        if not streams.link.is_cluster:  # they were asked for together
            async with asyncio.timeout(20):
                with pytest.raises(BusDown):
                    await asking
        asking.cancel()
        await accept(streams, draft("a", chat_of(streams, goes)))
        assert await taken_by_anybody(streams) == 0


async def test_a_stream_without_its_group_is_told_to_all(server: Redis | RedisCluster) -> None:
    async with opened(server, block_ms=100) as streams:
        reading = ShardReader(streams, SaveMeter())
        async with asyncio.timeout(20):
            with pytest.raises(NoGroup):
                await reading.next(streams.accepted(0), yes)
            await with_groups(streams)
            assert await reading.next(streams.accepted(0), yes) == []

"""Every script of two-phase acknowledgement, on a real Redis and on a Redis Cluster of three nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from harness.redis_cluster import RedisCluster
from harness.servers import Redis
from harness.waiting import until
from nexo.bus.redis_client import BusDown, NoGroup, RedisClient, RedisCommand
from nexo.config import parse_redis_url
from nexo.config.tree import TwoPhaseConfig
from nexo.core.model import Draft, Kind
from nexo.ports import Address
from nexo.two_phase.entries import StreamEntry, decode_entry
from nexo.two_phase.streams import SETTLED_TTL_MS, Fate, Raw, Run, Stream, Streams

pytestmark = pytest.mark.servers

HOME = Address("instance", "ann", "conn-1")
AWAY = Address("another", "ann", "conn-2")
_numbers = itertools.count(1000)


@pytest.fixture(scope="module", params=["single", "cluster"])
def server(request: pytest.FixtureRequest) -> Iterator[Redis | RedisCluster]:
    with Redis("appendonly no") if request.param == "single" else RedisCluster() as running:
        yield running


class opened:
    """Streams in an empty Redis, as one instance sees them."""

    def __init__(
        self, server: Redis | RedisCluster, consumer: str = "one", fresh: bool = True, **settings: Any
    ) -> None:
        if fresh:
            server.flush()
        self._link = RedisClient(parse_redis_url(server.url), 5.0)
        self._streams = Streams(self._link, TwoPhaseConfig(**{"shards": 4, **settings}), "test:", consumer)

    async def __aenter__(self) -> Streams:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        await self._link.close()


def draft(name: str, conversation_id: str = "si_ann:ben", content: str = '"hi"', **fields: Any) -> Draft:
    number = fields.pop("server_msg_id", next(_numbers))
    hashed = f"{conversation_id} {content}".encode()
    fields = {"accepted_at": 5, "server_msg_id": number, **fields}
    return Draft("ann", name, conversation_id, int(Kind.SINGLE), 1, content, hashed, **fields)


async def accept(streams: Streams, *drafts: Draft, address: Address = HOME, earlier: Draft | None = None) -> list[Fate]:
    entries = [StreamEntry("", one, 5, producer="instance", address=address) for one in drafts]
    (fates,) = await streams.accept([Run(entries, address, earlier)])
    return fates


async def take(streams: Streams, stream: Stream, count: int = 100) -> list[Raw]:
    try:
        (taken,) = await streams.read([stream], count, None)
    except NoGroup:
        await streams.make_groups([stream])
        (taken,) = await streams.read([stream], count, None)
    return taken


async def run(streams: Streams, *words: Any) -> Any:
    (answer,) = await streams.link.run([RedisCommand(words)])
    return answer


def home(streams: Streams, name: str = "si_ann:ben") -> tuple[int, Stream, Stream]:
    shard = streams.shard_of(name)
    return shard, streams.accepted(shard), streams.to_save(shard)


async def unsaved(streams: Streams, name: str = "si_ann:ben") -> int:
    return int(await run(streams, "HGET", streams._unsaved(streams.shard_of(name)), name) or 0)


def states(fates: list[Fate]) -> list[str]:
    return [fate.state for fate in fates]


# -- accept --------------------------------------------------------------------------------------------------


async def test_what_is_accepted_is_in_the_stream_in_order_with_all_its_fields(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        first = draft("a", mentions=("ben",), reply_to=77, extra='{"x":1}', filtered=True)
        second = draft("b", content='"zwei ✓"')
        assert await accept(streams, first, second) == [
            Fate("accepted", first.server_msg_id or 0),
            Fate("accepted", second.server_msg_id or 0),
        ]
        _, accepted, _ = home(streams)
        one, two = await take(streams, accepted)
        entry = decode_entry(one.entry_id, one.fields)
        assert entry.draft == first
        assert (entry.accepted_at, entry.delivered_at, entry.producer, entry.address) == (5, 0, "instance", HOME)
        assert decode_entry(two.entry_id, two.fields).draft == second
        assert await unsaved(streams) == 2


async def test_a_retry_before_the_save_is_known_and_its_outcome_goes_to_who_asked_last(
    server: Redis | RedisCluster,
) -> None:
    async with opened(server) as streams:
        first = draft("a")
        await accept(streams, first)
        again = draft("a")
        assert await accept(streams, again, address=AWAY) == [Fate("known", first.server_msg_id or 0)]
        _, accepted, _ = home(streams)
        (raw,) = await take(streams, accepted)
        entry = decode_entry(raw.entry_id, raw.fields)
        assert entry.address == HOME
        assert await streams.finish(accepted, [(entry, "saved", "")]) == [AWAY]
        assert await accept(streams, draft("a")) == [Fate("saved", first.server_msg_id or 0)]


async def test_twice_in_one_run_is_one_entry(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        one, two = draft("a"), draft("a")
        assert await accept(streams, one, two) == [
            Fate("accepted", one.server_msg_id or 0),
            Fate("known", one.server_msg_id or 0),
        ]
        assert len(await take(streams, home(streams)[1])) == 1


async def test_other_content_under_the_same_name_is_reused(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        assert states(await accept(streams, draft("a", content='"other"'))) == ["reused"]


async def test_another_conversation_under_the_same_name_is_reused_where_one_node_has_both(
    server: Redis | RedisCluster,
) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        fates = await accept(streams, draft("a", "si_ann:cat"))
        same_shard = streams.shard_of("si_ann:cat") == streams.shard_of("si_ann:ben")
        expected = "accepted" if streams.link.is_cluster and not same_shard else "reused"
        assert states(fates) == [expected]  # in a cluster the database says it, when it is saved


async def test_over_the_backlog_only_a_conversation_without_unsaved_ones_may_go_directly(
    server: Redis | RedisCluster,
) -> None:
    async with opened(server, shards=1, max_backlog=2) as streams:
        assert states(await accept(streams, draft("a"), draft("b"), draft("c"))) == ["accepted", "accepted", "busy"]
        assert states(await accept(streams, draft("d"))) == ["busy"]
        assert states(await accept(streams, draft("a"))) == ["known"]  # a retry is told all the same
        others = [draft("e", "si_ann:cat"), draft("f", "si_ann:cat")]
        assert states(await accept(streams, *others)) == ["direct", "direct"]
        _, accepted, _ = home(streams)
        entry = decode_entry(*(await take(streams, accepted))[0])
        await streams.finish(accepted, [(entry, "saved", "")])
        assert states(await accept(streams, draft("c"), draft("d"))) == ["accepted", "busy"]


async def test_the_backlog_counts_what_was_moved_on_too(server: Redis | RedisCluster) -> None:
    async with opened(server, shards=1, max_backlog=1) as streams:
        await accept(streams, draft("a"))
        shard, accepted, _ = home(streams)
        entry = decode_entry(*(await take(streams, accepted))[0])
        await streams.make_groups([home(streams)[2]])
        assert len(await streams.move(shard, [entry])) == 1
        assert states(await accept(streams, draft("b"))) == ["busy"]


async def test_counts_that_no_entry_stands_for_are_forgotten_with_the_last_entry(server: Redis | RedisCluster) -> None:
    async with opened(server, shards=1, max_backlog=1) as streams:
        await accept(streams, draft("a"))
        await run(streams, "DEL", home(streams)[1].name)
        await accept(streams, draft("b", "si_ann:cat"))
        assert await unsaved(streams) == 0
        assert states(await accept(streams, draft("c"))) == ["direct"]


async def test_a_run_is_lost_when_what_came_before_it_is(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        first = draft("a")
        await accept(streams, first)
        assert states(await accept(streams, draft("b"), earlier=first)) == ["accepted"]
        server.flush()
        assert states(await accept(streams, draft("c"), draft("d"), earlier=first)) == ["lost", "lost"]
        assert await run(streams, "EXISTS", home(streams)[1].name) == 0
        assert states(await accept(streams, first, draft("c"), draft("d"))) == ["accepted"] * 3


async def test_a_run_is_lost_when_the_stream_is_gone_and_the_claim_is_not(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        first = draft("a")
        await accept(streams, first)
        await run(streams, "DEL", home(streams)[1].name)
        assert states(await accept(streams, draft("b"), earlier=first)) == ["lost"]


async def test_nothing_is_lost_when_what_came_before_is_saved(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        first = draft("a")
        await accept(streams, first)
        _, accepted, _ = home(streams)
        entry = decode_entry(*(await take(streams, accepted))[0])
        await streams.finish(accepted, [(entry, "saved", "")])
        assert states(await accept(streams, draft("b"), earlier=first)) == ["accepted"]


async def test_a_claim_ends_some_time_after_the_last_word(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        claim = streams._claim(home(streams)[0], draft("a"))
        assert SETTLED_TTL_MS < await run(streams, "PTTL", claim) <= streams.settings.claim_ttl_s * 1000
        _, accepted, _ = home(streams)
        entry = decode_entry(*(await take(streams, accepted))[0])
        await streams.finish(accepted, [(entry, "saved", "")])
        assert 0 < await run(streams, "PTTL", claim) <= SETTLED_TTL_MS


# -- finish --------------------------------------------------------------------------------------------------


async def test_what_is_finished_leaves_the_stream_and_is_remembered(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"), draft("b"))
        _, accepted, _ = home(streams)
        one, two = [decode_entry(*raw) for raw in await take(streams, accepted)]
        assert await streams.finish(accepted, [(one, "saved", ""), (two, "refused", "blocked")]) == [HOME, HOME]
        assert await run(streams, "XLEN", accepted.name) == 0
        assert await unsaved(streams) == 0
        assert await accept(streams, draft("b")) == [Fate("refused", two.draft.server_msg_id or 0, "blocked")]
        # told again, because the answer was lost: nothing is counted twice
        await accept(streams, draft("c"))
        assert await streams.finish(accepted, [(one, "saved", "")]) == [HOME]
        assert await unsaved(streams) == 1


async def test_a_claim_of_another_message_is_left_alone(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        _, accepted, _ = home(streams)
        old = decode_entry(*(await take(streams, accepted))[0])
        server.flush()
        new = draft("a")
        await accept(streams, new, address=AWAY)
        assert await streams.finish(accepted, [(old, "saved", "")]) == [None]
        assert await accept(streams, draft("a")) == [Fate("known", new.server_msg_id or 0)]


async def test_finishing_in_an_empty_redis_does_nothing(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        _, accepted, _ = home(streams)
        entry = decode_entry(*(await take(streams, accepted))[0])
        server.flush()
        assert await streams.finish(accepted, [(entry, "saved", "")]) == [None]
        assert await unsaved(streams) == 0


# -- move ----------------------------------------------------------------------------------------------------


async def test_what_is_moved_goes_on_once_and_in_order(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"), draft("b"))
        shard, accepted, to_save = home(streams)
        entries = [decode_entry(*raw) for raw in await take(streams, accepted)]
        for entry in entries:
            entry.delivered_at = 9
        with pytest.raises(NoGroup):
            await streams.move(shard, entries)
        await streams.make_groups([to_save])
        moved = [decode_entry(*raw) for raw in await streams.move(shard, entries)]  # told again, or by another one
        assert await streams.move(shard, entries) == []
        assert await streams.pending([shard]) == (0, 2)
        assert [entry.draft for entry in moved] == [entry.draft for entry in entries]
        assert [entry.delivered_at for entry in moved] == [9, 9]
        assert await run(streams, "XLEN", accepted.name) == 0
        assert await unsaved(streams) == 2


# -- taking over ---------------------------------------------------------------------------------------------


async def test_a_new_owner_takes_over_all_that_was_taken_in_order(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        drafts = [draft(f"m{i}") for i in range(5)]
        await accept(streams, *drafts)
        _, accepted, _ = home(streams)
        await take(streams, accepted, 2)
        async with opened(server, "two", fresh=False) as others:
            await take(others, accepted, 2)
        async with opened(server, "three", fresh=False) as third:
            assert await third.has_strays([accepted])
            taken = await third.take_over(accepted)
            assert not await third.has_strays([accepted])
            entries = [decode_entry(*raw) for raw in taken]
            await third.make_groups([third.to_save(third.shard_of("si_ann:ben"))])
            assert await streams.move(third.shard_of("si_ann:ben"), entries) == [], "not by one who has lost them"
            assert [decode_entry(*raw).draft for raw in taken] == drafts[:4]
            assert [decode_entry(*raw).draft for raw in await take(third, accepted)] == drafts[4:]


async def test_groups_are_made_anew_after_everything_was_lost(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        _, accepted, to_save = home(streams)
        await streams.make_groups([accepted, to_save])
        server.flush()
        for ask in (streams.take_over(accepted), streams.read([to_save, accepted], 10, None)):
            with pytest.raises(NoGroup):
                await ask
        await accept(streams, draft("a"))
        await streams.make_groups([accepted, to_save])
        await streams.make_groups([accepted, to_save])  # twice is once
        assert [len(found) for found in await streams.read([to_save, accepted], 10, 1)] == [0, 1]
        assert await streams.pending(range(4)) == (0, 0)  # some have no group yet
        await streams.make_groups([s for shard in range(4) for s in (streams.accepted(shard), streams.to_save(shard))])
        assert await streams.pending(range(4)) == (1, 0)


async def test_consumers_that_ended_are_forgotten_unless_something_is_left_to_them(
    server: Redis | RedisCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"), draft("b"))
        _, accepted, _ = home(streams)
        (raw,) = await take(streams, accepted, 1)
        async with opened(server, "idle", fresh=False) as idle:
            await streams.finish(accepted, [(decode_entry(*(await take(idle, accepted))[0]), "saved", "")])
        names = [row["name"] for row in await _consumers(streams, accepted)]
        assert sorted(names) == [b"idle", b"one"]
        monkeypatch.setattr("nexo.two_phase.streams.CONSUMER_TTL_MS", 1)
        await until(lambda: _all_idle(streams, accepted))
        async with opened(server, "new", fresh=False) as new:
            assert [left.entry_id for left in await new.take_over(accepted)] == [raw.entry_id]
        assert [row["name"] for row in await _consumers(streams, accepted)] == [b"new"]


async def _all_idle(streams: Streams, stream: Stream) -> bool:
    return all(row["idle"] > 1 for row in await _consumers(streams, stream))


async def _consumers(streams: Streams, stream: Stream) -> list[dict[str, Any]]:
    found = await run(streams, "XINFO", "CONSUMERS", stream.name, stream.group)
    return [
        one if isinstance(one, dict) else dict(zip([k.decode() for k in one[::2]], one[1::2], strict=True))
        for one in found
    ]


async def test_those_who_save_are_counted_until_they_leave_or_fall_silent(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams, opened(server, "two", fresh=False) as second:
        assert await streams.join(60) == 1
        assert await second.join(60) == 2
        assert await second.join(60) == 2
        assert await second.join(60, stay=False) == 1
        await second.join(60)
        await until(lambda: _is_alone(streams))


async def _is_alone(streams: Streams) -> bool:
    """A consumer that has been silent for a moment is not counted any more."""
    return await streams.join(0.02) == 1


# -- dead letters --------------------------------------------------------------------------------------------


async def test_a_buried_entry_is_a_dead_letter_once_and_the_sender_is_refused(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        shard, accepted, _ = home(streams)
        (raw,) = await take(streams, accepted)
        entry = decode_entry(*raw)
        for _ in range(2):  # the first answer was lost
            assert await streams.bury(accepted, shard, raw, entry.draft, "it bites") == HOME
        assert (await streams.lengths([shard]))[shard] == (0, 0, 1)
        assert await unsaved(streams) == 0
        (letter,) = await streams.dead_letters(shard, 10)
        assert letter.fields == {**raw.fields, b"reason": b"it bites"}
        assert await accept(streams, draft("a")) == [Fate("refused", entry.draft.server_msg_id or 0, "internal_error")]


async def test_an_entry_that_nobody_can_read_is_buried_without_anybody_being_told(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        shard, accepted, _ = home(streams)
        await run(streams, "XADD", accepted.name, "*", "conversation_id", "si_ann:ben", "what", "is this")
        await run(streams, "HSET", streams._unsaved(shard), "si_ann:ben", 1)
        (raw,) = await take(streams, accepted)
        assert await streams.bury(accepted, shard, raw, None, "unreadable") is None
        assert await unsaved(streams) == 0
        assert (await streams.lengths([shard]))[shard] == (0, 0, 1)


async def test_a_letter_whose_claim_is_another_ones_leaves_that_alone(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"))
        shard, accepted, _ = home(streams)
        (raw,) = await take(streams, accepted)
        server.flush()
        await accept(streams, draft("a"), address=AWAY)
        assert await streams.bury(accepted, shard, raw, decode_entry(*raw).draft, "it bites") is None
        assert states(await accept(streams, draft("a"))) == ["known"]


async def test_only_so_many_dead_letters_are_kept(server: Redis | RedisCluster) -> None:
    async with opened(server, dead_max=10) as streams:
        shard, accepted, _ = home(streams)
        await accept(streams, *(draft(f"m{i}") for i in range(400)))
        for raw in await take(streams, accepted, 400):
            await streams.bury(accepted, shard, raw, None, "no")
        assert len(await streams.dead_letters(shard, 1000)) < 200  # whole nodes of the stream are cut


async def test_a_dead_letter_is_replayed_or_dropped_once(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        await accept(streams, draft("a"), draft("b"))
        shard, accepted, _ = home(streams)
        for raw in await take(streams, accepted):
            await streams.bury(accepted, shard, raw, decode_entry(*raw).draft, "no")
        first, second = await streams.dead_letters(shard, 10)
        assert [await streams.replay(shard, first, "si_ann:ben") for _ in range(2)] == [True, False]
        assert [await streams.drop_dead(shard, second.entry_id) for _ in range(2)] == [True, False]
        (raw,) = await take(streams, accepted)
        assert decode_entry(*raw).draft.client_msg_id == "a"
        assert b"reason" not in raw.fields
        assert await unsaved(streams) == 1
        entry = decode_entry(*raw)
        await streams.finish(accepted, [(entry, "saved", "")])
        assert states(await accept(streams, draft("a"))) == ["saved"]


# -- all of it together --------------------------------------------------------------------------------------


async def test_runs_of_many_shards_go_in_one_round_trip(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        names = [f"si_ann:b{i}" for i in range(20)]
        assert len({streams.shard_of(name) for name in names}) == 4
        runs = [Run([StreamEntry("", draft(f"{name}-{i}", name), 1) for i in range(3)], HOME) for name in names]
        fates = await streams.accept(runs)
        assert [states(one) for one in fates] == [["accepted"] * 3] * 20
        assert sum(lengths[0] for lengths in (await streams.lengths(range(4))).values()) == 60


async def test_without_redis_nothing_is_promised(server: Redis | RedisCluster) -> None:
    link = RedisClient(parse_redis_url("redis://127.0.0.1:1/0"), 0.2)
    with pytest.raises(BusDown):
        await accept(Streams(link, TwoPhaseConfig(), "", "one"), draft("a"))
    await link.close()


async def test_a_closed_shard_takes_nothing_new_and_still_knows_what_it_has(server: Redis | RedisCluster) -> None:
    async with opened(server) as streams:
        known = draft("known")
        assert [fate.state for fate in await accept(streams, known)] == ["accepted"]
        shard = streams.shard_of(known.conversation_id)
        runs = [
            Run([StreamEntry("", one, 5, producer="instance", address=HOME)], HOME, None)
            for one in (known, draft("new"), draft("elsewhere", "si_ann:cid"))
        ]
        closed = {shard, streams.shard_of("si_ann:cid")}
        fates = [fate.state for (fate,) in await streams.accept(runs, closed)]
        assert fates == ["known", "busy", "direct"], "only what has nothing before it may go another way"
        assert [fate.state for (fate,) in await streams.accept(runs[1:2])] == ["accepted"], "open again"

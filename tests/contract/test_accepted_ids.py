"""The server_msg_id that `accepted` has reported is the one that is handed to the database, on every way there: on a
real Redis, with a committer that does what the test wants."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from contract.test_shard_saving import Committer, saved
from contract.test_streams import draft, opened, run
from harness.servers import Redis
from harness.waiting import until
from nexo.background import Background
from nexo.core import events
from nexo.core.model import Draft
from nexo.errors import NexoError
from nexo.ids import IdGenerator
from nexo.ports import Address, Outcome, Permission
from nexo.two_phase.acceptor import Acceptor
from nexo.two_phase.streams import Streams

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis("appendonly no") as running:
        yield running


class Store(Committer):
    def __init__(self) -> None:
        super().__init__()
        self.is_allowed = True

    async def may_send(self, drafts: Sequence[Draft]) -> list[Permission]:
        return [Permission(self.is_allowed, 1) for _ in drafts]

    def ids(self) -> dict[str, int | None]:
        """The ids of what was handed over and is not decided."""
        return {one.client_msg_id: one.server_msg_id for one, _ in self.offered}


class Sender:
    """A connection that sends (`ports.Origin` of its sends)."""

    output: object | None = None
    address: Address | None = None

    def __init__(self, here: Scene, conn_id: str) -> None:
        self._here, self._conn_id = here, conn_id
        self.outcomes: list[Outcome] = []

    def decided(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def send(self, *names: str, content: str = '"hi"') -> None:
        for name in names:
            self._here.acceptor.submit(new_draft(name, content), self._conn_id, self)

    async def accepted(self, *names: str) -> dict[str, int]:
        """Send, and return the ids that `accepted` reports."""
        begun = len(self.outcomes)
        self.send(*names)
        await until(lambda: len(self.outcomes) == begun + len(names))
        return {
            one.client_msg_id: one.server_msg_id for one in self.outcomes[begun:] if isinstance(one, events.Accepted)
        }


def new_draft(name: str, content: str = '"hi"') -> Draft:
    return replace(draft(name, content=content), server_msg_id=None, accepted_at=0)


class Scene:
    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.store = Store()
        self._background = Background()
        self._numbers = itertools.count(1)
        store: Any = self.store
        self.acceptor = Acceptor(
            streams, streams.settings, store, IdGenerator(1), "instance", lambda *_: None, self._background
        )
        self.acceptor.start()

    def connect(self) -> Sender:
        return Sender(self, f"conn-{next(self._numbers)}")

    async def leave(self) -> None:
        self.store.room = 1000
        await self.acceptor.stop()
        await self._background.stop()

    def stall(self) -> None:
        self.acceptor.stop_accepting(frozenset(range(self.streams.settings.shards)))

    async def until_handed_over(self, *names: str) -> dict[str, int | None]:
        await until(lambda: set(names) <= set(self.store.names))
        return {name: self.store.ids()[name] for name in names}


@contextlib.asynccontextmanager
async def scene(redis: Redis, **settings: Any) -> AsyncIterator[Scene]:
    async with opened(redis, enabled=True, **settings) as streams:
        here = Scene(streams)
        try:
            yield here
        finally:
            await here.leave()


@contextlib.contextmanager
def broken(streams: Streams) -> Iterator[None]:
    streams.link.is_broken = True  # as after a call without an answer
    yield
    streams.link.is_broken = False


async def test_on_a_new_connection_while_no_worker_saves(redis: Redis) -> None:
    async with scene(redis) as here:
        one = here.connect()
        ids = await one.accepted("a", "b", "c")
        here.acceptor.gone("conn-1")
        here.stall()
        here.acceptor.reported_ids.clear()  # as another instance, which has not accepted them
        two = here.connect()
        two.send("a")
        assert await here.until_handed_over("a") == {"a": ids["a"]}
        two.send("b", "c")  # behind one that is being saved directly
        assert await here.until_handed_over("b", "c") == {"b": ids["b"], "c": ids["c"]}
        assert here.store.names == ["a", "b", "c"]


async def test_on_a_new_connection_while_redis_is_away(redis: Redis) -> None:
    async with scene(redis) as here:
        ids = await here.connect().accepted("a", "b")
        here.acceptor.gone("conn-1")
        with broken(here.streams):
            here.connect().send("a", "b")
        assert await here.until_handed_over("a", "b") == ids


async def test_over_http_while_redis_is_away(redis: Redis) -> None:
    async with scene(redis) as here:
        first = await here.acceptor.send(new_draft("a"), 0.01)
        assert isinstance(first, events.Accepted)
        with broken(here.streams):
            again = asyncio.create_task(here.acceptor.send(new_draft("a"), 0.01))
            assert await here.until_handed_over("a") == {"a": first.server_msg_id}
        here.store.decide("a")
        await again


async def test_after_redis_was_emptied(redis: Redis) -> None:
    async with scene(redis) as here:
        ids = await here.connect().accepted("a", "b")
        here.acceptor.gone("conn-1")
        redis.flush()
        assert await here.connect().accepted("a", "b") == ids


async def test_after_its_claim_has_expired(redis: Redis) -> None:
    async with scene(redis) as here:
        one = here.connect()
        ids = await one.accepted("a", "b")
        await run(here.streams, "DEL", here.streams._claim(here.streams.shard_of("si_ann:ben"), new_draft("a")))
        assert await one.accepted("a") == {"a": ids["a"]}


async def test_after_it_was_switched_off(redis: Redis) -> None:
    async with scene(redis) as here:
        ids = await here.connect().accepted("a")
        here.acceptor.gone("conn-1")
        here.acceptor.share.set(0)
        assert here.acceptor.takes(new_draft("a"), "conn-2")
        assert not here.acceptor.takes(new_draft("other"), "conn-2")
        assert await here.connect().accepted("a") == ids


async def test_where_the_permission_was_refused_a_moment_ago(redis: Redis) -> None:
    async with scene(redis) as here:
        ids = await here.connect().accepted("a")
        here.acceptor.gone("conn-1")
        here.acceptor.reported_ids.clear()
        here.acceptor._permissions.forget(("ann", "si_ann:ben"))
        here.store.is_allowed = False
        here.connect().send("a")
        assert await here.until_handed_over("a") == ids, "the database decides"


async def test_other_content_under_an_accepted_name_is_refused_also_on_the_direct_way(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.connect().accepted("a", "b")
        here.acceptor.gone("conn-1")
        here.stall()
        two = here.connect()
        two.send("a")
        await here.until_handed_over("a")
        two.send("b", content='"other"')
        await until(lambda: bool(two.outcomes))
        (refusal,) = two.outcomes
        assert isinstance(refusal, NexoError)
        assert refusal.name == "client_msg_id_reused"
        assert here.store.names == ["a"]


async def test_what_waits_behind_a_direct_send_that_has_to_be_repeated_is_refused(redis: Redis) -> None:
    async with scene(redis) as here:
        await here.connect().accepted("a", "b", "c")
        here.acceptor.gone("conn-1")
        here.stall()
        here.acceptor.reported_ids.clear()
        two = here.connect()
        two.send("a")
        await here.until_handed_over("a")
        here.store.room = 1
        two.send("b", "c")
        await until(lambda: len(two.outcomes) == 2)
        assert [one.name for one in two.outcomes if isinstance(one, NexoError)] == ["server_busy", "server_busy"]
        assert here.store.names == ["a"]


async def test_ids_are_forgotten_once_their_outcome_is_known(redis: Redis) -> None:
    async with scene(redis) as here:
        ids = await here.connect().accepted("a", "b")
        assert len(here.acceptor.reported_ids) == 2
        one = replace(new_draft("a"), server_msg_id=ids["a"])
        here.acceptor.settled("ann", "conn-1", events.Saved(saved(one, 1).message, False))
        here.acceptor.settled("ann", "conn-1", events.Failed(NexoError("blocked"), "b"))
        assert len(here.acceptor.reported_ids) == 0

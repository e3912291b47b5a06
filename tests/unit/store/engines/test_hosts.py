"""Which of several hosts is used, and what happens to connections when that changes."""

from __future__ import annotations

import asyncio

import pytest

from harness.waiting import loop_turns
from nexo.store.engines import hosts as module
from nexo.store.engines.connection_pool import ConnectionPool
from nexo.store.engines.hosts import Hosts, NoHost, NotPrimary, Place

A, B, C = ("a", 1), ("b", 2), ("c", 3)


class Connection:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_closed = False


class Servers:
    """Hosts that answer, refuse, or are silent."""

    def __init__(self) -> None:
        self.silent: set[Place] = set()
        self.failing: dict[Place, Exception] = {}
        self.asked: list[Place] = []

    async def open_at(self, place: Place) -> Connection:
        self.asked.append(place)
        if place in self.silent:
            await asyncio.Event().wait()
        if place in self.failing:
            raise self.failing[place]
        return Connection(place)


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PER_HOST_S", (0.05, 0.1))


async def test_a_silent_host_leaves_time_for_the_others_and_the_good_one_is_first_next_time() -> None:
    servers, hosts = Servers(), Hosts([A, B, C])
    servers.silent.add(A)
    servers.failing[B] = NotPrimary("this server is a standby")
    assert (await hosts.connect(servers.open_at))[1] == C
    assert servers.asked == [A, B, C]
    servers.asked.clear()
    assert (await hosts.connect(servers.open_at))[1] == C
    assert servers.asked == [C]


async def test_without_a_usable_host_the_error_names_each_and_a_denial_is_its_cause() -> None:
    servers, hosts = Servers(), Hosts([A, B, C])
    servers.silent.add(A)
    servers.failing = {B: PermissionErrorOfDriver("wrong password"), C: ConnectionRefusedError("refused")}
    with pytest.raises(NoHost, match=r"a:1: no answer in time; b:2: wrong password; c:3: refused") as caught:
        await hosts.connect(servers.open_at)
    assert isinstance(caught.value.__cause__, PermissionErrorOfDriver)
    assert servers.asked == [A, B, C, A], "a silent one gets more time when there is no other"


async def test_the_only_host_raises_its_own_error() -> None:
    servers, hosts = Servers(), Hosts([A])
    servers.failing[A] = PermissionErrorOfDriver("wrong password")
    with pytest.raises(PermissionErrorOfDriver):
        await hosts.connect(servers.open_at)


class PermissionErrorOfDriver(Exception):
    pass


def pool_of(servers: Servers, hosts: Hosts, size: int = 3) -> ConnectionPool:
    def abort(connection: Connection) -> None:
        connection.is_closed = True

    pool = ConnectionPool(hosts, size, servers.open_at, lambda connection: not connection.is_closed, abort)
    hosts.on_move = pool.keep_only
    return pool


async def test_when_the_database_moves_all_connections_to_the_old_host_are_closed() -> None:
    servers, hosts = Servers(), Hosts([A, B])
    pool = pool_of(servers, hosts)
    used, idle = await pool.acquire(), await pool.acquire()
    pool.release(idle)
    pool.drop_idle()
    assert idle.is_closed
    assert not used.is_closed
    servers.failing[A] = ConnectionRefusedError()
    moved = await pool.acquire()
    assert moved.place == B
    assert used.is_closed, "its server is not the database any more"
    pool.release(used)
    assert [(await pool.acquire()).place for _ in range(2)] == [B, B], "the places of closed ones are free"


async def test_a_task_that_waits_gets_the_place_of_a_connection_that_was_lost() -> None:
    servers, hosts = Servers(), Hosts([A])
    pool = pool_of(servers, hosts, size=1)
    only = await pool.acquire()
    waiting = [asyncio.create_task(pool.acquire()) for _ in range(2)]
    await loop_turns()
    only.is_closed = True
    pool.release(only)
    second = await waiting[0]
    assert second is not only
    waiting[1].cancel()
    pool.release(second)
    assert await pool.acquire() is second

"""Which of several hosts is used, and what happens to connections when that changes."""

from __future__ import annotations

import asyncio

import pytest

from harness.waiting import loop_turns, until
from nexo.store.engines import hosts as module
from nexo.store.engines.connection_pool import ConnectionPool
from nexo.store.engines.hosts import Hosts, NoHost, NotPrimary, Place

A, B, C = ("a", 1), ("b", 2), ("c", 3)


class Connection:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_closed = False


def close(connection: Connection) -> None:
    connection.is_closed = True


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
    for name, seconds in (("SILENT_S", 0.05), ("AGAIN_S", 0.02), ("ALL_S", 0.2)):
        monkeypatch.setattr(module, name, seconds)


async def test_a_silent_host_leaves_time_for_the_others_and_the_good_one_is_first_next_time() -> None:
    servers, hosts = Servers(), Hosts([A, B, C])
    servers.silent.add(A)
    servers.failing[B] = NotPrimary("this server is a standby")
    assert (await hosts.connect(servers.open_at, close))[1] == C
    assert servers.asked == [A, B, C]
    servers.asked.clear()
    assert (await hosts.connect(servers.open_at, close))[1] == C
    assert servers.asked == [C]


async def test_without_a_usable_host_the_error_names_each_and_a_denial_is_its_cause() -> None:
    servers, hosts = Servers(), Hosts([A, B, C])
    servers.silent.add(A)
    servers.failing = {B: PermissionErrorOfDriver("wrong password"), C: ConnectionRefusedError("refused")}
    with pytest.raises(NoHost, match=r"a:1: no answer in time; b:2: wrong password; c:3: refused") as caught:
        await hosts.connect(servers.open_at, close)
    assert isinstance(caught.value.__cause__, PermissionErrorOfDriver)
    assert servers.asked.count(A) == 1, "a silent one is waited for"
    assert servers.asked.count(C) > 1, "while the others may change their answers"
    servers.asked.clear()
    with pytest.raises(NoHost):
        await hosts.connect(servers.open_at, close)
    assert servers.asked[:3] == [B, C, A], "the silent one does not delay the others again"


async def test_a_standby_that_is_promoted_while_another_host_is_silent_is_found_at_once() -> None:
    servers, hosts = Servers(), Hosts([A, B])
    servers.silent.add(A)
    servers.failing[B] = NotPrimary("this server is a standby")
    connecting = asyncio.create_task(hosts.connect(servers.open_at, close))
    await until(lambda: servers.asked.count(B) == 2, "the standby is asked again")
    del servers.failing[B]
    assert (await connecting)[1] == B


async def test_a_connection_that_comes_too_late_is_closed() -> None:
    hosts = Hosts([A, B])
    late: list[Connection] = []
    closed: list[Connection] = []

    async def open_at(place: Place) -> Connection:
        if place == B:
            return Connection(B)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # it was opened at the same moment
            late.append(Connection(place))
        return late[0]

    assert (await hosts.connect(open_at, closed.append))[1] == B
    await until(lambda: bool(closed), "it is closed")
    assert closed == late


async def test_the_only_host_raises_its_own_error() -> None:
    servers, hosts = Servers(), Hosts([A])
    servers.failing[A] = PermissionErrorOfDriver("wrong password")
    with pytest.raises(PermissionErrorOfDriver):
        await hosts.connect(servers.open_at, close)


class PermissionErrorOfDriver(Exception):
    pass


def pool_of(servers: Servers, hosts: Hosts, size: int = 3) -> ConnectionPool:
    pool = ConnectionPool(hosts, size, servers.open_at, lambda connection: not connection.is_closed, close)
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

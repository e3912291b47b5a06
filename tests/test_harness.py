"""The harness itself: a test run that leaves servers behind, or half of them, would spoil all others."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import redis
import uvloop
from hypothesis import given, strategies

from harness import keeper, processes, sql
from harness.coroutines import as_plain_function
from harness.servers import MariaDb, Postgres, Redis, Server, shared, start_all
from harness.waiting import loop_turns, until_blocking

TESTS = Path(__file__).parent

STARTS_EVERYTHING = """
from harness import processes, servers
servers.start_all()
print(processes.scratch_dir(), flush=True)
input()
"""


@pytest.mark.servers
@pytest.mark.parametrize("kind", [MariaDb, Postgres])
def test_a_database_server_keeps_committed_rows_through_a_crash(kind: type[MariaDb] | type[Postgres]) -> None:
    with kind() as server:
        url = server.create_database()
        sql.execute(url, "CREATE TABLE t (n INT)")
        sql.execute(url, "INSERT INTO t VALUES (7)")
        server.kill()
        assert keeper.processes_in(server.directory) == []
        server.start()
        assert sql.execute(url, "SELECT n FROM t") == [(7,)]
        server.restart()
        assert sql.execute(url, "SELECT n FROM t") == [(7,)]


@pytest.mark.servers
def test_redis_keeps_what_it_acknowledged_through_a_crash() -> None:
    with Redis() as server, redis.Redis.from_url(server.url) as client:
        client.set("key", "value")
        server.kill()
        server.start()
        assert client.get("key") == b"value"


@pytest.mark.servers
def test_a_paused_redis_hangs_and_then_goes_on() -> None:
    with Redis() as server, redis.Redis.from_url(server.url, socket_timeout=0.2, retry=None) as client:
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        assert client.ping()


@pytest.mark.servers
@pytest.mark.parametrize("kind", [MariaDb, Postgres, Redis])
def test_a_stopped_server_leaves_no_process_and_no_file(kind: type[Server]) -> None:
    with kind() as server:
        assert keeper.processes_in(server.directory)
        server.pause()  # a server that hangs can be stopped as well
    assert keeper.processes_in(server.directory) == []
    assert not server.directory.exists()


@pytest.mark.servers
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_test_run_that_is_ended_leaves_nothing_behind(how: signal.Signals) -> None:
    start_all()  # where one of them is missing, this says so
    run = subprocess.Popen(
        [sys.executable, "-c", STARTS_EVERYTHING],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with run:
        assert run.stdout is not None
        scratch = Path(run.stdout.readline().strip())
        assert len(keeper.processes_in(scratch)) >= 3
        watchers = [child.pid for child in psutil.Process(run.pid).children() if child.cwd() == "/"]
        run.send_signal(how)
    until_blocking(lambda: not scratch.exists() and not keeper.processes_in(scratch))
    until_blocking(lambda: not any(psutil.pid_exists(pid) and _is_alive(pid) for pid in watchers))


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_process_outside_the_scratch_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not inside"):
        processes.spawn(["true"], cwd=tmp_path, log=tmp_path / "log")


def test_a_test_gets_an_empty_database(store_url: str, engine_name: str) -> None:
    if engine_name == "sqlite":
        assert not Path(store_url.removeprefix("sqlite:///")).exists()
    else:
        assert tables_in(store_url) == []


@pytest.mark.servers
@pytest.mark.parametrize("kind", [MariaDb, Postgres])
async def test_a_database_can_be_dropped_while_a_transaction_holds_its_table(
    kind: type[MariaDb] | type[Postgres],
) -> None:
    server = shared.get(kind)
    url = server.create_database()
    sql.execute(url, "CREATE TABLE t (n INT)")
    async with sql.connected(url) as run:
        await run("BEGIN")
        await run("INSERT INTO t VALUES (1)")
        server.drop_database(url)
    again = server.create_database()
    assert tables_in(again) == []
    server.drop_database(again)


def tables_in(url: str) -> list[tuple[object, ...]]:
    own_schema = "'public'" if url.startswith("postgresql:") else "DATABASE()"
    return sql.execute(url, f"SELECT table_name FROM information_schema.tables WHERE table_schema = {own_schema}")


async def test_a_coroutine_test_runs_on_uvloop() -> None:
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)


@given(number=strategies.integers())
async def test_a_coroutine_test_can_be_a_property(number: int) -> None:
    await loop_turns()
    assert isinstance(number, int)


def test_a_coroutine_that_waits_for_ever_is_ended_by_the_alarm() -> None:
    class TooLong(Exception):
        pass

    def ring(*_: object) -> None:
        raise TooLong

    previous = signal.signal(signal.SIGALRM, ring)
    remaining_s, _ = signal.setitimer(signal.ITIMER_REAL, 0.1)  # of the timeout for this test itself
    try:
        with pytest.raises(TooLong):
            as_plain_function(wait_for_ever)()
    finally:
        signal.signal(signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, remaining_s)


async def wait_for_ever() -> None:
    await asyncio.Event().wait()

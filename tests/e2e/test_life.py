"""A server's life: the first start, the folder it keeps to itself, readiness, and every way to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from harness import processes
from harness.chat import PASSWORD, World, fetch_messages, meet, world
from harness.server_process import NEXO, DidNotStart, ServerProcess, environment
from harness.waiting import time_passes, until

RECONNECT = range(4500, 5000)


# -- starting -------------------------------------------------------------------------------------------------


async def test_a_first_start_without_any_configuration_makes_all_it_needs_and_says_where_it_is() -> None:
    directory = processes.new_dir("fresh")
    port = processes.free_port()
    log = directory / "log"
    child = processes.spawn([NEXO, "serve", "--port", str(port)], cwd=directory, log=log, env=environment({}))
    try:
        await until(lambda: "nexo user add" in log.read_text() or child.poll() is not None, log.read_text)
        said = log.read_text()
        assert f"Nexo runs at http://127.0.0.1:{port}" in said
        assert "/docs" in said
        assert "data/nexo.db" in said
        data = directory / "data"
        assert stat.S_IMODE((data / "secret").stat().st_mode) == 0o600
        assert len((data / "secret").read_text().strip()) >= 32
        with sqlite3.connect(data / "nexo.db") as database:
            (journal,) = database.execute("PRAGMA journal_mode").fetchone()
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master WHERE name='messages'").fetchone()
        database.close()
        assert (journal, tables) == ("wal", 1)
    finally:
        child.send_signal(signal.SIGTERM)
        assert child.wait(40) == 0


async def test_a_user_added_on_the_command_line_can_sign_in(server: ServerProcess) -> None:
    done = server.run("user", "add", "from.the.shell", "--password-stdin", text=PASSWORD)
    assert done.returncode == 0, done.stderr
    async with world(server) as here:
        data = await here.call("POST", "/auth/login", json={"user_id": "from.the.shell", "password": PASSWORD})
        assert data["user_id"] == "from.the.shell"


def test_a_folder_in_use_is_refused_with_the_process_that_uses_it() -> None:
    with ServerProcess() as first:
        second = ServerProcess(data=first.data)
        with pytest.raises(DidNotStart) as refused:
            second.start()
        assert refused.value.exit_code == 2
        assert f"in use by another server (process {first.pid})" in refused.value.output
        assert "Traceback" not in refused.value.output
        first.kill()
        second.start()  # the kernel has let go of it
        second.kill()


def test_a_port_in_use_is_refused_by_name(server: ServerProcess) -> None:
    other = ServerProcess()
    other.port = server.port
    with pytest.raises(DidNotStart) as refused:
        other.start()
    assert refused.value.exit_code == 2
    assert f"cannot listen on 127.0.0.1:{server.port}" in refused.value.output
    assert "Traceback" not in refused.value.output


def test_a_setting_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(DidNotStart) as refused:
        ServerProcess(limits__sends_per_minute=5).start()
    assert refused.value.exit_code == 2
    assert "NEXO_LIMITS__SENDS_PER_MINUTE" in refused.value.output


async def test_tokens_and_messages_outlive_a_restart() -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            sent = await ann.send(ben, "kept")
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
            server.start()
            client = await ben.connect()
            assert [frame["serverMsgId"] for frame in client.seen("SINGLE_CHAT")] == [sent["server_msg_id"]]


# -- stopping -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_tells_everybody_when_to_come_back_and_exits_with_zero(number: signal.Signals) -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            people = await here.people("ann", "ben")
            clients = [await people[i % 2].connect() for i in range(20)]
            clients.append(await people[0].open())  # not signed in
            server.signal(number)
            hints = [(await client.expect_error("server_shutdown"))["retryAfterMs"] for client in clients]
            assert all(hint >= 0 for hint in hints)
            assert len(set(hints)) > len(hints) // 2, "they must not all come back at once"
            for client in clients:
                assert await client.expect_close() in RECONNECT
            assert await asyncio.to_thread(server.wait) == 0
        assert "Traceback" not in server.output


async def test_sends_on_their_way_when_a_stop_begins_are_acknowledged_or_surely_not_saved() -> None:
    with ServerProcess() as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            name = (await ann.say(ben, "first"))["conversationId"]
            frames = [ann.message(ben, f"{i}") for i in range(200)]
            await ann.send_at_once(*frames)
            server.signal(signal.SIGTERM)
            await ann.expect_close()
            assert await asyncio.to_thread(server.wait) == 0
            server.start()
            saved = {frame["clientMsgId"] for frame in ann.seen("ACK", ackType="saved")}
            stored = {message["client_msg_id"] for message in await fetch_messages(ben.me, name)}
            assert saved == stored


async def test_cursors_that_wait_are_written_before_the_end() -> None:
    with ServerProcess(receipts__flush_ms=5000) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            await ann.say(ben)
            await ben.acknowledge(await ben.expect("SINGLE_CHAT"), "read")
            await ben.ask({"type": "PING"}, "PONG")
            assert await asyncio.to_thread(server.stop) == 0
            server.start()
            (entry,) = (await ben.me.get("/conversation/list"))["conversations"]
            assert (entry["read_seq"], entry["unread"]) == (1, 0)


async def test_a_stop_ends_in_time_although_somebody_reads_nothing_and_the_database_hangs() -> None:
    with ServerProcess(server__shutdown_s=3) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            await ann.say(ben)
            other = sqlite3.connect(server.database, isolation_level=None)
            try:
                other.execute("BEGIN IMMEDIATE")
                await ann.send_at_once(*[ann.message(ben, "stuck") for _ in range(10)])
                await ann.send({"type": "ACK", "ackType": "read", "conversationId": "x", "msgSeq": 1})
                requests = [asyncio.create_task(ben.me.send(ann, "stuck too")) for _ in range(3)]
                await ann.ask({"type": "PING"}, "PONG")
                started = time.monotonic()
                server.signal(signal.SIGTERM)
                await asyncio.to_thread(server.wait)
                assert time.monotonic() - started < 3 + 15, "nothing of it ends by itself"
            finally:
                other.close()
            await asyncio.gather(*requests, return_exceptions=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT)],
)
async def test_a_second_signal_ends_at_once(first: signal.Signals, second: signal.Signals) -> None:
    with ServerProcess(server__shutdown_s=60, send__deadline_ms=60_000) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            await ann.say(ben)
            other = sqlite3.connect(server.database, isolation_level=None)
            try:
                other.execute("BEGIN IMMEDIATE")  # so that there is something to wait for
                await ann.send(ann.message(ben, "on its way"))
                await ann.ask({"type": "PING"}, "PONG")
                server.signal(first)
                await asyncio.to_thread(server.wait_for_output, '"stopping"')
                started = time.monotonic()
                server.signal(second)
                code = await asyncio.to_thread(server.wait)
                assert time.monotonic() - started < 20, "the first one alone takes a minute"
                assert code != 0
            finally:
                other.close()


async def test_while_it_stops_nobody_is_let_in() -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann = await here.person("ann")
            client = await ann.connect()
            server.signal(signal.SIGTERM)
            await client.expect_error("server_shutdown")
            with pytest.raises(OSError):
                await ann.open()
            await asyncio.to_thread(server.wait)


# -- readiness ------------------------------------------------------------------------------------------------


async def ready(here: World, status: int) -> str:
    """What /readyz says, once it answers with that status; an answer is good for a second."""

    async def answer() -> httpx.Response | None:
        response = await here.http.get("/readyz")
        return response if response.status_code == status else None

    response = await until(answer)
    assert response is not None
    return str(response.json()["err_msg"])


async def test_a_server_that_can_store_and_deliver_is_ready_again_and_again(server: ServerProcess) -> None:
    async with world(server) as here:
        for _ in range(3):
            assert await here.call("GET", "/healthz") == {"status": "alive"}
            assert await here.call("GET", "/readyz") == {"status": "ready"}
            await time_passes(1.1)  # an answer is good for a second


async def test_a_database_that_takes_no_writes_is_not_ready_and_recovers() -> None:
    with ServerProcess() as server:
        async with world(server) as here:
            assert await ready(here, 200) == ""
            other = sqlite3.connect(server.database, isolation_level=None)
            try:
                other.execute("BEGIN IMMEDIATE")
                assert await ready(here, 503) == "server_busy"
                assert await here.call("GET", "/healthz") == {"status": "alive"}
            finally:
                other.close()
            assert await ready(here, 200) == ""


async def test_a_database_that_is_broken_is_not_ready() -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            assert await ready(here, 200) == ""
            with sqlite3.connect(server.database) as other:
                other.execute("DROP TABLE messages")
            other.close()
            assert await ready(here, 503) == "server_busy"
            assert (await here.http.get("/healthz")).status_code == 200


async def test_who_cannot_sign_in_because_the_database_fails_may_come_back() -> None:
    with ServerProcess(auth__session_cache_s=0) as server:
        async with world(server, check_pushes=False) as here:
            ann = await here.person("ann")
            with sqlite3.connect(server.database) as other:
                other.execute("ALTER TABLE sessions RENAME TO gone")
            other.close()
            client = await ann.open()
            await client.send({"type": "AUTH", "token": ann.tokens.access})
            failed = await client.expect("AUTH_FAIL")
            assert failed["reason"] in ("server_busy", "internal_error")
            assert await client.expect_close() in RECONNECT
            with sqlite3.connect(server.database) as other:
                other.execute("ALTER TABLE gone RENAME TO sessions")
            other.close()
            await ann.connect()


# -- pauses and silence -------------------------------------------------------------------------------------


async def test_a_paused_server_goes_on_where_it_stood(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frames = [ann.message(ben, f"{i}") for i in range(10)]
        with server.paused():
            for frame in frames:
                await ann.send(frame)
        acks = [await ann.expect("ACK", ackType="saved") for _ in frames]
        assert [ack["clientMsgId"] for ack in acks] == [frame["clientMsgId"] for frame in frames]


async def test_a_connection_without_any_frame_is_closed() -> None:
    with ServerProcess(gateway__heartbeat_s=1, gateway__idle_s=3) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            # the library answers pings by itself; one that is paused does not
            ann.socket.transport.pause_reading()
            started = time.monotonic()
            await ben.ask({"type": "PRESENCE", "subscribe": [ann.user_id]}, "PRESENCE")
            told = await ben.expect("PRESENCE")
            assert told["users"][0]["online"] is False
            assert time.monotonic() - started > 2
            assert ben.close_code is None  # it answers
            ann.socket.transport.resume_reading()


def test_a_server_takes_as_many_file_descriptors_as_it_may() -> None:
    """One connection is one descriptor, and the usual soft limit is a thousand."""
    with ServerProcess(wrapper=["sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh"]) as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text().splitlines()
        (soft, hard) = next(line.split()[3:5] for line in limits if line.startswith("Max open files"))
        assert soft == hard != "256"


def test_nothing_of_a_server_is_left_when_it_has_stopped() -> None:
    with ServerProcess() as server:
        assert server.stop() == 0
        listed = subprocess.run(["ss", "-ltnH", f"sport = :{server.port}"], capture_output=True, text=True, check=False)
        assert listed.stdout == ""
        assert not os.path.exists(f"/proc/{server.pid}")
        server.check()

"""`nexo serve --processes`: real processes on one port, on PostgreSQL and Redis, killed and stopped under load."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import psutil
import pytest

from harness import servers
from harness.chat import Client, world
from harness.chatters import check_stored, finish, gather_chatters, until_more
from harness.server_process import NEXO, DidNotStart, ServerProcess, environment
from harness.waiting import until
from nexo.api.health import WATCH_S
from nexo.config import parse_store_url
from nexo.store import migrate
from nexo.store.check import check

pytestmark = pytest.mark.servers

SENT = 30
COUNT = 3
SECRET = secrets.token_urlsafe(48)


class Cluster(ServerProcess):
    """A supervisor and its children."""

    def __init__(self, url: str, count: int = COUNT) -> None:
        super().__init__(
            options=["--processes", str(count)],
            store__url=url,
            redis__url=servers.redis().url,
            redis__prefix=secrets.token_hex(4),
            auth__secret=SECRET,
            limits__inflight_sends=0,
        )

    def children(self) -> dict[int, int]:
        """Process number → pid of those that run now."""
        found = {}
        for child in psutil.Process(self.pid).children():
            command = child.cmdline()
            if "--process" in command:
                found[int(command[command.index("--process") + 1])] = child.pid
        return found

    async def metric(self, name: str) -> dict[str, float]:
        """Its samples, by their labels."""
        async with httpx.AsyncClient(base_url=self.address, trust_env=False, timeout=30) as http:
            text = (await http.get("/metrics")).text
        pattern = rf"^{name}(?:\{{(.*)\}})? (\S+)$"
        return {labels: float(value) for labels, value in re.findall(pattern, text, re.MULTILINE)}

    async def until_told(self, text: str, count: int) -> None:
        await until(lambda: self.output.count(text) >= count, f"{count} times {text}", patience_s=60)


@pytest.fixture(scope="module")
def store_url() -> Iterator[str]:
    server = servers.postgres()
    url = server.create_database()
    asyncio.run(migrate.upgrade(parse_store_url(url)))
    yield url
    server.drop_database(url)


@pytest.fixture(scope="module")
def cluster(store_url: str) -> Iterator[Cluster]:
    running = Cluster(store_url)
    running.start()
    yield running
    if running._process is not None and running._process.poll() is None:
        running.stop()


async def test_whichever_process_is_asked_the_metrics_are_of_all(cluster: Cluster) -> None:
    async def saved() -> float:
        return (await cluster.metric("nexo_sends_total"))['result="saved"']

    async with world(cluster) as here:
        ann, ben = await here.people("ann", "ben")
        before, began = await saved(), time.monotonic()
        for client in [await ann.connect() for _ in range(6)]:
            for _ in range(SENT // 6):
                await client.say(ben, "hello")
        in_a_row = 0
        async with asyncio.timeout(20):
            while in_a_row < 8:  # each on a connection of its own, so that different ones answer
                grown = await saved() - before
                # each process sends a message on trial every five seconds; counted twice, these would be 60
                assert grown <= SENT + COUNT * ((time.monotonic() - began) / WATCH_S + 2)
                in_a_row = in_a_row + 1 if grown >= SENT else 0
    started = await cluster.metric("process_start_time_seconds")
    assert {f'process="{number}"' for number in range(1, COUNT + 1)} <= set(started), started


async def test_all_processes_follow_the_control_file(cluster: Cluster) -> None:
    """`nexo log` and `nexo two-phase` write one file in the data folder, which the processes share."""

    async def order(event: str, *words: str) -> None:
        told = cluster.output.count(event)
        command = [NEXO, *words, "--data", cluster.data]
        settings = {"redis__url": cluster.settings["redis__url"]}
        process = await asyncio.create_subprocess_exec(*command, env=environment(settings))
        assert await process.wait() == 0
        await until(lambda: cluster.output.count(event) >= told + COUNT, f"{COUNT} times {event} after {words}")

    async def accepted_by_each() -> bool:
        async with world(cluster) as here:
            ann, ben = await here.people("ann", "ben")
            clients = [await ann.connect() for _ in range(12)]
            held = await settled_connections(cluster, 12)
            for client in clients:
                await client.say(ben, "hello")
            found = [bool(client.early) for client in clients]
            assert len(set(found)) == 1, f"some processes accept and others do not: {found}, {held}"
            return found[0]

    assert not await accepted_by_each()
    await order("two_phase_switched", "two-phase", "on")
    assert await accepted_by_each()
    await order("log_settings", "log", "level", "debug")
    await order("log_settings", "log", "reset")
    ready = cluster.output.count('"process_ready"')
    os.kill(cluster.children()[1], signal.SIGKILL)
    await cluster.until_told('"process_ready"', ready + 1)
    assert await accepted_by_each(), "the one that was started again reads the file"
    await order("two_phase_switched", "two-phase", "off")
    assert not await accepted_by_each()


async def test_people_on_different_processes_chat_as_if_on_one(cluster: Cluster) -> None:
    async with world(cluster) as here:
        ann, ben = await here.people("ann", "ben")
        sender = await ann.connect()
        clients: list[Client] = [await ben.connect() for _ in range(12)]
        held = await settled_connections(cluster, 13)
        assert len([count for count in held.values() if count]) >= 2, held
        acks = [await sender.say(ben, f"message {n}") for n in range(5)]
        for client in clients:
            for ack in acks:
                await client.expect("SINGLE_CHAT", serverMsgId=ack["serverMsgId"])
        for client in clients:
            await client.close()


async def settled_connections(cluster: Cluster, total: int) -> dict[str, int]:
    """Connections by process; others' numbers are up to a second old."""
    held: Counter[str] = Counter()

    async def is_all() -> bool:
        held.clear()
        for labels, count in (await cluster.metric("nexo_connections")).items():
            held[re.findall('process="(.*?)"', labels)[0]] += int(count)
        return held.total() == total

    await until(is_all, lambda: held)
    return dict(held)


async def test_a_killed_process_is_started_again_and_nothing_acknowledged_is_lost(
    cluster: Cluster, store_url: str
) -> None:
    chatters = await gather_chatters(cluster, [f"u{i}" for i in range(18)])
    running = [asyncio.create_task(chatter.run()) for chatter in chatters]
    counted = 0.0
    for number in range(1, COUNT + 1):
        await until_more(chatters, running)
        ready = cluster.output.count('"process_ready"')
        os.kill(cluster.children()[number], signal.SIGKILL)
        await cluster.until_told('"process_ready"', ready + 1)
        now = (await cluster.metric("nexo_sends_total"))['result="saved"']
        assert now >= counted, "a counter never goes back"
        counted = now
    await finish(chatters, running)
    assert sum(chatter.connects for chatter in chatters) > len(chatters), "some were on each that was killed"
    assert '"end": "signal SIGKILL"' in cluster.output
    await check_stored(cluster, chatters)
    report = await check(parse_store_url(store_url))
    assert not report.counts, report.findings[:10]


async def test_every_line_of_the_log_says_which_process(cluster: Cluster) -> None:
    lines = [line for line in cluster.output.splitlines() if line.startswith("{")]
    assert all('"process": ' in line for line in lines)
    instances = set(re.findall(r'"instance": "(i_\w+)"', cluster.output))
    assert len(instances) >= COUNT


async def test_a_stop_tells_everybody_and_leaves_nothing_running(cluster: Cluster) -> None:
    children = list(cluster.children().values())
    async with world(cluster, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        clients = [await ann.connect() for _ in range(9)]
        cluster.signal(signal.SIGTERM)
        for client in clients:
            assert await client.expect_close() in range(4500, 5000)
    assert await asyncio.to_thread(cluster.wait) == 0
    assert not any(psutil.pid_exists(pid) for pid in children)
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # only a listener is in the way
        free.bind(("127.0.0.1", cluster.port))


async def test_children_end_when_their_supervisor_is_killed(store_url: str) -> None:
    with Cluster(store_url, 2) as cluster:
        children = [psutil.Process(pid) for pid in cluster.children().values()]
        cluster.kill()
        _, alive = await asyncio.to_thread(psutil.wait_procs, children, 30)
        assert alive == []
        assert cluster.output.count("supervisor_lost") == 2


async def test_a_second_signal_ends_all_at_once(store_url: str) -> None:
    with Cluster(store_url, 2) as cluster:
        children = [psutil.Process(pid) for pid in cluster.children().values()]
        os.kill(children[0].pid, signal.SIGSTOP)  # one that would hold up a graceful stop
        cluster.signal(signal.SIGTERM)
        await cluster.until_told('"stopping"', 1)
        cluster.signal(signal.SIGTERM)
        assert await asyncio.to_thread(cluster.wait, 5) == -signal.SIGTERM
        _, alive = await asyncio.to_thread(psutil.wait_procs, children, 10)
        assert alive == []


def test_what_cannot_be_shared_is_refused_and_the_reason_told(store_url: str) -> None:
    refused = {
        r"needs a server database": {},
        r"needs redis\.url": {"store__url": store_url, "auth__secret": SECRET},
    }
    for reason, settings in refused.items():
        with pytest.raises(DidNotStart, match=reason) as caught:
            ServerProcess(options=["--processes", "2"], **settings).start()
        assert caught.value.exit_code == 2


def test_a_port_that_somebody_uses_is_refused_although_it_could_be_shared(store_url: str) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = Cluster(store_url)
        server.port = other.getsockname()[1]
        with pytest.raises(DidNotStart, match="cannot listen on"):
            server.start()


def test_an_old_schema_is_told_once(store_url: str) -> None:
    empty = servers.postgres().create_database()
    with pytest.raises(DidNotStart) as caught:
        Cluster(empty).start()
    servers.postgres().drop_database(empty)
    assert caught.value.exit_code == 2
    assert caught.value.output.count("run `nexo migrate` first") == 1
    assert "process 1 did not start" in caught.value.output

"""`nexo bench` against real servers: green when all is well, red once the network takes, adds or changes anything."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness import servers
from harness.proxy import Proxy, _Link
from harness.server_process import NEXO, ServerProcess, environment
from harness.waiting import until
from nexo.bench.plan import DialectName

Damage = Callable[[bytes], list[bytes]]


async def bench(*arguments: str, cwd: Path | None = None) -> tuple[int, Any]:
    """Exit code and result of one run."""
    process = await asyncio.create_subprocess_exec(
        NEXO, "bench", *arguments, "--json", "-", cwd=cwd, env=environment({}), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    out, told = await process.communicate()
    assert process.returncode in (0, 1), told.decode()
    return process.returncode, json.loads(out)


def frames_in(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole frames of a server at the beginning of the data, and the rest."""
    found = []
    while len(data) >= 2:
        size, start = data[1], 2
        if size == 126:
            size, start = int.from_bytes(data[2:4], "big"), 4
        elif size == 127:
            size, start = int.from_bytes(data[2:10], "big"), 10
        if len(data) < start + size or len(data) < start:
            break
        found.append(data[: start + size])
        data = data[start + size :]
    return found, data


class Tampering(Proxy):
    """Passes everything, except that each frame (or part of an HTTP answer) of the server goes through `damage`."""

    def __init__(self, url: str, damage: Damage) -> None:
        super().__init__(url)
        self._damage = damage

    async def _pump_answers(self, link: _Link, reader: asyncio.StreamReader) -> None:
        upgraded, data = False, b""
        with contextlib.suppress(OSError):
            while chunk := await reader.read(1 << 16):
                if not upgraded and chunk.startswith(b"HTTP/1.1 101"):
                    upgraded = True
                    head, _, chunk = chunk.partition(b"\r\n\r\n")
                    link.near.write(head + b"\r\n\r\n")
                if upgraded:
                    whole, data = frames_in(data + chunk)
                else:
                    whole = [chunk]
                for one in whole:
                    link.near.write(b"".join(self._damage(one)))
                await link.near.drain()


@asynccontextmanager
async def tampered(server: ServerProcess, damage: Damage) -> AsyncIterator[str]:
    proxy = Tampering(server.address, damage)
    listener = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        await proxy._close()
        await listener.wait_closed()


def nth(number: int, mark: bytes, change: Damage) -> Damage:
    """Change the so-and-so-manieth frame that contains the mark."""
    seen = 0

    def damage(frame: bytes) -> list[bytes]:
        nonlocal seen
        if mark in frame:
            seen += 1
            if seen == number:
                return change(frame)
        return [frame]

    return damage


def swapped(mark: bytes) -> Damage:
    """The tenth such frame waits for the eleventh of the same connection's conversation."""
    held: list[bytes] = []
    seen = 0

    def damage(frame: bytes) -> list[bytes]:
        nonlocal seen
        if mark not in frame:
            return [frame]
        seen += 1
        if seen == 10:
            held.append(frame)
            return []
        if held:
            return [frame, held.pop()]
        return [frame]

    return damage


def replaced(old: bytes, new: bytes) -> Damage:
    assert len(old) == len(new)
    return lambda frame: [frame.replace(old, new, 1)]


PUSH = b'"type":"SINGLE_CHAT"'
SAVED = b'"ackType":"saved"'
RECEIPT = b'"ackType":"delivered"'
PAGE = b'"next_seq"'
ONE_PAIR = ("--pairs", "1", "--seconds", "1", "--warmup", "0", "--rate", "60", "--drain", "1.5")

DAMAGES: dict[str, tuple[Damage, str]] = {
    "a push is lost": (nth(9, PUSH, lambda frame: []), "deliveries are missing"),
    "a push comes twice": (nth(9, PUSH, lambda frame: [frame, frame]), "messages arrived twice"),
    "two pushes change places": (swapped(PUSH), "out of the order of their seq"),
    "a push says something else": (nth(9, PUSH, replaced(b"xxxxx", b"yyyyy")), "received is not stored"),
    "a push goes to another chat": (
        nth(9, PUSH, replaced(b'"si_b', b'"si_c')),
        "reached a wrong receiver, or match nothing",
    ),
    "an acknowledgement is lost": (nth(9, SAVED, lambda frame: []), "never answered"),
    "an acknowledgement names another place": (nth(9, SAVED, replaced(b'"msgSeq":9', b'"msgSeq":7')), "histories"),
    "the last receipts are lost": (lambda frame: [] if RECEIPT in frame else [frame], "receipts never reached"),
    "a history has a hole": (nth(1, PAGE, replaced(b'"seq":9,', b'"seq":8,')), "histories"),
    "a history names another sender": (nth(1, PAGE, replaced(b'"sender_id":"b', b'"sender_id":"c')), "histories"),
}
ANSWER = b'"status":"saved"'
HTTP_DAMAGES: dict[str, tuple[Damage, str]] = {
    "an HTTP answer names another place": (nth(9, ANSWER, replaced(b'"seq":9,', b'"seq":7,')), "histories"),
    "an HTTP answer names another message": (
        nth(9, ANSWER, replaced(b'"server_msg_id":"3', b'"server_msg_id":"2')),
        "not what was acknowledged",
    ),
}


@pytest.fixture(scope="module")
def outcomes(server: ServerProcess) -> dict[str, tuple[int, Any]]:
    """Each kind of damage on a connection of its own, and none, all at the same time."""

    async def one(name: str, damage: Damage) -> tuple[int, Any]:
        # one request at a time takes as long as a busy machine makes it, and nothing of it gets lost
        flags = ("http-send", *ONE_PAIR, "--drain", "60") if "HTTP" in name else ("single", *ONE_PAIR)
        async with tampered(server, damage) as url:
            return await bench(*flags, "--url", url)

    async def everything() -> dict[str, tuple[int, Any]]:
        damages = {name: damage for name, (damage, _) in (DAMAGES | HTTP_DAMAGES).items()}
        damages |= {"none": lambda frame: [frame], "none, HTTP": lambda frame: [frame]}
        found = await asyncio.gather(*(one(name, damage) for name, damage in damages.items()))
        return dict(zip(damages, found, strict=True))

    return asyncio.run(everything())


@pytest.mark.parametrize("name", DAMAGES | HTTP_DAMAGES)
def test_a_run_that_cannot_be_proved_is_red(outcomes: dict[str, tuple[int, Any]], name: str) -> None:
    code, result = outcomes[name]
    words = (DAMAGES | HTTP_DAMAGES)[name][1]
    assert code == 1
    assert not result["verdict"]["ok"]
    assert any(words in reason for reason in result["verdict"]["reasons"]), result["verdict"]


def test_the_same_run_through_an_honest_network_is_green(outcomes: dict[str, tuple[int, Any]]) -> None:
    code, result = outcomes["none"]
    assert (code, result["verdict"]["reasons"]) == (0, [])
    assert result["counts"]["saved"] == result["counts"]["unique"] == result["counts"]["delivered"] == 60
    assert result["proof"]["histories"] == 2
    code, result = outcomes["none, HTTP"]
    assert (code, result["verdict"]["reasons"]) == (0, [])
    assert result["counts"]["saved"] == result["counts"]["unique"] == 60


async def test_the_scenarios_end_green_and_say_what_they_did(server: ServerProcess) -> None:
    at_once = ("--url", server.address, "--server-pid", str(server.pid), "--seconds", "3", "--warmup", "0.5")
    single, group, offline, slow, mixed, request, http = await asyncio.gather(
        bench("single", "--pairs", "20", "--window", "4", "--processes", "2", *at_once),
        bench("group", "--members", "30", "--senders", "5", "--rate", "40", *at_once),
        bench("offline-catch-up", "--pairs", "4", "--missed", "450", *at_once),
        bench("slow-consumers", "--groups", "3", "--members", "6", "--rate", "60", *at_once),
        bench("mixed", "--pairs", "5", "--groups", "2", "--members", "5", "--senders", "2", "--rate", "50",
              "--flap", "0.5", "--flap-every", "1", *at_once),
        bench("single", "--pairs", "5", "--rate", "50", "--dialect", "request", "--url", server.address, *at_once),
        bench("http-send", "--pairs", "4", *at_once),
    )  # fmt: skip
    for code, result in (single, group, offline, slow, mixed, request, http):
        assert (code, result["verdict"]["reasons"]) == (0, []), result["plan"]["scenario"]
        assert result["proof"]["histories"] == result["proof"]["histories_of"] > 0
        assert result["counts"]["unique"] == result["counts"]["expected"] > 0
        assert result["server"]["cpu_s"] > 0
    assert single[1]["generator"]["processes"] == 2
    assert single[1]["latencies"]["saved"]["p50"] > 0
    assert group[1]["counts"]["unique"] == group[1]["counts"]["saved"] * 29
    assert offline[1]["counts"]["unique"] == 4 * 450
    assert offline[1]["counts"]["pulled"] > 0
    assert slow[1]["figures"]["stalled readers"] > 0
    assert "received by slow readers" in slow[1]["latencies"]
    assert mixed[1]["counts"]["reconnects"] > 0
    assert request[1]["counts"]["delivered"] == request[1]["counts"]["saved"]


async def test_tokens_that_end_during_the_run_are_renewed() -> None:
    ends_soon = ("--set", "auth.access_ttl_s=5", "--seconds", "9", "--warmup", "0.5", "--rate", "40")
    people = ("--pairs", "3", "--groups", "1", "--members", "4", "--senders", "2", "--flap", "0.3")
    outcomes = await asyncio.gather(
        *(bench("mixed", "--dialect", dialect, *people, *ends_soon) for dialect in DialectName),
        bench("http-send", "--pairs", "3", *ends_soon[:-2]),
    )
    for code, result in outcomes:
        assert (code, result["verdict"]["reasons"]) == (0, []), result["plan"]
        assert result["counts"]["saved"] > 100


async def test_the_others_too_and_a_storm(server: ServerProcess) -> None:
    at_once = ("--url", server.address, "--seconds", "1", "--warmup", "0.5")
    results = await asyncio.gather(
        bench("ping", "--connections", "20", *at_once),
        bench("connect", "--connections", "100", *at_once),
        bench("history", "--pairs", "3", "--missed", "120", *at_once),
        bench("reconnect-storm", "--pairs", "60", "--missed", "5", "--processes", "2", *at_once),
        bench("offline-catch-up", "--pairs", "2", "--missed", "250", "--dialect", "command", *at_once),
    )
    for code, result in results:
        assert (code, result["verdict"]["reasons"]) == (0, []), result["plan"]["scenario"]
    ping, connect, history, storm, command = (result for _, result in results)
    assert ping["counts"]["answered"] == ping["counts"]["asked"] > 100
    assert connect["latencies"]["signed in"]["count"] == 95
    assert history["answered_per_s"] > 10
    assert storm["latencies"]["caught up"]["count"] == 60
    assert command["counts"]["pulled"] == command["counts"]["unique"] == 500


async def test_it_starts_a_server_of_its_own_and_writes_a_report(tmp_path: Path) -> None:
    code, result = await bench(
        "single", "--pairs", "5", "--seconds", "1", "--rate", "50", "--burst", "5", "--ramp", "0.5",
        "--set", "store.linger_ms=1", "--html", "report.html", cwd=tmp_path,
    )  # fmt: skip
    assert (code, result["verdict"]["reasons"]) == (0, [])
    assert result["server"]["own"]
    assert result["server"]["cpu_s"] > 0
    assert result["server_series"][-1]["rss_mib"] > 10
    assert "nexo.db" in result["server_series"][-1]["files_mib"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") >= 4
    assert "✔ Green" in page
    assert "http://" not in page.replace(result["plan"]["urls"][0], ""), "nothing is loaded from anywhere"
    assert "<script" not in page


async def test_a_limited_server_makes_it_red_unless_refusals_are_allowed() -> None:
    with ServerProcess(limits__sends_per_s=5, limits__sends_burst=5) as limited:
        flags = ("single", "--pairs", "1", "--seconds", "1", "--warmup", "0", "--rate", "40", "--url", limited.address)
        code, result = await bench(*flags)
        assert code == 1
        assert result["counts"]["errors"]["too_many_requests"] == result["counts"]["refused"] > 0
        code, result = await bench(*flags, "--allow-refusals")
        assert (code, result["verdict"]["reasons"]) == (0, [])


async def test_users_of_a_file_may_have_a_past(server: ServerProcess, tmp_path: Path) -> None:
    users = tmp_path / "users"
    names = [f"past-{tmp_path.name[-6:]}-{i}".replace("_", "-") for i in range(2)]
    for name in names:
        server.run("user", "add", name, text="correct horse battery\ncorrect horse battery\n")
    users.write_text("".join(f"{name} correct horse battery\n" for name in names))
    flags = ("single", "--pairs", "1", "--seconds", "1", "--rate", "30", "--url", server.address)
    for _ in range(2):
        code, result = await bench(*flags, "--users-file", str(users))
        assert (code, result["verdict"]["reasons"]) == (0, [])
    assert result["proof"]["messages"] == 2 * result["counts"]["saved"]


async def test_capacity_is_searched_for(server: ServerProcess) -> None:
    code, result = await bench(
        "single", "--pairs", "2", "--seconds", "0.5", "--warmup", "0", "--rate", "2", "--find-capacity",
        "--objective", "p50=0.001", "--url", server.address,
    )  # fmt: skip
    assert code == 1
    assert result["verdict"]["reasons"] == ["saved p50 ≤ 0.001 ms did not hold at any rate that was tried"]
    # on a machine so busy that the generator itself was late, the search ends there, and says so
    assert result["plan"]["rate"] < 2 or result["trials"][-1]["was_generator"]
    assert [trial["held"] for trial in result["trials"]] == [False] * len(result["trials"])


async def test_a_server_that_dies_on_the_way_makes_it_red() -> None:
    with ServerProcess() as doomed:
        flags = ("--pairs", "3", "--seconds", "6", "--rate", "50", "--drain", "0.5", "--url", doomed.address)
        running = asyncio.create_task(bench("single", *flags))
        await until(lambda: wrote_much(doomed), patience_s=60)
        doomed.kill()
        code, result = await running
    assert code == 1
    reasons = " ".join(result["verdict"]["reasons"])
    assert "could not be brought to its end" in reasons or "never answered" in reasons


def wrote_much(server: ServerProcess) -> bool:
    """More than signing up takes: messages are being sent."""
    log = server.data / "nexo.db-wal"
    return log.exists() and log.stat().st_size > 600_000


def sends_of(server: ServerProcess) -> float:
    text = httpx.get(f"{server.address}/metrics", trust_env=False).text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("nexo_sends_total"))


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_a_restart_during_a_run_is_no_fault_when_nothing_is_missing(how: str) -> None:
    with ServerProcess() as server:
        load = ("single", "--url", server.address, "--pairs", "4", "--rate", "100", "--seconds", "5")
        running = asyncio.create_task(bench(*load, "--allow-restarts"))
        await until(lambda: _sent(server, 100), "it runs")
        if how == "stopped":
            assert await asyncio.to_thread(server.stop) == 0
        await asyncio.to_thread(server.restart)
        code, result = await running
        assert (code, result["verdict"]["reasons"]) == (0, [])
        assert any("reconnected" in note for note in result["verdict"]["notes"])


async def _sent(server: ServerProcess, count: int) -> bool:
    return await asyncio.to_thread(sends_of, server) > count


@pytest.mark.servers
async def test_a_restart_of_the_database_during_a_run_is_no_fault_when_nothing_is_missing() -> None:
    with servers.Postgres() as database:
        url = database.create_database()
        secret = "a secret that only this test knows, of some length"
        migrating = await asyncio.create_subprocess_exec(NEXO, "migrate", env=environment({"store__url": url}))
        assert await migrating.wait() == 0
        with ServerProcess(store__url=url, auth__secret=secret) as server:
            load = ("single", "--url", server.address, "--pairs", "4", "--rate", "100", "--seconds", "5")
            running = asyncio.create_task(bench(*load, "--allow-restarts"))
            await until(lambda: _sent(server, 100), "it runs")
            await asyncio.to_thread(database.kill)
            await until(lambda: "batch_again" in server.output, "it cannot write")
            await asyncio.to_thread(database.start)
            code, result = await running
            assert (code, result["verdict"]["reasons"]) == (0, [])

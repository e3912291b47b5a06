"""`/admin`: for administrators alone, and what it says is so."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from harness import servers
from harness.chat import PASSWORD, Person, Refused, World, world
from harness.server_process import NEXO, ServerProcess, environment
from harness.waiting import until
from nexo.config import parse_store_url
from nexo.store import migrate
from nexo.wire.registry import DIALECTS


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess(receipts__flush_ms=1) as running:
        done = running.run("user", "add", "boss", "--admin", "--password-stdin", text=f"{PASSWORD}\n")
        assert done.returncode == 0, done.stderr
        yield running


async def stats(here: World, **query: Any) -> Any:
    boss = Person(here, "boss")
    boss.tokens = await boss.log_in(platform_id=10)
    return await boss.get("/admin/stats", **query)


async def test_nobody_but_administrators_is_told(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        with pytest.raises(Refused) as refused:
            await ann.get("/admin/stats")
        assert (refused.value.status, refused.value.name) == (403, "no_permission")
        with pytest.raises(Refused) as refused:
            await here.call("GET", "/admin/stats")
        assert refused.value.name == "unauthorized"


async def test_an_administrator_is_one_no_more_when_the_flag_is_gone(server: ServerProcess) -> None:
    async with world(server) as here:
        server.run("user", "add", "once", "--admin", "--password-stdin", text=f"{PASSWORD}\n")
        once = Person(here, "once")
        once.tokens = await once.log_in()
        assert (await once.get("/admin/stats"))["state"] in ("ready", "slow")
        assert server.run("user", "admin", "once", "--off").returncode == 0
        with pytest.raises(Refused) as refused:
            await once.get("/admin/stats")
        assert refused.value.name == "no_permission"


async def test_it_says_what_goes_on_and_names_nobody(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        one, other = await ann.connect(), await ben.connect()
        for _ in range(5):
            await one.say(other, "zxcv-body")
            await other.acknowledge(await other.expect("SINGLE_CHAT"), "delivered")
        with pytest.raises(Refused):
            await ann.get("/msg/history", conversation_id="sg_g_123456789012")
        status = await stats(here)
        live = status["live"]
        assert status["state"] in ("ready", "slow")
        assert status["canary_ms"] > 0
        assert live["connections"] == 2
        counted = {row["name"]: row["connections"] for row in live["dialects"]}
        assert counted == {name.split(".")[1]: 0 for name in DIALECTS} | {"envelope": 2}
        assert live["engine"] == "sqlite"
        assert live["sends"]["p50_ms"] > 0
        assert [stage["name"] for stage in live["stages"]] == ["queue", "write", "ack", "push"]
        assert all(stage["p99_ms"] is not None for stage in live["stages"])
        assert live["deliveries"]["p50_ms"] > 0
        assert {"name": "group_not_found", "count": 1, "ours": False} in live["errors"]
        queues = {queue["name"]: queue for queue in live["queues"]}
        assert queues["sends"]["limit"] == 20_000
        assert queues["cursors"]["limit"] == 100_000
        (instance,) = live["instances"]
        assert instance["memory_bytes"] > 10_000_000
        told = str(status)
        assert not any(word in told for word in (ann.user_id, ben.user_id, "zxcv", "127.0.0.1", "si_"))


async def test_what_was_told_before_is_left_out(server: ServerProcess) -> None:
    async with world(server) as here:
        first = await stats(here)
        assert (await stats(here, since=first["live"]["now"] + 60_000))["live"]["history"] == []
        with pytest.raises(Refused) as refused:
            await stats(here, since="yesterday")
        assert refused.value.name == "bad_seq"


async def test_the_page_itself_holds_nothing_and_keeps_to_the_policy(server: ServerProcess) -> None:
    async with world(server) as here:
        page = await here.http.get("/admin")
        assert page.status_code == 200
        assert "default-src 'self'" in page.headers["content-security-policy"]
        assert "style=" not in page.text
        scripts = [line for line in page.text.splitlines() if "<script" in line]
        assert all("src=" in line for line in scripts)
        for address in ("admin/admin.js", "admin/cards.js", "admin/charts.js", "admin/session.js", "admin/texts.js"):
            assert (await here.http.get(f"/web/{address}")).status_code == 200


@pytest.mark.servers
async def test_every_instance_that_can_be_heard_is_on_the_page() -> None:
    url = servers.postgres().create_database()
    await migrate.upgrade(parse_store_url(url))
    servers.redis().flush()
    settings = {
        "store__url": url,
        "redis__url": servers.redis().url,
        "auth__secret": "kjh34kjh5kjh6kjh7kjh8kjh9kjh0kjh1kjh2",
    }
    with ServerProcess(**settings) as one, ServerProcess(**settings) as other:
        added = await asyncio.to_thread(
            subprocess.run,
            [NEXO, "user", "add", "boss", "--admin", "--password-stdin"],
            env=environment(settings),
            cwd=one.directory,
            input=PASSWORD,
            text=True,
            capture_output=True,
            check=False,
        )
        assert added.returncode == 0, added.stderr
        async with world(one, check_pushes=False) as here, world(other, check_pushes=False) as there:
            await (await here.person("ann")).connect()
            await (await there.person("ben")).connect()

            async def both_are_seen() -> Any:
                live = (await stats(here))["live"]
                return live if len(live["instances"]) == 2 and live["connections"] == 2 else None

            live = await until(both_are_seen)
            assert sorted(row["connections"] for row in live["instances"]) == [1, 1]
            assert len({row["name"] for row in live["instances"]}) == 2
            assert live["saved_per_s"] < 100, "whom it has only just met did not do all of that in a moment"

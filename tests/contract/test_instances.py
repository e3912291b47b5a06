"""The rows of instances in the database: each renews its own, and one secret counts for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from harness.core import look, open_test_core, run
from harness.waiting import until
from nexo.assembly.core import Core
from nexo.background import Background
from nexo.bus.local import LocalBus
from nexo.cluster import health
from nexo.cluster.health import ClusterHealth
from nexo.errors import StartupError
from nexo.ids import now_ms
from nexo.ports import InstanceRow
from nexo.service.secret import digest_secret
from nexo.store import instances

SECRET = "a secret that is long enough 83hf93hf"
OTHER = "another that is long enough 0sk2nfk3j"


def row(name: str, **changes: Any) -> InstanceRow:
    return InstanceRow(name, f"host:{name}", False, True, "digest", 0)._replace(**changes)


async def test_an_instance_sees_the_others_and_how_long_ago_they_were_seen(core_url: str) -> None:
    async with open_test_core(core_url) as core:
        store = core.store.instances
        first = await store.announce(row("a"))
        assert first.others == []
        (other,) = (await store.announce(row("b", is_worker=True, on_bus=False))).others
        assert (other.instance_id, other.place, other.is_worker, other.on_bus) == ("a", "host:a", False, True)
        assert other.started_at == first.started_at
        again = await store.announce(row("a", on_bus=False))
        assert again.started_at == first.started_at, "its row is the same"
        (found,) = again.others
        assert (found.instance_id, found.is_worker, found.on_bus) == ("b", True, False)
        await run(core, "UPDATE instances SET seen_at=seen_at-5000 WHERE instance_id='b'")
        assert (await store.announce(row("a"))).others[0].age_ms >= 5000
        await store.leave("b")
        assert (await store.announce(row("a"))).others == []


async def test_rows_of_killed_instances_are_removed_after_a_while(core_url: str) -> None:
    async with open_test_core(core_url) as core:
        store = core.store.instances
        await store.announce(row("killed"))
        await run(core, "UPDATE instances SET seen_at=seen_at-?", instances.FORGET_S * 1000 + 1)
        await store.announce(row("a"))
        assert await look(core, "SELECT instance_id FROM instances") == [("a",)]


async def test_a_commit_of_any_kind_is_a_sign_that_the_database_takes_something(core_url: str) -> None:
    async with open_test_core(core_url) as core:
        before = core.store.instances.committed_at
        await core.store.beat()
        assert core.store.instances.committed_at > before


@asynccontextmanager
async def joined(core: Core, secret: str) -> AsyncIterator[ClusterHealth]:
    background = Background()
    one = ClusterHealth(core.store.instances, LocalBus(), background, place="here:1", is_worker=False, detect_s=0.2)
    await one.join(secret)
    one.start()
    try:
        yield one
    finally:
        await one.stop()
        await background.stop()


async def test_an_instance_with_another_secret_does_not_join_running_ones(core_url: str) -> None:
    async with open_test_core(core_url) as core, joined(core, SECRET):
        async with joined(core, SECRET):
            with pytest.raises(StartupError, match=r"auth\.secret is not the one .*here:1.*stop all instances"):
                async with joined(core, OTHER):
                    pass
            assert len(await look(core, "SELECT instance_id FROM instances")) == 2, "the refused one left no row"
        stored = "".join(text for (text,) in await look(core, "SELECT secret_digest FROM instances"))
        assert stored
        assert SECRET not in stored
    async with open_test_core(core_url) as core, joined(core, OTHER):
        assert len(await look(core, "SELECT instance_id FROM instances")) == 1, "all were stopped"


async def test_rows_that_are_not_renewed_do_not_keep_another_secret_out(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "LEASE_S", 0.5)
    async with open_test_core(core_url) as core:
        await core.store.instances.announce(row("killed", secret_digest=digest_secret(SECRET)))
        async with joined(core, OTHER):
            pass


@pytest.mark.parametrize(("off_s", "logged"), [(-3600, [-3600]), (0, []), (3600, [3600])])
async def test_a_clock_that_is_off_against_the_database_is_logged_once(
    core_url: str, monkeypatch: pytest.MonkeyPatch, off_s: int, logged: list[int]
) -> None:
    looked: list[int] = []

    def clock() -> int:
        looked.append(now_ms())
        return looked[-1] + off_s * 1000

    monkeypatch.setattr(health, "now_ms", clock)
    with capture_logs() as logs:
        async with open_test_core(core_url) as core, joined(core, SECRET) as one:
            one.bus_changed()
            await until(lambda: len(looked) > 2)
    assert [round(line["seconds"], -1) for line in logs if line["event"] == "clock_off"] == logged

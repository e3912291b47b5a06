"""An instance that stops (a debugger, a suspended machine) while it holds locks delays only what it holds."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import msgspec
import pytest

from harness.acks import acks_in, check_acks, errors_in
from harness.core import found_group, open_test_core, say
from harness.engines import SERVER_ENGINES
from harness.programs import running
from nexo.assembly.core import Core

WRITER = Path(__file__).with_name("writer.py")
PEOPLE = [f"p{n}" for n in range(6)]

pytestmark = pytest.mark.parametrize(
    "engine_name", [pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES]
)


async def timed(core: Core, sender: str, target: str) -> float:
    began = time.monotonic()
    await say(core, sender, target)
    return time.monotonic() - began


async def test_only_what_a_stopped_instance_holds_is_delayed_and_not_for_long(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core, running(WRITER, core_url) as stopped:
        group_id, _ = await found_group(core, *PEOPLE)
        for sender, target in (("p0", "p1"), ("p2", "p3")):
            await say(core, sender, target)
        targets = [{"recv_id": "p1"}, {"group_id": group_id}]
        plan = {
            "streams": [{"sender": "p0", "prefix": "s", "targets": targets, "end": 2, "inflight": 2}],
            "settings": {"store.linger_ms": 50},  # both in one transaction
            "stop_before_commit": True,
        }
        await stopped.say(msgspec.json.encode(plan).decode())
        await stopped.wait_for("READY")
        await stopped.say("GO")
        await stopped.wait_until_stopped()

        held = [asyncio.create_task(timed(core, "p1", target)) for target in ("p0", group_id)]
        free = [await timed(core, "p2", "p3") for _ in range(5)]
        assert not any(task.done() for task in held), "they were to be held"
        joining = asyncio.create_task(core.groups.join("p5", group_id))
        while not all(task.done() for task in held):
            free.append(await timed(core, "p2", "p3"))
        assert max(free) < max(await asyncio.gather(*held)), "nothing else is held"
        await joining

        stopped.signal(signal.SIGCONT)
        await stopped.wait_for("DONE", timeout_s=30)
        await stopped.finish()
    acks = acks_in(stopped.lines)
    assert [ack.client_msg_id for ack in acks] == ["s0", "s1"]
    assert all(ack.fresh for ack in acks)
    assert errors_in(stopped.lines) == {}
    await check_acks(core_url, acks)

"""PostgreSQL under Patroni: the machine of the primary is killed, and another one freezes. Long mode only:
`NEXO_LONG_TESTS=1`; each loss takes the lease of 20 s."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time

import pytest

from harness.cluster import SECRET
from harness.followers import Follower, following, stored
from harness.patroni import Patroni
from harness.server_process import NEXO, ServerProcess, environment

pytestmark = pytest.mark.servers

LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
MUST_S = 60.0  # without an acknowledged send; 21 to 23 s by `bench/failover.py`, of which 20 are the lease
PATIENCE_S = 90.0


def run_nexo(command: str, url: str) -> None:
    settings = environment({"store__url": url})
    done = subprocess.run([NEXO, command], env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


async def longest_silence(sender: Follower, receiver: Follower, seconds: float, names: list[str]) -> float:
    """Send one after the other; the longest time until a send was saved."""
    ends, worst = time.monotonic() + seconds, 0.0
    while time.monotonic() < ends:
        started = time.monotonic()
        names.append(sender.put(receiver.user_id))
        await sender.saved(names[-1], PATIENCE_S)
        worst = max(worst, time.monotonic() - started)
    return worst


async def test_the_machine_of_the_primary_is_lost() -> None:
    with Patroni(3) as servers:
        url = await asyncio.to_thread(servers.create_database)
        await asyncio.to_thread(run_nexo, "migrate", url)
        with ServerProcess(store__url=url, auth__secret=SECRET) as server:
            async with following([server], 0, 0) as (ann, ben):
                names: list[str] = []
                await longest_silence(ann, ben, 2, names)
                for how in ("killed", "frozen"):
                    lost = await asyncio.to_thread(servers.primary)
                    await asyncio.to_thread(lost.kill if how == "killed" else lost.pause)
                    silence_s = await longest_silence(ann, ben, MUST_S, names)
                    print(f"primary {how}: {silence_s:.1f} s without an acknowledged send")
                    assert silence_s <= MUST_S
                    await asyncio.to_thread(lost.start if how == "killed" else lost.resume)
                    # the one that comes back must not take its lead back: it has not what was saved meanwhile
                    await longest_silence(ann, ben, 10, names)
                    await asyncio.to_thread(servers.wait_until_synchronous)
                    assert {error["reason"] for error in ann.errors} <= {"server_busy"}
                    saved = await ann.saved(names[0])
                    assert await stored(server, ann.token, saved.conversation_id) == names
        await asyncio.to_thread(run_nexo, "check", url)


test_the_machine_of_the_primary_is_lost.__test__ = LONG  # type: ignore[attr-defined]

"""The machine of the primary database falls silent, refuses writes or loses its standby: no acknowledged message is
lost, no client gets `internal_error`, the order of a conversation holds, and service goes on by itself. The tests use
one pair of servers; the last one breaks it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest

from harness.cluster import SECRET
from harness.core import fresh_id, open_test_core, say
from harness.followers import following, stored
from harness.postgres_pair import PostgresPair
from harness.server_process import NEXO, ServerProcess, environment
from harness.waiting import nothing_for, until
from nexo.core.model import Message
from nexo.errors import NexoError

pytestmark = pytest.mark.servers

BURST = 40
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def pair() -> Iterator[PostgresPair]:
    with PostgresPair() as running:
        yield running


def run_nexo(command: str, url: str) -> None:
    done = subprocess.run(
        [NEXO, command], env=environment({"store__url": url}), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


async def outcome(sending: Awaitable[Message]) -> Message | str:
    """The message, or the name of the error."""
    try:
        return await sending
    except NexoError as error:
        return error.name


async def test_a_commit_that_waits_for_the_standby_is_not_cancelled(pair: PostgresPair) -> None:
    """A cancelled COMMIT would be visible without being replicated, and a retry would be answered from it."""
    url = pair.create_database()
    database = url.rpartition("/")[2].partition("?")[0]
    await asyncio.to_thread(run_nexo, "migrate", url)
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event='SyncRep' AND application_name='nexo'"
    async with open_test_core(url, ["ann", "ben"], store__lock_timeout_ms=100, send__deadline_ms=1000) as core:
        await say(core, "ann", "ben")
        pair.standby.pause()
        try:
            sending = asyncio.create_task(outcome(say(core, "ann", "ben")))
            await until(lambda: pair.primary.execute(waiting), "COMMIT waits")
            await nothing_for(4.5)  # the attempt ends after 3.1 s
            assert pair.primary.execute("SELECT count(*) FROM messages", database) == [(1,)]
            assert pair.primary.execute(waiting), "the server still waits for the standby"
        finally:
            pair.standby.resume()
        found = await sending
        assert found == "server_busy" or (isinstance(found, Message) and found.seq == 2)
        await until(lambda: pair.primary.execute("SELECT count(*) FROM messages", database) == [(2,)], "committed")


async def test_history_is_read_from_the_standby_only_when_it_is_new_enough(pair: PostgresPair) -> None:
    """The replay of the standby is paused: it has the newest messages and does not show them."""
    url = pair.create_database()
    await asyncio.to_thread(run_nexo, "migrate", url)
    replica = url.partition("?")[0].replace(f"127.0.0.1:{pair.primary.port},", "")
    async with open_test_core(url, ["ann", "ben"], store__read_url=replica) as core:

        def results() -> dict[str, Any]:
            found = (sample for sample in core.store.samples() if sample.name == "nexo_replica_reads_total")
            return {sample.labels[0]: sample.value for sample in found}

        async def seqs() -> list[int]:
            page = await core.store.messages.pull("ben", "si_ann:ben", 1, None, None)
            assert page.head_seq == len(page.messages)
            return [message.seq for message in page.messages]

        async def is_used() -> bool:
            assert await seqs() == [1]
            return bool(results().get("used"))

        await say(core, "ann", "ben")
        await until(is_used, "the standby has caught up")
        pair.standby.execute("SELECT pg_wal_replay_pause()")
        try:
            await say(core, "ann", "ben")
            before = results()
            assert await seqs() == [1, 2]
            assert results().get("behind", 0) == before.get("behind", 0) + 1
        finally:
            pair.standby.execute("SELECT pg_wal_replay_resume()")


async def test_a_database_that_turns_read_only_refuses_for_now(pair: PostgresPair) -> None:
    url = pair.create_database()
    await asyncio.to_thread(run_nexo, "migrate", url)
    async with open_test_core(url, ["ann", "ben"], send__deadline_ms=500) as core:
        await say(core, "ann", "ben")
        client_msg_id = fresh_id()
        pair.primary.execute("ALTER SYSTEM SET default_transaction_read_only=on")
        pair.primary.execute("SELECT pg_reload_conf()")
        try:
            await until(lambda: pair.primary.execute("SHOW default_transaction_read_only") == [("on",)], "read-only")
            for _ in range(3):
                found = await outcome(say(core, "ann", "ben", client_msg_id=client_msg_id))
                assert found == "server_busy"
        finally:
            pair.primary.execute("ALTER SYSTEM RESET default_transaction_read_only")
            pair.primary.execute("SELECT pg_reload_conf()")

        async def is_saved() -> bool:
            found = await outcome(say(core, "ann", "ben", client_msg_id=client_msg_id))
            return isinstance(found, Message) and found.seq == 2

        await until(is_saved, "it takes writes again", patience_s=PATIENCE_S)


async def test_a_primary_that_freezes_and_a_standby_that_is_promoted(pair: PostgresPair) -> None:
    """Everything is started with both hosts, the standby first: it is found that this one takes no writes."""
    own, other = f"127.0.0.1:{pair.primary.port}", f"127.0.0.1:{pair.standby.port}"
    url = pair.create_database().replace(f"{own},{other}", f"{other},{own}")
    await asyncio.to_thread(run_nexo, "migrate", url)
    with ServerProcess(store__url=url, auth__secret=SECRET) as server:
        async with following([server], 0, 0) as (ann, ben):
            names = {ann: [ann.put(ben.user_id) for _ in range(BURST)]}
            names[ben] = [ben.put(ann.user_id) for _ in range(BURST)]
            await ann.saved(names[ann][-1], PATIENCE_S)
            pair.primary.pause()
            frozen = time.monotonic()
            for _ in range(BURST):  # some of them are in a transaction, the others wait or are refused
                for one, peer in ((ann, ben), (ben, ann)):
                    names[one].append(one.put(peer.user_id))
            await asyncio.to_thread(pair.promote)
            for one in (ann, ben):
                for name in names[one]:
                    saved = await one.saved(name, PATIENCE_S)
            print(f"frozen and promoted: the last send was saved after {time.monotonic() - frozen:.1f} s")
            found = await stored(server, ann.token, saved.conversation_id)
            for one in (ann, ben):
                assert [name for name in found if name in names[one]] == names[one], "the order of one connection"
                assert {error["reason"] for error in one.errors} <= {"server_busy"}
            assert len(found) == len(set(found)) == 4 * BURST
        await asyncio.to_thread(run_nexo, "check", url)
        pair.primary.kill()  # it believes to be the primary

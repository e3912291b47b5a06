"""Tasks of the store that meet a defect: each runs again, the failure is counted and named, and every caller is
answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.commits import CommitLog
from harness.core import look, open_test_core, refused, say
from harness.defects import failed_jobs, raise_at, restarts
from harness.engines import SERVER_ENGINES
from harness.locks import held_conversation
from harness.waiting import until
from nexo.assembly.core import Core
from nexo.background import Background
from nexo.store import committer as committer_module
from nexo.store import leases

PEOPLE = ("alice", "bob", "carol", "dave")
LIMIT_S = 10.0


async def heads(core: Core) -> list[int]:
    return sorted(head for (head,) in await look(core, "SELECT head_seq FROM conversations"))


@pytest.mark.parametrize("place", ["_commit", "_write"])
async def test_a_worker_of_the_committer_that_fails_runs_again_and_writes_what_waits(
    core_url: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        await say(core, "alice", "bob")
        # Fails before the batch takes drafts, once for each of the workers.
        workers = core.store.database.engine.batches_ready
        raise_at(monkeypatch, core.store.committer, place, workers)
        for _ in range(workers + 2):
            await say(core, "alice", "bob")
        assert list(background.failing()) == ["committer"]
        assert restarts(background, "committer") == workers
        assert await heads(core) == [workers + 3]


async def test_a_worker_that_never_works_refuses_in_time_and_leaves_the_event_loop_free(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    flags: dict[str, Any] = {"send__deadline_ms": 300}
    async with open_test_core(core_url, PEOPLE, background=background, **flags) as core, asyncio.timeout(LIMIT_S):
        await say(core, "alice", "bob")
        with pytest.MonkeyPatch.context() as patch:
            raise_at(patch, core.store.committer, "_write", 1_000_000)
            with refused("server_busy"):
                await say(core, "alice", "bob")
            assert restarts(background, "committer") < 20


async def test_a_batch_that_meets_a_defect_is_answered_and_costs_no_other(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        await say(core, "alice", "bob")
        raise_at(monkeypatch, core.store.committer, "_settle")
        with refused("internal_error"):
            await say(core, "alice", "bob")
        await say(core, "alice", "bob")
        assert core.store.committer.meter.troubles["abandoned"] == 1
        assert background.failing() == {}


async def test_drafts_that_a_failing_worker_has_taken_are_answered(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        await say(core, "alice", "bob")
        commit: Any = core.store.committer._commit
        broken: list[Any] = []

        async def take_and_fail(batch: Any) -> None:
            if not broken:
                broken.append(batch)
                batch.script()
                raise RuntimeError("a defect")
            await commit(batch)

        monkeypatch.setattr(core.store.committer, "_commit", take_and_fail)
        with refused("internal_error"):
            await say(core, "alice", "bob")
        await say(core, "alice", "bob")
        assert core.store.committer.under_way == 0
        assert restarts(background, "committer") == 1


async def test_chats_whose_creation_meets_a_defect_are_created_alone(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        raise_at(monkeypatch, committer_module, "create_singles")
        await asyncio.gather(*(say(core, "alice", other) for other in ("bob", "carol", "dave")))
        assert failed_jobs(background, "create_conversations") == 1
        assert await heads(core) == [1, 1, 1]


async def test_a_chat_that_cannot_be_created_is_answered_and_a_later_send_creates_it(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_test_core(core_url, PEOPLE) as core, asyncio.timeout(LIMIT_S):
        raise_at(monkeypatch, committer_module, "create_singles", 2)  # together, then alone
        with refused("internal_error"):
            await say(core, "alice", "bob")
        assert (await say(core, "alice", "bob")).seq == 1
        assert core.store.committer._lines.lanes == {}


@pytest.mark.parametrize("place", ["_create_one", "_commit", "_write"])
async def test_a_lane_that_fails_answers_its_drafts_and_later_sends_succeed(
    core_url: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        committer: Any = core.store.committer
        raise_at(monkeypatch, committer, "_write_together")  # so that each chat gets a lane of its own
        lane_of = committer._empty_lane

        async def fail_inside(conversation_id: str) -> None:
            with pytest.MonkeyPatch.context() as patch:
                raise_at(patch, committer, place)
                await lane_of(conversation_id)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(committer, "_empty_lane", fail_inside)
            with refused("internal_error"):
                await say(core, "alice", "bob")
        await until(lambda: failed_jobs(background, "committer_lane") == 1, patience_s=5)
        assert committer._lines.lanes == {}
        assert (await say(core, "alice", "bob")).seq == 1
        assert (await say(core, "bob", "alice")).seq == 2
        assert committer.under_way == 0


# SQLite's lock is the whole file: no conversation is held alone.
@pytest.mark.parametrize(
    "engine_name", [pytest.param(name, marks=pytest.mark.servers) for name in SERVER_ENGINES], indirect=True
)
async def test_a_lane_of_a_held_conversation_that_fails_is_closed(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        first = await say(core, "alice", "bob")
        raise_at(monkeypatch, core.store.committer, "_empty_lane")
        async with held_conversation(core_url, first.conversation_id):
            with refused("internal_error"):
                await say(core, "alice", "bob")
        assert (await say(core, "alice", "bob")).seq == 2
        assert failed_jobs(background, "committer_lane") == 1


async def test_the_renewal_of_the_node_lease_continues_after_a_defect(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    async with open_test_core(core_url, PEOPLE, background=background) as core, asyncio.timeout(LIMIT_S):
        raise_at(monkeypatch, leases, "renew_node")
        before = core.store.database.ids._ends_at
        core.store.database._renew_now.set()
        await until(lambda: core.store.database.ids._ends_at > before, "renewed", patience_s=5)
        assert list(background.failing()) == ["node_lease"]
        assert restarts(background, "node_lease") == 1


async def test_cursors_that_a_failing_flush_did_not_write_are_written_by_the_next(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    background = Background()
    flags: dict[str, Any] = {"receipts__flush_ms": 10}
    async with open_test_core(core_url, PEOPLE, background=background, **flags) as core, asyncio.timeout(LIMIT_S):
        message = await say(core, "alice", "bob")
        commits = CommitLog()
        core.store.seam.attach(commits)
        raise_at(monkeypatch, core.store.cursors, "_flush")
        core.store.cursors.advance("bob", message.conversation_id, delivered_seq=1)
        await until(lambda: [what for what, _ in commits.told] == ["cursor_moved"], patience_s=5)
        assert failed_jobs(background, "cursor_flush") == 1
        assert core.store.cursors.pending == 0

"""The publish seam: whatever happens to a submitter or a listener, commits are reported to all listeners, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import structlog

from harness.commits import CommitLog, Submitter
from harness.core import draft_fields, found_group, open_test_core, say
from harness.defects import raise_at
from harness.locks import held_conversation
from harness.waiting import loop_turns, nothing_for, until
from nexo.assembly.core import Core
from nexo.core.commands import Send
from nexo.core.model import Sent
from nexo.errors import NexoError
from nexo.ports import Origin

PEOPLE = ("alice", "bob", "carol", "dave")
LIMIT_S = 5.0


class Failing(CommitLog):
    """Raises at everything."""

    def on_saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        raise RuntimeError("this listener is broken")

    def on_group_changed(self, change: Any) -> None:
        raise RuntimeError("this listener is broken")


class Awaited(CommitLog):
    """Sets an event with each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    async def wait(self) -> None:
        """Returns after the first commit; one that is never reported fails the test."""
        try:
            async with asyncio.timeout(LIMIT_S):
                await self.heard.wait()
        except TimeoutError:
            pytest.fail(f"no commit was published within {LIMIT_S:g} s")

    def on_saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        super().on_saved(origins, outcomes)
        self.heard.set()

    def on_group_changed(self, change: Any) -> None:
        super().on_group_changed(change)
        self.heard.set()

    def on_recalled(self, recall: Any) -> None:
        super().on_recalled(recall)
        self.heard.set()


async def cancel(caller: asyncio.Task[Any]) -> None:
    """Cancel a caller, which has to end at once."""
    caller.cancel()
    await asyncio.wait({caller}, timeout=LIMIT_S)
    assert caller.cancelled(), f"the caller did not end by its cancellation: {caller}"


def attach(core: Core, *listeners: CommitLog) -> None:
    for listener in listeners:
        core.store.seam.attach(listener)


async def test_a_listener_that_fails_keeps_neither_another_one_nor_the_answer_from_its_part(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        commits = CommitLog()
        attach(core, Failing(), commits)
        message = await say(core, "alice", "bob")
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        assert [
            (what, told.message if what == "message_saved" else told.event.group_id) for what, told in commits.told
        ] == [
            ("message_saved", message),
            ("group_changed", group_id),
        ]


async def test_a_submitter_that_fails_is_published_all_the_same_and_disturbs_no_other(core_url: str) -> None:
    def fail(outcome: Any) -> None:
        raise RuntimeError("this submitter is broken")

    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        commits = CommitLog()
        attach(core, commits)
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        for client_msg_id, decided in (("broken", fail), ("whole", answered.set_result)):
            fields = draft_fields("bob", "hello", {"client_msg_id": client_msg_id})
            core.store.messages.submit(core.sending.draft("alice", Send(**fields)), Submitter(decided))
        assert (await answered).message.client_msg_id == "whole"
        assert [told.message.client_msg_id for _, told in commits.told] == ["broken", "whole"]


async def test_a_send_whose_caller_was_cancelled_is_published(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        commits = Awaited()
        attach(core, commits)
        sending = asyncio.create_task(core.sending.send("alice", **draft_fields("bob", "hello", {})))
        await loop_turns()
        assert core.store.committer.under_way == 1
        await cancel(sending)
        await commits.wait()
        [(what, told)] = commits.told
        assert (what, told.fresh, told.message.seq) == ("message_saved", True, 2)


async def test_a_group_change_whose_caller_was_cancelled_is_committed_and_published(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, conversation_id = await found_group(core, "alice", "bob", "carol")
        commits = Awaited()
        attach(core, commits)
        async with held_conversation(core_url, conversation_id) as release:
            leaving = asyncio.create_task(core.groups.leave("bob", group_id))
            await nothing_for(0.1)  # it waits for the lock, of which there is no sign
            assert not leaving.done()
            await cancel(leaving)
            assert commits.told == []
            await release()
        await commits.wait()
        [(what, change)] = commits.told
        assert (what, change.event.msg_type) == ("group_changed", 103)
        members, _, _ = await core.groups.members("alice", group_id)
        assert [member.user_id for member in members] == ["alice", "carol"]


async def test_a_recall_whose_caller_was_cancelled_is_published(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        message = await say(core, "alice", "bob")
        commits = Awaited()
        attach(core, commits)
        async with held_conversation(core_url, message.conversation_id) as release:
            recalling = asyncio.create_task(core.conversations.recall("alice", message.server_msg_id))
            await nothing_for(0.1)  # it waits for the lock, of which there is no sign
            assert not recalling.done()
            await cancel(recalling)
            await release()
        await commits.wait()
        assert [what for what, _ in commits.told] == ["recalled"]


async def test_a_retry_is_told_as_one_and_a_refusal_is_not_told(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        commits = CommitLog()
        attach(core, commits)
        for _ in range(2):
            await say(core, "alice", "bob", client_msg_id="again")
        with pytest.raises(NexoError):
            await say(core, "alice", "nobody")
        assert [told.fresh for _, told in commits.told] == [True, False]


async def test_closing_the_store_waits_for_changes_whose_caller_is_gone(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        commits = CommitLog()
        attach(core, commits)
        leaving = asyncio.create_task(core.groups.leave("bob", group_id))
        await loop_turns()
        await cancel(leaving)
    assert [what for what, _ in commits.told] == ["group_changed"]


async def test_a_change_that_fails_after_its_caller_was_cancelled_is_logged(
    core_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        raise_at(monkeypatch, core.store.seam, "group_changed")
        with structlog.testing.capture_logs() as lines:
            leaving = asyncio.create_task(core.groups.leave("bob", group_id))
            await loop_turns()
            await cancel(leaving)
            await until(lambda: [line["event"] for line in lines] == ["change_failed"], lines, patience_s=LIMIT_S)

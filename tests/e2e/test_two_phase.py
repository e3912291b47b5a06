"""Accepted, then saved: what each side is told, and when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.chat import meet
from harness.server_process import ServerProcess
from harness.two_phase import two_phase

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def saved_first() -> Iterator[ServerProcess]:
    with two_phase() as running:
        yield running


@pytest.fixture(scope="module")
def delivered_first() -> Iterator[ServerProcess]:
    with two_phase(deliver_before_saved=True) as running:
        yield running


async def test_accepted_comes_first_and_promises_less(saved_first: ServerProcess) -> None:
    async with meet(saved_first, "ann", "ben") as (ann, ben):
        saved = await ann.say(ben, "hello")
        (accepted,) = ann.early
        assert accepted.pop("ts") >= saved["ts"], "the message has the time at which it was taken"
        assert accepted == {
            "type": "ACK",
            "ackType": "accepted",
            "clientMsgId": saved["clientMsgId"],
            "serverMsgId": saved["serverMsgId"],
            "conversationId": saved["conversationId"],
        }
        got = await ben.expect("SINGLE_CHAT")
        assert (got["serverMsgId"], got["msgSeq"]) == (saved["serverMsgId"], 1)
        assert ben.early == []


async def test_a_provisional_copy_is_replaced_by_the_one_that_was_saved(delivered_first: ServerProcess) -> None:
    async with meet(delivered_first, "ann", "ben") as (ann, ben):
        await ann.say(ben, "so that the chat exists")
        other = await ann.me.connect()
        saved = await ann.say(ben, "hello")
        for client in (ben, other):
            await client.expect("SINGLE_CHAT", serverMsgId=saved["serverMsgId"])
            (early,) = [frame for frame in client.early if frame["serverMsgId"] == saved["serverMsgId"]]
            assert early["provisional"] is True
            assert "msgSeq" not in early
            assert early["body"] == "hello"
            kinds = [frame.get("provisional", False) for frame in client.heard if frame.get("body") == "hello"]
            assert kinds == [True, False]
        assert ann.seen("SINGLE_CHAT") == []


async def test_over_http_one_waits_until_it_is_saved(saved_first: ServerProcess) -> None:
    async with meet(saved_first, "ann", "ben") as (ann, ben):
        sent = await ann.me.send(ben, "hello")
        assert (sent["status"], sent["seq"]) == ("saved", 1)
        assert (await ben.expect("SINGLE_CHAT"))["serverMsgId"] == sent["server_msg_id"]
        assert (await ann.expect("SINGLE_CHAT"))["serverMsgId"] == sent["server_msg_id"]


async def test_what_may_not_be_sent_is_refused_after_it_was_accepted(delivered_first: ServerProcess) -> None:
    async with meet(delivered_first, "ann", "ben") as (ann, ben):
        await ann.say(ben, "hello")
        await ben.me.post("/user/block", user_id=ann.user_id)
        frame = ann.message(ben, "are you there?")
        await ann.send(frame)
        await ann.expect_error("blocked", clientMsgId=frame["clientMsgId"])
        await ann.send(frame)  # the same error again
        await ann.expect_error("blocked", clientMsgId=frame["clientMsgId"])
        assert [frame for frame in ben.early if frame["body"] == "are you there?"] == []

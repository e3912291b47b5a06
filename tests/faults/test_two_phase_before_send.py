"""The question before a send together with two-phase acknowledgement: asked first, accepted then, saved last."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.chat import meet
from harness.receiver import Event, Receiver, receiving
from harness.two_phase import engines, held_saves, modes, two_phase, two_phase_cluster
from harness.waiting import until
from nexo.core.webhook_signature import new_secret

pytestmark = pytest.mark.servers

COUNT = 12


class Judge(Receiver):
    """Rejects 7 and replaces 9; afterwards it rejects everything, if asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.decide = self._judge
        self.asked: list[Any] = []
        self.rejects_all = False

    async def _judge(self, events: list[Event]) -> int:
        text = events[0]["content"]
        self.asked.append(text)
        answer: dict[str, Any] = {"action": "allow"}
        if text == "7" or self.rejects_all:
            answer = {"action": "reject", "reason": "unlucky"}
        elif text == "9":
            answer = {"action": "replace", "content": "nine"}
        self.body = msgspec.json.encode(answer)
        return 200


def asking(judge: Judge) -> dict[str, Any]:
    return {
        "hooks__before_send__url": judge.url,
        "hooks__before_send__secret": new_secret(),
        "hooks__before_send__timeout_ms": 5000,
    }


@pytest.mark.parametrize("delivers_first", modes(True))
async def test_sends_are_decided_in_order_before_they_are_accepted(delivers_first: bool) -> None:
    async with receiving(Judge()) as judge:
        assert isinstance(judge, Judge)
        with two_phase(deliver_before_saved=delivers_first, **asking(judge)) as server:
            async with meet(server, "ann", "ben") as (ann, ben):
                frames = [ann.message(ben, str(number)) for number in range(COUNT)]
                await ann.send_at_once(*frames)
                got = [
                    await ann.expect(where=lambda got, frame=frame: got.get("clientMsgId") == frame["clientMsgId"])
                    for frame in frames
                ]
                assert [one["type"] for one in got] == ["ACK"] * 7 + ["ERROR"] + ["ACK"] * 4
                assert got[7]["reason"] == "content_rejected"
                assert got[9]["body"] == "nine"
                bodies = [(await ben.expect("SINGLE_CHAT"))["body"] for _ in range(11)]
                assert bodies == ["0", "1", "2", "3", "4", "5", "6", "8", "nine", "10", "11"]
                assert {frame["clientMsgId"] for frame in ann.early} == {
                    frame["clientMsgId"] for number, frame in enumerate(frames) if number != 7
                }, "all others were accepted first"
                early = {frame["body"] for frame in ben.early if frame.get("provisional")}
                assert not early & {"7", "9"}, "receivers never see what was rejected or replaced"
                assert sorted(judge.asked, key=int) == [str(number) for number in range(COUNT)]


@pytest.mark.parametrize("engine", engines("postgresql"))
async def test_a_retry_of_an_accepted_message_is_not_asked_about_again(engine: str) -> None:
    async with receiving(Judge()) as judge:
        assert isinstance(judge, Judge)
        with two_phase_cluster(engine, 1, **asking(judge)) as one:
            async with meet(one, "ann", "ben") as (ann, ben):
                await ann.say(ben, "so that the chat exists")
                frame = ann.message(ben, "hello")
                async with held_saves(one.store_url):
                    await ann.send(frame)
                    await until(lambda: any(got["clientMsgId"] == frame["clientMsgId"] for got in ann.early))
                    judge.rejects_all = True
                    before = len(ann.early)
                    await ann.send(frame)
                    await until(lambda: len(ann.early) > before, "it is accepted again")
                assert (await ann.expect("ACK", clientMsgId=frame["clientMsgId"]))["msgSeq"] == 2
                assert ann.seen("ERROR") == []
                assert (await ben.expect("SINGLE_CHAT", body="hello"))["msgSeq"] == 2
                assert judge.asked.count("hello") == 1
        one.check()

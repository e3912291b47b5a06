"""Everything of test_send_order.py once more, with sends that are accepted first and saved later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.test_send_order import *  # noqa: F403
from e2e.test_send_order import answer
from harness.chat import meet
from harness.replica import Frame
from harness.server_process import ServerProcess
from harness.two_phase import modes, two_phase

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module", params=modes(True))
def server(request: pytest.FixtureRequest) -> Iterator[ServerProcess]:
    with two_phase(deliver_before_saved=request.param) as running:
        yield running


@pytest.mark.parametrize("refused", [{"body": 5}, {"body": "x" * 5000}, {"msgType": 77}])
async def test_a_refusal_in_the_middle_is_answered_in_its_turn(server: ServerProcess, refused: Frame) -> None:
    """What is wrong at first sight is refused between the others' acceptances; those are saved in their order."""
    async with meet(server, "ann", "ben") as (ann, ben):
        frames = [ann.message(ben, "before"), ann.message(ben, "bad") | refused, ann.message(ben, "after")]
        await ann.send_at_once(*frames)
        for frame in frames:
            await answer(ann, frame)
        names = [frame["clientMsgId"] for frame in frames]
        said = [(frame.get("ackType", frame["type"]), frame["clientMsgId"]) for frame in ann.heard[3:]]
        assert [item for item in said if item[0] != "saved"] == list(
            zip(["accepted", "ERROR", "accepted"], names, strict=True)
        )
        assert [name for kind, name in said if kind == "saved"] == [names[0], names[2]]


async def test_the_same_send_twice_in_one_write_is_one_message_with_two_answers(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frame = ann.message(ben, "twice")
        await ann.send_at_once(frame, frame)
        saved = await ann.expect("ACK", ackType="saved")
        first, second = ann.early
        assert first == second
        assert first["serverMsgId"] == saved["serverMsgId"]
        assert (await ann.say(ben, "next"))["msgSeq"] == 2

"""Webhooks and the question before a send, with real servers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from standardwebhooks import Webhook

from harness.chat import meet
from harness.receiver import Event, Receiver, receiving
from harness.server_process import ServerProcess
from nexo.core.webhook_signature import new_secret

FAST = {"hooks__allow_private": True, "journal__takeover_s": 1}


def localhost(receiver: Receiver) -> str:
    return receiver.url.replace("127.0.0.1", "localhost")


async def run(server: ServerProcess, *arguments: str) -> str:
    done = await asyncio.to_thread(server.run, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def test_a_webhook_of_the_command_line_takes_effect_within_seconds_and_survives_a_kill() -> None:
    async with receiving() as receiver:
        with ServerProcess(**FAST) as server:
            async with meet(server, "ann", "ben") as (ann, ben):
                secret = await run(
                    server, "hook", "add", localhost(receiver), "--types", "message.saved", "--name", "shop"
                )
                added_at = time.monotonic()
                await ann.say(ben, "one")
                await receiver.until_taken(1)
                assert time.monotonic() - added_at < 8
                assert Webhook(secret).verify(receiver.requests[0].body, receiver.requests[0].headers)
                await run(server, "hook", "pause", "shop")
            server.kill()
            server.start()
            async with meet(server, "ann", "ben") as (ann, ben):
                await ann.say(ben, "two")
                await run(server, "hook", "resume", "shop")
                await receiver.until_taken(2)
            assert receiver.contents() == ["one", "two"]
            assert "shop" in await run(server, "hook", "list")
            await run(server, "hook", "remove", "shop")


COUNT = 12


class Backwards(Receiver):
    """Answers when all questions have arrived, the last one first."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[asyncio.Future[None]] = []
        self.decide = self._answer

    async def _answer(self, events: list[Event]) -> int:
        released = asyncio.get_running_loop().create_future()
        self._waiting.append(released)
        if len(self._waiting) == COUNT:
            for one in reversed(self._waiting):
                one.set_result(None)
        await released
        text = events[0]["content"]
        answer: dict[str, Any] = {"action": "allow"}
        if text == "7":
            answer = {"action": "reject", "reason": "unlucky"}
        if text == "9":
            answer = {"action": "replace", "content": "nine"}
        self.body = msgspec.json.encode(answer)
        return 200


async def test_sends_of_a_connection_keep_their_order_however_the_answers_arrive() -> None:
    async with receiving(Backwards()) as judge:
        settings = {
            "hooks__before_send__url": judge.url,
            "hooks__before_send__secret": new_secret(),
            "hooks__before_send__timeout_ms": 5000,
        }
        with ServerProcess(**settings) as server:
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

"""The robots of the demo: users that sign in over HTTP and chat over a WebSocket like any other client.

They speak the envelope dialect themselves, so that the server does not depend on a client SDK. A robot needs none of
an SDK's guarantees: the server resends what a lost connection missed, and ids made from the question keep a repeated
answer from being stored twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from nexo.cli.demo_story import ANSWERS, CHATTER, GUIDE, PASSWORD, ROBOTS

THINK_S = (0.4, 1.6)
CHATTER_S = (20.0, 60.0)
RECONNECT_S = 1.0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Robot:
    """Answers users, never another robot: two of them would not stop."""

    def __init__(self, url: str, user_id: str) -> None:
        self._url = url
        self._user_id = user_id
        self._socket: ClientConnection | None = None
        self._sayings: Iterator[str] = itertools.cycle(ANSWERS.get(user_id, ("",)))

    async def run(self) -> None:
        """Stays connected until it is cancelled. Each connection begins with a new token, so none is refreshed."""
        while True:
            try:
                await self._chat(await self._login())
            except (OSError, httpx.HTTPError, WebSocketException):
                pass
            finally:
                self._socket = None
            await asyncio.sleep(RECONNECT_S)

    async def say(self, group_id: str, text: str) -> None:
        """Sends a message to a group, unless the robot is not connected."""
        fields = {"clientMsgId": secrets.token_hex(16), "groupId": group_id, "body": text}
        with contextlib.suppress(WebSocketException):  # `run` connects again
            await self._send({"type": "GROUP_CHAT"} | fields)

    async def _login(self) -> str:
        """Returns an access token."""
        account = {"user_id": self._user_id, "password": PASSWORD, "platform_id": 7, "device_id": "robot"}
        async with httpx.AsyncClient(base_url=self._url, trust_env=False) as http:
            answer = await http.post("/auth/login", json=account)
        answer.raise_for_status()
        return str(answer.json()["data"]["access_token"])

    async def _chat(self, token: str) -> None:
        """Answers until the connection ends."""
        address = f"{self._url.replace('http', 'ws', 1)}/ws"
        async with connect(address, subprotocols=[Subprotocol("nexo.envelope.v1")], proxy=None) as socket:
            self._socket = socket
            await self._send({"type": "AUTH", "token": token})
            async for text in socket:
                frame = _decode(text)
                if frame["type"] in ("SINGLE_CHAT", "GROUP_CHAT"):
                    await self._receive(frame)

    async def _send(self, frame: dict[str, Any]) -> None:
        if self._socket is not None:
            await self._socket.send(_encode(frame), text=True)

    async def _receive(self, message: dict[str, Any]) -> None:
        read = {"conversationId": message["conversationId"], "msgSeq": message["msgSeq"]}
        await self._send({"type": "ACK", "ackType": "read"} | read)
        if self._is_addressed(message):
            await self._answer(message)

    def _is_addressed(self, message: dict[str, Any]) -> bool:
        if message["from"] in ROBOTS or message["from"] == self._user_id or message["msgType"] != 1:
            return False
        return "groupId" not in message or self._user_id in message["mentions"]

    async def _answer(self, message: dict[str, Any]) -> None:
        target = {"groupId": message["groupId"]} if "groupId" in message else {"to": message["from"]}
        await asyncio.sleep(random.uniform(*THINK_S) / 2)
        await self._send({"type": "TYPING", "on": True} | target)
        await asyncio.sleep(random.uniform(*THINK_S) / 2)
        await self._send({"type": "TYPING", "on": False} | target)
        kind = "GROUP_CHAT" if "groupId" in target else "SINGLE_CHAT"
        fields = {"clientMsgId": f"answer-{message['serverMsgId']}", "body": self._words(str(message["body"]))}
        await self._send({"type": kind} | target | fields)

    def _words(self, question: str) -> str:
        if self._user_id == "echo":
            return question
        if self._user_id == "guide":
            folded = question.casefold()
            return next(answer for word, answer in GUIDE.items() if word in folded)
        return next(self._sayings)


async def live(url: str, chatter_in: str) -> None:
    """Runs all robots, and lets them talk in one group (its id) from time to time, until it is cancelled."""
    robots = {user_id: Robot(url, user_id) for user_id in ROBOTS}
    async with asyncio.TaskGroup() as group:
        for robot in robots.values():
            group.create_task(robot.run())
        group.create_task(_talk(robots, chatter_in))


async def _talk(robots: dict[str, Robot], group_id: str) -> None:
    for user_id, text in itertools.cycle(CHATTER):
        await asyncio.sleep(random.uniform(*CHATTER_S))
        await robots[user_id].say(group_id, text)

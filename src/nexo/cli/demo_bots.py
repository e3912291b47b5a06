"""The robots of the demo: clients like everybody else, by the Python SDK."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Iterator

from nexo.cli.demo_story import ANSWERS, CHATTER, GUIDE, PASSWORD, ROBOTS
from nexo.client import Conversation, Message, NexoClient

THINK_S = (0.4, 1.6)
CHATTER_S = (20.0, 60.0)


class Robot:
    """Answers people, never another robot: two of them would not stop."""

    def __init__(self, url: str, user_id: str) -> None:
        self.client = NexoClient(url)
        self.user_id = user_id
        self._sayings: Iterator[str] = itertools.cycle(ANSWERS.get(user_id, ("",)))

    async def live(self) -> None:
        async with self.client:
            await self.client.login(self.user_id, PASSWORD)
            await self.client.connect()
            async for event in self.client.events("message"):
                event.conversation.mark_read()
                if self._is_meant(event.message):
                    await self._answer(event.conversation, event.message)

    def _is_meant(self, message: Message) -> bool:
        if message.sender_id in ROBOTS or message.msg_type != 1:
            return False
        return message.group_id is None or self.user_id in message.mentions

    async def _answer(self, conversation: Conversation, message: Message) -> None:
        await asyncio.sleep(random.uniform(*THINK_S) / 2)
        conversation.typing(True)
        await asyncio.sleep(random.uniform(*THINK_S) / 2)
        conversation.typing(False)
        conversation.send(self._words(str(message.content)))

    def _words(self, said: str) -> str:
        if self.user_id == "echo":
            return said
        if self.user_id == "guide":
            asked = said.casefold()
            return next(answer for word, answer in GUIDE.items() if word in asked)
        return next(self._sayings)


async def live(url: str, chatter_in: str) -> None:
    """All robots, and now and then something in a group (its id), until this is cancelled."""
    robots = {user_id: Robot(url, user_id) for user_id in ROBOTS}
    async with asyncio.TaskGroup() as group:
        for robot in robots.values():
            group.create_task(robot.live())
        group.create_task(_chat(robots, chatter_in))


async def _chat(robots: dict[str, Robot], group_id: str) -> None:
    for user_id, text in itertools.cycle(CHATTER):
        await asyncio.sleep(random.uniform(*CHATTER_S))
        with contextlib.suppress(Exception):  # it is not signed in yet: another time
            robots[user_id].client.group(group_id).send(text)

"""Answers every message with the same text: `python echo_bot.py http://127.0.0.1:8900 echo.bot "correct horse"`."""

import asyncio
import sys

from nexo.client import NexoClient


async def main(url: str, user_id: str, password: str) -> None:
    async with NexoClient(url) as bot:
        await bot.login(user_id, password)
        messages = bot.events("message")
        await bot.connect()
        async for event in messages:
            event.conversation.mark_read(event.message.seq)
            event.conversation.send(event.message.content, msg_type=event.message.msg_type)


asyncio.run(main(*sys.argv[1:4]))

"""Answers every text with the same words: `python echo_bot.py http://127.0.0.1:8900 echo.bot "correct horse"`.

Killed at any moment and started again, it answers what it had not answered, and nothing twice. When the server ends its
session, it ends with the reason and the exit code 1.
"""

import asyncio
import sys

from nexo_client import ClientError, FileStorage, NexoClient


async def main(url: str, user_id: str, password: str) -> None:
    async with NexoClient(url, storage=FileStorage(f"{user_id}.nexo")) as bot:
        inbox = bot.inbox()
        if not await bot.restore(expect_user=user_id):
            await bot.login(user_id, password)
        await bot.connect()
        print(f"{user_id} listens", flush=True)
        async for received in inbox:
            message, chat = received.message, received.conversation
            if message.msg_type == 1:
                chat.send(message.content, client_msg_id=f"echo-{message.server_msg_id}")
            chat.mark_read(message.seq)


try:
    asyncio.run(main(*sys.argv[1:4]))
except ClientError as error:
    sys.exit(f"echo_bot: {error}")

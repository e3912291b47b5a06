"""A chat in the terminal: `python terminal_chat.py http://127.0.0.1:8900 alice "correct horse" bob`.

The last argument is a user, or a group's id. Everything typed is sent; Ctrl-D ends. What could not be sent is kept
in ~/.nexo-chat-USER and goes out the next time. The user is registered if there is none of that name yet.
"""

import asyncio
import sys
from pathlib import Path

from nexo_client import ClientError, FileStorage, NexoClient


def show(client: NexoClient, event) -> None:
    message = event.message
    if event.conversation is client.current:
        print(f"{message.sender_id}: {message.content}", flush=True)
        event.conversation.mark_read()


async def read_lines():
    """Lines from the keyboard, without holding up the rest."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line.rstrip("\n")


async def sign_in(client: NexoClient, user_id: str, password: str) -> None:
    try:
        await client.login(user_id, password)
    except ClientError as error:
        if error.reason != "invalid_credentials":
            raise
        await client.register(user_id, password)
        await client.login(user_id, password)


async def main(url: str, user_id: str, password: str, other: str) -> None:
    storage = FileStorage(Path.home() / f".nexo-chat-{user_id}")
    async with NexoClient(url, storage=storage) as client:
        await sign_in(client, user_id, password)
        client.current = client.group(other) if other.startswith("g_") else client.chat_with(other)
        client.on("message", lambda event: show(client, event))
        client.on("state", lambda event: print(f"[{event.state} {event.reason or ''}]", flush=True))
        client.on("outgoing", lambda event: event.outgoing.error and print(f"[{event.outgoing.error}]", flush=True))
        await client.connect()
        await client.current.load_latest(20)
        for message in client.current.messages:
            if not message.is_event:
                print(f"{message.sender_id}: {message.content}", flush=True)
        client.current.mark_read()
        async for line in read_lines():
            if line:
                client.current.send(line)
        try:
            await client.flush(5000)
        except ClientError as error:
            print(f"[not sent: {error}]", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))

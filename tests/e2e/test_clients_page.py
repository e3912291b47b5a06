"""The Python code of docs/clients.md runs as it stands, block by block; tests of the JavaScript SDK run the rest."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.server_process import ServerProcess
from harness.waiting import until
from nexo_client import NexoBackend, NexoClient

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "clients.md").read_text(), re.MULTILINE | re.DOTALL)
PATIENCE_S = 30.0


def block(sign: str) -> str:
    """The one with this text in it."""
    (found,) = [code for code in BLOCKS if sign in code]
    return found


def test_every_block_is_run() -> None:
    signs = (".inbox()", "get_token=get_token", ".forward(", "users.put", "backend.events(", "verify_webhook(")
    run = {code for sign in signs for code in BLOCKS if sign in code}
    assert len(BLOCKS) == len(run) + 1  # the first is run by test_sdk_python


@pytest.fixture(scope="module")
def product() -> Iterator[tuple[ServerProcess, str]]:
    with ServerProcess() as running:
        made = running.run("key", "add", "shop", "--scope", "users,tokens,act,events")
        assert made.returncode == 0, made.stderr
        yield running, made.stdout.strip()


async def end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await writer.wait_closed()


@asynccontextmanager
async def run(
    code: str, product: tuple[ServerProcess, str], *, ends: bool = True, **names: Any
) -> AsyncIterator[list[str]]:
    """Runs a block as a coroutine; gives what it prints. One that does not end by itself is ended."""
    printed: list[str] = []
    server, key = product
    code = code.replace("http://127.0.0.1:8900", server.address).replace("nexo_sk_…", key)
    names |= {"print": lambda *parts: printed.append(" ".join(map(str, parts)))}
    exec("async def main():\n" + textwrap.indent(code, "    "), names)  # noqa: S102
    task = asyncio.create_task(names["main"]())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield printed
            if not ends:
                task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.result()
    finally:
        task.cancel()


async def test_the_bot(product: tuple[ServerProcess, str], tmp_path: Path) -> None:
    server, _ = product
    code = block(".inbox()").replace('"bot.nexo"', repr(str(tmp_path / "bot.nexo")))
    async with NexoClient(server.address) as ann:
        for user_id in ("echo.bot", "ann"):
            await ann.register(user_id, "correct horse")
        await ann.login("ann", "correct horse")
        await ann.connect()
        answers = ann.events("message")
        ann.chat_with("echo.bot").send("Is there an echo?")
        async with run(code, product, ends=False):
            assert (await anext(answers)).message.content == "Is there an echo?"


async def test_tokens_of_the_product(product: tuple[ServerProcess, str]) -> None:
    server, key = product
    async with NexoBackend(server.address, key) as backend:
        await backend.users.put([{"user_id": "ida"}])
        token = (await backend.tokens.create("ida")).access_token

    async def shop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"POST /chat-token ")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(token)}\r\n\r\n{token}".encode())
        await end(writer)

    async with await asyncio.start_server(shop, "127.0.0.1", 0) as listener:
        address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        code = block("get_token=get_token").replace("https://shop.example", address)
        async with run(code, product) as printed:
            await until(lambda: printed == ["signed in as ida"])


async def test_changing_messages(product: tuple[ServerProcess, str]) -> None:
    server, _ = product
    code = block(".forward(")
    async with NexoClient(server.address) as client:
        for name in ("alice", "bob", "carol"):
            user_id = f"{name}.{secrets.token_hex(4)}"
            await client.register(user_id, "correct horse")
            code = code.replace(f'"{name}"', f'"{user_id}"')
    async with run(code, product) as printed:
        await until(lambda: printed == ["0"])


async def test_the_backend(product: tuple[ServerProcess, str]) -> None:
    async with run(block("users.put"), product) as printed:
        await until(lambda: printed == ["alice Order 7 1"])


async def test_events(product: tuple[ServerProcess, str]) -> None:
    """With a server that is only their route."""
    event = {"event_id": "1", "type": "message.saved", "at": 1, "data": {"content": "Hello"}}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"cursor=stored" in await reader.readuntil(b"\r\n\r\n"):
            body = json.dumps({"err_code": 0, "data": {"events": [event], "next_cursor": "c1"}}).encode()
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await end(writer)

    stored: list[str] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        code = block("backend.events(").replace("http://127.0.0.1:8900", address)
        names = {"load_cursor": lambda: "stored", "store_cursor": stored.append}
        async with run(code, product, ends=False, **names) as printed:
            await until(lambda: stored == ["c1"])
        assert printed == ["message.saved {'content': 'Hello'}"]


def test_webhooks() -> None:
    printed: list[str] = []
    names: dict[str, Any] = {"print": lambda *parts: printed.append(" ".join(map(str, parts)))}
    exec(block("verify_webhook("), names)  # noqa: S102
    body = json.dumps({"events": [{"type": "message.saved", "data": 7}]}).encode()
    webhook_id, timestamp = secrets.token_hex(4), str(int(time.time()))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(b"old secret", signed, hashlib.sha256).digest()).decode()
    headers = {"webhook-id": webhook_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
    names["on_webhook"](headers, body)
    assert printed == ["message.saved 7"]

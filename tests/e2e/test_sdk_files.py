"""Files by the Python SDK with a real server: progress, cut connections, a restart of either side, order."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from PIL import Image

from harness.proxy import Moment, Proxy, proxy_to
from harness.server_process import ServerProcess
from harness.waiting import until
from nexo_client import ClientError, FileStorage, Message, NexoClient
from nexo_client.uploads import FIRST_BYTES

PASSWORD = "correct horse battery"
BIG_BYTES = 3_000_000


@asynccontextmanager
async def chatting(url: str, **options: Any) -> AsyncIterator[tuple[NexoClient, NexoClient]]:
    async with NexoClient(url, **options) as ann, NexoClient(url) as ben:
        for client, name in ((ann, "ann"), (ben, "ben")):
            user_id = f"{name}.{secrets.token_hex(4)}"
            await client.register(user_id, PASSWORD)
            await client.login(user_id, PASSWORD)
            await client.connect()
        yield ann, ben


def by_way_of(proxy: Proxy) -> str:
    return f"http://127.0.0.1:{urlsplit(proxy.url).port}"


def picture() -> bytes:
    out = io.BytesIO()
    Image.effect_noise((800, 400), 60).convert("RGB").save(out, "JPEG")
    return out.getvalue()


async def downloaded(url: str | None) -> bytes:
    assert url is not None
    async with httpx.AsyncClient() as http:
        answer = await http.get(url)
    assert answer.status_code == 200, answer.text
    return answer.content


async def next_message(client: NexoClient, chat_with: str) -> Message:
    chat = client.chat_with(chat_with)
    await until(lambda: chat.messages)
    return chat.messages[-1]


async def test_a_picture_is_uploaded_and_sent_with_its_caption(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "holiday.jpg"
    path.write_bytes(picture())
    async with chatting(server.address) as (ann, ben):
        assert ann.user_id is not None
        assert ben.user_id is not None
        seen: list[tuple[int, int]] = []
        chat = ann.chat_with(ben.user_id)
        sent = chat.send_file(path, caption="At the sea", on_progress=lambda *numbers: seen.append(numbers))
        assert sent.state == "uploading"
        await sent.when_saved()
        size = path.stat().st_size
        assert (sent.progress, seen[-1]) == ((size, size), (size, size))
        got = await next_message(ben, ann.user_id)
        assert (got.msg_type, got.content["text"], got.content["name"]) == (2, "At the sea", "holiday.jpg")
        assert (got.content["width"], got.content["height"], got.content["mime"]) == (800, 400, "image/jpeg")
        assert await downloaded(ben.file_url(got)) == path.read_bytes()
        with Image.open(io.BytesIO(await downloaded(ben.file_url(got, "small")))) as small:
            assert (small.format, small.size) == ("WEBP", (320, 160))
        own = chat.messages[-1]
        assert await downloaded(ann.file_url(own, "medium"))
        assert not chat.pending


async def test_texts_do_not_wait_for_an_upload(server: ServerProcess) -> None:
    async with proxy_to(server.address) as proxy, chatting(by_way_of(proxy)) as (ann, ben):
        assert ben.user_id is not None
        chat = ann.chat_with(ben.user_id)
        reached = proxy.cut_at("PATCH", Moment.BEFORE)
        sent = chat.send_file(os.urandom(BIG_BYTES), name="big.bin")
        await reached.wait()
        await chat.send("a text").when_saved()
        await sent.when_saved()
        assert [message.msg_type for message in chat.messages] == [1, 5]


async def test_an_upload_continues_after_cut_connections(server: ServerProcess) -> None:
    content = os.urandom(BIG_BYTES)
    async with proxy_to(server.address) as proxy, chatting(by_way_of(proxy), backoff_min_ms=20) as (ann, ben):
        assert ann.user_id is not None
        assert ben.user_id is not None
        offsets: list[int] = []

        def moved(uploaded: int, size: int) -> None:
            offsets.append(uploaded)
            if len(offsets) <= 4:  # in the middle of the next request, or before its answer
                proxy.cut_at("PATCH", Moment.BEFORE if len(offsets) % 2 else Moment.AFTER)

        sent = ann.chat_with(ben.user_id).send_file(content, name="big.bin", on_progress=moved)
        await sent.when_saved()
        got = await next_message(ben, ann.user_id)
        assert len(offsets) > 4
        assert offsets == sorted(offsets), "it never begins again"
        assert hashlib.sha256(await downloaded(ben.file_url(got))).digest() == hashlib.sha256(content).digest()


async def test_an_upload_continues_after_restarts_of_the_client_and_the_server(tmp_path: Path) -> None:
    """From a path, and from bytes, which the storage keeps."""
    with ServerProcess() as own_server:
        await restarts(own_server, tmp_path)


class Crash(Exception):
    """A client that ends in the middle waits for nothing."""


async def restarts(own_server: ServerProcess, tmp_path: Path) -> None:
    content = os.urandom(BIG_BYTES)
    path = tmp_path / "big.bin"
    path.write_bytes(content)
    storage = tmp_path / "client"
    async with chatting(own_server.address) as (ann, ben):
        assert ann.user_id is not None
        assert ben.user_id is not None
        with contextlib.suppress(Crash):
            async with NexoClient(own_server.address, storage=FileStorage(storage)) as first:
                await first.login(ann.user_id, PASSWORD)
                await first.connect()
                chat = first.chat_with(ben.user_id)
                halfway = asyncio.Event()
                for source in (path, content):
                    file = chat.send_file(source, name="big.bin")
                    file.on_progress = lambda uploaded, size: halfway.set() if uploaded > FIRST_BYTES else None
                await halfway.wait()
                raise Crash
        own_server.kill()
        own_server.start()
        async with NexoClient(own_server.address, storage=FileStorage(storage), backoff_min_ms=20) as second:
            assert await second.restore()
            first_of: dict[str, int] = {}
            for outgoing in second.pending:
                note = partial(first_of.setdefault, outgoing.client_msg_id)
                outgoing.on_progress = lambda uploaded, size, note=note: note(uploaded)
            await second.connect()
            await second.flush()
            assert max(first_of.values()) > FIRST_BYTES, "at least one of them was halfway, and continues there"
            assert not await second.storage.entries("uploads/"), "nothing of it is kept"
        theirs = ben.chat_with(ann.user_id)
        await until(lambda: len(theirs.messages) == 2)
        for message in theirs.messages:
            assert await downloaded(ben.file_url(message)) == content


async def test_a_file_that_is_refused_fails_its_message(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(picture()[:2000])
    async with chatting(server.address) as (ann, ben):
        assert ben.user_id is not None
        chat = ann.chat_with(ben.user_id)
        sent = chat.send_file(path)
        with contextlib.suppress(ClientError):
            await sent.when_saved()
        assert sent.error is not None
        assert sent.error.reason == "bad_file"
        assert chat.pending == [sent]
        assert sent.cancel()
        assert not chat.pending


async def test_an_upload_that_is_cancelled_leaves_nothing(server: ServerProcess) -> None:
    async with proxy_to(server.address) as proxy, chatting(by_way_of(proxy)) as (ann, ben):
        assert ben.user_id is not None
        chat = ann.chat_with(ben.user_id)
        begun = asyncio.Event()
        sent = chat.send_file(os.urandom(BIG_BYTES), on_progress=lambda *_: begun.set())
        await begun.wait()
        assert sent.cancel()
        assert not chat.pending
        await chat.send("after it").when_saved()
        assert not await ann.storage.entries("uploads/")


async def test_a_file_that_was_changed_is_not_sent(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("first")
    async with NexoClient(server.address) as ann:
        user_id = f"ann.{secrets.token_hex(4)}"
        await ann.register(user_id, PASSWORD)
        await ann.login(user_id, PASSWORD)
        sent = ann.chat_with("ben").send_file(path)  # before it is connected
        path.write_text("another one")
        await ann.connect()
        with contextlib.suppress(ClientError):
            await sent.when_saved()
        assert sent.error is not None
        assert sent.error.reason == "file_changed"
        sent.cancel()

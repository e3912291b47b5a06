"""How the life of a Python client ends and begins again, with a real server: bots that are killed or signed out,
messages that were not sent, users of one device that change, tokens of the product."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.server_process import ServerProcess
from harness.waiting import until
from nexo_client import ClientError, FileStorage, MemoryStorage, NexoBackend, NexoClient

PASSWORD = "correct horse battery"
PATIENCE_S = 30.0
EXAMPLES = Path(__file__).parents[2] / "examples" / "python"


def fresh(name: str) -> str:
    return f"{name}.{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def product() -> Iterator[tuple[ServerProcess, str]]:
    """A server, and a key for everything."""
    with ServerProcess() as running:
        made = running.run("key", "add", "shop", "--scope", "users,tokens,act")
        assert made.returncode == 0, made.stderr
        yield running, made.stdout.strip()


@asynccontextmanager
async def person(server: ServerProcess, name: str, **options: Any) -> AsyncIterator[NexoClient]:
    async with NexoClient(server.address, **options) as client:
        user_id = fresh(name)
        await client.register(user_id, PASSWORD)
        await client.login(user_id, PASSWORD)
        await client.connect()
        yield client


class Program:
    """A Python program in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.output = ""

    async def says(self, text: str) -> None:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while text not in self.output:
                line = (await self._process.stdout.readline()).decode()
                assert line, f"it ended without {text!r}:\n{self.output}"
                self.output += line

    async def ends(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            assert self._process.stdout is not None
            self.output += (await self._process.stdout.read()).decode()
            return await self._process.wait()

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def program(*arguments: str | Path, cwd: Path) -> AsyncIterator[Program]:
    made = Program(
        await asyncio.create_subprocess_exec(
            sys.executable, *arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    )
    try:
        yield made
    finally:
        await made.kill()


# -- bots --------------------------------------------------------------------------------------------------------------

WORKER = textwrap.dedent("""
    import asyncio, sys
    from nexo_client import FileStorage, NexoClient

    async def main(url, user_id, password, is_slow):
        async with NexoClient(url, storage=FileStorage("worker.nexo")) as bot:
            inbox = bot.inbox()
            if not await bot.restore(expect_user=user_id):
                await bot.login(user_id, password)
            await bot.connect()
            print("ready", flush=True)
            async for received in inbox:
                received.conversation.mark_read(received.message.seq)
                print("begins", received.message.content, flush=True)
                if is_slow and received.message.content == "two":
                    await asyncio.Event().wait()
                print("done", received.message.content, flush=True)

    asyncio.run(main(*sys.argv[1:4], len(sys.argv) > 4))
""")


def stored_baseline(path: Path) -> int:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return max((int(value) for key, value in lines if key.startswith("baselines/")), default=0)


async def test_a_bot_that_is_killed_while_it_works_gets_the_message_again(
    product: tuple[ServerProcess, str], tmp_path: Path
) -> None:
    server, _ = product
    (tmp_path / "worker.py").write_text(WORKER)
    async with person(server, "ann") as ann:
        bot_id = fresh("worker")
        await ann.register(bot_id, PASSWORD)
        arguments = (tmp_path / "worker.py", server.address, bot_id, PASSWORD)
        async with program(*arguments, "slow", cwd=tmp_path) as slow:
            await slow.says("ready")
            chat = ann.chat_with(bot_id)
            for text in ("one", "two", "three"):
                chat.send(text)
            await ann.flush()
            await slow.says("begins two")
            await until(lambda: chat.peer_read_seq == 2)  # also what it has read already comes again
            await until(lambda: stored_baseline(tmp_path / "worker.nexo") > 0)
        assert stored_baseline(tmp_path / "worker.nexo") == 1
        async with program(*arguments, cwd=tmp_path) as again:
            await again.says("done three")
            assert re.findall(r"begins (\w+)", again.output) == ["two", "three"]


async def test_the_echo_bot_answers_once_over_kills_and_ends_with_the_reason(
    product: tuple[ServerProcess, str], tmp_path: Path
) -> None:
    server, key = product
    assert len((EXAMPLES / "echo_bot.py").read_text().splitlines()) <= 32
    async with person(server, "ann") as ann, NexoBackend(server.address, key) as backend:
        bot_id = fresh("bot")
        await ann.register(bot_id, PASSWORD)
        chat, answers = ann.chat_with(bot_id), ann.events("message")
        bot = (EXAMPLES / "echo_bot.py", server.address, bot_id, PASSWORD)
        async with asyncio.timeout(PATIENCE_S):
            async with program(*bot, cwd=tmp_path) as first:
                await first.says("listens")
                chat.send("Is there an echo?")
                assert (await anext(answers)).message.content == "Is there an echo?"
            chat.send("And after a crash?")
            async with program(*bot, cwd=tmp_path) as second:
                assert (await anext(answers)).message.content == "And after a crash?"
                await second.says("listens")
                await backend.sessions.revoke(bot_id)
                assert await second.ends() == 1
                assert "echo_bot: session_invalid" in second.output
        await until(lambda: chat.head_seq == 4)


async def test_iterators_end_when_the_session_is_ended_elsewhere(product: tuple[ServerProcess, str]) -> None:
    server, _ = product
    async with person(server, "ann") as ann, NexoClient(server.address, device_id="other") as other:
        messages, states = ann.events("message"), ann.events("state", "session")
        await other.login(ann.user_id or "", PASSWORD)
        await other.change_password(PASSWORD, "another password")
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ClientError) as ended:
                await anext(messages)
            assert ended.value.reason == "session_invalid"
            with pytest.raises(StopAsyncIteration):
                await anext(messages)
            seen = [(await anext(states)).name, (await anext(states)).name]
            with pytest.raises(ClientError):
                await anext(states)
        assert sorted(seen) == ["session", "state"]
        assert ann.session is None


async def test_messages_that_the_last_inbox_left_are_in_the_next_one(product: tuple[ServerProcess, str]) -> None:
    server, _ = product
    async with person(server, "ann") as ann, person(server, "ben") as ben:
        inbox = ben.inbox()
        with pytest.raises(ClientError, match="inbox_in_use"):
            ben.inbox()
        chat = ann.chat_with(ben.user_id or "")
        for number in range(3):
            chat.send(str(number))
        async with asyncio.timeout(PATIENCE_S):
            assert (await anext(inbox)).message.content == "0"
            assert (await anext(inbox)).message.content == "1"
            await until(lambda: ben.total_unread == 3)
            await ben.close()
            again = ben.inbox()
            await ben.connect()
            received = await anext(again)
            assert received.message.content == "1"
            received.done()
            received.done()  # a second time is nothing
            assert (await anext(again)).message.content == "2"


# -- what was not sent -------------------------------------------------------------------------------------------------


async def test_the_last_line_of_a_program_is_sent(product: tuple[ServerProcess, str]) -> None:
    server, _ = product
    async with person(server, "ben") as ben:
        got = ben.events("message")
        async with person(server, "ann") as ann:
            ann.chat_with(ben.user_id or "").send("good bye")
        async with asyncio.timeout(PATIENCE_S):
            assert (await anext(got)).message.content == "good bye"


async def test_closing_returns_what_was_not_sent_and_leaving_logs_it(
    product: tuple[ServerProcess, str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    server, _ = product
    for storage, fate in ((MemoryStorage(), "lost"), (FileStorage(tmp_path / "kept"), "kept in the storage")):
        caplog.clear()
        async with person(server, "ann", storage=storage) as ann:
            await ann.close()
            sent = ann.chat_with("support").send("too late")
            assert await ann.close() == [sent]
            with pytest.raises(ClientError) as refused:
                await ann.flush()
            assert refused.value.reason == "offline"
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert warnings == [f"Closed with 1 messages that the server has not saved; they are {fate}."]


# -- users of one device, and tokens of the product --------------------------------------------------------------------


async def test_a_stored_session_of_another_user_is_not_continued(
    product: tuple[ServerProcess, str], tmp_path: Path
) -> None:
    server, _ = product
    async with person(server, "ann", storage=FileStorage(tmp_path / "device")) as ann:
        user_id = ann.user_id or ""
    async with NexoClient(server.address, storage=FileStorage(tmp_path / "device")) as client:
        assert await client.restore(expect_user=user_id)
        assert await client.restore(expect_user="ben") is False
        assert client.user_id is None
        assert await client.restore() is False
        with pytest.raises(ClientError) as refused:
            await client.connect()
        assert refused.value.reason == "unauthorized"


async def test_tokens_of_the_backend_are_asked_for_when_one_ends_or_is_refused(
    product: tuple[ServerProcess, str],
) -> None:
    server, key = product
    async with NexoBackend(server.address, key) as backend:
        ann = fresh("ann")
        await backend.users.put([{"user_id": ann}, {"user_id": "support"}])
        lives_s = iter([2, 600, 600])
        given: list[str] = []

        async def get_token() -> str:
            given.append((await backend.tokens.create(ann, device_id="page", ttl_s=next(lives_s))).access_token)
            return given[-1]

        async with NexoClient(server.address, device_id="page", get_token=get_token) as client:
            await client.connect()
            assert (client.user_id, len(given)) == (ann, 1)
            await until(lambda: len(given) == 2)  # before the first one ends
            assert client.state == "online"
            await backend.sessions.revoke(ann, "page")
            await until(lambda: len(given) == 3 and client.state == "online")
            await client.chat_with("support").send("still here").when_saved()


async def test_without_a_token_of_the_product_the_client_ends(product: tuple[ServerProcess, str]) -> None:
    server, key = product
    async with NexoBackend(server.address, key) as backend:
        ann, ben = fresh("ann"), fresh("ben")
        await backend.users.put([{"user_id": ann}, {"user_id": ben}])
        answers: list[str | Exception | None] = [OSError("no network"), None]
        answers += [(await backend.tokens.create(user)).access_token for user in (ann, ben)]

        async def get_token() -> str | None:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        async with NexoClient(server.address, get_token=get_token) as client:
            for reason in ("network", "unauthorized"):
                with pytest.raises(ClientError) as failed:
                    await client.connect()
                assert failed.value.reason == reason
            await client.connect()
            await backend.sessions.revoke(ann)  # and the next token is of another user
            await until(lambda: client.state == "closed")
            assert client.state_change.reason == "reauth_uid_mismatch"
        answers += [(await backend.tokens.create(ann, ttl_s=3)).access_token, None]  # signed out from the product
        async with NexoClient(server.address, get_token=get_token) as client:
            await client.connect()
            await until(lambda: client.state == "closed")
            assert client.state_change.reason == "unauthorized"
            await until(lambda: client.session is None)

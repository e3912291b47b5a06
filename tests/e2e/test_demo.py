"""`nexo demo`: people and history to look at, robots that answer, and nothing left behind."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import processes
from harness.core import open_test_core
from harness.server_process import NEXO, environment
from harness.waiting import until_blocking
from nexo.cli.demo_fill import fill
from nexo.cli.demo_story import CHATS, CHATTER, PASSWORD, PEOPLE
from nexo.config import parse_store_url
from nexo.store.check import check
from nexo_client import NexoClient


class Demo:
    def __init__(self, *options: str) -> None:
        self.folder = processes.new_dir("demo")
        self.log = self.folder / "log"
        settings = environment({}) | {"TMPDIR": str(self.folder), "NEXO_STORE__URL": "sqlite:///must-not-be-used.db"}
        command = [str(NEXO), "demo", "--port", "0", *options]
        self.process = processes.spawn(command, cwd=self.folder, log=self.log, env=settings)
        self.address = self._wait_for_address()

    def _wait_for_address(self) -> str:
        said = re.compile(r"runs at (\S+)\n(?s:.*)Ctrl-C")
        until_blocking(
            lambda: said.search(self.log.read_text()) or self.process.poll() is not None,
            self.log.read_text,
            patience_s=60,
        )
        found = said.search(self.log.read_text())
        assert found, self.log.read_text()
        return found[1]

    @property
    def data(self) -> list[Path]:
        return list(self.folder.glob("nexo-demo-*"))

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    running = Demo()
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()


async def test_there_are_people_groups_history_and_something_unread(demo: Demo) -> None:
    async with NexoClient(demo.address) as mira:
        await mira.login("mira", PASSWORD)
        await mira.connect()
        named = {chat.id: chat for chat in mira.conversations}
        assert len(named) == len(CHATS)
        assert sum(chat.type == "group" for chat in named.values()) == sum(bool(chat.name) for chat in CHATS)
        assert mira.total_unread == sum(chat.unread_by_mira for chat in CHATS)
        group = next(chat for chat in named.values() if chat.unread_mentions)
        await group.load_earlier()
        assert any(message.is_recalled for message in group.messages)
        times = [message.send_at for message in group.messages]
        assert times == sorted(times)
        assert times[-1] - times[0] > 24 * 3600 * 1000, "it was said over days"


async def test_robots_answer_people(demo: Demo) -> None:
    async with NexoClient(demo.address) as jonas:
        await jonas.login("jonas", PASSWORD)
        await jonas.connect()
        jonas.chat_with("echo").send("Is anybody there?")
        jonas.chat_with("guide").send("What about OFFLINE?")
        heard: dict[str, str] = {}
        async with asyncio.timeout(30):
            async for event in jonas.events("message"):
                heard[event.message.sender_id] = event.message.content
                if {"echo", "guide"} <= heard.keys():
                    break
        assert heard["echo"] == "Is anybody there?"
        assert "network off" in heard["guide"]


async def test_in_a_group_only_the_robot_that_is_mentioned_answers(demo: Demo) -> None:
    async with NexoClient(demo.address) as jonas:
        await jonas.login("jonas", PASSWORD)
        messages = jonas.events("message")
        await jonas.connect()
        group = next(chat for chat in jonas.conversations if chat.type == "group")
        await group.send("Good morning").when_saved()
        await group.send("@lena are you there?", mentions=["lena"]).when_saved()
        async with asyncio.timeout(30):
            async for event in messages:
                if event.conversation is group and event.message.content not in dict(CHATTER).values():
                    assert event.message.sender_id == "lena"
                    break


async def test_the_administrator_sees_it_and_others_do_not(demo: Demo) -> None:
    async with NexoClient(demo.address) as admin:
        await admin.login("admin", PASSWORD)
        assert (await admin.call("GET", "/admin/stats"))["live"]["connections"] >= 5


def test_after_ctrl_c_nothing_is_left(demo: Demo) -> None:
    assert len(demo.data) == 1
    assert demo.end(signal.SIGINT) == 0
    assert demo.data == []
    assert list(demo.folder.glob("*")) == [demo.log], "nor in the folder it was started in"
    assert "Traceback" not in demo.log.read_text()


def test_a_port_that_is_taken_is_told_and_nothing_is_left() -> None:
    folder = processes.new_dir("demo")
    running = Demo("--no-robots")
    try:
        port = running.address.rpartition(":")[2]
        done = subprocess.run(
            [NEXO, "demo", "--port", port],
            cwd=folder,
            env=environment({}) | {"TMPDIR": str(folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert "--port" in done.stderr
        assert list(folder.iterdir()) == []
    finally:
        assert running.end(signal.SIGTERM) == 0
    assert running.data == []


async def test_what_the_demo_stores_is_consistent(core_url: str) -> None:
    async with open_test_core(core_url, auth__argon2_memory_kib=8, auth__argon2_time_cost=1) as core:
        await fill(core)
        report = await check(parse_store_url(core_url))
    assert report.counts == {}
    assert report.conversations == len(CHATS)


def test_nobody_in_the_story_is_unknown() -> None:
    for chat in CHATS:
        assert {chat.owner, *chat.members, *(line.sender for line in chat.lines)} - {""} <= PEOPLE.keys()

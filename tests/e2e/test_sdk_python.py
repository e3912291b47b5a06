"""The Python SDK with a real server: what it is for, a network that breaks, kill -9, and the examples."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import secrets
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from harness.proxy import Proxy, proxy_to
from harness.server_process import ServerProcess
from harness.waiting import time_passes, until
from nexo_client import ClientError, Conversation, FileStorage, Message, NexoClient

PASSWORD = "correct horse battery"
PATIENCE_S = 30.0  # only a broken SDK makes a test wait this long
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "python"


def fresh(name: str) -> str:
    return f"{name}.{secrets.token_hex(4)}"


@asynccontextmanager
async def people(url: str, *names: str, **options: Any) -> AsyncIterator[list[NexoClient]]:
    """Clients of newly registered users, connected."""
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for name in names:
            client = await stack.enter_async_context(NexoClient(url, **options))
            user_id = fresh(name)
            await client.register(user_id, PASSWORD, nickname=name)
            await client.login(user_id, PASSWORD)
            await client.connect()
            found.append(client)
        yield found


async def history(client: NexoClient, conversation_id: str) -> list[dict[str, Any]]:
    """Everything of a conversation, fetched anew."""
    found: list[dict[str, Any]] = []
    begin_seq = 1
    while True:
        asked = {"conversation_id": conversation_id, "begin_seq": begin_seq}
        page = await client.call("GET", "/msg/pull", asked)
        found += page["messages"]
        if not page["has_more"]:
            return found
        begin_seq = page["next_seq"]


def plain(message: Message) -> dict[str, Any]:
    names = ("client_msg_id", "conversation_id", "seq", "sender_id", "msg_type", "content", "reply_to", "status")
    quote = message.quote
    quoted = None if quote is None else {name: getattr(quote, name) for name in quote.__struct_fields__}
    return {name: getattr(message, name) for name in (*names, "send_at", "recalled_at")} | {"quote": quoted}


async def assert_equals_history(client: NexoClient, conversation: Conversation) -> None:
    """The view, from its oldest message on, is what a fresh fetch tells; so are cursors and counts."""
    while conversation.has_earlier:
        await conversation.load_earlier(200)
    fetched = await history(client, conversation.id)
    shown = [plain(message) for message in conversation.messages]
    assert shown == [{name: row.get(name) for name in shown[0]} for row in fetched]

    async def are_equal() -> bool:  # soon: what was acknowledged is written in batches
        return await _counts(client, conversation) == _shown_counts(conversation)

    await until(are_equal, lambda: _shown_counts(conversation))
    assert _shown_counts(conversation)["head_seq"] == fetched[-1]["seq"]


COUNTS = ("head_seq", "min_seq", "read_seq", "unread", "unread_mentions")


def _shown_counts(conversation: Conversation) -> dict[str, int]:
    return {name: getattr(conversation, name) for name in COUNTS}


async def _counts(client: NexoClient, conversation: Conversation) -> dict[str, int]:
    listed = await client.call("GET", "/conversation/list", {"limit": 200})
    entry = next(row for row in listed["conversations"] if row["conversation_id"] == conversation.id)
    return {name: entry[name] for name in COUNTS}


# -- what it is for ------------------------------------------------------------------------------------------------


async def test_two_people_chat(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben):
        assert ann.user_id is not None
        assert ben.user_id is not None
        theirs, mine = ben.chat_with(ann.user_id), ann.chat_with(ben.user_id)
        got = ben.events("message", "typing")
        sent = mine.send("Hello", extra={"colour": "red"})
        assert sent.state == "sending"
        await sent.when_saved()
        event = await anext(got)
        assert (event.message.content, event.message.extra) == ("Hello", {"colour": "red"})
        await until(lambda: sent.state == "delivered")
        mine.typing()
        typing = await anext(got)
        assert (typing.user_id, typing.on, typing.conversation) == (ann.user_id, True, theirs)
        assert (theirs.unread, ben.total_unread, theirs.typists) == (1, 1, [ann.user_id])

        theirs.mark_read()
        await until(lambda: sent.state == "read")
        assert theirs.unread == 0
        reply = theirs.send("Hi!", reply_to=event.message.server_msg_id)
        await reply.when_saved()
        await until(lambda: mine.unread == 1)
        assert mine.messages[-1].quote is not None
        assert mine.messages[-1].quote.text == "Hello"
        mine.mark_read()

        await mine.recall(event.message.server_msg_id)
        await until(lambda: theirs.messages[0].is_recalled)
        await until(lambda: mine.messages[0].is_recalled)
        for client, conversation in ((ann, mine), (ben, theirs)):
            await until(lambda c=conversation: c.synced_seq == 3)
            await assert_equals_history(client, conversation)
        receipts = await mine.receipts(reply.server_msg_id or "")
        assert receipts.read == [ann.user_id]


async def test_groups_mentions_and_presence(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben", "cid") as (ann, ben, cid):
        ids = [client.user_id or "" for client in (ann, ben, cid)]
        cid.presence.subscribe(ids[:2])
        await until(lambda: (known := cid.presence.of(ids[0])) is not None and known.online)
        group = await ann.groups.create("Team", ids[1:])
        mine, theirs, other = (client.group(group.group_id) for client in (ann, ben, cid))
        await until(lambda: theirs.head_seq == 1 and other.head_seq == 1)
        await mine.send("All here?", mentions=[ids[1]]).when_saved()
        await until(lambda: theirs.unread_mentions == 1 and other.unread == 1)
        assert (theirs.unread, other.unread_mentions) == (1, 0)

        await ann.groups.remove_member(group.group_id, ids[1])
        await until(lambda: theirs.head_seq == 3)
        refused = theirs.send("Hello?")
        with pytest.raises(ClientError, match="member_not_active"):
            await refused.when_saved()
        assert (refused.state, ben.pending) == ("failed", [refused])
        await mine.send("They are gone").when_saved()
        await ann.groups.invite(group.group_id, [ids[1]])
        await until(lambda: theirs.min_seq == 5)
        refused.retry()
        await refused.when_saved()
        await until(lambda: mine.synced_seq == 6 and other.synced_seq == 6)
        theirs.mark_read()
        for client, conversation in ((ann, mine), (ben, theirs), (cid, other)):
            await assert_equals_history(client, conversation)
        members = await cid.groups.members(group.group_id)
        assert {member.user_id: member.role for member in members.members}[ids[0]] == "owner"
        with pytest.raises(ClientError) as refusal:
            await cid.groups.dismiss(group.group_id)
        assert (refusal.value.reason, refusal.value.status) == ("no_permission", 403)


async def test_settings_of_a_conversation(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben):
        chat = ann.chat_with(ben.user_id or "")
        await chat.send("one").when_saved()
        await chat.update(pinned=True, recv_msg_opt=2)
        assert (chat.pinned, chat.recv_msg_opt) == (True, 2)
        await chat.update(hidden=True)
        assert chat not in ann.conversations
        await ann.close()
        await ann.connect()
        assert chat not in ann.conversations
        await ben.chat_with(ann.user_id or "").send("I am here").when_saved()
        await until(lambda: ann.conversations == [chat])
        assert ann.state == "online"


async def test_an_id_of_ones_own_is_stored_once_whoever_sends_it_again(server: ServerProcess) -> None:
    async with people(server.address, "ann", "ben") as (ann, ben):
        chat = ann.chat_with(ben.user_id or "")
        first = chat.send("The answer", client_msg_id="answer-7")
        assert chat.send("The answer", client_msg_id="answer-7") is first
        await first.when_saved()
        async with NexoClient(server.address) as again:  # the same bot after a crash
            await again.login(ann.user_id or "", PASSWORD)
            await again.connect()
            repeated = again.chat_with(ben.user_id or "").send("The answer", client_msg_id="answer-7")
            assert (await repeated.when_saved()).seq == first.seq == 1
        assert [found["content"] for found in await history(ben, chat.id)] == ["The answer"]


async def test_a_device_goes_on_where_it_stopped(server: ServerProcess, tmp_path: Path) -> None:
    async with people(server.address, "ann") as (ann,):
        user_id = fresh("ben")
        async with NexoClient(server.address, storage=FileStorage(tmp_path / "ben")) as first:
            await first.register(user_id, PASSWORD)
            await first.login(user_id, PASSWORD)
            await first.connect()
            await ann.chat_with(user_id).send("one").when_saved()
            await until(lambda: first.total_unread == 1)
        await ann.chat_with(user_id).send("two").when_saved()
        async with NexoClient(server.address, storage=FileStorage(tmp_path / "ben")) as second:
            assert await second.restore()
            told = second.events("message")
            await second.connect()
            assert (await anext(told)).message.content == "two"
            chat = second.chat_with(ann.user_id or "")
            assert [message.content for message in chat.messages] == ["two"]
            await assert_equals_history(second, chat)
            await second.logout()
        async with NexoClient(server.address, storage=FileStorage(tmp_path / "ben")) as third:
            assert not await third.restore()


async def test_tokens_are_renewed_on_the_live_connection() -> None:
    with ServerProcess(auth__access_ttl_s=5) as server:
        async with people(server.address, "ann", "ben") as (ann, ben):
            states = []
            ann.on("state", lambda event: states.append(event.state))
            sessions = ann.events("session")
            for _ in range(2):
                assert (await anext(sessions)).session is not None
            await ben.chat_with(ann.user_id or "").send("still there?").when_saved()
            await until(lambda: ann.total_unread == 1)
            assert states == []


async def test_who_is_kicked_stays_away() -> None:
    with ServerProcess(session__policy="single") as server:
        async with people(server.address, "ann") as (ann,):
            kicked = ann.events("kicked")
            async with NexoClient(server.address) as other:
                await other.login(ann.user_id or "", PASSWORD)
                await other.connect()
                assert (await anext(kicked)).reason == "kicked"
                assert (ann.state, ann.state_change.reason) == ("closed", "kicked")
            await ann.connect()  # by the user's own wish
            assert ann.state == "online"


# -- a network that breaks, and a server that is killed --------------------------------------------------------------


class Chaos:
    """Breaks connections at random moments, and kills the server once."""

    def __init__(self, server: ServerProcess, proxy: Proxy, seed: int) -> None:
        self.server = server
        self.proxy = proxy
        self.rng = random.Random(seed)
        self.breaks = 0

    async def run(self, kills: int, breaks: int) -> None:
        for i in range(breaks):
            await time_passes(self.rng.uniform(0.02, 0.15))
            match self.rng.randrange(4):
                case 0:
                    self.proxy.stall()
                    await time_passes(self.rng.uniform(0.01, 0.1))
                    self.proxy.flow()
                case 1:
                    self.proxy.refuse()
                    self.proxy.cut()
                    await time_passes(self.rng.uniform(0.01, 0.1))
                    self.proxy.flow()
                case _:
                    self.proxy.cut()
            self.breaks += 1
            if kills and i == breaks // 2:
                await asyncio.to_thread(self.server.restart)


async def test_nothing_is_lost_or_doubled_through_a_bad_network_and_kill_9(tmp_path: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    with ServerProcess() as server:
        async with proxy_to(server.address) as proxy, contextlib.AsyncExitStack() as stack:
            url = f"http://127.0.0.1:{urlsplit(proxy.url).port}"
            clients = []
            for name in ("ann", "ben", "cid"):
                storage = FileStorage(tmp_path / name)
                options = {"backoff_min_ms": 20, "backoff_max_ms": 200, "ack_timeout_ms": 2000, "gap_wait_ms": 50}
                client = await stack.enter_async_context(NexoClient(url, storage=storage, **options))
                await client.register(name, PASSWORD)
                await client.login(name, PASSWORD)
                await client.connect()
                clients.append(client)
            group = await clients[0].groups.create("Team", ["ben", "cid"])
            told = {client.user_id: [] for client in clients}
            for client in clients:
                seen = told[client.user_id]
                client.on("message", lambda event, seen=seen: seen.append((event.conversation.id, event.message.seq)))
            chaos = asyncio.create_task(Chaos(server, proxy, seed).run(kills=1, breaks=16))
            sent = await asyncio.gather(*(_talk(client, group.group_id, 60, seed) for client in clients))
            await chaos
            await asyncio.gather(*(message.when_saved() for mine in sent for message in mine))
            for client in clients:
                await _settle(client)
                for conversation in client.conversations:
                    await assert_equals_history(client, conversation)
                _assert_told_once(client, told[client.user_id])
            for client, mine in zip(clients, sent, strict=True):
                await _assert_stored_once_in_order(client, mine)
        server.stop()
        server.check()


async def _talk(client: NexoClient, group_id: str, count: int, seed: int) -> list[Any]:
    """To everybody and to the group, while things break."""
    rng = random.Random(f"{seed}{client.user_id}")
    others = [client.chat_with(name) for name in ("ann", "ben", "cid") if name != client.user_id]
    sent = []
    for number in range(count):
        target = rng.choice([*others, client.group(group_id)])
        sent.append(target.send(f"{client.user_id} {number}"))
        if rng.random() < 0.1:
            target.mark_read()
        await time_passes(rng.uniform(0, 0.04))
    return sent


async def _settle(client: NexoClient) -> None:
    """Online, nothing unanswered, and every head reached that the server tells."""
    await until(lambda: client.state == "online" and not client.pending)
    heads = (await client.call("GET", "/conversation/newest_seq"))["conversations"]
    for head in heads:
        conversation = client.conversation(head["conversation_id"])
        await until(lambda c=conversation, h=head["head_seq"]: c.synced_seq >= h)


def _assert_told_once(client: NexoClient, told: list[tuple[str, int]]) -> None:
    for conversation in client.conversations:
        seqs = [seq for name, seq in told if name == conversation.id]
        due = [m.seq for m in conversation.messages if m.sender_id != client.user_id and not m.is_event]
        assert seqs == due


async def _assert_stored_once_in_order(client: NexoClient, sent: list[Any]) -> None:
    for conversation in client.conversations:
        mine = [message.client_msg_id for message in sent if message.conversation_id == conversation.id]
        stored = [row["client_msg_id"] for row in await history(client, conversation.id)]
        assert [name for name in stored if name in set(mine)] == mine


# -- the examples ----------------------------------------------------------------------------------------------------


async def test_the_terminal_chat_sends_and_shows(server: ServerProcess, tmp_path: Path) -> None:
    async with people(server.address, "ann") as (ann,):
        ben_id = fresh("ben")
        chat = await asyncio.create_subprocess_exec(
            sys.executable,
            EXAMPLES / "terminal_chat.py",
            server.address,
            ben_id,
            PASSWORD,
            ann.user_id or "",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"HOME": str(tmp_path)},
        )
        assert chat.stdin is not None
        assert chat.stdout is not None
        got = ann.events("message")
        chat.stdin.write(b"Hello from the terminal\n")
        async with asyncio.timeout(PATIENCE_S):
            assert (await anext(got)).message.content == "Hello from the terminal"
            ann.chat_with(ben_id).send("Hello back")
            shown = b""
            while b"Hello back" not in shown:
                shown += await chat.stdout.readline()
        chat.stdin.close()
        assert await chat.wait() == 0


@pytest.mark.parametrize("page", ["clients/python/README.md", "docs/clients.md"])
async def test_what_the_documents_show_works(page: str, server: ServerProcess, tmp_path: Path) -> None:
    code = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)[0]
    async with people(server.address, "bob") as (bob,):
        alice_id = fresh("alice")
        await bob.register(alice_id, "correct horse")
        shown = {"http://127.0.0.1:8900": server.address, '"alice"': f'"{alice_id}"', '"bob"': f'"{bob.user_id}"'}
        for there, here in shown.items():
            assert there in code
            code = code.replace(there, here)
        if "asyncio.run" not in code:  # a piece of a coroutine
            code = "import asyncio\nasync def main():\n" + textwrap.indent(code, "    ") + "\nasyncio.run(main())\n"
        got = bob.events("message")
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-u", "-c", code, stdout=subprocess.PIPE, cwd=tmp_path
        )
        assert program.stdout is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                event = await anext(got)
                assert event.message.content == "Hello"
                event.conversation.send("Hello yourself")
                assert (await program.stdout.readline()).decode() == f"{bob.user_id} Hello yourself\n"
        finally:
            program.kill()
            await program.wait()

"""The Python SDK plays every scenario of the conformance suite; README.md beside this says what they are."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from nexo_client import ClientError, Conversation, InboxMessage, MemoryStorage, Message, NexoClient, OutgoingMessage

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.json"))
PATIENCE_S = 5.0
OPTIONS = {
    "gap_wait_ms": 20,
    "ack_delay_ms": 10,
    "ack_timeout_ms": 300,
    "backoff_min_ms": 10,
    "backoff_max_ms": 40,
    "connect_timeout_ms": 1000,
}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a scripted server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.scripted_server"],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        process.stdin.close()


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
async def test_the_client_ends_with_the_truth(server: str, path: Path) -> None:
    scenario = json.loads(path.read_text())  # noqa: ASYNC240
    async with httpx.AsyncClient(base_url=server) as control:
        player = Player(server, control)
        await player.play(scenario)


class Player:
    """Takes the steps of a scenario with the Python SDK."""

    def __init__(self, url: str, control: httpx.AsyncClient) -> None:
        self._url = url
        self._control = control
        self._storage = MemoryStorage()
        self._client: NexoClient | None = None
        self._sent: dict[str, OutgoingMessage] = {}
        self._events: list[tuple[str, int]] = []
        self._errors: list[Exception] = []
        self._restarted = False
        self._watched: list[str] = []
        self._given: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._takes_from_inbox = False
        self._inbox: AsyncIterator[InboxMessage] | None = None
        self._gives_tokens = False

    async def play(self, scenario: dict[str, Any]) -> None:
        self._given = await self._ask("/control/load", scenario)
        try:
            for step in scenario["steps"]:
                await self._take(step)
            await self._do_wait(**scenario.get("end", {"truth": True, "state": "online"}))
        finally:
            if self._client is not None:
                await self._client.__aexit__()

    async def _ask(self, path: str, body: Any) -> Any:
        answer = (await self._control.post(path, json=body)).json()
        assert answer["err_code"] == 0, answer
        return answer["data"]

    async def _take(self, step: dict[str, Any]) -> None:
        ((name, options),) = step.items()
        if name == "server":
            await self._ask("/control/step", options)
            return
        options = {"in_" if key == "in" else key: value for key, value in options.items()}
        await getattr(self, f"_do_{name}")(**options)

    # -- the steps -----------------------------------------------------------------------------------------

    @property
    def client(self) -> NexoClient:
        assert self._client is not None
        return self._client

    async def _do_connect(self) -> None:
        if self._client is None:
            get_token = self._get_token if self._gives_tokens else None
            options = OPTIONS | self._given["options"]
            self._client = NexoClient(self._url, storage=self._storage, get_token=get_token, **options)
            self._events = []
            if self._takes_from_inbox:
                self._inbox = self._client.inbox()
            else:
                self._client.on("message", self._note)
            self._client.on("error", lambda event: self._errors.append(event.error))
            if not self._gives_tokens and not await self._client.restore():
                await self._client.login(self._given["user_id"], self._given["password"])
            for label, sent in self._sent.items():
                found = [other for other in self._client.pending if other.client_msg_id == sent.client_msg_id]
                self._sent[label] = found[0] if found else sent
        task = asyncio.create_task(self._connect(self._client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, client: NexoClient) -> None:
        with contextlib.suppress(ClientError):
            await client.connect()

    def _note(self, event: Any) -> None:
        self._events.append((event.conversation.id, event.message.seq))

    async def _get_token(self) -> str:
        params = {"user_id": self._given["user_id"], "password": self._given["password"], "platform_id": 7}
        return str((await self._ask("/auth/login", params))["access_token"])

    async def _do_give_tokens(self) -> None:
        self._gives_tokens = True

    async def _do_use_inbox(self) -> None:
        self._takes_from_inbox = True

    async def _do_take(self, count: int) -> None:
        assert self._inbox is not None
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(count):
                self._note(await anext(self._inbox))

    async def _do_take_all(self) -> None:
        assert self._inbox is not None

        async def work(inbox: AsyncIterator[InboxMessage]) -> None:
            async for event in inbox:
                self._note(event)

        task = asyncio.create_task(work(self._inbox))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do_flush(self, reason: str = "") -> None:
        if not reason:
            await self.client.flush(5000)
            return
        with pytest.raises(ClientError) as failed:
            await self.client.flush(50)
        assert failed.value.reason == reason

    async def _do_close(self) -> None:
        await self.client.close()

    async def _do_kill(self) -> None:
        """What the process had kept is there; what it would still have done is not."""
        client, self._client, self._restarted = self.client, None, True
        survivor = MemoryStorage()
        survivor._values = dict(self._storage._values)
        self._storage = survivor
        client._token_refresh.stop()
        await client._driver.abandon()
        await client._http.close()

    async def _do_send(self, text: str, to: str = "", group: str = "", **options: Any) -> None:
        conversation = self.client.group(group) if group else self.client.chat_with(to)
        label = options.pop("as", text)
        if "reply_to" in options:
            options["reply_to"] = self._by_text(conversation, options["reply_to"]).server_msg_id
        self._sent[label] = conversation.send(text, **options)

    @staticmethod
    def _by_text(conversation: Conversation, text: str) -> Message:
        return next(message for message in conversation.messages if message.content == text)

    async def _do_retry(self, message: str) -> None:
        self._sent[message].retry()

    async def _do_cancel(self, message: str) -> None:
        assert self._sent.pop(message).cancel()

    async def _do_mark_read(self, in_: str, seq: int | None = None) -> None:
        self.client.conversation(in_).mark_read(seq)

    async def _do_load_earlier(self, in_: str, limit: int = 50) -> None:
        await self.client.conversation(in_).load_earlier(limit)

    async def _do_load_later(self, in_: str, limit: int = 50) -> None:
        await self.client.conversation(in_).load_later(limit)

    async def _do_load_latest(self, in_: str, limit: int = 50) -> None:
        await self.client.conversation(in_).load_latest(limit)

    async def _do_load_around(self, in_: str, seq: int, limit: int = 50) -> None:
        await self.client.conversation(in_).load_around(seq, limit)

    async def _do_recall(self, in_: str, text: str) -> None:
        conversation = self.client.conversation(in_)
        await conversation.recall(self._by_text(conversation, text).server_msg_id)

    async def _do_edit(self, in_: str, text: str, to: str, mentions: list[str] | None = None) -> None:
        conversation = self.client.conversation(in_)
        await conversation.edit(self._by_text(conversation, text), to, mentions=mentions)

    async def _do_react(self, in_: str, text: str, emoji: str, on: bool = True) -> None:
        conversation = self.client.conversation(in_)
        await conversation.react(self._by_text(conversation, text), emoji, on)

    async def _do_pin(self, in_: str, text: str, on: bool = True) -> None:
        conversation = self.client.conversation(in_)
        await conversation.pin(self._by_text(conversation, text), on)

    async def _do_delete_for_me(self, in_: str, texts: list[str]) -> None:
        conversation = self.client.conversation(in_)
        await conversation.delete_for_me([self._by_text(conversation, text) for text in texts])

    async def _do_clear(self, in_: str) -> None:
        await self.client.conversation(in_).clear()

    async def _do_update(self, in_: str, **settings: Any) -> None:
        await self.client.conversation(in_).update(**settings)

    async def _do_subscribe_presence(self, users: list[str]) -> None:
        self._watched += users
        self.client.presence.subscribe(users)

    async def _do_typing(self, in_: str, on: bool) -> None:
        self.client.conversation(in_).typing(on)

    async def _do_create_group(self, name: str, members: list[str]) -> None:
        await self.client.groups.create(name, members)

    async def _do_pause(self, ms: int) -> None:
        await asyncio.sleep(ms / 1000)

    async def _do_wait(self, **want: Any) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = await self._ask("/control/check", {"view": self._view(), "want": want})
            if not answer["differences"]:
                return
            if time.monotonic() > deadline:
                pytest.fail("\n".join([*answer["differences"], *map(repr, self._errors)]), pytrace=False)
            await asyncio.sleep(0.01)

    # -- what the client shows -----------------------------------------------------------------------------

    def _view(self) -> dict[str, Any]:
        client = self.client
        return {
            "state": client.state,
            "reason": client.state_change.reason,
            "conversations": {shown.id: _conversation(shown) for shown in client.conversations},
            "sent": {label: _sent(message) for label, message in self._sent.items()},
            "pending": [message.client_msg_id for message in client.pending],
            "events": self._events,
            "presence": self._presence(),
            "restarted": self._restarted,
        }

    def _presence(self) -> dict[str, bool]:
        known = {user_id: self.client.presence.of(user_id) for user_id in self._watched}
        return {user_id: presence.online for user_id, presence in known.items() if presence is not None}


def _sent(message: OutgoingMessage) -> dict[str, Any]:
    reason = None if message.error is None else message.error.reason
    return {"client_msg_id": message.client_msg_id, "state": message.state, "reason": reason, "seq": message.seq}


def _conversation(shown: Conversation) -> dict[str, Any]:
    names = ("head_seq", "min_seq", "read_seq", "synced_seq", "unread", "unread_mentions", "typists")
    names = (*names, "has_earlier", "has_later", "pinned", "archived", "marked_unread")
    last, draft = shown.last_message, shown.draft
    return {name: getattr(shown, name) for name in names} | {
        "draft": None if draft is None else {"text": draft.text},
        "last_seq": None if last is None else last.seq,
        "messages": [_message(message) for message in shown.messages],
    }


def _message(message: Message) -> dict[str, Any]:
    names = ("server_msg_id", "client_msg_id", "conversation_id", "seq", "sender_id", "msg_type", "content")
    shown = {name: getattr(message, name) for name in (*names, "reply_to", "status", "send_at", "provisional")}
    shown |= {"edited_at": message.edited_at, "expires_at": message.expires_at}
    shown["reactions"] = [{"emoji": one.emoji, "count": one.count, "mine": one.mine} for one in message.reactions]
    quote = message.quote
    shown["quote"] = None if quote is None else {name: getattr(quote, name) for name in quote.__struct_fields__}
    return shown

"""People who chat without a pause, survive every loss of connection as a client does, and can prove what they saw."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from harness.pair_load import few_at_a_time, open_socket, sign_up
from harness.server_process import ServerProcess
from harness.waiting import until

WINDOW = 4


class Chatter:
    """Sends to a peer and to a group, several messages at a time; keeps each until it is acknowledged, and sends
    it again under the same clientMsgId after a reconnect. Notes all that it receives."""

    def __init__(self, server: ServerProcess, user_id: str, token: str, targets: list[str]) -> None:
        self.user_id = user_id
        self.saved: dict[str, Any] = {}  # clientMsgId → its ACK
        self.sent: dict[str, list[str]] = defaultdict(list)  # target → clientMsgIds in order
        self.received: dict[str, dict[int, str]] = defaultdict(dict)  # conversation → seq → serverMsgId
        self.connects = 0
        self._server = server
        self.token = token
        self.targets = targets
        self._unsaved: dict[str, dict[str, Any]] = {}  # in the order sent
        self._stopping = False

    async def run(self) -> None:
        while not self._stopping or self._unsaved:
            try:
                connection = await open_socket(self._server.ws_address, self.token, baselines=self._baselines())
            except (OSError, InvalidHandshake, EOFError):
                await asyncio.sleep(random.uniform(0.05, 0.2))
                continue
            self.connects += 1
            try:
                await self._chat(connection)
            except ConnectionClosed:
                pass
            finally:
                connection.transport.abort()

    def stop(self) -> None:
        self._stopping = True

    async def catch_up(self) -> None:
        """Connect once more and ask until there is nothing more."""
        connection = await open_socket(self._server.ws_address, self.token, baselines=self._baselines())
        async for data in connection:
            frame = json.loads(data)
            if frame["type"] in ("SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT"):
                self._note_received(frame)
            elif frame["type"] == "RESEND_DONE":
                if not frame["hasMore"]:
                    break
                await connection.send(json.dumps({"type": "RESEND", "baselines": self._baselines()}))
        connection.transport.abort()

    def _baselines(self) -> dict[str, int]:
        """Up to where each conversation is complete here."""
        found = {}
        for name, seqs in self.received.items():
            seq = 0
            while seq + 1 in seqs:
                seq += 1
            found[name] = seq
        return found

    async def _chat(self, connection: ClientConnection) -> None:
        for frame in list(self._unsaved.values()):
            await connection.send(json.dumps(frame))
        async for data in connection:
            frame = json.loads(data)
            if frame["type"] == "ACK" and frame["ackType"] == "saved":
                self._note_saved(frame)
            elif frame["type"] in ("SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT"):
                self._note_received(frame)
            elif frame["type"] in ("ERROR", "AUTH_FAIL"):
                raise AssertionError(frame)
            if self._stopping and not self._unsaved:
                return
            while len(self._unsaved) < WINDOW and not self._stopping:
                await connection.send(json.dumps(self._next()))

    def _next(self) -> dict[str, Any]:
        target = random.choice(self.targets)
        client_msg_id = f"{self.user_id}-{sum(map(len, self.sent.values()))}"
        self.sent[target].append(client_msg_id)
        kind, where = ("GROUP_CHAT", "groupId") if target.startswith("g_") else ("SINGLE_CHAT", "to")
        frame = {"type": kind, where: target, "clientMsgId": client_msg_id, "body": client_msg_id}
        self._unsaved[client_msg_id] = frame
        return frame

    def _note_saved(self, ack: dict[str, Any]) -> None:
        client_msg_id = ack["clientMsgId"]
        known = self.saved.setdefault(client_msg_id, ack)
        assert known == ack, "the same send is acknowledged the same"
        self._unsaved.pop(client_msg_id, None)
        self.received[ack["conversationId"]][ack["msgSeq"]] = ack["serverMsgId"]

    def _note_received(self, frame: dict[str, Any]) -> None:
        known = self.received[frame["conversationId"]].setdefault(frame["msgSeq"], frame["serverMsgId"])
        assert known == frame["serverMsgId"], "a seq stands for one message"


async def stored(http: httpx.AsyncClient, token: str, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    begin_seq = 1
    while True:
        answer = await http.get(
            "/msg/pull",
            params={"conversation_id": name, "begin_seq": begin_seq},
            headers={"Authorization": f"Bearer {token}"},
        )
        page = answer.json()["data"]
        found += page["messages"]
        if not page["has_more"]:
            return found
        begin_seq = page["next_seq"]


async def gather_chatters(server: ServerProcess, names: Sequence[str]) -> list[Chatter]:
    """New users with these names: each writes to the next one and to a group of all."""
    tokens = await sign_up(server.address, names)
    async with httpx.AsyncClient(base_url=server.address, timeout=60, trust_env=False) as http:
        answer = await http.post(
            "/group/create",
            json={"name": "all", "member_ids": list(names[1:])},
            headers={"Authorization": f"Bearer {tokens[names[0]]}"},
        )
        group = answer.json()["data"]["group_id"]
    return [Chatter(server, name, tokens[name], [names[(i + 1) % len(names)], group]) for i, name in enumerate(names)]


async def until_more(chatters: Sequence[Chatter], running: Sequence[asyncio.Task[None]], count: int = 100) -> None:
    """So many more messages are saved, and no chatter has given up."""
    wanted = _saved(chatters) + count

    def is_over() -> bool:
        ended = [task for task in running if task.done()]
        assert not ended, ended
        return _saved(chatters) >= wanted

    await until(is_over, f"{count} more saved", patience_s=60)


def _saved(chatters: Sequence[Chatter]) -> int:
    return sum(len(chatter.saved) for chatter in chatters)


async def finish(chatters: Sequence[Chatter], running: Sequence[asyncio.Task[None]]) -> None:
    """No more new messages; each waits until its own are acknowledged."""
    for chatter in chatters:
        chatter.stop()
    async with asyncio.timeout(60):
        await asyncio.gather(*running)


async def check_stored(server: ServerProcess, chatters: Sequence[Chatter]) -> None:
    """Everything they sent is there once, in order, as it was acknowledged, and everybody received all of it."""
    await few_at_a_time(Chatter.catch_up, chatters)
    async with httpx.AsyncClient(base_url=server.address, timeout=60, trust_env=False) as http:

        async def check(chatter: Chatter) -> None:
            peer, group = chatter.targets
            low, high = sorted((chatter.user_id, peer))
            for target, name in ((peer, f"si_{low}:{high}"), (group, f"sg_{group}")):
                messages = await stored(http, chatter.token, name)
                assert [m["seq"] for m in messages] == list(range(1, len(messages) + 1)), "gapless"
                mine = (m for m in messages if m["sender_id"] == chatter.user_id and m["msg_type"] < 100)
                own = [m["client_msg_id"] for m in mine]
                assert own == chatter.sent[target], "all of it, once, in the order it was sent"
                places = {m["client_msg_id"]: (m["seq"], m["server_msg_id"]) for m in messages}
                for client_msg_id in chatter.sent[target]:
                    ack = chatter.saved[client_msg_id]
                    assert places[client_msg_id] == (ack["msgSeq"], ack["serverMsgId"])
                known = {m["seq"]: m["server_msg_id"] for m in messages}
                assert chatter.received[name] == known, "all of it was received, and nothing else"

        await few_at_a_time(check, chatters)

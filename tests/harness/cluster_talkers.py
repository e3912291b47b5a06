"""People who go on chatting whatever happens to the servers, each doing what the documentation asks of a client:
keep a message until it is saved, connect again (to another instance if need be), fill gaps, sync when told to.

At the end both sides are compared: what is stored, and what everybody has on their screen.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from harness.chat import Site
from harness.pair_load import open_socket, percentile, sign_up
from harness.waiting import until

GAP_S = 0.15
MESSAGES = ("SINGLE_CHAT", "GROUP_CHAT", "GROUP_EVENT")
PATIENCE_S = 60.0

_runs = itertools.count(1)


class Talker:
    def __init__(self, user_id: str, token: str, sites: Sequence[Site], home: int, targets: Sequence[str]) -> None:
        """Without targets one only listens."""
        self.user_id = user_id
        self.token = token
        self.sent: dict[str, list[str]] = defaultdict(list)  # target → clientMsgIds in order
        self.saved: dict[str, dict[str, Any]] = {}  # clientMsgId → its ACK
        self.received: dict[str, dict[int, str]] = defaultdict(dict)  # conversation → seq → serverMsgId
        self.ack_ms: list[tuple[float, float]] = []  # when, how long
        self.resyncs: list[str] = []
        self.connects = 0
        self._sites = sites
        self._home = home
        self._targets = targets
        self._heads: dict[str, int] = defaultdict(int)  # as it was told
        self._asked: dict[str, float] = {}
        self._unsaved: dict[str, dict[str, Any]] = {}
        self._sent_at: dict[str, float] = {}
        self._socket: ClientConnection | None = None
        self._stopping = False
        self._backing_off = False

    # -- its life ------------------------------------------------------------------------------------------

    async def run(self, pause_s: float) -> None:
        """Until `stop`; then it goes on listening until the task is cancelled."""
        chatter = asyncio.create_task(self._chatter(pause_s))
        filler = asyncio.create_task(self._fill_gaps())
        try:
            for attempt in itertools.count():
                site = self._sites[(self._home + attempt) % len(self._sites)]
                with contextlib.suppress(OSError, InvalidHandshake, EOFError, ConnectionClosed, TimeoutError):
                    socket = await open_socket(site.ws_address, self.token, baselines=self._baselines())
                    self.connects += 1
                    await self._listen(socket)
                self._socket = None
                await asyncio.sleep(random.uniform(0.05, 0.2))
        finally:
            for task in (chatter, filler):
                task.cancel()
            if self._socket is not None:
                self._socket.transport.abort()

    def stop(self) -> None:
        self._stopping = True

    @property
    def is_done(self) -> bool:
        return self._stopping and not self._unsaved

    async def _listen(self, socket: ClientConnection) -> None:
        again = 0
        while again < len(self._unsaved):  # before anything new, which may be added meanwhile
            frame = list(self._unsaved.values())[again]
            again += 1
            await socket.send(json.dumps(frame))
        self._socket = socket
        async for data in socket:
            self._take(json.loads(data))

    def _take(self, frame: dict[str, Any]) -> None:
        kind = frame["type"]
        if kind in MESSAGES:
            self._note(frame)
        elif kind == "ACK" and frame["ackType"] == "saved":
            self._note_saved(frame)
        elif kind == "PULL_OK":
            for message in frame["messages"]:
                self._note(message)
            self._told(frame["conversationId"], frame["headSeq"])
            self._asked.pop(frame["conversationId"], None)
        elif kind in ("SYNC", "HEADS"):
            for entry in frame["conversations"]:
                self._told(entry["conversationId"], entry["headSeq"])
        elif kind == "RESYNC":
            self.resyncs.append(frame["reason"])
            asyncio.get_running_loop().call_later(frame["afterMs"] / 1000, self._say, {"type": "SYNC"})
        elif kind == "ERROR":
            self._refused(frame)

    def _refused(self, frame: dict[str, Any]) -> None:
        """Nothing new is sent until all that has no answer was sent again, in the order it had."""
        assert frame["reason"] in ("server_busy", "too_many_requests", "server_shutdown", "internal_error"), frame
        if frame.get("clientMsgId") in self._unsaved and not self._backing_off:
            self._backing_off = True
            asyncio.get_running_loop().call_later(0.3, self._send_again)

    def _send_again(self) -> None:
        self._backing_off = False
        for frame in self._unsaved.values():
            self._say(frame)

    def _say(self, frame: dict[str, Any]) -> None:
        if self._socket is not None:
            task = asyncio.ensure_future(self._socket.send(json.dumps(frame)))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # -- what it sends ---------------------------------------------------------------------------------------

    async def _chatter(self, pause_s: float) -> None:
        if not self._targets:
            return
        while not self._stopping:
            await asyncio.sleep(random.uniform(0.5, 1.5) * pause_s)
            if len(self._unsaved) < 8 and not self._backing_off and not self._stopping:
                frame = self._next()
                self._sent_at[frame["clientMsgId"]] = time.monotonic()
                self._say(frame)

    def _next(self) -> dict[str, Any]:
        target = random.choice(self._targets)
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
        if self._unsaved.pop(client_msg_id, None) is not None:
            now = time.monotonic()
            self.ack_ms.append((now, (now - self._sent_at[client_msg_id]) * 1000))
        self._keep(ack["conversationId"], ack["msgSeq"], ack["serverMsgId"])

    # -- what it gets ----------------------------------------------------------------------------------------

    def _note(self, frame: dict[str, Any]) -> None:
        self._keep(frame["conversationId"], frame["msgSeq"], frame["serverMsgId"])

    def _keep(self, name: str, seq: int, server_msg_id: str) -> None:
        known = self.received[name].setdefault(seq, server_msg_id)
        assert known == server_msg_id, "a seq stands for one message"
        self._told(name, seq)

    def _told(self, name: str, head_seq: int) -> None:
        self._heads[name] = max(self._heads[name], head_seq)

    def _complete_to(self, name: str) -> int:
        seq = 0
        while seq + 1 in self.received[name]:
            seq += 1
        return seq

    def _baselines(self) -> dict[str, int]:
        return {name: self._complete_to(name) for name in self.received}

    async def _fill_gaps(self) -> None:
        while True:
            await asyncio.sleep(GAP_S)
            now = time.monotonic()
            for name, head_seq in list(self._heads.items()):
                have = self._complete_to(name)
                if have < head_seq and now - self._asked.get(name, 0) > 1:
                    self._asked[name] = now
                    self._say({"type": "PULL", "conversationId": name, "beginSeq": have + 1})


class Company:
    """Everybody, what they said, and the check of both sides."""

    def __init__(self, sites: Sequence[Site], talkers: list[Talker], group: str) -> None:
        self._sites = sites
        self.talkers = talkers
        self.group = group

    def latencies(self, since: float, until: float) -> list[float]:
        return [ms for talker in self.talkers for at, ms in talker.ack_ms if since <= at <= until]

    def tell_latency(self, what: str, since: float, until: float) -> list[float]:
        found = self.latencies(since, until)
        p50, p99 = percentile(found, 0.5), percentile(found, 0.99)
        print(f"{what}: {len(found)} ACKs, p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        return found

    async def until(self, is_so: Callable[[Talker], bool]) -> None:
        """For everybody, soon."""

        def late() -> list[str]:
            return [talker.user_id for talker in self.talkers if not is_so(talker)]

        await until(lambda: not late(), late, patience_s=PATIENCE_S)

    async def talk_on(self, count: int = 50) -> None:
        """Until so many more messages are saved."""
        wanted = self._saved() + count
        await until(lambda: self._saved() >= wanted, f"{count} more saved", patience_s=PATIENCE_S)

    def _saved(self) -> int:
        return sum(len(talker.saved) for talker in self.talkers)

    async def finish(self) -> int:
        """Everything is saved, everybody has all of it, and it is what is stored; how many messages."""
        for talker in self.talkers:
            talker.stop()
        await self.until(lambda talker: talker.is_done)
        async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as http:
            total = 0
            for talker in self.talkers:
                total += len(talker.saved)
                for target in (*talker._targets, self.group):
                    await self._check(http, talker, target)
        return total

    async def _check(self, http: httpx.AsyncClient, talker: Talker, target: str) -> None:
        is_group = target.startswith("g_")
        name = f"sg_{target}" if is_group else "si_{}:{}".format(*sorted((talker.user_id, target)))
        messages = await self._stored(http, talker, name)
        assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1)), "gapless"
        own = [message for message in messages if message["sender_id"] == talker.user_id and message["msg_type"] < 100]
        stored = [message["client_msg_id"] for message in own]
        assert stored == talker.sent[target], (
            f"all of it, once, in order: {_first_difference(stored, talker.sent[target])}"
        )
        for message in own:
            ack = talker.saved[message["client_msg_id"]]
            assert (ack["msgSeq"], ack["serverMsgId"]) == (message["seq"], message["server_msg_id"])
        if not is_group:
            (peer,) = (other for other in self.talkers if other.user_id == target)
            assert await self._stored(http, peer, name) == messages, "both see the same"
        known = {message["seq"]: message["server_msg_id"] for message in messages}
        await until(
            lambda: talker.received[name] == known,
            lambda: (
                f"{talker.user_id} has all of {name}; resyncs {talker.resyncs}, "
                f"without {sorted(known.keys() - talker.received[name].keys())[:10]}"
            ),
            patience_s=PATIENCE_S,
        )

    async def _stored(self, http: httpx.AsyncClient, talker: Talker, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        begin_seq = 1
        while True:
            answer = await http.get(
                f"{self._sites[0].address}/msg/pull",
                params={"conversation_id": name, "begin_seq": begin_seq},
                headers={"Authorization": f"Bearer {talker.token}"},
            )
            page = answer.json()["data"]
            found += page["messages"]
            if not page["has_more"]:
                return found
            begin_seq = page["next_seq"]


def _first_difference(found: list[str], wanted: list[str]) -> str:
    at = next((i for i, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), len(found))
    return f"at {at} {found[at : at + 5]}, sent {wanted[at : at + 5]}; {len(found)} of {len(wanted)}"


@contextlib.asynccontextmanager
async def company(sites: Sequence[Site], count: int = 9, pause_s: float = 0.1) -> AsyncIterator[Company]:
    """A circle of people who talk to their neighbour and to all, spread over the sites; one in five only listens."""
    run = next(_runs)
    names = [f"t{run}.{i}" for i in range(count)]
    tokens = await sign_up(sites[0].address, names)
    async with httpx.AsyncClient(base_url=sites[0].address, timeout=PATIENCE_S, trust_env=False) as http:
        answer = await http.post(
            "/group/create",
            json={"name": "all", "member_ids": names[1:]},
            headers={"Authorization": f"Bearer {tokens[names[0]]}"},
        )
    group = answer.json()["data"]["group_id"]
    talkers = [
        Talker(name, tokens[name], sites, i, () if i % 5 == 4 else (names[(i + 1) % count], group))
        for i, name in enumerate(names)
    ]
    running = [asyncio.create_task(talker.run(pause_s)) for talker in talkers]
    try:
        here = Company(sites, talkers, group)
        await here.until(lambda talker: talker.connects > 0)
        yield here
        for task in running:
            assert not task.done(), task
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

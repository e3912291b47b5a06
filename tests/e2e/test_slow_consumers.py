"""Back-pressure: who does not read delays nobody, costs bounded memory, is told or closed, and catches up."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from harness.chat import fresh_id, meet
from harness.pair_load import allow_many_files, few_at_a_time, open_socket, sign_up
from harness.server_process import ServerProcess
from harness.waiting import time_passes, until
from harness.ws_client import open_client, parse_frames, text

LONG = os.environ.get("NEXO_LONG_TESTS") == "1"
STALL_S = 60.0 if LONG else 20.0
GROUPS, MEMBERS, DEVICES = 50, 4, 5  # a thousand connections
STALLED = 300
MESSAGES_PER_S = 200
FILL = "x" * 15_800
MEMORY_BYTES = 64 << 20


class Device:
    """One connection of a member: notes what it got, and stops reading when told to."""

    def __init__(self, user_id: str, token: str, group: str) -> None:
        self.user_id = user_id
        self.token = token
        self.name = f"sg_{group}"
        self.seqs: list[int] = []
        self.told = False  # by RESYNC that something may be missing
        self.closed = False
        self.reading = asyncio.Event()
        self.reading.set()
        self._socket: ClientConnection
        self._reader: asyncio.Task[None]

    async def connect(self, ws_address: str, **fields: Any) -> None:
        self._socket = await open_socket(ws_address, self.token, receive_buffer_bytes=65_536, **fields)
        self.closed = False
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while True:
                await self.reading.wait()
                self._take(json.loads(await self._socket.recv()))
        except ConnectionClosed:
            self.closed = True

    def _take(self, frame: Any) -> None:
        kind = frame["type"]
        if kind in ("GROUP_CHAT", "GROUP_EVENT"):
            self.seqs.append(frame["msgSeq"])
        elif kind == "PULL_OK":
            self.seqs += [message["msgSeq"] for message in frame["messages"]]
        elif kind == "RESYNC":
            self.told = True
        elif kind == "ACK" and frame["ackType"] == "saved":
            self.seqs.append(frame["msgSeq"])
        elif kind == "ERROR":
            raise AssertionError(frame)

    async def say(self, group: str, body: Any) -> None:
        frame = {"type": "GROUP_CHAT", "clientMsgId": fresh_id(), "groupId": group, "msgType": 6, "body": body}
        await self._socket.send(json.dumps(frame))

    async def catch_up(self, ws_address: str, head: int) -> None:
        """Connect again and ask for what is missing, as a client does."""
        contiguous = 0
        have = set(self.seqs)
        while contiguous + 1 in have:
            contiguous += 1
        await self.connect(ws_address, baselines={self.name: contiguous})
        async with asyncio.timeout(60):
            while not set(range(1, head + 1)) <= set(self.seqs):
                have = set(self.seqs)
                begin = next(seq for seq in range(1, head + 2) if seq not in have)
                await self._socket.send(
                    json.dumps({"type": "PULL", "conversationId": self.name, "beginSeq": begin, "limit": 50})
                )
                await time_passes(0.2)

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        self._socket.transport.abort()


class Crowd:
    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.groups: list[str] = []
        self.devices: dict[str, list[Device]] = {}
        self.sent: dict[str, int] = {}
        self.highest_rss = 0

    async def gather(self) -> None:
        names = [f"u{g}-{m}" for g in range(GROUPS) for m in range(MEMBERS)]
        tokens = await sign_up(self.server.address, names)
        async with httpx.AsyncClient(base_url=self.server.address, timeout=60, trust_env=False) as http:
            for g in range(GROUPS):
                members = [f"u{g}-{m}" for m in range(MEMBERS)]
                answer = await http.post(
                    "/group/create",
                    json={"name": "team", "member_ids": members[1:]},
                    headers={"Authorization": f"Bearer {tokens[members[0]]}"},
                )
                group = answer.json()["data"]["group_id"]
                self.groups.append(group)
                self.devices[group] = [Device(name, tokens[name], group) for _ in range(DEVICES) for name in members]
        await few_at_a_time(lambda device: device.connect(self.server.ws_address), self.everybody())

    def everybody(self) -> list[Device]:
        return [device for group in self.groups for device in self.devices[group]]

    async def flow(self, seconds: float) -> None:
        """So many messages a second, evenly over the groups, sent by a device that reads."""
        started = time.perf_counter()
        count = round(seconds * MESSAGES_PER_S)
        for i in range(count):
            await time_passes(max(0.0, started + i / MESSAGES_PER_S - time.perf_counter()))
            group = self.groups[i % GROUPS]
            self.sent[group] = self.sent.get(group, 0) + 1
            await self.devices[group][-1].say(group, {"i": i, "fill": FILL})
            if i % 50 == 0:
                self.highest_rss = max(self.highest_rss, self.server.rss_bytes)

    def head(self, group: str) -> int:
        return 1 + self.sent[group]  # and the event of its founding

    async def close(self) -> None:
        await asyncio.gather(*(device.close() for device in self.everybody()))


async def fill_cache(server: ServerProcess) -> None:
    """The database keeps up to 64 MiB of its file in memory, whoever reads what: that must not be mistaken."""
    tokens = await sign_up(server.address, ["early", "absent"])
    connection = await open_socket(server.ws_address, tokens["early"])
    for _ in range(25):
        for _ in range(200):
            frame = {"type": "SINGLE_CHAT", "clientMsgId": fresh_id(), "to": "absent", "msgType": 6}
            await connection.send(json.dumps(frame | {"body": {"fill": FILL}}))
        saved = 0
        while saved < 200:
            saved += json.loads(await connection.recv())["type"] == "ACK"
    await connection.close()


async def test_three_hundred_of_a_thousand_stop_reading_and_the_others_get_everything() -> None:
    allow_many_files()
    with ServerProcess(limits__inflight_sends=0) as server:
        crowd = Crowd(server)
        await fill_cache(server)
        await crowd.gather()
        await crowd.flow(3)
        before = server.rss_bytes
        stalled = [device for group in crowd.groups for device in crowd.devices[group][: STALLED // GROUPS]]
        live = [device for device in crowd.everybody() if device not in stalled]
        assert (len(stalled), len(live)) == (STALLED, GROUPS * MEMBERS * DEVICES - STALLED)
        for device in stalled:
            device.reading.clear()
        crowd.highest_rss = 0
        await crowd.flow(STALL_S)

        def is_complete(device: Device) -> bool:
            return device.closed or len(device.seqs) >= crowd.head(device.name[3:])

        await until(lambda: all(map(is_complete, live)))
        for device in live:
            expected = list(range(1, crowd.head(device.name[3:]) + 1))
            assert not device.closed
            assert not device.told
            assert sorted(device.seqs) == expected, "all of it, and once"
            if device is not crowd.devices[device.name[3:]][-1]:  # who sends has ACKs between the others' messages
                assert device.seqs == expected, "in order"

        for device in stalled:
            device.reading.set()
        await until(lambda: all(device.told or device.closed for device in stalled))
        closed = sum(device.closed for device in stalled)
        assert all(len(device.seqs) < crowd.head(device.name[3:]) for device in stalled), "they did miss something"
        for device in stalled:
            await device.close()
        await few_at_a_time(lambda device: device.catch_up(server.ws_address, crowd.head(device.name[3:])), stalled)
        for device in stalled:
            assert set(device.seqs) == set(range(1, crowd.head(device.name[3:]) + 1))
        grown = crowd.highest_rss - before
        print(f"{closed} of {STALLED} were closed, the others told; memory {before >> 20} {grown / 2**20:+.0f} MiB")
        assert grown <= MEMORY_BYTES, f"{grown >> 20} MiB more than before"
        assert "Traceback" not in server.output
        await crowd.close()


@pytest.fixture(scope="module")
def narrow() -> Iterator[ServerProcess]:
    """Small marks, so that a test reaches them soon."""
    with ServerProcess(
        backpressure__high_water_bytes=65_536,
        backpressure__low_water_bytes=32_768,
        backpressure__close_after_ms=1500,
    ) as running:
        yield running


async def test_who_does_not_drain_at_all_is_closed_and_delays_nobody(narrow: ServerProcess) -> None:
    async with meet(narrow, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        cid.socket.transport.pause_reading()
        await ben.ask({"type": "PRESENCE", "subscribe": [cid.user_id]}, "PRESENCE")
        for i in range(100):
            await ann.say(group, {"i": i, "fill": FILL}, msgType=6)
            await ben.expect("GROUP_CHAT")
        told = await ben.expect("PRESENCE")
        assert told["users"][0]["online"] is False
        cid.socket.transport.resume_reading()
        assert await cid.expect_close() in (1006, *range(4500, 5000))
        back = await cid.me.connect()
        await back.pull_all(f"sg_{group}")
        assert len(back.replica.of(f"sg_{group}").messages) == 101


async def test_who_reads_again_in_time_is_told_to_sync(narrow: ServerProcess) -> None:
    async with meet(narrow, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await cid.expect("GROUP_EVENT")
        cid.socket.transport.pause_reading()
        for i in range(60):  # about a megabyte
            await ann.say(group, {"i": i, "fill": FILL}, msgType=6)
        cid.socket.transport.resume_reading()
        resync = await cid.expect("RESYNC")
        assert resync["reason"] == "slow_consumer"
        assert 0 <= resync["afterMs"] <= 1000
        assert len(cid.seen("GROUP_CHAT")) < 60
        # push equals pull at the end: by SYNC and PULL it has everything


async def test_a_slow_reader_who_drains_is_not_closed(narrow: ServerProcess) -> None:
    """Also when the answers to what it asked for pile up on what it has not read yet."""
    async with meet(narrow, "ann", "ben") as (ann, ben):
        for i in range(20):
            name = (await ann.say(ben, {"i": i, "fill": FILL}, msgType=6))["conversationId"]
        async with open_client(narrow.port, receive_buffer_bytes=16_384) as slow:
            await slow.send(text(json.dumps({"type": "AUTH", "token": ben.me.tokens.access, "baselines": {name: 99}})))
            while b"RESEND_DONE" not in (await slow.next_frame()).payload:
                pass
            pull = json.dumps({"type": "PULL", "conversationId": name})
            await slow.send(*[text(pull)] * 14)  # fourteen times a quarter of a megabyte
            answers = 0
            started = time.monotonic()
            while answers < 14:
                await time_passes(0.05)
                data = await asyncio.get_running_loop().sock_recv(slow.sock, 32_768)
                assert data, f"closed after {answers} answers"
                slow.data += data
                answers += sum(b"PULL_OK" in frame.payload for frame in parse_frames(slow.data))
            assert time.monotonic() - started > 4, "slow enough to be taken for one who does not drain"


async def test_requests_of_one_who_does_not_read_are_not_answered_into_the_blue(narrow: ServerProcess) -> None:
    """Two hundred answers of a quarter of a megabyte each, asked for at once, by one who takes none."""
    async with meet(narrow, "ann", "ben") as (ann, ben):
        for i in range(20):
            name = (await ann.say(ben, {"i": i, "fill": FILL}, msgType=6))["conversationId"]
        before = narrow.rss_bytes
        async with open_client(narrow.port, receive_buffer_bytes=16_384) as stalled:
            auth = {"type": "AUTH", "token": ben.me.tokens.access, "baselines": {name: 99}}
            await stalled.send(text(json.dumps(auth)))
            while b"RESEND_DONE" not in (await stalled.next_frame()).payload:
                pass
            await stalled.send(*[text(json.dumps({"type": "PULL", "conversationId": name}))] * 200)
            highest = 0
            for _ in range(20):
                await ann.ask({"type": "PING"}, "PONG")
                highest = max(highest, narrow.rss_bytes)
                await time_passes(0.05)
        assert highest - before < 24 << 20, f"{(highest - before) >> 20} MiB"


async def test_many_requests_at_once_are_all_answered(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        name = (await ann.say(ben))["conversationId"]
        await ben.send_at_once(*[{"type": "PULL", "conversationId": name}] * 120)
        for _ in range(120):
            await ben.expect("PULL_OK")
        assert ben.seen("ERROR") == []

"""The pages of docs/protocol, played against a real server: every line of their `frames` blocks is done as it stands.

A block is a scene. Its lines:

    alice calls POST /auth/login {…}    an HTTP call (with alice's token, once she has one)
    alice gets {…}                      the `data` of its answer
    alice opens /ws                     a connection; `as nexo.request.v1` offers a subprotocol, and what
                                        stands in base64url(…) is encoded so
    alice is refused 401 {…}            … that did not come about
    alice > {…}                         a frame that she sends
    alice < {…}                         a frame that she gets
    alice closes, alice is closed 4107  which side ended the connection
    # …                                 a remark

A line that begins with a space goes on with the one before. Blocks of a page follow each other; one with settings
(`frames with session.policy=single`) has a server of its own. Alice, bob and carol are registered; `eyJ…alice` is a
token of alice's.

What cannot be the same twice is bound at its first appearance and has to stay what it was: message ids, group ids,
strings with an ellipsis in them. Times need only be times. At the end nothing may have come that is not on the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from harness.server_process import ServerProcess

PATIENCE_S = 30.0
PASSWORD = "correct horse"
PEOPLE = ("alice", "bob", "carol")

_BLOCK = re.compile(r"^```frames(?: with (?P<settings>[^\n]+))?\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^```example (?P<title>[^\n]+)\n(?P<frame>.*?)^```$", re.MULTILINE | re.DOTALL)
_VOLATILE = re.compile(r"\b\d{17,19}\b|g_[A-Za-z0-9]{12}")
_UNSURE = {"connId", "conn_id", "afterMs", "after_ms", "retryAfterMs", "retry_after_ms"}
_TIMES = range(1_600_000_000_000, 4_000_000_000_000)

Frame = dict[str, Any]


class Block(NamedTuple):
    settings: dict[str, object] | None
    lines: list[str]


def blocks_of(page: Path) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(page.read_text()):
        settings = None
        if match["settings"]:
            pairs = (pair.split("=") for pair in match["settings"].split(", "))
            settings = {name.replace(".", "__"): value for name, value in pairs}
        lines: list[str] = []
        for line in match["lines"].splitlines():
            if line.startswith(" "):
                lines[-1] += line.strip()
            elif line and not line.startswith("#"):
                lines.append(line)
        found.append(Block(settings, lines))
    return found


def examples_of(page: Path) -> dict[str, Frame]:
    """Frames that take more than a page to bring about: by the title of their event in `harness/samples.py`."""
    return {match["title"]: json.loads(match["frame"]) for match in _EXAMPLE.finditer(page.read_text())}


def frames_on(page: Path) -> tuple[list[Frame], list[Frame]]:
    """What clients and what the server say on a page."""
    sent: list[Frame] = []
    told = list(examples_of(page).values())
    for block in blocks_of(page):
        for line in block.lines:
            rest = line.partition(" ")[2]
            if rest[:1] in ("<", ">"):
                (sent if rest[0] == ">" else told).append(json.loads(rest[2:]))
    return sent, told


class Bindings:
    """What the page writes, and what it was in this run."""

    def __init__(self) -> None:
        self.real: dict[str, str] = {}

    def bind(self, written: str, real: str) -> bool:
        """Whether it is what it was before. Two tokens of one second may be the same; other things never are."""
        if self.real.setdefault(written, real) != real:
            return False
        return "…" in written or sum(value == real for value in self.real.values()) == 1

    def fill(self, value: Any) -> Any:
        """What is written, as it has to be sent."""
        if isinstance(value, str):
            if value in self.real:
                return self.real[value]
            return _VOLATILE.sub(lambda match: self.real.get(match[0], match[0]), value)
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {self.fill(name): self.fill(item) for name, item in value.items()}
        return value

    def matches(self, written: Any, real: Any, name: str = "") -> bool:
        if name in _UNSURE or (written in _TIMES if type(written) is int else False):
            return type(written) is type(real)
        if isinstance(written, dict) and isinstance(real, dict):
            names = {self.fill(key): key for key in written}
            return names.keys() == real.keys() and all(
                self.matches(written[key], real[filled], key) for filled, key in names.items()
            )
        if isinstance(written, list) and isinstance(real, list):
            return len(written) == len(real) and all(map(self.matches, written, real))
        if isinstance(written, str) and isinstance(real, str):
            return self._matches_text(written, real)
        return type(written) is type(real) and bool(written == real)

    def _matches_text(self, written: str, real: str) -> bool:
        if "…" in written:
            return self.bind(written, real)
        if _VOLATILE.sub("\0", written) != _VOLATILE.sub("\0", real):
            return False
        return all(map(self.bind, _VOLATILE.findall(written), _VOLATILE.findall(real)))


class Connection:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.waiting: list[Frame] = []
        self.changed = asyncio.Event()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for data in self.socket:
                await self.may_read.wait()
                self.waiting.append(json.loads(data))
                self.changed.set()
        self.changed.set()


class Player:
    """One server, and everybody on the page who talks to it."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.bindings = Bindings()
        self.connections: dict[str, Connection] = {}
        self.refusals: dict[str, InvalidStatus] = {}
        self.tokens: dict[str, str] = {}
        self.answer: Any = None
        self._http = httpx.AsyncClient(base_url=server.address, trust_env=False, verify=False, timeout=PATIENCE_S)
        self._stopping: asyncio.Task[int] | None = None
        self._flooded = False

    async def register_all(self) -> None:
        for name in PEOPLE:
            await self.play(f'{name} calls POST /user/register {{"user_id":"{name}","password":"{PASSWORD}"}}')
            await self.play(f'{name} calls POST /auth/login {{"user_id":"{name}","password":"{PASSWORD}"}}')
            self.bindings.bind(f"eyJ…{name}", self.tokens[name])

    async def play(self, line: str) -> None:
        who, _, rest = line.partition(" ")
        if rest.startswith("> "):
            frame = self.bindings.fill(json.loads(rest[2:]))
            await self.connections[who].socket.send(json.dumps(frame))
        elif rest.startswith("< "):
            await self._expect(who, json.loads(rest[2:]))
        elif match := re.fullmatch(r"calls (\w+) (\S+)(?: (\{.*))?", rest):
            await self._call(who, match[1], match[2], match[3])
        elif match := re.fullmatch(r"gets (\{.*)", rest):
            assert self.bindings.matches(json.loads(match[1]), self.answer), f"{line}\ninstead of {self.answer}"
        elif match := re.fullmatch(r"opens (\S+)(?: as (\S+))?", rest):
            await self._open(who, match[1], match[2])
        elif match := re.fullmatch(r"is refused (\d+) (\{.*)", rest):
            response = self.refusals.pop(who).response
            assert response.status_code == int(match[1])
            assert self.bindings.matches(json.loads(match[2]), json.loads(response.body)), response.body
        elif rest == "closes":
            connection = self.connections.pop(who)
            await connection.socket.close()
            await connection.reader
            assert connection.waiting == [], f"{who} got what is not on the page"
        elif match := re.fullmatch(r"is closed (\d+)", rest):
            connection = self.connections.pop(who)
            await asyncio.wait_for(connection.reader, PATIENCE_S)
            assert connection.socket.close_code == int(match[1])
            assert connection.waiting == [], f"{who} got what is not on the page"
        elif rest == "reads nothing more":
            self.connections[who].may_read.clear()
        elif rest == "reads on":
            self.connections[who].may_read.set()
        elif match := re.fullmatch(r"writes (\w+) (\d+) long messages", rest):
            await self._flood(who, match[1], int(match[2]))
        elif line == "the server stops":
            self._stopping = asyncio.create_task(asyncio.to_thread(self.server.stop))
        else:
            raise AssertionError(f"what does this line mean? {line}")

    async def _call(self, who: str, method: str, path: str, body: str | None) -> None:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who in self.tokens else {}
        fields = self.bindings.fill(json.loads(body)) if body else None
        response = await self._http.request(method, self.bindings.fill(path), json=fields, headers=headers)
        answer = response.json()
        assert answer["err_code"] == 0, answer
        self.answer = answer["data"]
        if "access_token" in self.answer:
            self.tokens[who] = self.answer["access_token"]

    async def _open(self, who: str, path: str, subprotocol: str | None) -> None:
        for written, real in self.bindings.real.items():
            path = path.replace(written, real)
        path = re.sub(r"base64url\((.*)\)", lambda match: urlsafe_b64encode(match[1].encode()).decode(), path)
        try:
            socket = await connect(
                self.server.ws_address.removesuffix("/ws") + path,
                subprotocols=[Subprotocol(subprotocol)] if subprotocol else None,
                proxy=None,
                compression=None,
                max_queue=1,
                max_size=None,
            )
        except InvalidStatus as refusal:
            self.refusals[who] = refusal
        else:
            self.connections[who] = Connection(socket)

    async def _expect(self, who: str, written: Frame) -> None:
        connection = self.connections[who]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for i, frame in enumerate(connection.waiting):
                before = dict(self.bindings.real)
                if self.bindings.matches(written, frame):
                    del connection.waiting[i]
                    return
                self.bindings.real = before
            connection.changed.clear()
            wait_s = deadline - time.monotonic()
            if connection.reader.done() or wait_s <= 0:
                got = "\n".join(json.dumps(frame, ensure_ascii=False) for frame in connection.waiting[-10:])
                raise AssertionError(f"{who} should get\n{json.dumps(written, ensure_ascii=False)}\nand got\n{got}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await connection.changed.wait()

    async def _flood(self, who: str, to: str, count: int) -> None:
        self._flooded = True
        for i in range(count):
            fields = {"client_msg_id": f"flood-{i}", "recv_id": to, "content": "x" * 4000}
            await self._call(who, "POST", "/msg/send", json.dumps(fields))

    async def finish(self) -> None:
        """Everybody leaves, having got nothing but what is on the page."""
        await self.close()
        if self._stopping is not None:
            assert await self._stopping == 0
        if not self._flooded:
            left = {who: connection.waiting for who, connection in self.connections.items() if connection.waiting}
            assert left == {}, f"not on the page: {left}"

    async def close(self) -> None:
        await self._http.aclose()
        for connection in self.connections.values():
            connection.may_read.set()
            await connection.socket.close()
            await connection.reader


async def play_page(page: Path) -> None:
    """The blocks that follow each other first, then those with a server of their own."""
    blocks = blocks_of(page)
    together = [line for block in blocks if block.settings is None for line in block.lines]
    for scene in (Block({}, together), *(block for block in blocks if block.settings is not None)):
        settings: dict[str, Any] = dict(scene.settings or {})
        with ServerProcess(**settings) as server:
            player = Player(server)
            try:
                await player.register_all()
                for line in scene.lines:
                    await player.play(line)
            except BaseException:
                await player.close()
                raise
            await player.finish()

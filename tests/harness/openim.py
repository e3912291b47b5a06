"""OpenIM's own SDKs as clients: one process per user, driven by lines. They are installed from a lock file.

async with openim_client("js", server, "alice", token) as alice:
    await alice.call("sendText", {"text": "hello", "recvID": "bob"})
    await alice.event("OnRecvNewMessages", lambda data: ...)
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness import processes
from harness.generators import missing

FOLDER = Path(__file__).parents[1] / "openim"
INSTALL_TIMEOUT_S = 300
PATIENCE_S = 60.0  # only a broken server makes a test wait this long; the machine may be busy
PLATFORMS = {"js": 5, "go": 7}


class OpenimRefusal(Exception):
    """A call of the SDK was refused."""

    def __init__(self, call: str, error: dict[str, Any]) -> None:
        super().__init__(f"{call}: {error}")
        self.code: int = error["errCode"]


def install_sdks() -> str:
    """Returns the path of Node, with the SDKs installed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing("Node.js and npm are not installed (Debian: apt-get install nodejs npm)")
        raise AssertionError
    lock, installed = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, f"the SDKs could not be installed: {done.stderr}"
    return node


class OpenimClient:
    def __init__(self, process: asyncio.subprocess.Process, address: str, user_id: str, kind: str, data: Path) -> None:
        self._process = process
        self._address = address
        self.user_id = user_id
        self._kind = kind
        self._data = data
        self._count = 0
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Condition()
        self.events: list[dict[str, Any]] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if not line.startswith(b"{"):
                continue
            found = json.loads(line)
            if "event" not in found:
                self._asked.pop(found["id"]).set_result(found)
                continue
            async with self._news:
                self.events.append(found)
                self._news.notify_all()

    async def call(self, name: str, *args: Any) -> Any:
        """Returns the answer of the SDK, or raises OpenimRefusal."""
        assert self._process.stdin is not None
        self._count += 1
        asked = self._asked[self._count] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": self._count, "call": name, "args": args})
        self._process.stdin.write(line.encode() + b"\n")
        answer = await asyncio.wait_for(asked, PATIENCE_S)
        if "error" in answer:
            raise OpenimRefusal(name, answer["error"])
        return answer["data"]

    async def event(self, name: str, fits: Callable[[Any], bool] = lambda data: True) -> Any:
        """Returns the data of the first event of this name that fits, as soon as it is there."""

        def found() -> dict[str, Any] | None:
            return next((one for one in self.events if one["event"] == name and fits(one["data"])), None)

        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(lambda: found() is not None)
        except TimeoutError:
            raise TimeoutError(f"{self.user_id} got no {name}; the last events were {self.events[-5:]}") from None
        one = found()
        assert one is not None
        return one["data"]

    async def login(self, token: str) -> None:
        account = {
            "userID": self.user_id,
            "token": token,
            "platformID": PLATFORMS[self._kind],
            "apiAddr": f"http://{self._address}/openim",
            "wsAddr": f"ws://{self._address}/openim",
            "logLevel": 5 if self._kind == "js" else 1,
        }
        await self.call("login", account | ({"dataDir": str(self._data)} if self._kind == "go" else {}))

    async def message(self, text: str) -> dict[str, Any]:
        """Returns a message with this text, once it was received."""
        received = await self.event("OnRecvNewMessages", lambda data: any(text_of(one) == text for one in data))
        return next(one for one in received if text_of(one) == text)

    async def history(self, conversation: str) -> list[str]:
        asked = {"conversationID": conversation, "count": 50, "startClientMsgID": "", "lastMinSeq": 0, "viewType": 0}
        found = await self.call("getAdvancedHistoryMessageList", asked)
        return [text_of(message) for message in found["messageList"]]

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading


def text_of(message: dict[str, Any]) -> str:
    for name in ("textElem", "atTextElem", "quoteElem"):
        found = message.get(name)
        if found:
            return str(found.get("content") or found.get("text"))
    return f"type {message['contentType']}"


@asynccontextmanager
async def openim_client(
    kind: str, address: str, user_id: str, token: str, data: Path | None = None
) -> AsyncIterator[OpenimClient]:
    """A client that has signed in and is in sync. `kind` is js or go; `address` is host and port; `data` is the folder
    of an earlier client."""
    node = install_sdks()
    folder = data or processes.new_dir(f"openim_{user_id}")
    options = ["--experimental-websocket"] if kind == "js" else []
    with (folder / "errors").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            node,
            "--no-warnings",
            *options,
            str(FOLDER / f"client_{kind}.mjs"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            limit=1 << 24,
        )
    client = OpenimClient(process, address, user_id, kind, folder)
    try:
        await client.login(token)
        await client.event("OnSyncServerFinish")
        yield client
    finally:
        await client.end()

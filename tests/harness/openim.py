"""OpenIM's own SDKs as clients: one process per user, driven by lines. They are installed from a lock file.

async with openim_client("js", host(server), "alice", token) as alice:
    await alice.call("sendText", {"text": "hello", "recvID": "bob"})
    await alice.event("OnRecvNewMessages", lambda data: ...)
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness import processes
from harness.chat import PASSWORD, Person, Site, World
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


def host(server: Site) -> str:
    return server.address.partition("://")[2]


def chat_of(first: str, second: str) -> str:
    return f"si_{min(first, second)}_{max(first, second)}"


async def people(here: World, *names: str) -> list[Person]:
    """New users who have signed in. The Go core wants ids without dots."""
    made = []
    for name in names:
        person = Person(here, f"{name}_{secrets.token_hex(5)}")
        await here.call("POST", "/user/register", json={"user_id": person.user_id, "password": PASSWORD})
        person.tokens = await person.log_in()
        made.append(person)
    return made


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
    def __init__(
        self,
        process: asyncio.subprocess.Process,
        address: str,
        user_id: str,
        kind: str,
        data: Path,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self._process = process
        self._address = address
        self.user_id = user_id
        self._kind = kind
        self.data = data  # the folder of its database
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

    async def call(self, name: str, *args: Any, patience_s: float = 0.0) -> Any:
        """Returns the answer of the SDK, or raises OpenimRefusal."""
        assert self._process.stdin is not None
        self._count += 1
        asked = self._asked[self._count] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": self._count, "call": name, "args": args})
        self._process.stdin.write(line.encode() + b"\n")
        answer = await asyncio.wait_for(asked, patience_s or self._patience_s)
        if "error" in answer:
            raise OpenimRefusal(name, answer["error"])
        return answer["data"]

    async def event(self, name: str, fits: Callable[[Any], bool] = lambda data: True) -> Any:
        """Returns the data of the first event of this name that fits, as soon as it is there."""

        def found() -> dict[str, Any] | None:
            return next((one for one in self.events if one["event"] == name and fits(one["data"])), None)

        try:
            async with asyncio.timeout(self._patience_s), self._news:
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
        await self.call("login", account | ({"dataDir": str(self.data)} if self._kind == "go" else {}))

    async def message(self, text: str) -> dict[str, Any]:
        """Returns a message with this text, once it was received."""
        received = await self.event("OnRecvNewMessages", lambda data: any(text_of(one) == text for one in data))
        return next(one for one in received if text_of(one) == text)

    async def history(self, conversation: str) -> list[str]:
        return [text_of(message) for message in await self._history(conversation)]

    async def _history(self, conversation: str) -> list[dict[str, Any]]:
        asked = {"conversationID": conversation, "count": 500, "startClientMsgID": "", "lastMinSeq": 0, "viewType": 0}
        found: dict[str, list[dict[str, Any]]] = await self.call("getAdvancedHistoryMessageList", asked)
        return found["messageList"]

    async def conversation(self, name: str) -> dict[str, Any]:
        listed = await self.call("getConversationListSplit", {"offset": 0, "count": 50})
        found: dict[str, Any] = next(one for one in listed if one["conversationID"] == name)
        return found

    async def unread(self, name: str) -> int:
        count: int = (await self.conversation(name))["unreadCount"]
        return count

    async def history_is(self, name: str, texts: list[str]) -> bool:
        return await self.history(name) == texts

    async def message_by_text(self, name: str, text: str) -> dict[str, Any]:
        return next(one for one in await self._history(name) if text_of(one) == text)

    async def send_file(self, name: str, data: bytes, recv_id: str) -> None:
        """Send a file as an application does: one SDK uploads by itself, the other gets the address."""
        if self._kind == "go":
            path = self.data / name
            path.write_bytes(data)
            asked = {"create": "createFileMessageFromFullPath", "argument": {"filePath": str(path), "fileName": name}}
            await self.call("sendCreated", {**asked, "recvID": recv_id})
            return
        url = (await self.call("uploadText", {"name": name, "text": data.decode()}))["url"]
        file = {"filePath": "", "fileName": name, "uuid": "u", "sourceUrl": url, "fileSize": len(data)}
        await self.call("sendCreated", {"create": "createFileMessageByURL", "argument": file, "recvID": recv_id})

    def forget(self) -> None:
        """Leave the events so far out of what `event` looks at."""
        self.events.clear()

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
    kind: str, address: str, user_id: str, token: str, data: Path | None = None, patience_s: float = PATIENCE_S
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
    client = OpenimClient(process, address, user_id, kind, folder, patience_s)
    try:
        await client.login(token)
        await client.event("OnSyncServerFinish")
        yield client
    finally:
        await client.end()

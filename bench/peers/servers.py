"""The servers under comparison, each with its database: started in a temporary folder and pinned to one core."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from clients import Client, NexoClient, SocketIoClient, XmppClient

from harness import processes
from harness.mariadb import MariaDb
from harness.postgres import Postgres
from harness.server import SqlServer
from nexo.bench.processes import Usage, usage_of
from nexo.bench.server import own_server

SERVER_CORE = {0}
HERE = Path(__file__).parent
EJABBERD = Path("/usr/lib/x86_64-linux-gnu")
DATABASES: dict[str, type[SqlServer]] = {"mariadb": MariaDb, "postgresql": Postgres}


def pin(pid: int) -> None:
    """All threads and children of a process, and whatever it starts later."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        for task in Path(f"/proc/{one}/task").iterdir():
            os.sched_setaffinity(int(task.name), SERVER_CORE)
            waiting += [int(child) for child in (task / "children").read_text().split()]


class Peer:
    """A running server."""

    def __init__(self, name: str, make: type[Client], port: int, pids: Sequence[int], durability: str) -> None:
        self.name = name
        self.make = make
        self.port = port
        self.pids = pids
        self.durability = durability

    def usage(self) -> Usage:
        """Of the server and its database."""
        return usage_of(self.pids)

    async def sign_up(self, users: list[str]) -> dict[str, str]:
        """Tokens by user, where users have to be made before they connect."""
        return dict.fromkeys(users, "")

    async def make_room(self, owner: Client, members: list[Client], name: str) -> str:
        """A room with all users."""
        await owner.enter(name)
        for start in range(0, len(members), 50):
            await asyncio.gather(*(member.enter(name) for member in members[start : start + 50]))
        await asyncio.sleep(1)
        return name


class NexoPeer(Peer):
    def _call(self, path: str, body: dict[str, Any], token: str = "") -> Any:
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        if not token:
            del headers["authorization"]
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["data"]

    async def sign_up(self, users: list[str]) -> dict[str, str]:
        def one(user: str) -> tuple[str, str]:
            account = {"user_id": user, "password": "benchmark"}
            self._call("/user/register", account)
            return user, self._call("/auth/login", account)["access_token"]

        def everybody() -> dict[str, str]:
            with ThreadPoolExecutor(8) as pool:
                return dict(pool.map(one, users))

        return await asyncio.to_thread(everybody)

    async def make_room(self, owner: Client, members: list[Client], name: str) -> str:
        body = {"name": name, "member_ids": [member.user for member in members]}
        group = await asyncio.to_thread(self._call, "/group/create", body, owner.token)
        await asyncio.sleep(1)
        return str(group["group_id"])


@contextmanager
def _database(kind: str, stack: ExitStack) -> Iterator[tuple[str, list[int]]]:
    """The URL of an empty one, and its processes."""
    if kind == "sqlite":
        yield "", []
        return
    server = stack.enter_context(DATABASES[kind]())
    pin(server.pid)
    yield server.create_database(), [server.pid]


@contextmanager
def nexo(kind: str, work: Path) -> Iterator[Peer]:
    with ExitStack() as stack:
        url, pids = stack.enter_context(_database(kind, stack))
        settings = {"group.strategy.mode": "push"}
        own = stack.enter_context(own_server(url, settings, SERVER_CORE))
        port = urlsplit(own.url).port or 0
        yield NexoPeer(f"Nexo, {kind}", NexoClient, port, [own.pid, *pids], "committed before the ACK, group commit")


def _wait_for(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError


@contextmanager
def _running(command: Sequence[str | Path], folder: Path, port: int, **environment: str) -> Iterator[int]:
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder, env=os.environ | environment, stdout=log, stderr=log, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, SERVER_CORE),
        )  # fmt: skip
        try:
            _wait_for(process, port)
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _socketio(name: str, command: Sequence[str | Path], kind: str, folder: Path, cwd: Path) -> Iterator[Peer]:
    with ExitStack() as stack:
        url, pids = stack.enter_context(_database(kind, stack))
        port = processes.free_port()
        url = url or f"sqlite:{folder / 'messages.db'}"
        pid = stack.enter_context(_running([*command, str(port), url], cwd, port))
        yield Peer(f"{name}, {kind}", SocketIoClient, port, [pid, *pids], "one commit per message, then the ACK")


@contextmanager
def python_socketio(kind: str, work: Path) -> Iterator[Peer]:
    folder = processes.new_dir("psio")
    command = [work / "py/bin/python", HERE / "socketio_server.py"]
    with _socketio("python-socketio", command, kind, folder, folder) as peer:
        yield peer


@contextmanager
def node_socketio(kind: str, work: Path) -> Iterator[Peer]:
    folder = processes.new_dir("sio")
    with _socketio("socket.io", ["node", HERE / "socketio_server.mjs"], kind, folder, work / "node") as peer:
        yield peer


_EJABBERD_CONFIG = """
hosts: [localhost]
loglevel: error
registration_timeout: infinity
auth_method: internal
auth_password_format: plain
default_db: mnesia
listen:
  - {{port: {port}, ip: "127.0.0.1", module: ejabberd_c2s, max_stanza_size: 262144, access: all, starttls: false}}
{sql}
modules:
  mod_register: {{ip_access: all, access: all, password_strength: 0}}
  mod_mam: {{db_type: sql, default: always}}
  mod_muc:
    access: all
    access_create: all
    max_users: 5000
    default_room_options: {{mam: true, max_users: 5000, presence_broadcast: [moderator]}}
"""
_EJABBERD_SQL = {"sqlite": ("sqlite", "lite.sql"), "mariadb": ("mysql", "mysql.sql"), "postgresql": ("pgsql", "pg.sql")}


@contextmanager
def ejabberd(kind: str, work: Path) -> Iterator[Peer]:
    folder = processes.new_dir("ejd")
    with ExitStack() as stack:
        url, pids = stack.enter_context(_database(kind, stack))
        sql_type, schema = _EJABBERD_SQL[kind]
        sql = f"sql_type: {sql_type}\n"
        if kind == "sqlite":
            sql += f'sql_database: "{folder / "archive.db"}"'
        else:
            parts = urlsplit(url)
            sql += f"sql_server: 127.0.0.1\nsql_port: {parts.port}\nsql_database: {parts.path[1:]}\n"
            sql += f'sql_username: {parts.username}\nsql_password: "{parts.password}"\nsql_pool_size: 10\n'
            _load_schema(kind, url, Path("/usr/share/ejabberd/sql") / schema)
        port = processes.free_port()
        (folder / "ejabberd.yml").write_text(_EJABBERD_CONFIG.format(port=port, sql=sql))
        code = next(EJABBERD.glob("ejabberd-*/ebin"))
        command = ["erl", "-noinput", "+K", "true", "+P", "250000", "-pa", code, "-mnesia", "dir",
                   f'"{folder / "mnesia"}"', "-s", "ejabberd"]  # fmt: skip
        environment = {"EJABBERD_CONFIG_PATH": str(folder / "ejabberd.yml"), "EJABBERD_LOG_PATH": str(folder / "e.log"),
                       "HOME": str(folder)}  # fmt: skip
        pid = stack.enter_context(_running(command, folder, port, **environment))
        time.sleep(2)
        yield Peer(f"ejabberd, {kind}", XmppClient, port, [pid, *pids], "archived by one INSERT per message and side")


def _load_schema(kind: str, url: str, schema: Path) -> None:
    parts = urlsplit(url)
    if kind == "mariadb":
        command = ["mariadb", "-h127.0.0.1", f"-P{parts.port}", f"-u{parts.username}", f"-p{parts.password}",
                   parts.path[1:]]  # fmt: skip
    else:
        command = ["psql", "-q", url]
    with schema.open() as text:
        subprocess.run(command, stdin=text, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


KINDS = {"nexo": nexo, "ejabberd": ejabberd, "python-socketio": python_socketio, "socket.io": node_socketio}

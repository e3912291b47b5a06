"""Upgrade of a store of release 0.1 with a million messages: how long `nexo migrate` takes, and what chats notice.

    .venv/bin/python bench/upgrade.py --old 1ab5830
    .venv/bin/python bench/upgrade.py --old 1ab5830 --engines postgresql --messages 200000

`--old` is a commit of release 0.1, whose server runs during the upgrade of a server database (the embedded one is
upgraded while it is stopped). Chats send, read and list meanwhile; with `--reading` so do transactions of that many
seconds, one after the other, as a report does. The longest answer shows the longest lock. Fails when one takes a
second, or a message is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import servers, sql
from harness.old_schema import RELEASE_0_1, fill_previous
from harness.server_process import NEXO, ServerProcess, environment
from nexo.config import parse_store_url

ROOT = Path(__file__).parent.parent

CHATS = 1000
PORTION = 100_000
PAIRS = 8
SECRET = "a secret of the benchmark, 32 bytes or more"
NUMBERS = {
    "sqlite": "(WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n+1 FROM s WHERE n<{last}) SELECT n FROM s)",
    "mariadb": "(SELECT seq AS n FROM seq_0_to_{last})",
    "postgresql": "(SELECT n FROM generate_series(0,{last}) AS n)",
}


def statements(engine: str, messages: int) -> list[str]:
    """Returns statements that make chats of two users each, with all their messages."""

    def numbers(count: int) -> str:
        return NUMBERS[engine].format(last=count - 1) + " AS numbers"

    def named(begin: str, number: str, end: str = "") -> str:
        parts = (f"'{begin}'", f"CAST({number} AS {'CHAR' if engine == 'mariadb' else 'TEXT'})", f"'{end}'")
        return f"CONCAT({','.join(parts)})" if engine == "mariadb" else "||".join(parts)

    each = messages // CHATS
    low, high = named("a", "n"), named("b", "n")
    name = named("si_a", "n", ":b")
    name = f"CONCAT({name},n)" if engine == "mariadb" else f"{name}||CAST(n AS TEXT)"
    made = [
        f"INSERT INTO users (user_id,password_hash) SELECT {user_id},'' FROM {numbers(CHATS)}"
        for user_id in (low, high)
    ]
    made.append(
        "INSERT INTO conversations (id,conversation_id,kind,head_seq,countable,last_send_at,member_count) "
        f"SELECT n+1,{name},1,{each},{each},{each},2 FROM {numbers(CHATS)}"
    )
    for own, peer in ((low, high), (high, low)):
        made.append(f"INSERT INTO members (conv,user_id,peer_id) SELECT n+1,{own},{peer} FROM {numbers(CHATS)}")
    for start in range(0, messages, PORTION):
        n = f"(n+{start})"
        seq = f"{n} {'DIV' if engine == 'mariadb' else '/'} {CHATS}+1"
        content = named('"a message as long as most are, number ', n, '"')
        made.append(
            "INSERT INTO messages (server_msg_id,conv,seq,sender_id,client_msg_id,msg_type,content,send_at,"
            f"countable_no) SELECT {n}+1,{n}%{CHATS}+1,{seq},{named('a', f'{n}%{CHATS}')},{named('c', n)},1,{content},"
            f"{seq},{seq} FROM {numbers(min(PORTION, messages - start))}"
        )
    return made


class Chats:
    """Pairs of users who send and read all the time, and how long each answer took."""

    def __init__(self, address: str) -> None:
        self._http = httpx.AsyncClient(base_url=address, timeout=60)
        self.answers: list[tuple[float, str, float]] = []
        self.refused: list[str] = []
        self.saved = 0
        self.ended = False

    async def _ask(self, what: str, headers: dict[str, str], path: str, **body: Any) -> Any:
        started = time.monotonic()
        sent = self._http.post(path, json=body, headers=headers) if body else self._http.get(path, headers=headers)
        answer = (await sent).json()
        self.answers.append((started, what, time.monotonic() - started))
        if answer["err_code"]:
            self.refused.append(f"{what}: {answer['err_msg']}")
        return answer.get("data")

    async def pair(self, number: int) -> None:
        names = [f"p{number}", f"q{number}"]
        tokens = []
        for name in names:
            await self._ask("register", {}, "/user/register", user_id=name, password="a password")
            signed = await self._ask("login", {}, "/auth/login", user_id=name, password="a password")
            tokens.append({"Authorization": f"Bearer {signed['access_token']}"})
        count = 0
        while not self.ended:
            count += 1
            fields = {"client_msg_id": f"u{count}", "recv_id": names[1], "content": "hello"}
            saved = await self._ask("send", tokens[0], "/msg/send", **fields)
            self.saved += saved is not None and saved["seq"] == count
            await self._ask("list", tokens[1], "/conversation/list")
            name = f"si_{names[0]}:{names[1]}"
            await self._ask("read", tokens[1], "/conversation/read", conversation_id=name, seq=count)
            await self._ask("history", tokens[1], f"/msg/history?conversation_id={name}&limit=20")
            await asyncio.sleep(0.02)

    def longest(self, since: float, until: float) -> str:
        found: dict[str, float] = {}
        for at, what, took in self.answers:
            if at + took >= since and at <= until:
                found[what] = max(found.get(what, 0.0), took)
        return ", ".join(f"{what} {took * 1000:.0f} ms" for what, took in sorted(found.items()))


def migrate(*options: str, **settings: object) -> float:
    started = time.monotonic()
    command = [str(NEXO), "migrate", *options]
    done = subprocess.run(command, env=environment(settings), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.monotonic() - started


def embedded(messages: int) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nexo.db"
        asyncio.run(fill_previous(parse_store_url(f"sqlite:///{path}"), {}, RELEASE_0_1))
        with closing(sqlite3.connect(path)) as database:
            for statement in statements("sqlite", messages):
                database.execute(statement)
            database.commit()
        taken = migrate("--data", folder)
        with closing(sqlite3.connect(path)) as database:
            ((kept,),) = database.execute("SELECT count(*) FROM messages")
        size = path.stat().st_size / 2**20
    print(f"sqlite: {kept:,} messages ({size:.0f} MiB) upgraded in {taken:.2f} s, start of the command included")
    return bool(kept == messages)


async def long_reader(url: str, seconds: float) -> None:
    """Read in transactions of this length, one after the other, as a backup or a report does."""
    async with sql.connected(url) as run:
        while True:
            await run("BEGIN")
            await run("SELECT count(*) FROM messages WHERE server_msg_id<1000")
            await asyncio.sleep(seconds)
            await run("COMMIT")


async def served(server: ServerProcess, url: str, engine: str, messages: int, reading_s: float) -> bool:
    chats = Chats(server.address)
    tasks = [asyncio.create_task(chats.pair(number)) for number in range(PAIRS)]
    await asyncio.sleep(5)
    began = time.monotonic()
    reader = asyncio.create_task(long_reader(url, reading_s)) if reading_s else None
    await asyncio.sleep(0.5)
    started = time.monotonic()
    taken = await asyncio.to_thread(migrate, store__url=url)
    ended = time.monotonic()
    await asyncio.sleep(3)
    chats.ended = True
    await asyncio.gather(*tasks)
    if reader is not None:
        reader.cancel()
        await asyncio.wait({reader})
    kept = (await asyncio.to_thread(sql.execute, url, "SELECT count(*) FROM messages"))[0][0]
    longest = max(took for at, _, took in chats.answers if at + took >= started)
    beside = f" beside transactions that read for {reading_s:g} s" if reading_s else ""
    print(f"{engine}: {messages:,} messages upgraded in {taken:.2f} s{beside}, start of the command included")
    print(f"    longest answers before: {chats.longest(began - 4, began)}")
    print(f"    longest answers meanwhile: {chats.longest(started, ended)}")
    print(f"    {len(chats.answers)} requests, refused: {sorted(set(chats.refused)) or 'none'}")
    return longest < 1 and not chats.refused and kept == messages + chats.saved


def with_server(engine: str, messages: int, old: Path, reading_s: float) -> bool:
    database = servers.mariadb() if engine == "mariadb" else servers.postgres()
    url = database.create_database()
    asyncio.run(fill_previous(parse_store_url(url), {}, RELEASE_0_1))
    for statement in statements(engine, messages):
        sql.execute(url, statement)
    if engine == "postgresql":  # the id was given above
        sql.execute(url, f"SELECT setval(pg_get_serial_sequence('conversations','id'),{CHATS})")
    limits = {"limits__sends_per_s": 0, "limits__registers_per_min": 0, "limits__logins_per_min": 0}
    with ServerProcess(program=old, bare=True, store__url=url, auth__secret=SECRET, **limits) as server:
        return asyncio.run(served(server, url, engine, messages, reading_s))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, help="a commit of release 0.1")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--engines", default="sqlite,mariadb,postgresql")
    parser.add_argument("--reading", type=float, default=0, help="seconds of transactions that read; 0: none")
    asked = parser.parse_args()
    good = []
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", asked.old], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", f"{folder}/more", "starlette"]
        subprocess.run(pip, check=True)  # what it needed and this release does not
        old = Path(folder) / "nexo"
        old.write_text(f'#!/bin/sh\nPYTHONPATH={folder}/src:{folder}/more exec {sys.executable} -m nexo "$@"\n')
        old.chmod(0o755)
        for engine in asked.engines.split(","):
            if engine == "sqlite":
                good.append(embedded(asked.messages))
            else:
                good.append(with_server(engine, asked.messages, old, asked.reading))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()

"""kill -9 at random moments while files are uploaded and sent: no message that was acknowledged lacks its file, the
storage and the database agree, and after the grace time nothing is left that no message names. The long mode has a
hundred kills."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import secrets
import sqlite3
from pathlib import Path
from typing import Any

import httpx

from harness.chat import Person, world
from harness.server_process import ServerProcess
from harness.waiting import until

KILLS = 100 if os.environ.get("NEXO_LONG_TESTS") else 3
DAY_AND_MORE_S = 26 * 3600
USERS = 3
PART = 600_000  # large bodies take another way than small ones
TUS = {"Tus-Resumable": "1.0.0"}


async def one_file(http: httpx.AsyncClient, data: bytes) -> str:
    """Uploads a file in one of both ways; returns its id."""
    if random.random() < 0.5:
        return str((await http.post("/files", content=data)).json()["data"]["file_id"])
    begun = await http.post("/files/tus", headers={**TUS, "Upload-Length": str(len(data))})
    path = begun.headers["location"]
    offset = 0
    while offset < len(data):
        headers = {**TUS, "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
        answer = await http.patch(path, content=data[offset : offset + PART], headers=headers)
        offset = int(answer.headers["upload-offset"])
    return str(path.rpartition("/")[2])


async def keep_sending(http: httpx.AsyncClient, receiver: str, sent: dict[str, bytes], stop: asyncio.Event) -> None:
    """Uploads and sends; `sent` gets the files of messages that were acknowledged."""
    while not stop.is_set():
        data = secrets.token_bytes(random.randrange(1, random.choice((100_000, 2_000_000))))
        with contextlib.suppress(httpx.HTTPError, KeyError, TypeError, ValueError):  # the server is being killed
            file_id = await one_file(http, data)
            fields: dict[str, Any] = {"client_msg_id": secrets.token_hex(8), "recv_id": receiver, "msg_type": 5}
            answer = await http.post("/msg/send", json={**fields, "content": {"file_id": file_id}})
            if answer.status_code == 200:
                sent[file_id] = data


def a_day_passes(data: Path) -> None:
    """Moves everything that is to be deleted some time into the past, in the database and in the storage."""
    with contextlib.closing(sqlite3.connect(data / "nexo.db")) as database, database:
        for table, columns in (
            ("files", ("free_at", "created_at")),
            ("blobs", ("free_at",)),
            ("uploads", ("expires_at", "touched_at")),
            ("blob_leftovers", ("due_at",)),
        ):
            for column in columns:
                database.execute(f"UPDATE {table} SET {column}={column}-? WHERE {column}>0", (DAY_AND_MORE_S * 1000,))
    for path in (data / "files").rglob("*"):
        if path.is_file():
            old = path.stat().st_mtime - DAY_AND_MORE_S
            os.utime(path, (old, old))


def named_blobs(data: Path) -> set[str]:
    """The bytes of all files that a message names."""
    with contextlib.closing(sqlite3.connect(data / "nexo.db")) as database:
        found = database.execute("SELECT f.blob_name FROM file_uses u JOIN files f ON f.file_id=u.file_id")
        return {name for (name,) in found}


async def test_no_acknowledged_message_lacks_its_file_after_kills() -> None:
    sent: dict[str, bytes] = {}
    stop = asyncio.Event()
    with ServerProcess() as server:
        async with world(server) as here, contextlib.AsyncExitStack() as stack:
            people: list[Person] = await here.people(*(f"p{number}" for number in range(USERS)))
            clients = [
                await stack.enter_async_context(
                    httpx.AsyncClient(
                        base_url=server.address, headers={"Authorization": f"Bearer {person.tokens.access}"}, timeout=20
                    )
                )
                for person in people
            ]
            tasks = [
                asyncio.create_task(keep_sending(http, people[number - 1].user_id, sent, stop))
                for number, http in enumerate(clients)
            ]
            for _ in range(KILLS):
                goal = len(sent) + random.randrange(1, 12)
                await until(lambda goal=goal: len(sent) >= goal)  # type: ignore[misc]
                server.kill()
                await asyncio.to_thread(server.start)
            stop.set()
            await asyncio.gather(*tasks)
            for file_id, data in sent.items():
                answers = [await http.get(f"/files/{file_id}") for http in clients]
                assert any(answer.content == data for answer in answers if answer.status_code == 200), file_id
        found = await asyncio.to_thread(server.run, "check", "--files", "--json")
        assert found.returncode == 0, found.stdout
        report = json.loads(found.stdout)["files"]
        assert report["counts"] == {}
        assert len(sent) > KILLS
        server.stop()
        await asyncio.to_thread(a_day_passes, server.data)
        assert (await asyncio.to_thread(server.run, "files", "gc")).returncode == 0
        found = await asyncio.to_thread(server.run, "check", "--files", "--json")
        assert json.loads(found.stdout)["files"]["counts"] == {}
        kept = {path.name for path in (server.data / "files").rglob("*") if path.is_file()}
        assert kept == named_blobs(server.data), "all that messages name, and nothing else"

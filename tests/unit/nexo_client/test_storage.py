"""What is kept is kept: in a file that survives being killed at any moment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nexo_client import FileStorage, MemoryStorage, Storage
from nexo_client.storage import file as storage

WRITER = """
import asyncio, sys
from nexo_client import FileStorage
async def main():
    storage = FileStorage(sys.argv[1])
    for number in range(100000):
        await storage.set(f"outbox/a/{number:06}", {"number": number, "text": "x" * 200})
        print(number, flush=True)
        if number % 3 == 0:
            await storage.delete(f"outbox/a/{number:06}")
asyncio.run(main())
"""


async def everything_in(path: Path) -> dict[str, Any]:
    kept = FileStorage(path)
    found = dict(await kept.entries(""))
    await kept.close()
    return found


@pytest.fixture(params=["memory", "file"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return MemoryStorage() if request.param == "memory" else FileStorage(tmp_path / "kept")


async def test_values_are_kept_by_key_and_listed_in_order(kept: Storage) -> None:
    await kept.set("b/2", [1, {"x": None}])
    await kept.set("b/1", "text")
    await kept.set("a", 7)
    await kept.delete("a")
    await kept.delete("never there")
    assert await kept.get("b/2") == [1, {"x": None}]
    assert await kept.get("a") is None
    assert await kept.entries("b/") == [("b/1", "text"), ("b/2", [1, {"x": None}])]
    await kept.close()


async def test_what_was_returned_from_is_there_after_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:  # noqa: ASYNC220
        assert writer.stdout is not None
        last = 0
        while last < 60:
            last = int(writer.stdout.readline())
        writer.kill()
        last = max([last, *(int(line) for line in writer.stdout.read().split("\n")[:-1])])
    found = await everything_in(path)
    for number in range(last):
        value = found.get(f"outbox/a/{number:06}")
        assert (value is None) == (number % 3 == 0)


async def test_a_line_that_was_cut_off_is_ignored_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    first = FileStorage(path)
    await first.set("a", 1)
    await first.close()
    with path.open("ab") as file:
        file.write(b'["b", "2')
    second = FileStorage(path)
    assert await second.entries("") == [("a", 1)]
    await second.set("c", 3)
    await second.close()
    assert await everything_in(path) == {"a": 1, "c": 3}


async def test_the_file_does_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_REWRITE_AT_BYTES", 2000)
    path = tmp_path / "kept"
    kept = FileStorage(path)
    for number in range(300):
        await kept.set("baseline", number)
    assert path.stat().st_size < 3000
    await kept.set("other", "x")
    await kept.close()
    assert await everything_in(path) == {"baseline": 299, "other": "x"}


async def test_two_processes_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    kept = FileStorage(path)
    await kept.set("a", 1)
    code = f"import asyncio; from nexo_client import FileStorage; asyncio.run(FileStorage({str(path)!r}).get('a'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: ASYNC221
    assert "in use by another process" in done.stderr
    await kept.close()


async def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    kept = FileStorage(tmp_path / "kept")
    await kept.set("session", {"refresh_token": "secret"})
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0
    assert json.loads((tmp_path / "kept").read_text())[0] == "session"
    await kept.close()

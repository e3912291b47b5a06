"""`nexo files` and `nexo check --files` on a store with files."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness.api import open_api
from harness.migrated import migrated_database
from nexo.cli import app


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    with migrated_database("sqlite", tmp_path) as url:
        yield tmp_path / "data", {"NEXO_STORE__URL": url}


async def fill(place: tuple[Path, dict[str, str]], *contents: bytes) -> list[str]:
    """Uploads files of ann; returns their ids."""
    folder, env = place
    async with open_api(env["NEXO_STORE__URL"], ("ann", "ben"), data__dir=str(folder)) as api:
        found = [(await api.request("ann", "POST", "/files?name=a.txt", content=data)).data for data in contents]
        content = {"file_id": found[0]["file_id"]}
        await api.post("ann", "/msg/send", client_msg_id="c", recv_id="ben", msg_type=5, content=content)
    return [file["file_id"] for file in found]


def nexo(place: tuple[Path, dict[str, str]], *words: str, code: int = 0) -> Any:
    folder, env = place
    done = CliRunner().invoke(app, [*words, "--data", str(folder), "--json"], env=env)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def blobs(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "files" / "blobs").rglob("*") if path.is_file())


def test_files_are_listed_checked_and_repaired(place: tuple[Path, dict[str, str]]) -> None:
    ids = asyncio.run(fill(place, b"one", b"two", b"three"))
    listed = nexo(place, "files", "list", "--user", "ann")
    assert {file["file_id"] for file in listed} == set(ids)
    assert len(nexo(place, "files", "list", "--limit", "2")) == 2
    assert nexo(place, "files", "check")["counts"] == {}
    assert nexo(place, "check", "--files")["files"]["blobs"] == 3
    first, second, _ = blobs(place[0])
    first.unlink()
    second.write_bytes(b"other size")
    report = nexo(place, "files", "check", code=1)
    assert (report["missing"], report["wrong_size"]) == ([first.name], [second.name])
    nexo(place, "check", "--files", code=1)


def test_files_move_to_another_storage_and_continue_after_an_interruption(
    place: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    asyncio.run(fill(place, b"one", b"two", secrets.token_bytes(600_000)))
    target = tmp_path / "other"
    assert nexo(place, "files", "move", f"file://{target}")["copied"] == 3
    assert nexo(place, "files", "move", f"file://{target}")["copied"] == 0
    names = {path.name: path.read_bytes() for path in blobs(place[0])}
    copies = sorted(path for path in (target / "blobs").rglob("*") if path.is_file())
    assert {path.name: path.read_bytes() for path in copies} == names
    copies[0].unlink()
    assert nexo(place, "files", "move", f"file://{target}")["copied"] == 1
    place[1]["NEXO_FILES__URL"] = f"file://{target}"
    assert nexo(place, "files", "check")["counts"] == {}


def test_collecting_deletes_what_no_row_knows(place: tuple[Path, dict[str, str]]) -> None:
    asyncio.run(fill(place, b"one"))
    stray = place[0] / "files" / "blobs" / "zz" / "zz-stray"
    stray.parent.mkdir()
    stray.write_bytes(b"x")
    assert nexo(place, "files", "check")["counts"] == {}, "it may be in use"
    old = stray.stat().st_mtime - 100_000
    os.utime(stray, (old, old))
    assert nexo(place, "files", "check")["unknown"] == ["zz-stray"]
    assert nexo(place, "files", "gc")["orphans"] == 1
    assert not stray.exists()
    assert len(blobs(place[0])) == 1

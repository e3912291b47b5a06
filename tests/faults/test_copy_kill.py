"""kill -9 in the middle of `nexo copy-store` and `nexo import-legacy`: the same command goes on where it was.

Each command dies several times, in every stage that writes, and in the proof. What it has at the end is what an
undisturbed run has, row by row.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness import servers
from harness.core import open_test_core
from harness.history import PEOPLE, History
from harness.legacy import Past, make
from nexo.config import parse_store_url
from nexo.errors import StartupError
from nexo.store import migrate
from nexo.store.check import check
from nexo.store.transfer.connections import open_source
from nexo.store.transfer.copy import columns_of, tables

NEXO = Path(sys.executable).with_name("nexo")
LONG = os.environ.get("NEXO_LONG_TESTS") == "1"
MESSAGES = 50_000 if LONG else 3000
LINE = re.compile(r"nexo: (.+): ([\d,]+) of ([\d,]+) \((\d+) %\)")


class Life(NamedTuple):
    """One run: the stages it told of, each with the percentages, in order."""

    told: list[tuple[str, int]]
    returncode: int
    output: str
    complaints: str

    def first(self, stage: str) -> int:
        return next(percent for name, percent in self.told if name == stage)


def run(
    command: list[str],
    folder: Path,
    die_at: tuple[str, int] | None = None,
    blow: Callable[[subprocess.Popen[str]], None] = subprocess.Popen.kill,
) -> Life:
    """Run it to its end, or until it has told that a stage is so far: then something befalls it, by default SIGKILL."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}
    process = subprocess.Popen(
        [str(NEXO), *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=plain
    )
    told: list[tuple[str, int]] = []
    complaints = ""
    assert process.stderr is not None
    assert process.stdout is not None
    with process:
        for line in process.stderr:
            found = LINE.match(line)
            if found is None:
                complaints += line
                continue
            told.append((found[1], int(found[4])))
            if die_at is not None and told[-1][0] == die_at[0] and told[-1][1] >= die_at[1]:
                blow(process)
                die_at = None
        output = process.stdout.read()
        process.wait(120)
    return Life(told, process.returncode, output, complaints)


async def read_all(url: str) -> dict[str, list[tuple[Any, ...]]]:
    async with open_source(parse_store_url(url)) as connection:
        return {
            str(table.name): await connection.read(
                f"SELECT {','.join(columns_of(table))} FROM {table.name} "
                f"ORDER BY {','.join(column.name for column in table.primary_key)}"
            )
            for table in tables()
            if table.name != "node_leases"
        }


@pytest.fixture(scope="module")
def lively(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a bit of everything and many messages, embedded."""
    url = f"sqlite:///{tmp_path_factory.mktemp('lively')}/nexo.db"

    async def fill() -> None:
        await migrate.upgrade(parse_store_url(url))
        async with open_test_core(url, PEOPLE) as core:
            history = History(core, 3)
            await history.live(600)
            for start in range(0, MESSAGES, 200):
                await asyncio.gather(
                    *(
                        core.sending.send("user0", client_msg_id=f"many-{n}", recv_id="user1", content=f"text {n}")
                        for n in range(start, start + 200)
                    )
                )

    asyncio.run(fill())
    return url


def test_a_copy_goes_on_after_every_kill(lively: str, store_url: str, tmp_path: Path) -> None:
    target = store_url if not store_url.startswith("sqlite") else f"sqlite:///{tmp_path}/copy/nexo.db"
    command = ["copy-store", "--from", lively, "--to", target, "--batch", "40", "--json"]
    lives = [run(command, tmp_path, die_at) for die_at in (("copying", 50), ("comparing", 50))]
    assert [life.returncode for life in lives] == [-9, -9], lives
    assert lives[1].first("copying") >= 50, "it began anew"
    with pytest.raises(StartupError, match="half a copy"):
        asyncio.run(check(parse_store_url(target)))
    last = run(command, tmp_path)
    assert last.returncode == 0, last.complaints
    report = json.loads(last.output)
    assert report["resumed"]
    assert report["good"]
    assert "copying" not in dict(last.told), "it was all copied before the last kill"
    assert asyncio.run(read_all(target)) == asyncio.run(read_all(lively))


@pytest.fixture(scope="module")
def old_and_whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """An old database, and what it becomes when nobody disturbs the import."""
    folder = tmp_path_factory.mktemp("old")
    source, whole = f"sqlite:///{folder}/legacy.db", f"sqlite:///{folder}/whole/nexo.db"
    asyncio.run(make(source, Past(MESSAGES, people=300, singles=1500, groups=40).rows))
    done = run(["import-legacy", "--from", source, "--to", whole], folder)
    assert done.returncode == 0, done.complaints
    return source, whole


def test_an_import_goes_on_after_every_kill(old_and_whole: tuple[str, str], store_url: str, tmp_path: Path) -> None:
    source, undisturbed = old_and_whole
    target = store_url if not store_url.startswith("sqlite") else f"sqlite:///{tmp_path}/copy/nexo.db"
    command = ["import-legacy", "--from", source, "--to", target, "--batch", "70", "--json"]
    for die_at in (("importing users", 40), ("importing messages", 50), ("importing conversations", 30)):
        life = run(command, tmp_path, die_at)
        assert life.returncode == -9, life.complaints
    last = run(command, tmp_path)
    assert last.returncode == 0, last.complaints
    report = json.loads(last.output)
    assert report["resumed"]
    assert report["good"]
    assert {stage for stage, _ in last.told if stage.startswith("importing")} <= {"importing conversations"}
    assert asyncio.run(read_all(target)) == asyncio.run(read_all(undisturbed))


@pytest.mark.servers
@pytest.mark.parametrize("kind", [servers.Postgres] + [servers.MariaDb] * LONG)
def test_a_database_that_dies_is_told_and_the_command_goes_on_later(
    kind: type[servers.SqlServer], tmp_path: Path
) -> None:
    source = f"sqlite:///{tmp_path}/old/legacy.db"
    asyncio.run(make(source, Past(800).rows))
    with kind() as server:
        command = ["import-legacy", "--from", source, "--to", server.create_database(), "--batch", "20"]
        interrupted = run(command, tmp_path, ("importing messages", 30), lambda process: server.kill())
        assert interrupted.returncode == 4, interrupted.complaints
        assert "the same command continues where it stopped" in interrupted.complaints
        assert "Traceback" not in interrupted.complaints
        server.start()
        finished = run(command, tmp_path)
        assert finished.returncode == 0, finished.complaints
        assert finished.first("importing messages") >= 30


def test_an_import_is_not_taken_up_when_its_source_has_changed(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old/legacy.db", f"sqlite:///{tmp_path}/new/nexo.db"
    past = Past(500)
    asyncio.run(make(source, past.rows))
    command = ["import-legacy", "--from", source, "--to", target, "--batch", "20"]
    assert run(command, tmp_path, ("importing messages", 50)).returncode == -9
    with sqlite3.connect(tmp_path / "old" / "legacy.db") as connection:
        connection.execute("UPDATE t_message SET content='other' WHERE id=?", past.rows["t_message"][3][:1])
    connection.close()
    refused = run(command, tmp_path)
    assert refused.returncode == 1
    assert "has changed" in refused.complaints
    assert run([*command, "--restart"], tmp_path).returncode == 0

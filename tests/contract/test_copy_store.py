"""`nexo copy-store`: from every engine to the next, row by row; and all that it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness import servers
from harness.core import add_users, open_test_core, say
from harness.engines import SERVER_ENGINES
from harness.history import PEOPLE, History
from nexo import cli
from nexo.config import parse_store_url
from nexo.ids import now_ms
from nexo.store import migrate
from nexo.store.data_folder import locked_folder
from nexo.store.transfer.connections import open_source, open_target
from nexo.store.transfer.copy import columns_of, copy_store, tables
from nexo.store.transfer.progress_record import TransferRecord, TransferRefused

NEXT = {"sqlite": "postgresql", "postgresql": "mariadb", "mariadb": "sqlite"}


def nexo(*arguments: str) -> Result:
    """The command in this process, which saves a second each; `faults/test_copy_kill.py` runs real ones."""
    env = {name: None for name in os.environ if name.startswith("NEXO_")}
    return CliRunner().invoke(cli.app, arguments, env=env, prog_name="nexo")


def copy(source: str, target: str, *more: str) -> Result:
    return nexo("copy-store", "--from", source, "--to", target, *more)


async def read_all(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table; a lease's holder and end do not count."""
    found = {}
    async with open_source(parse_store_url(url)) as connection:
        for table in tables():
            columns = [name for name in columns_of(table) if name not in ("expires_at",) or table.name != "node_leases"]
            found[str(table.name)] = sorted(
                (await connection.read(f"SELECT {','.join(columns)} FROM {table.name}")), key=repr
            )
    return found


async def execute(url: str, *statements: str) -> None:
    async with open_target(parse_store_url(url)) as connection:
        for statement in statements:
            await connection.do(statement)


@contextlib.contextmanager
def empty_database(engine: str, folder: Path) -> Iterator[str]:
    if engine == "sqlite":
        yield f"sqlite:///{folder}/copy/nexo.db"
        return
    server = servers.shared.get(SERVER_ENGINES[engine])
    url = server.create_database()
    yield url
    server.drop_database(url)


async def live(url: str, steps: int = 500) -> None:
    async with open_test_core(url, PEOPLE) as core:
        await History(core, 11).live(steps)
    await execute(
        url,
        "INSERT INTO sessions (sid,user_id,device_id,platform_id,version) VALUES ('s1','user0','d',5,1)",
        "INSERT INTO refresh_tokens (token_hash,sid,expires_at) VALUES ('h1','s1',99999999999999)",
        "INSERT INTO join_requests (group_id,user_id,message) VALUES ('g_abcdefghijkl','user1','grüße \U0001f600')",
    )


@pytest.fixture
def small(tmp_path: Path) -> str:
    """An embedded store in which two people have spoken."""
    url = f"sqlite:///{tmp_path}/data/nexo.db"

    async def fill() -> None:
        await migrate.upgrade(parse_store_url(url))
        async with open_test_core(url, ("alice", "bob")) as core:
            await say(core, "alice", "bob", "hello")

    asyncio.run(fill())
    return url


@pytest.mark.servers
def test_every_row_arrives_and_the_copy_goes_on_as_a_store(engine_name: str, core_url: str, tmp_path: Path) -> None:
    asyncio.run(live(core_url))
    with empty_database(NEXT[engine_name], tmp_path) as target:
        done = copy(core_url, target, "--json", "--batch", "37")
        assert done.exit_code == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["good"]
        assert report["tables"]["messages"]["rows"] > 100
        before, after = asyncio.run(read_all(core_url)), asyncio.run(read_all(target))
        assert after == before

        async def go_on() -> None:
            async with open_test_core(target) as core:
                await add_users(core, ["newcomer"])
                message = await say(core, "newcomer", "user0", "numbers of new rows follow those that were copied")
                assert message.seq == 1

        asyncio.run(go_on())
        again = copy(core_url, target)
        assert again.exit_code == 1
        assert "is not empty" in again.stderr


def test_progress_is_told_in_lines_without_a_terminal_and_the_secret_by_its_place(small: str, tmp_path: Path) -> None:
    done = copy(small, f"sqlite:///{tmp_path}/copy/nexo.db")
    assert done.exit_code == 0, done.stderr
    assert "nexo: copying: " in done.stderr
    assert "nexo: comparing: " in done.stderr
    assert f"{tmp_path}/data/secret" in done.stdout


def test_a_store_in_use_is_not_copied(small: str, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/copy/nexo.db"
    with locked_folder(tmp_path / "data"):
        locked = copy(small, target)
    assert locked.exit_code == 1
    assert "in use" in locked.stderr
    asyncio.run(execute(small, f"UPDATE node_leases SET expires_at={now_ms() + 30_000}"))
    leased = copy(small, target)
    assert leased.exit_code == 1
    assert "stop every server first" in leased.stderr
    assert not (tmp_path / "copy" / "nexo.db").exists() or not asyncio.run(_tables(target))


async def _tables(url: str) -> list[tuple[Any, ...]]:
    async with open_source(parse_store_url(url)) as connection:
        return await connection.read("SELECT name FROM sqlite_master")


def test_old_schemas_are_refused_with_the_command_to_run(small: str, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/copy/nexo.db"
    empty = f"sqlite:///{tmp_path}/empty/nexo.db"
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "nexo.db").touch()
    assert "no Nexo store" in copy(empty, target).stderr
    asyncio.run(execute(small, "UPDATE alembic_version SET version_num='0000'"))
    unknown = copy(small, target)
    assert unknown.exit_code == 2
    assert "does not know" in unknown.stderr


def test_half_a_copy_is_served_to_nobody_and_taken_up_only_from_its_own_source(small: str, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/copy/nexo.db"
    assert copy(small, target).exit_code == 0
    # what a copy that was killed right after it began leaves behind
    asyncio.run(
        execute(
            target,
            *(f"DELETE FROM {table.name}" for table in tables()),
            "CREATE TABLE nexo_transfer (id INTEGER PRIMARY KEY, kind TEXT, source TEXT, fingerprint TEXT, "
            "revision TEXT, stage TEXT, position TEXT, started_at BIGINT)",
            f"INSERT INTO nexo_transfer VALUES (1,'copy-store','{parse_store_url(small).redacted()}','other',"
            "(SELECT version_num FROM alembic_version),'','',0)",
            "UPDATE alembic_version SET version_num='half_done'",
        )
    )
    checked = nexo("check", "--data", str(tmp_path / "copy"))
    assert checked.exit_code == 2
    assert "half a copy" in checked.stderr
    changed = copy(small, target)
    assert changed.exit_code == 1
    assert "has changed" in changed.stderr
    elsewhere = f"sqlite:///{tmp_path}/elsewhere/nexo.db"
    assert copy(small, elsewhere).exit_code == 0
    foreign = copy(elsewhere, target)
    assert foreign.exit_code == 1
    assert "holds an unfinished copy-store from" in foreign.stderr
    assert copy(small, target, "--restart").exit_code == 0
    assert nexo("check", "--data", str(tmp_path / "copy")).exit_code == 0


def test_a_copy_that_differs_is_told_and_stays_half(small: str, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/copy/nexo.db"
    assert copy(small, target).exit_code == 0
    # a disk that forgets: everything was copied, then one row was lost and one changed
    asyncio.run(
        execute(
            target,
            "CREATE TRIGGER forgets AFTER INSERT ON users WHEN NEW.user_id='bob' "
            "BEGIN UPDATE users SET nickname='other' WHERE user_id='bob'; END",
            *(f"DELETE FROM {table.name}" for table in tables()),
        )
    )
    done = copy(small, target)
    assert done.exit_code == 3, done.stderr
    assert "users bob differs in nickname" in done.stdout
    assert nexo("check", "--data", str(tmp_path / "copy")).exit_code == 2


def test_a_server_that_ran_meanwhile_is_noticed_before_the_copy_is_released(small: str, tmp_path: Path) -> None:
    target = parse_store_url(f"sqlite:///{tmp_path}/copy/nexo.db")

    def serve_once(stage: str, done: int, total: int) -> None:
        if stage == "comparing" and done == total:
            with contextlib.closing(sqlite3.connect(tmp_path / "data" / "nexo.db")) as connection, connection:
                connection.execute("UPDATE node_leases SET last_ms=last_ms+1")

    with pytest.raises(TransferRefused, match="while it was copied"):
        asyncio.run(copy_store(parse_store_url(small), target, progress=serve_once))
    assert nexo("check", "--data", str(tmp_path / "copy")).exit_code == 2


def test_two_copies_to_one_database_do_not_meet(small: str, store_url: str, tmp_path: Path) -> None:
    if store_url.startswith("sqlite"):
        with locked_folder(tmp_path):
            refused = copy(small, store_url)
    else:

        async def hold_and_copy() -> Result:
            async with open_target(parse_store_url(store_url)) as connection:
                await TransferRecord(connection, parse_store_url(store_url), "copy-store", "elsewhere").lock()
                return await asyncio.to_thread(copy, small, store_url)

        refused = asyncio.run(hold_and_copy())
    assert refused.exit_code == 1
    assert "another" in refused.stderr


def test_wrong_urls_are_told_without_their_passwords(tmp_path: Path) -> None:
    done = copy("oracle://u:pw-not-shown@h/d", f"sqlite:///{tmp_path}/x.db")
    assert done.exit_code == 2
    assert "--from" in done.stderr
    assert "pw-not-shown" not in done.stderr
    unset = copy("env:NOT_SET_ANYWHERE", f"sqlite:///{tmp_path}/x.db")
    assert unset.exit_code == 2
    assert "NOT_SET_ANYWHERE is not set" in unset.stderr
    gone = copy("postgresql://u:pw-not-shown@127.0.0.1:1/d", f"sqlite:///{tmp_path}/y/x.db")
    assert gone.exit_code == 2
    assert "pw-not-shown" not in gone.stderr
    assert copy(f"sqlite:///{tmp_path}/z.db", f"sqlite:///{tmp_path}/z.db").exit_code == 1

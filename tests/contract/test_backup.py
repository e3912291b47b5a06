"""`nexo backup` and `nexo restore` on the folder of an embedded database that a killed server left."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness.old_schema import PREVIOUS
from nexo import cli
from nexo.store.data_folder import locked_folder
from nexo.store.engines.sqlite.driver import connect


def nexo(*arguments: str | Path, text: str | None = None, **settings: str) -> Result:
    env = {f"NEXO_{name.upper()}": value for name, value in settings.items()}
    return CliRunner().invoke(cli.app, [str(part) for part in arguments], input=text, env=env, prog_name="nexo")


def users(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return {user for (user,) in database.execute("SELECT user_id FROM users") if not user.startswith("nexo.")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def add_user(data: Path, name: str) -> None:
    """What the server wrote last stays in its log, as after a kill -9."""
    command = ["python3", "-c", ADD, str(data / "nexo.db"), name]
    subprocess.run(command, check=False)
    assert (data / "nexo.db-wal").stat().st_size


ADD = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode=WAL")
database.execute("INSERT INTO users (user_id, password_hash) VALUES (?, 'none')", sys.argv[2:])
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the user ann, a backup of it, and the user ben, who is only in the log."""
    place = tmp_path
    data = place / "data"
    done = nexo("user", "add", "ann", "--data", data, text="a long password\n")
    assert done.exit_code == 0, done.stderr
    (data / "secret").write_text("first-secret-" * 4)
    (data / "secret").chmod(0o600)
    assert nexo("backup", place / "ann.backup", "--data", data).exit_code == 0
    add_user(data, "ben")
    return place


def test_a_restore_leaves_no_log_of_the_old_database_and_keeps_all_of_it(folder: Path) -> None:
    data = folder / "data"
    done = nexo("restore", folder / "ann.backup", "--data", data, "--json")
    assert done.exit_code == 0, done.stderr
    kept = Path(json.loads(done.stdout)["kept"])
    assert sorted(path.name for path in data.iterdir()) == sorted(["lock", "nexo.db", kept.name, "secret"])
    assert users(data / "nexo.db") == {"ann"}
    assert users(kept) == {"ann", "ben"}, "also what was only in the log"
    assert mode(data / "nexo.db") == mode(kept) == 0o600
    with closing(connect(data / "nexo.db")) as database:
        assert not database.execute("SELECT 1 FROM sqlite_master WHERE name='nexo_backup'").fetchall()
    assert b"first-secret" not in (data / "nexo.db").read_bytes()


def test_another_secret_is_kept_and_a_configured_one_stays(folder: Path) -> None:
    data = folder / "data"
    (data / "secret").write_text("second-secret-" * 4)
    strong = "lkjsdf8723hkjsdhf7834yiuhsdfkjhwe7823y4kjhsd"
    assert nexo("restore", folder / "ann.backup", "--data", data, auth__secret=strong).exit_code == 0
    assert (data / "secret").read_text() == "second-secret-" * 4
    assert nexo("restore", folder / "ann.backup", "--data", data).exit_code == 0
    assert (data / "secret").read_text().strip() == "first-secret-" * 4
    (kept,) = data.glob("secret.before-*")
    assert kept.read_text() == "second-secret-" * 4
    assert mode(kept) == 0o600


def test_a_restore_is_refused_while_a_server_or_another_program_uses_the_database(folder: Path) -> None:
    with locked_folder(folder / "data"):
        done = nexo("restore", folder / "ann.backup", "--data", folder / "data")
        assert done.exit_code == 1
        assert "in use by a server" in done.stderr
    with closing(connect(folder / "data" / "nexo.db")) as other:
        other.execute("BEGIN")
        other.execute("SELECT COUNT(*) FROM users").fetchall()
        done = nexo("restore", folder / "ann.backup", "--data", folder / "data")
        assert done.exit_code == 1
        assert "another program has" in done.stderr
    assert users(folder / "data" / "nexo.db") == {"ann", "ben"}


def test_a_damaged_backup_changes_nothing(folder: Path) -> None:
    whole = (folder / "ann.backup").read_bytes()
    torn = whole[: len(whole) // 2]
    blotted = whole[:8192] + b"\xff" * 8192 + whole[16384:]
    for number, content in enumerate((torn, blotted, b"no database at all " * 500, b"")):
        bad = folder / f"bad-{number}"
        bad.write_bytes(content)
        done = nexo("restore", bad, "--data", folder / "data")
        assert done.exit_code in (1, 3), done.stderr
        assert "Traceback" not in done.stderr
        assert users(folder / "data" / "nexo.db") == {"ann", "ben"}
    assert not list((folder / "data").glob("*before*"))
    assert not list((folder / "data").glob(".nexo-*"))


def test_a_damaged_database_gives_no_backup_and_is_replaced_and_kept_with_all_its_parts(folder: Path) -> None:
    data = folder / "data"
    database = data / "nexo.db"
    database.write_bytes(b"\xff" * 8192 + database.read_bytes()[8192:])
    done = nexo("backup", folder / "second", "--data", data)
    assert done.exit_code == 3, done.stderr
    assert "no backup was written" in done.stderr
    assert not (folder / "second").exists()
    log = (data / "nexo.db-wal").read_bytes()
    done = nexo("restore", folder / "ann.backup", "--data", data, "--json")
    assert done.exit_code == 0, done.stderr
    kept = Path(json.loads(done.stdout)["kept"])
    assert kept.read_bytes()[:8] == b"\xff" * 8
    assert kept.with_name(f"{kept.name}-wal").read_bytes() == log
    assert users(database) == {"ann"}


def test_a_backup_overwrites_nothing(folder: Path) -> None:
    before = (folder / "ann.backup").read_bytes()
    for target in (folder / "ann.backup", folder / "data" / "nexo.db", folder / "nowhere" / "file"):
        done = nexo("backup", target, "--data", folder / "data")
        assert done.exit_code == 1, done.stderr
    assert (folder / "ann.backup").read_bytes() == before


def test_the_schema_of_another_version_is_backed_up_and_restored_only_if_it_is_known(folder: Path) -> None:
    data = folder / "data"

    def set_revision(name: str) -> None:
        with closing(sqlite3.connect(data / "nexo.db", isolation_level=None)) as database:
            database.execute("UPDATE alembic_version SET version_num=?", (name,))

    for revision, code in ((PREVIOUS, 0), ("9999", 2), ("half_done", 1)):
        set_revision(revision)
        done = nexo("backup", folder / revision, "--data", data)
        assert done.exit_code == (1 if revision == "half_done" else 0), done.stderr
        if code != 1:
            done = nexo("restore", folder / revision, "--data", folder / f"new-{revision}")
            assert done.exit_code == code, done.stderr
    assert "does not know" in done.stderr or code == 1
    with closing(sqlite3.connect(folder / f"new-{PREVIOUS}" / "nexo.db")) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [(PREVIOUS,)]


def test_a_plain_copy_of_the_database_is_restored_too(folder: Path) -> None:
    with (
        closing(sqlite3.connect(folder / "data" / "nexo.db")) as source,
        closing(sqlite3.connect(folder / "copy.db")) as target,
    ):
        source.backup(target)
    done = nexo("restore", folder / "copy.db", "--data", folder / "other")
    assert done.exit_code == 0, done.stderr
    assert "No signing secret was restored" in done.stdout
    assert users(folder / "other" / "nexo.db") == {"ann", "ben"}


def test_what_is_restored_belongs_to_the_user_of_the_folder(folder: Path) -> None:
    """Root gives the files away; any other user restores into a folder of their own."""
    owner = (12345, 23456) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    other = folder / "other"
    other.mkdir()
    os.chown(other, *owner)
    assert nexo("restore", folder / "ann.backup", "--data", other).exit_code == 0
    assert {(path.name, path.stat().st_uid, path.stat().st_gid) for path in other.iterdir()} == {
        (name, *owner) for name in ("lock", "nexo.db", "secret")
    }

"""`nexo user` and `nexo migrate`."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness.store import make_config, open_database
from nexo import cli
from nexo.errors import NexoError
from nexo.service.accounts import Accounts
from nexo.store.account_store import SqlAccounts
from nexo.store.migrate import newest

CHEAP = {"NEXO_AUTH__ARGON2_MEMORY_KIB": "8", "NEXO_AUTH__ARGON2_TIME_COST": "1"}
PASSWORD = "correct horse"
OTHER_PASSWORD = "battery staple"


@pytest.fixture(autouse=True)
def _in_an_empty_folder_without_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("NEXO_"):
            monkeypatch.delenv(name)


def run(*arguments: str, stdin: str = f"{PASSWORD}\n", **env: str) -> Result:
    return CliRunner().invoke(cli.app, arguments, input=stdin, env=CHEAP | env, prog_name="nexo")


def listed(**env: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("user", "list", "--json", **env).stdout)
    return found


def can_sign_in(user_id: str, password: str, url: str = "sqlite:///data/nexo.db") -> bool:
    async def work() -> bool:
        async with open_database(url) as database:
            accounts = Accounts(SqlAccounts(database), make_config(), "a secret that this test made up alone")
            try:
                await accounts.login(user_id, password)
            except NexoError as error:
                if error.name != "invalid_credentials":
                    raise
                return False
            finally:
                accounts.close()
            return True

    return asyncio.run(work())


def test_the_first_user_makes_the_embedded_database() -> None:
    result = run("user", "add", "ann", "--nickname", "Ännchen", "--admin")
    assert (result.exit_code, result.stdout) == (0, "Added the administrator ann.\n")
    assert run("user", "add", "bob", "--password-stdin").stdout == "Added the user bob.\n"
    ann, bob = listed()
    assert (ann["user_id"], ann["nickname"], ann["is_admin"]) == ("ann", "Ännchen", True)
    assert (bob["user_id"], bob["nickname"], bob["is_admin"]) == ("bob", "", False)
    assert can_sign_in("ann", PASSWORD)


@pytest.mark.parametrize("end", ["\n", "\r\n", "", "\nsecond line\n"])
def test_the_password_is_a_line_of_stdin(end: str) -> None:
    assert run("user", "add", "ann", stdin=f"{PASSWORD} {end}").exit_code == 0
    assert can_sign_in("ann", f"{PASSWORD} ")


def test_on_a_terminal_the_password_is_asked_for_twice_and_not_shown() -> None:
    terminal, inside = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from nexo.cli import main; main()", "user", "add", "ann"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, **CHEAP},
        start_new_session=True,  # away from the terminal that the tests themselves may run in
    ) as process:
        os.close(inside)
        shown = b""
        typed = iter([PASSWORD, "a slip", PASSWORD, PASSWORD])
        while True:
            try:
                piece = os.read(terminal, 1024)
            except OSError:  # what a terminal says when the last program has left it
                break
            shown += piece
            if shown.endswith((b"Password: ", b"The same again: ")):
                os.write(terminal, next(typed).encode() + b"\n")
                shown += b"<typed>"
        os.close(terminal)
    assert process.returncode == 0, shown
    assert shown.count(b"<typed>") == 4
    assert PASSWORD.encode() not in shown
    assert b"a slip" not in shown
    assert can_sign_in("ann", PASSWORD)


@pytest.mark.parametrize(
    ("arguments", "stdin", "error"),
    [
        (["not an id"], PASSWORD, "bad_user_id"),
        (["bob"], "short", "bad_password"),
        (["bob"], "", "bad_password"),
        (["ann"], PASSWORD, "user_exists"),
        (["bob", "--nickname", "x" * 129], PASSWORD, "bad_nickname"),
    ],
)
def test_what_cannot_be_added_is_said(arguments: list[str], stdin: str, error: str) -> None:
    run("user", "add", "ann")
    result = run("user", "add", *arguments, stdin=stdin)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"nexo: {error}: ")
    assert [user["user_id"] for user in listed()] == ["ann"]


def test_every_change_is_told_in_json_where_that_is_asked_for() -> None:
    added = json.loads(run("user", "add", "ann", "--json").stdout)
    assert [added] == listed()
    assert json.loads(run("user", "passwd", "ann", "--json").stdout) == added
    assert json.loads(run("user", "admin", "ann", "--json").stdout) == {**added, "is_admin": True}
    refused = run("user", "add", "ann", "--json")
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_a_password_is_never_an_argument() -> None:
    assert run("user", "add", "ann", "--password", PASSWORD).exit_code == 2
    assert run("user", "add", "ann", PASSWORD).exit_code == 2


def test_a_password_is_set() -> None:
    run("user", "add", "ann")
    result = run("user", "passwd", "ann", stdin=OTHER_PASSWORD)
    assert result.exit_code == 0
    assert result.stdout.startswith("Set the password of ann.")
    assert len(result.stdout.splitlines()) == 1
    assert can_sign_in("ann", OTHER_PASSWORD)
    assert not can_sign_in("ann", PASSWORD)
    result = run("user", "passwd", "bob")
    assert (result.exit_code, result.stderr) == (1, "nexo: user_not_found: There is no user bob\n")


def test_an_administrator_is_made_and_unmade() -> None:
    run("user", "add", "ann")
    assert run("user", "admin", "ann").stdout == "ann is an administrator.\n"
    assert [user["is_admin"] for user in listed()] == [True]
    assert run("user", "admin", "ann", "--off").stdout == "ann is no administrator any more.\n"
    assert [user["is_admin"] for user in listed()] == [False]
    unknown = run("user", "admin", "nobody")
    assert (unknown.exit_code, unknown.stderr.split(":")[0]) == (1, "nexo")


def test_users_are_listed_in_columns_and_cannot_command_the_terminal() -> None:
    assert run("user", "add", "ann", "--nickname", "\x1b[31mred\n[bold]").exit_code == 0
    run("user", "add", "barnaby", "--admin")
    first, second = run("user", "list").stdout.splitlines()
    assert first.startswith("ann      user   20")
    assert first.endswith(" UTC  �[31mred�[bold]")
    assert second.startswith("barnaby  admin  20")
    assert listed()[0]["nickname"] == "\x1b[31mred\n[bold]"


@pytest.mark.parametrize("arguments", [["list"], ["passwd", "ann"]])
def test_a_mistyped_folder_does_not_become_a_database(tmp_path: Path, arguments: list[str]) -> None:
    result = run("user", *arguments, "--data", "typo")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no database at typo/nexo.db" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["migrate"], ["user", "add", "ann"], ["user", "list"]])
@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
def test_a_database_that_cannot_be_reached_is_named(arguments: list[str], scheme: str) -> None:
    result = run(*arguments, NEXO_STORE__URL=f"{scheme}://nexo:hush@127.0.0.1:1/nexo")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"nexo: the database {scheme}://nexo:***@127.0.0.1:1/nexo cannot be used: ")
    assert "Connection refused" in result.stderr
    assert "hush" not in result.stderr


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "nexo.db").write_text("this is not a database, and long enough to be taken for one\n" * 20)
    for arguments in (["migrate"], ["user", "list"]):
        result = run(*arguments, "--data", ".")
        assert result.exit_code == 2
        assert "file is not a database" in result.stderr


def test_migrate_tells_what_it_did(store_url: str, engine_name: str) -> None:
    env = {"NEXO_STORE__URL": store_url}
    if engine_name != "sqlite":
        for arguments in (["user", "add", "ann"], ["user", "list"]):
            result = run(*arguments, **env)
            assert result.exit_code == 2
            assert "run `nexo migrate` first" in result.stderr
    result = run("migrate", **env)
    assert result.exit_code == 0, result.stderr
    head, *steps = result.stdout.splitlines()
    assert head.endswith(f" was migrated from empty to {newest()}:")
    assert steps[0].startswith("  0001  The first schema")
    again = run("migrate", **env).stdout
    assert again.endswith(f" is at {newest()} already; there was nothing to do.\n")
    report = json.loads(run("migrate", "--json", **env).stdout)
    assert (report["before"], report["after"], report["steps"]) == (newest(), newest(), [])
    assert "***" in report["store"] or engine_name == "sqlite"
    assert run("user", "add", "ann", **env).exit_code == 0
    assert [user["user_id"] for user in listed(**env)] == ["ann"]
    assert can_sign_in("ann", PASSWORD, store_url)


def test_migrate_tells_what_it_did_as_json() -> None:
    report = json.loads(run("migrate", "--json").stdout)
    assert (report["before"], report["after"]) == (None, newest())
    assert report["steps"][0]["name"] == "0001"

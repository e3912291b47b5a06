"""`nexo key`, `nexo audit`, `nexo group`, and what `nexo user` does to accounts and their sessions."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from nexo import cli
from nexo.cli.database import opened
from nexo.config import load
from nexo.service.accounts import Accounts
from nexo.service.password_resets import PasswordResets
from nexo.service.secret import load_secret
from nexo.store.account_admin import SqlAccountAdmin
from nexo.store.account_store import SqlAccounts

CHEAP = {"NEXO_AUTH__ARGON2_MEMORY_KIB": "8", "NEXO_AUTH__ARGON2_TIME_COST": "1"}


@pytest.fixture(autouse=True)
def _with_a_user_and_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("NEXO_"):
            monkeypatch.delenv(name)
    assert run("user", "add", "ann", stdin="correct horse\n").exit_code == 0


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli.app, arguments, input=stdin, env=CHEAP, prog_name="nexo")


def read(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def test_a_key_is_printed_once_and_alone_on_standard_output() -> None:
    made = run("key", "add", "shop", "--scope", "users,tokens", "--scope", "act")
    assert made.exit_code == 0
    assert made.stdout.startswith("nexo_sk_")
    assert len(made.stdout) == len("nexo_sk_") + 43 + 1
    (listed,) = read("key", "list")
    assert (listed["name"], listed["scopes"], listed["state"]) == ("shop", ["users", "tokens", "act"], "valid")
    assert made.stdout.strip() not in run("key", "list", "--json").stdout + run("audit", "--json").stdout


def test_a_key_is_revoked_by_name_or_id_and_stays_listed() -> None:
    run("key", "add", "one", "--scope", "users")
    made = read("key", "add", "two", "--user", "ann", "--expires", "90d")
    assert run("key", "revoke", "one").exit_code == 0
    assert run("key", "revoke", made["key_id"]).exit_code == 0
    assert [(key["name"], key["state"]) for key in read("key", "list")] == [("one", "revoked"), ("two", "revoked")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("key", "add", "shop"), "missing_scopes"),
        (("key", "add", "shop", "--scope", "everything"), "bad_scopes"),
        (("key", "add", "a b", "--scope", "users"), "bad_name"),
        (("key", "add", "shop", "--user", "nemo"), "user_not_found"),
        (("key", "add", "shop", "--scope", "users", "--expires", "soon"), "bad_duration"),
        (("key", "revoke", "shop"), "key_not_found"),
        (("user", "disable", "nemo"), "user_not_found"),
        (("user", "sessions", "nemo"), "user_not_found"),
        (("user", "revoke", "nemo"), "user_not_found"),
        (("user", "reset", "nemo"), "user_not_found"),
        (("group", "disable", "x"), "bad_group_id"),
        (("group", "enable", "g_000000000000"), "group_not_found"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[str, ...], error: str) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"nexo: {error}: ")


def test_a_name_is_taken_once() -> None:
    assert run("key", "add", "shop", "--scope", "users").exit_code == 0
    assert "There is a key named shop already" in run("key", "add", "shop", "--scope", "act").stderr


def test_each_command_is_in_the_audit_log() -> None:
    run("key", "add", "shop", "--scope", "users")
    run("user", "disable", "ann", "--reason", "spam")
    run("user", "enable", "ann")
    log = read("audit")
    assert [(entry["actor"], entry["act"], entry["target"]) for entry in log] == [
        ("command line", "user.enable", "ann"),
        ("command line", "user.disable", "ann"),
        ("command line", "key.add", "shop"),
    ]
    assert [entry["act"] for entry in read("audit", "ann")] == ["user.enable", "user.disable"]
    assert "command line  user.disable  ann" in run("audit").stdout


def test_sessions_are_listed_and_revoked_by_device() -> None:
    sign_in("phone", "desk")
    assert [session["device_id"] for session in read("user", "sessions", "ann")] == ["phone", "desk"]
    assert "phone" in run("user", "sessions", "ann").stdout
    assert read("user", "revoke", "ann", "--device", "phone")["revoked"] == 1
    assert [session["device_id"] for session in read("user", "sessions", "ann")] == ["desk"]
    assert run("user", "revoke", "ann").exit_code == 0
    assert read("user", "sessions", "ann") == []


def test_a_code_that_resets_a_password_is_printed_alone_and_works_on_the_server() -> None:
    printed = run("user", "reset", "ann")
    assert printed.exit_code == 0
    code = printed.stdout.strip()
    assert "once" in printed.stderr

    async def use() -> None:
        config = load(env=CHEAP)
        async with opened(config) as database:
            accounts = Accounts(SqlAccounts(database), config, load_secret(config))
            resets = PasswordResets(SqlAccountAdmin(database), accounts, load_secret(config), 60)
            await resets.use(code, "new password")
            await accounts.login("ann", "new password")
            accounts.close()

    asyncio.run(use())


def sign_in(*devices: str) -> None:
    async def work() -> None:
        config = load(env=CHEAP)
        async with opened(config) as database:
            accounts = Accounts(SqlAccounts(database), config, "x" * 40)
            for device in devices:
                await accounts.login("ann", "correct horse", device_id=device)
            accounts.close()

    asyncio.run(work())

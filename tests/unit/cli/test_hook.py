"""`nexo hook`: what it prints and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from nexo import cli

URL = "https://shop.example/nexo"


@pytest.fixture(autouse=True)
def _with_a_database_and_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("NEXO_"):
            monkeypatch.delenv(name)
    assert run("user", "add", "ann", stdin="correct horse\n").exit_code == 0


def run(*arguments: str, stdin: str = "") -> Result:
    cheap = {"NEXO_AUTH__ARGON2_MEMORY_KIB": "8", "NEXO_AUTH__ARGON2_TIME_COST": "1"}
    return CliRunner().invoke(cli.app, arguments, input=stdin, env=cheap, prog_name="nexo")


def read(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json").stdout)


def test_a_webhook_is_added_listed_and_removed() -> None:
    made = run("hook", "add", URL, "--types", "message.saved,user.created", "--conversations", "sg_*", "--name", "shop")
    assert made.stdout.startswith("whsec_")
    (listed,) = read("hook", "list")
    assert (listed["name"], listed["url"], listed["state"]) == ("shop", URL, "active")
    assert (listed["types"], listed["conversations"]) == (["message.saved", "user.created"], ["sg_*"])
    assert made.stdout.strip() not in json.dumps(listed)
    assert "shop" in run("hook", "list").stdout
    assert read("hook", "pause", listed["hook_id"])["state"] == "paused"
    assert read("hook", "resume", "shop")["state"] == "active"
    assert read("hook", "replay", "shop", "--from", "begin")["name"] == "shop"
    assert read("hook", "rotate", "shop")["secret"] != made.stdout.strip()
    assert run("hook", "remove", "shop").exit_code == 0
    assert read("hook", "list") == []
    acts = [entry["act"] for entry in read("audit")]
    assert acts[:3] == ["hook.remove", "hook.rotate", "hook.replay"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("add", "http://127.0.0.1/"), "bad_url"),
        (("add", URL, "--types", "x"), "bad_types"),
        (("add", URL, "--name", "a b"), "bad_name"),
        (("pause", "nemo"), "hook_not_found"),
        (("replay", "nemo", "--from", "2h"), "hook_not_found"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[str, ...], word: str) -> None:
    refused = run("hook", *arguments)
    assert (refused.exit_code, word in refused.stderr) == (1, True)


def test_a_test_event_that_is_not_taken_fails_the_command() -> None:
    run("hook", "add", "http://localhost:9/", "--name", "inside")
    tried = run("hook", "test", "inside")
    assert tried.exit_code == 1
    assert "is not a global address" in tried.stdout

"""The `nexo` command itself, and `nexo config`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

import nexo
from harness import servers
from nexo import cli
from nexo.cli.docs import render_config
from nexo.errors import NexoError, StartupError

SECRET = "vUuM3qfJ0yB8nT5kZx7LwR2cHs9dGe4aPi6oQj1tYlb"


@pytest.fixture(autouse=True)
def _in_an_empty_folder_without_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("NEXO_"):
            monkeypatch.delenv(name)


def run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(cli.app, arguments, env=env, prog_name="nexo")


def test_the_version_is_printed() -> None:
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"nexo {nexo.__version__}\n")


def test_help_names_the_groups_but_for_the_hidden_ones() -> None:
    shown = run("--help").stdout
    for name, group in cli.GROUPS.items():
        assert (name in shown) is not group.hidden


@pytest.mark.parametrize("name", cli.GROUPS)
def test_every_group_has_an_app_and_help(name: str) -> None:
    assert isinstance(import_module(cli.GROUPS[name].module).app, typer.Typer)
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"nexo {name}" in result.stdout


def test_help_loads_none_of_the_groups() -> None:
    script = "import sys; from nexo.cli import main\ntry: main()\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "nexo.cli" in loaded
    assert not {"nexo.cli.config", "nexo.config", "uvloop", "sqlalchemy", "asyncpg", "asyncmy"} & set(loaded)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (StartupError("no such folder\nand more"), 2, "nexo: no such folder\nnexo: and more\n"),
        (NexoError("user_exists"), 1, "nexo: user_exists: This user id is taken.\n"),
    ],
)
def test_failures_are_said_in_a_line_and_told_by_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("nexo.cli.config.load_config", fail)
    result = run("config", "check")
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", said)


def test_show_prints_toml_with_sources(tmp_path: Path) -> None:
    (tmp_path / "nexo.toml").write_text("[cache]\nttl_s = 5\n")
    result = run("config", "show", "--data", "elsewhere", NEXO_STORE__URL="mysql://u:hush@h/d")
    assert result.exit_code == 0
    assert "hush" not in result.stdout
    tree = tomllib.loads(result.stdout)
    assert tree["cache"] == {"ttl_s": 5}
    assert tree["data"] == {"dir": "elsewhere"}
    assert tree["store"]["url"] == "mysql://u:***@h/d"
    assert tree["recall"]["admin"] is True
    assert 'dir = "elsewhere"  # flag' in result.stdout
    assert "ttl_s = 5  # file nexo.toml" in result.stdout


def test_what_show_prints_can_be_used_as_a_config_file(tmp_path: Path) -> None:
    (tmp_path / "copy.toml").write_text(run("config", "show").stdout)
    assert run("config", "check", "--config", "copy.toml").exit_code == 0


def test_show_prints_json() -> None:
    result = run("config", "show", "--json", NEXO_AUTH__SECRET="hush")
    values = json.loads(result.stdout)
    assert values["auth.secret"] == {"value": "***", "source": "environment variable NEXO_AUTH__SECRET"}
    assert values["store.pool_size"] == {"value": 8, "source": "default"}


def test_check_says_where_messages_are_kept() -> None:
    result = run("config", "check", NEXO_STORE__URL="mariadb://u:hush@h/d", NEXO_AUTH__SECRET=SECRET)
    assert result.exit_code == 0
    assert "mysql://u:***@h:3306/d" in result.stdout
    assert json.loads(run("config", "check", "--json").stdout) == {
        "ok": True,
        "store": "sqlite:///data/nexo.db",
        "filter_words": 0,
    }


def test_check_reads_the_word_list_too(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    assert run("config", "check", NEXO_FILTER__FILE=str(words)).exit_code == 2
    assert run("config", "check", NEXO_FILTER__FILE=str(words), NEXO_FILTER__MODE="off").exit_code == 0
    words.write_text("bad\nworse\n")
    result = run("config", "check", "--json", NEXO_FILTER__FILE=str(words))
    assert json.loads(result.stdout)["filter_words"] == 2


@pytest.mark.parametrize(
    ("env", "key"),
    [
        ({"NEXO_STORE__URL": "mysql://u:p@h/d"}, "auth.secret"),
        ({"NEXO_AUTH__SECRET": "changeme"}, "auth.secret"),
        ({"NEXO_TWO_PHASE__ENABLED": "true"}, "two_phase.enabled"),
    ],
)
def test_check_refuses_what_the_server_would_not_start_with(tmp_path: Path, env: dict[str, str], key: str) -> None:
    for command in (["config", "check"], ["serve", "--port", "0"]):
        result = run(*command, **env)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"nexo: {key} ")
    assert list(tmp_path.iterdir()) == []


def test_check_names_what_is_wrong() -> None:
    result = run("config", "check", NEXO_STORE__POOL_SIZE="many")
    assert result.exit_code == 2
    assert result.stderr.startswith("nexo: store.pool_size (environment variable NEXO_STORE__POOL_SIZE) must be")


def test_a_config_file_that_is_not_there_is_named() -> None:
    result = run("config", "check", "--config", "none.toml")
    assert (result.exit_code, result.stderr) == (
        2,
        "nexo: cannot read the config file none.toml: No such file or directory\n",
    )


def test_doc_prints_the_page() -> None:
    assert run("config", "doc").stdout == run("docs", "config").stdout == render_config() + "\n"


def test_docs_writes_all_pages(tmp_path: Path) -> None:
    assert run("docs", "--write", str(tmp_path)).exit_code == 0
    assert (tmp_path / "config.md").read_text(encoding="utf-8") == render_config() + "\n"
    assert (tmp_path / "errors.md").exists()


@pytest.mark.servers
def test_a_check_that_connects_reports_what_database_and_redis_say() -> None:
    with servers.Redis("appendonly no", "user ann on >hush ~* &* +@all") as redis:
        database = servers.postgres().create_database()
        right = {"NEXO_STORE__URL": database, "NEXO_REDIS__URL": redis.url.replace("//", "//ann:hush@")}
        assert run("migrate", **right).exit_code == 0
        plain = {**right, "NEXO_AUTH__SECRET": SECRET}
        done = run("config", "check", "--connect", **plain)
        assert done.exit_code == 0, done.output
        assert "database: ok\nredis: ok\n" in done.stdout
        wrong = {
            **plain,
            "NEXO_STORE__URL": re.sub(r":[^:@/]+@", ":nonsense@", database),
            "NEXO_REDIS__URL": redis.url.replace("//", "//ann:nonsense@"),
        }
        assert run("config", "check", **wrong).exit_code == 0
        done = run("config", "check", "--connect", "--json", **wrong)
        assert done.exit_code == 2
        found = json.loads(done.stdout)
        assert (found["ok"], found["database"]["ok"], found["redis"]["ok"]) == (False, False, False)
        assert "the user or the password in store.url is wrong" in found["database"]["detail"]
        assert "the user or the password in redis.url is wrong" in found["redis"]["detail"]
        assert "nonsense" not in done.output


def test_a_check_that_connects_to_what_is_not_there_says_so() -> None:
    away = {"NEXO_STORE__URL": "mysql://u:p@127.0.0.1:1/x", "NEXO_AUTH__SECRET": SECRET}
    done = run("config", "check", "--connect", NEXO_REDIS__URL="redis://127.0.0.1:1/0", **away)
    assert done.exit_code == 2
    assert "host and port in store.url right?" in done.stdout
    assert "host and port in redis.url right?" in done.stdout


def test_the_embedded_database_needs_no_connection_before_it_exists() -> None:
    done = run("config", "check", "--connect")
    assert (done.exit_code, "database: ok" in done.stdout) == (0, True)
    assert list(Path().iterdir()) == [], "nothing was made"

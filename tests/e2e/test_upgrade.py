"""What docs/operate.md says about new databases, backups, upgrades and the way back, done line by line."""

from __future__ import annotations

import asyncio
import re
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from harness import processes, servers
from harness.core import open_test_core
from harness.engines import SERVER_ENGINES
from harness.history import PEOPLE, History
from harness.old_schema import PREVIOUS, Rows, fill_previous, read_rows
from harness.server import SqlServer
from nexo import cli
from nexo.config import parse_store_url
from nexo.store import migrate
from nexo.store.engines.registry import engine_kind
from nexo.store.schema_version import newest

PAGE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
SCHEMES = {"mariadb": "mysql", "postgresql": "postgresql"}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str, language: str) -> list[list[str]]:
    return [block.splitlines() for block in re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


class Done(NamedTuple):
    code: int
    output: str
    complaints: str


def do(line: str, home: Path, **settings: str) -> Done:
    """A line as an operator types it. Commands of Nexo run in this process, which is much faster."""
    if line.startswith("nexo "):
        env = {f"NEXO_{name.upper()}": value for name, value in settings.items()}
        result = CliRunner().invoke(cli.app, shlex.split(line)[1:], env=env, prog_name="nexo")
        return Done(result.exit_code, result.stdout, result.stderr)
    env = processes.ENVIRONMENT | {"HOME": str(home)}
    done = subprocess.run(
        ["bash", "-euc", line], cwd=home, env=env, capture_output=True, text=True, check=False, timeout=120
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """A bit of everything."""
    url = f"sqlite:///{tmp_path_factory.mktemp('lived')}/nexo.db"

    async def live() -> Rows:
        await migrate.upgrade(parse_store_url(url))
        async with open_test_core(url, PEOPLE) as core:
            await History(core, 5).live(200, changes=False)
        return await read_rows(parse_store_url(url))

    found = asyncio.run(live())
    assert found["messages"]
    return found


# -- embedded --------------------------------------------------------------------------------------------


def steps(title: str, kind: str) -> list[str]:
    """The commands in the numbered steps for a kind of database."""
    part = section(title).split(f"**{kind}**")[1].split("\n**")[0]
    return re.findall(r"`(nexo [^`]+)`", part)


def test_the_steps_of_the_page_upgrade_an_embedded_database_and_lead_back(rows: Rows) -> None:
    home = processes.new_dir("upgrade")
    url = parse_store_url(f"sqlite:///{home}/data/nexo.db")
    asyncio.run(fill_previous(url, rows))
    before = asyncio.run(read_rows(url))
    (home / "backups").mkdir()

    def here(line: str) -> str:
        return line.replace("/var/lib/nexo", f"{home}/data").replace("/backup/nexo", f"{home}/backups")

    backup, migration, check = steps("Upgrading", "Embedded (SQLite)")
    assert [line.split()[1] for line in (backup, migration, check)] == ["backup", "migrate", "check"]
    for line in (backup, migration, check):
        done = do(here(line), home)
        assert done.code == 0, f"{line}: {done.complaints}"
    assert asyncio.run(migrate.current(url)) == newest()
    (written,) = (home / "backups").iterdir()

    (restore,) = [line for line in steps("Rolling back", "Embedded (SQLite)") if line.startswith("nexo restore")]
    done = do(here(restore).replace("NAME", written.name), home)
    assert done.code == 0, done.complaints
    assert asyncio.run(migrate.current(url)) == PREVIOUS
    assert asyncio.run(read_rows(url)) == before
    assert list((home / "data").glob("nexo.db.before-*"))


def test_the_lines_for_an_embedded_database_work(rows: Rows) -> None:
    home = processes.new_dir("lines")
    url = parse_store_url(f"sqlite:///{home}/data/nexo.db")
    asyncio.run(fill_previous(url, rows))
    (home / "backups").mkdir()
    (backup,), (_, restore, _) = [block for block in blocks(section("Backups"), "sh") if "--data" in "".join(block)]
    for line in (backup, restore):
        local = line.replace("/var/lib/nexo", f"{home}/data").replace("/backup/nexo", f"{home}/backups")
        for written in (home / "backups").iterdir():
            local = re.sub(r"nexo-\d+-\d+\.backup", written.name, local)
        done = do(local, home)
        assert done.code == 0, done.complaints


# -- servers ---------------------------------------------------------------------------------------------


class Ordinary(NamedTuple):
    """A database that an administrator made with the page's statements, and its user without any other rights."""

    engine: str
    server: SqlServer
    name: str
    url: str
    home: Path

    def here(self, line: str) -> str:
        """A line of the page with the names of this database."""
        line = line.replace("db.example.org", "127.0.0.1")
        line = re.sub(r"--port=\d+", f"--port={self.server.port}", line)
        return re.sub(r"(?<![/.])\bnexo\b(?!\.(?:dump|sql))", self.name, line)

    def lines(self, restore: bool) -> list[str]:
        found = [block for block in blocks(section("Backups"), "sh") if "db.example.org" in block[0]]
        word = "mariadb" if self.engine == "mariadb" else "pg_"
        (lines,) = [block for block in found if word in block[-1] and len(block) == (2 if restore else 1)]
        return [self.here(line) for line in lines]


@pytest.fixture(params=[pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES])
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ordinary(engine_name: str) -> Iterator[Ordinary]:
    server = servers.shared.get(SERVER_ENGINES[engine_name])
    name, password = f"chat_{secrets.token_hex(4)}", secrets.token_hex(8)
    home = processes.new_dir("home")
    sql = {"CREATE ROLE": "postgresql", "CREATE USER": "mariadb"}
    for block in blocks(section("A new server database"), "sql"):
        if any(word in line and engine == engine_name for word, engine in sql.items() for line in block):
            for statement in block:
                server.execute(re.sub(r"\bnexo\b", name, statement).replace("choose one", password).rstrip(";"))
    (home / ".pgpass").write_text(f"127.0.0.1:{server.port}:{name}:{name}:{password}\n")
    (home / ".my.cnf").write_text(f"[client]\npassword={password}\n")
    for file in (".pgpass", ".my.cnf"):
        (home / file).chmod(0o600)
    url = f"{SCHEMES[engine_name]}://{name}:{password}@127.0.0.1:{server.port}/{name}"
    yield Ordinary(engine_name, server, name, url, home)
    server.execute(f"DROP DATABASE {name}")
    server.execute(f"DROP ROLE {name}" if engine_name == "postgresql" else f"DROP USER {name}@'%'")


def test_a_database_made_with_the_statements_of_the_page_can_be_migrated_and_checked(ordinary: Ordinary) -> None:
    for command in ("nexo migrate", "nexo check"):
        done = do(command, ordinary.home, store__url=ordinary.url)
        assert done.code == 0, done.complaints


def test_a_server_database_is_upgraded_and_brought_back_by_the_lines_of_the_page(
    ordinary: Ordinary, rows: Rows
) -> None:
    url = parse_store_url(ordinary.url)
    asyncio.run(fill_previous(url, rows))
    before = asyncio.run(read_rows(url))

    def succeed(*lines: str) -> None:
        for line in lines:
            done = do(line, ordinary.home, store__url=ordinary.url)
            assert done.code == 0, f"{line}: {done.output}{done.complaints}"

    succeed(*ordinary.lines(restore=False))
    (dump,) = [*ordinary.home.glob("nexo.dump"), *ordinary.home.glob("nexo.sql")]
    assert dump.stat().st_mode & 0o077 == 0
    succeed("nexo migrate", "nexo check")
    assert asyncio.run(migrate.current(url)) == newest()
    succeed(*ordinary.lines(restore=True))
    assert asyncio.run(migrate.current(url)) == PREVIOUS
    assert asyncio.run(read_rows(url)) == before
    succeed("nexo migrate", "nexo check")  # nothing of the newer schema was left in its way
    dump.unlink()
    succeed(*ordinary.lines(restore=False), *ordinary.lines(restore=True))  # also the second time


@pytest.mark.parametrize("scheme", SCHEMES.values())
def test_the_command_prints_the_lines_of_the_page(scheme: str) -> None:
    url = parse_store_url(f"{scheme}://nexo:x@db.example.org/nexo")
    printed = engine_kind(url).dump_commands(url)
    assert printed is not None
    for line in (*printed.backup, *printed.restore):
        assert f"\n{line}\n" in PAGE


def test_for_a_server_database_the_commands_print_lines_without_the_password(tmp_path: Path) -> None:
    for command in ("backup x", "restore x"):
        done = do(f"nexo {command}", tmp_path, store__url="postgresql://an:hidden-password@db.example.org/its")
        assert done.code == 1
        assert "run the lines above" in done.complaints
        assert all(shlex.split(line) for line in done.output.splitlines())
        assert "hidden-password" not in done.output + done.complaints


@pytest.mark.servers
def test_a_database_that_its_user_does_not_own_is_cured_by_what_nexo_migrate_says(tmp_path: Path) -> None:
    server = servers.postgres()
    name, password = f"chat_{secrets.token_hex(4)}", secrets.token_hex(8)
    server.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
    server.execute(f"CREATE DATABASE {name}")
    server.execute(f"GRANT ALL ON DATABASE {name} TO {name}")
    url = f"postgresql://{name}:{password}@127.0.0.1:{server.port}/{name}"
    try:
        done = do("nexo migrate", tmp_path, store__url=url)
        assert done.code == 2
        (advice,) = re.findall(r"ALTER DATABASE .+$", done.complaints, re.MULTILINE)
        server.execute(advice)
        done = do("nexo migrate", tmp_path, store__url=url)
        assert done.code == 0, done.complaints
    finally:
        server.execute(f"DROP DATABASE {name}")
        server.execute(f"DROP ROLE {name}")

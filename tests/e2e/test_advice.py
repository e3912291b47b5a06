"""Whoever starts or watches a server at night is told what is wrong and what to do next."""

from __future__ import annotations

import asyncio
import re
import secrets
import shlex
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from harness import processes, servers
from harness.server_process import NEXO, DidNotStart, ServerProcess, environment
from harness.waiting import until

ROOT = Path(__file__).parents[2]
SECRET = "lkjsdf8723hkjsdhf7834yiuhsdfkjhwe7823y4kjhsd"


def nexo(*arguments: str | Path, cwd: Path | None = None, **settings: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [NEXO, *arguments],
        cwd=cwd or processes.new_dir("advice"),
        env=environment(settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def failed_start(exit_code: int = 2, **settings: object) -> str:
    with pytest.raises(DidNotStart) as ended, ServerProcess(bare=True, **settings):
        pass
    assert ended.value.exit_code == exit_code, ended.value.output
    assert "Traceback" not in ended.value.output
    return ended.value.output


def test_a_port_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = nexo("serve", "--port", str(other.getsockname()[1]))
    assert done.returncode == 2
    assert "choose another with --port, NEXO_SERVER__PORT or `make run PORT=…`" in done.stderr


def test_the_port_of_make_run_can_be_chosen() -> None:
    done = subprocess.run(["make", "-n", "run", "PORT=8901"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "nexo serve --port 8901\n" in done.stdout


def test_the_command_that_the_server_names_at_its_start_adds_a_user(server: ServerProcess) -> None:
    (command,) = re.findall(r"Add a user:  (.*)$", server.output, re.MULTILINE)
    assert command.endswith(f"user add NAME --data {server.data}")
    user_id = f"named.{secrets.token_hex(4)}"
    words = [user_id if word == "NAME" else word for word in shlex.split(command)]
    subprocess.run(words, cwd="/", input="correct horse battery", text=True, check=True, timeout=60)
    assert server.select(f"SELECT count(*) FROM users WHERE user_id = '{user_id}'") == [(1,)]


def test_an_address_that_is_not_this_machines() -> None:
    done = nexo("serve", "--host", "192.0.2.1", "--port", "0")
    assert done.returncode == 2
    assert "must be an address of this machine" in done.stderr


def test_a_data_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # not even root makes a folder in a file
    done = nexo("serve", "--port", "0", "--data", tmp_path / "file" / "nexo")
    assert done.returncode == 2
    assert str(tmp_path / "file" / "nexo") in done.stderr


def test_a_data_folder_that_another_server_uses() -> None:
    with ServerProcess() as first:
        done = nexo("serve", "--port", "0", "--data", first.data)
        assert done.returncode == 2
        assert f"process {first.pid}" in done.stderr
        assert "--data" in done.stderr


def test_a_secret_that_is_missing() -> None:
    said = failed_start(store__url="postgresql://u:p@127.0.0.1:1/x")
    assert "NEXO_AUTH__SECRET" in said
    assert "make one with" in said


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
def test_a_database_server_that_is_not_there_within_the_time_to_wait(scheme: str) -> None:
    url = f"{scheme}://u:secret-p@127.0.0.1:1/x"
    said = failed_start(75, store__url=url, store__start_wait_s=1, auth__secret=SECRET)  # systemd starts it again
    assert said.count("database_awaited") == 1
    assert "is it running, and are host and port in store.url right?" in said
    assert "secret-p" not in said


@pytest.mark.servers
@pytest.mark.parametrize("kind", [servers.MariaDb, servers.Postgres])
async def test_a_start_waits_for_a_database_that_is_away(kind: type[servers.MariaDb] | type[servers.Postgres]) -> None:
    with kind() as database:
        url = database.create_database()
        assert nexo("migrate", store__url=url).returncode == 0
        database.kill()
        server = ServerProcess(store__url=url, auth__secret=SECRET)
        try:
            starting = asyncio.create_task(asyncio.to_thread(server.start))
            await until(lambda: "database_awaited" in server.output, "it waits")
            assert not starting.done()
            alive = await asyncio.to_thread(httpx.get, f"{server.address}/healthz", trust_env=False)
            waits = await asyncio.to_thread(httpx.get, f"{server.address}/readyz", trust_env=False)
            assert (alive.status_code, waits.status_code) == (200, 503)
            assert waits.json()["err_msg"] == "server_busy"
            assert "waits for the database" in waits.json()["detail"]
            assert "host and port in store.url" in waits.json()["detail"]
            await asyncio.to_thread(database.start)
            await starting
            assert "database_found" in server.output
            assert "Traceback" not in server.output
            response = await asyncio.to_thread(httpx.get, f"{server.address}/readyz", trust_env=False)
            assert response.status_code == 200
        finally:
            server.kill()


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mariadb", "postgres"])
def test_a_password_a_database_or_a_schema_that_is_wrong(kind: str) -> None:
    url = getattr(servers, kind)().create_database()
    wrong_password = re.sub(r":[^:@/]+@", ":nonsense@", url)
    said = failed_start(store__url=wrong_password, auth__secret=SECRET)
    assert "the user or the password in store.url is wrong" in said
    said = failed_start(store__url=url.rpartition("/")[0] + "/there_is_none", auth__secret=SECRET)
    # MariaDB says so only to those who may see all databases
    assert "create the database first" in said or "GRANT" in said
    said = failed_start(store__url=url, auth__secret=SECRET)
    assert "run `nexo migrate` first" in said


def test_a_file_that_is_no_database_and_one_of_a_newer_version(tmp_path: Path) -> None:
    (tmp_path / "nexo.db").write_text("no database at all, but long enough to be looked at " * 100)
    done = nexo("serve", "--port", "0", "--data", tmp_path)
    assert done.returncode == 2
    assert "this file is something else" in done.stderr


def test_redis_that_is_not_there_is_a_warning_and_the_server_runs() -> None:
    with ServerProcess(redis__url="redis://127.0.0.1:1/0") as server:
        assert httpx.get(f"{server.address}/readyz", trust_env=False).status_code == 200
        server.wait_for_output("redis_gone")
        assert '"level": "warning"' in server.output


@pytest.mark.servers
async def test_a_database_that_goes_away_is_seen_by_readyz_and_the_log_and_healthz_still_says_alive() -> None:
    with servers.Postgres() as database:
        url = database.create_database()
        assert nexo("migrate", store__url=url).returncode == 0
        with ServerProcess(store__url=url, auth__secret=SECRET) as server:
            async with httpx.AsyncClient(base_url=server.address, timeout=30, trust_env=False, verify=False) as http:
                assert (await http.get("/readyz")).status_code == 200
                await asyncio.to_thread(database.kill)

                async def answered(status: int) -> httpx.Response | None:
                    response = await http.get("/readyz")
                    return response if response.status_code == status else None

                response = await until(lambda: answered(503))  # an answer is good for a second
                assert response is not None
                assert "The database cannot be reached" in response.json()["detail"]
                assert (await http.get("/healthz")).status_code == 200
                metrics = (await http.get("/metrics")).text
                assert "nexo_ready 0.0" in metrics
                assert '"event": "not_ready"' in server.output
                await asyncio.to_thread(database.start)
                await until(lambda: answered(200))
                assert '"event": "ready_again"' in server.output

"""Whoever starts or watches a server at night is told what is wrong and what to do next."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from harness import processes, servers
from harness.server_process import NEXO, DidNotStart, ServerProcess, environment

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


def failed_start(**settings: object) -> str:
    with pytest.raises(DidNotStart) as ended, ServerProcess(bare=True, **settings):
        pass
    assert ended.value.exit_code == 2, ended.value.output
    assert "Traceback" not in ended.value.output
    return ended.value.output


def test_a_port_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = nexo("serve", "--port", str(other.getsockname()[1]))
    assert done.returncode == 2
    assert "choose another with --port" in done.stderr


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
def test_a_database_server_that_is_not_there(scheme: str) -> None:
    said = failed_start(store__url=f"{scheme}://u:secret-p@127.0.0.1:1/x", auth__secret=SECRET)
    assert "is it running, and are host and port in store.url right?" in said
    assert "secret-p" not in said


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
                await asyncio.sleep(1.1)  # an answer is good for a second
                response = await http.get("/readyz")
                assert response.status_code == 503
                assert "The database cannot be reached" in response.json()["detail"]
                assert (await http.get("/healthz")).status_code == 200
                metrics = (await http.get("/metrics")).text
                assert "nexo_ready 0.0" in metrics
                assert '"event": "not_ready"' in server.output
                await asyncio.to_thread(database.start)
                async with asyncio.timeout(30):
                    while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110
                        await asyncio.sleep(0.2)
                assert '"event": "ready_again"' in server.output

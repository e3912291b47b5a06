"""The shop of examples/product as a process, beside a server that its page may call."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from harness import processes
from harness.browser import missing
from harness.server_process import ServerProcess, environment
from harness.waiting import until_blocking

EXAMPLE = Path(__file__).parents[2] / "examples" / "product"
PASSWORDS = {"ann": "ann loves tea", "ben": "ben loves tea", "sam": "sam sells tea"}


class Shop:
    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self.log = log

    @contextlib.contextmanager
    def sign_in(self, name: str) -> Iterator[httpx.Client]:
        """Gives a client with the shop's cookie."""
        with httpx.Client(base_url=self.url, timeout=30) as client:
            answer = client.post("/login", json={"name": name, "password": PASSWORDS[name]})
            assert answer.status_code == 200, answer.text
            yield client


@contextlib.contextmanager
def nexo_for(port: int) -> Iterator[tuple[ServerProcess, str]]:
    """Runs a server for a shop at this port; gives it and a key."""
    page = f"http://127.0.0.1:{port}"
    with ServerProcess(journal__takeover_s=1, http__cors_origins=page, hooks__allow_private=True) as server:
        made = server.run("key", "add", "harness", "--scope", "users,tokens,act,events")
        assert made.returncode == 0, made.stderr
        yield server, made.stdout.strip()


def python_shop() -> list[str | Path]:
    return [sys.executable, EXAMPLE / "python" / "shop.py"]


def node_shop() -> list[str | Path]:
    """Returns the command for a copy beside which the SDK lies, as `npm install` puts it."""
    node = shutil.which("node")
    if node is None:
        missing("Node.js is not installed")
    folder = processes.new_dir("shop")
    shutil.copytree(EXAMPLE, folder / "product")
    packages = folder / "product" / "node" / "node_modules"
    packages.mkdir()
    (packages / "nexo-im-client").symlink_to(EXAMPLE.parents[1] / "clients" / "js")
    return [str(node), folder / "product" / "node" / "shop.mjs"]


@contextlib.contextmanager
def shop(program: Sequence[str | Path], nexo: str, key: str, port: int) -> Iterator[Shop]:
    directory = processes.new_dir("shop")
    log = directory / "log"
    command = [*program, nexo, key, str(port)]
    process = processes.spawn(command, cwd=directory, log=log, env=environment({}))
    try:
        until_blocking(lambda: "the shop runs at" in log.read_text() or process.poll() is not None, log.read_text)
        assert process.poll() is None, log.read_text()
        yield Shop(f"http://127.0.0.1:{port}", log)
    finally:
        process.kill()
        process.wait()

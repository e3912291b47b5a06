"""tus-js-client, a client of tus by others, as a process that uploads one file."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from harness.generators import missing

FOLDER = Path(__file__).parents[1] / "tus"
INSTALL_TIMEOUT_S = 240


def _installed() -> str:
    """Returns the path of Node, with the client installed from its lock file."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        missing("Node.js and npm are not installed (Debian: apt-get install nodejs npm)")
        raise AssertionError
    lock, installed = FOLDER / "package-lock.json", FOLDER / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, f"tus-js-client could not be installed: {done.stderr}"
    return node


class TusJsClient:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._url = ""
        self._failure = ""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, _, rest = line.decode().strip().partition(" ")
            if word == "done":
                self._url = rest
            else:
                self._failure += line.decode()

    async def address(self, timeout_s: float) -> str:
        """Returns the address of the upload, once it is complete."""
        await asyncio.wait_for(self._reading, timeout_s)
        assert self._url, self._failure
        return self._url

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading


@asynccontextmanager
async def tus_js_client(endpoint: str, token: str, path: Path, chunk_bytes: int) -> AsyncIterator[TusJsClient]:
    """Yields the client while it uploads a file."""
    node = await asyncio.to_thread(_installed)
    process = await asyncio.create_subprocess_exec(
        node, str(FOLDER / "upload.mjs"), endpoint, token, str(path), str(chunk_bytes),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    client = TusJsClient(process)
    try:
        yield client
    finally:
        await client.end()

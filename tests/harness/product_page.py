"""The files of docs/product.md in a folder of their own, and programs among them."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from harness import processes
from harness.server_process import ServerProcess, environment
from harness.waiting import until_blocking

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "product.md"
NEXO_ADDRESS = "http://127.0.0.1:8900"


def files() -> dict[str, str]:
    """The blocks that are to be saved, by the name that the sentence before them gives."""
    text = PAGE.read_text()
    found = {}
    for block in re.finditer(r"^```(?:python|js|html)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        before = text[: block.start()].rstrip().rpartition("\n\n")[2]
        (name,) = re.findall(r"[Ss]aved?(?: this)? as `([\w.]+)`", before)
        found[name] = block.group(1)
    return found


def shell_blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def python_command(name: str) -> list[str]:
    return [sys.executable, name]


class Product:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    @contextlib.contextmanager
    def start(self, command: Sequence[str]) -> Iterator[Path]:
        """Runs a program in the folder; gives the file of its output."""
        log = self.folder / f"{command[-1]}.log"
        process = processes.spawn(command, cwd=self.folder, log=log, env=environment({}))
        try:
            yield log
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def page_product(server: ServerProcess, key: str, command: Sequence[str], port: int) -> Iterator[Product]:
    """Saves the files, with the addresses of this test in them, and runs the backend."""
    folder = processes.new_dir("product")
    (folder / "key").write_text(f"{key}\n")
    for name, code in files().items():
        text = code.replace(NEXO_ADDRESS, server.address).replace('8000, "127', f'{port}, "127')
        (folder / name).write_text(text.replace('("127.0.0.1", 8000)', f'("127.0.0.1", {port})'))
    packages = folder / "node_modules"
    packages.mkdir()
    (packages / "nexo-im-client").symlink_to(ROOT / "clients" / "js")
    product = Product(folder, f"http://127.0.0.1:{port}")
    with product.start(command) as log:
        until_blocking(lambda: _answers(product.url), log.read_text)
        yield product


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False

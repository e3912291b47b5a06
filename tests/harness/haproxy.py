"""A private HAProxy with the configuration that `deploy/haproxy.cfg` shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import httpx

from harness.server import Server, find_program

EXAMPLE = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"


class HaProxy(Server):
    """In front of Nexo on these ports."""

    name = "haproxy"
    accounts = ()

    def __init__(self, upstream_ports: Sequence[int]) -> None:
        super().__init__()
        self._upstream_ports = upstream_ports
        self._account = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_address(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def _prepare(self) -> None:
        find_program("haproxy", "haproxy")

    def _command(self) -> list[str | Path]:
        config = self.directory / "haproxy.cfg"
        config.write_text(_adapted(EXAMPLE.read_text(), self.port, self._upstream_ports))
        return [find_program("haproxy", "haproxy"), "-db", "-f", config]

    def _read_version(self) -> str:
        answer = httpx.get(f"{self.address}/healthz", trust_env=False)
        answer.raise_for_status()
        return "of this machine"


def _adapted(text: str, port: int, upstream_ports: Sequence[int]) -> str:
    """The example with addresses of this machine, and nothing else changed."""
    text, binds = re.subn(r"^    bind :80$", f"    bind 127.0.0.1:{port}", text, flags=re.MULTILINE)
    assert binds == 1
    for number, upstream in enumerate(upstream_ports, 1):
        text, places = re.subn(rf"\bnexo-{number}:8900\b", f"127.0.0.1:{upstream}", text)
        assert places == 2
    return text

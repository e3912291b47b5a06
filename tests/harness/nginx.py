"""A private nginx with the configuration that `deploy/nginx.conf` shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import httpx

from harness.server import Server, find_program

EXAMPLE = Path(__file__).parents[2] / "deploy" / "nginx.conf"


class Nginx(Server):
    """In front of Nexo on these ports."""

    name = "nginx"
    accounts = ()

    def __init__(self, upstream_ports: Sequence[int]) -> None:
        super().__init__()
        self._upstream_ports = upstream_ports
        self._account = None  # as whoever runs the tests; its workers as well

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_address(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def _prepare(self) -> None:
        find_program("nginx", "nginx-light")

    def _command(self) -> list[str | Path]:
        config = self.directory / "nginx.conf"
        config.write_text(adapted(EXAMPLE.read_text(), self.port, self._upstream_ports, self.directory))
        return [find_program("nginx", "nginx-light"), "-p", self.directory, "-e", "stderr", "-c", config]

    def _read_version(self) -> str:
        return httpx.get(f"{self.address}/healthz", trust_env=False).headers["server"]


def adapted(text: str, port: int, upstream_ports: Sequence[int], directory: Path) -> str:
    """The example with addresses and folders of this machine, and nothing else changed."""
    text, listens = re.subn(r"\blisten 80;", f"listen 127.0.0.1:{port};", text)
    assert listens == 1
    first, *rest = re.findall(r"^ *server nexo-\d:8900(.*;)$\n", text, re.MULTILINE)
    assert len(rest) == 1
    lines = "".join(f"        server 127.0.0.1:{port}{first}\n" for port in upstream_ports)
    text = re.sub(r"(?:^ *server nexo-\d:8900.*;$\n)+", lines, text, flags=re.MULTILINE)
    folders = "".join(
        f"    {name}_temp_path {directory}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {\n", f"http {{\n{folders}", 1)
    user = "user root;\n" if directory.stat().st_uid == 0 else ""
    return f"daemon off;\npid {directory}/pid;\n{user}{text}"

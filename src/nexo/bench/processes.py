"""What the kernel knows of a server's processes: CPU time and memory, children included. Linux only."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

_PROC = Path("/proc")


class Usage(msgspec.Struct, frozen=True):
    cpu_s: float
    rss_bytes: int


def usage_of(pids: Iterable[int]) -> Usage:
    """Returns the use of these processes and all that they started. Processes that have ended are not counted."""
    cpu_ns = rss = 0
    pages = os.sysconf("SC_PAGE_SIZE")
    for pid in _with_children(pids):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # nanoseconds per thread; the process's own figures come in steps of ten milliseconds
            for task in (_PROC / str(pid) / "task").iterdir():
                cpu_ns += int((task / "schedstat").read_text().split()[0])
            rss += int((_PROC / str(pid) / "statm").read_text().split()[1]) * pages
    return Usage(cpu_ns / 1e9, rss)


def _with_children(pids: Iterable[int]) -> Iterator[int]:
    waiting = list(pids)
    seen: set[int] = set()
    while waiting:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        yield pid
        with contextlib.suppress(OSError):
            for task in (_PROC / str(pid) / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]


class Machine(msgspec.Struct, frozen=True):
    processor: str
    cores: int
    memory_mib: int
    system: str
    python: str


def this_machine() -> Machine:
    model = "unknown"
    with contextlib.suppress(OSError):
        for line in (_PROC / "cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return Machine(model, os.cpu_count() or 1, memory, name, platform.python_version())

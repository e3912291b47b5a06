"""Limits that a process sets for itself before it reads a byte of a user: memory, time, files, system calls.

A limit that the kernel does not have (a filter of system calls on another processor) is left out; limits of memory,
time and files exist on every Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
from collections.abc import Iterable

_NO_NEW_PRIVILEGES = 38
_SET_SECCOMP = 22
_FILTER = 2
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_X32_BIT = 0x40000000  # the second table of numbers on x86-64

# Instructions of the kernel's filters: load a word, jump if equal, jump if at least, return.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06

# Name → number on x86-64 and on arm64 (None: it does not exist there).
_CALLS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "dup": (32, 23),
    "fcntl": (72, 25),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "gettimeofday": (96, 169),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrandom": (318, 278),
    "sysinfo": (99, 179),
    "exit": (60, 93),
    "exit_group": (231, 94),
    # Of the second list.
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "fork": (57, None),
    "vfork": (58, None),
    "kill": (62, 129),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "chmod": (90, None),
    "fchmodat": (268, 53),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),
}
_NAMES = tuple(_CALLS)
# All that computing and reading an open file takes.
COMPUTING = _NAMES[: _NAMES.index("socket")]
# What a program that opens files and has threads never needs to read one film.
OUTSIDE = _NAMES[_NAMES.index("socket") :]

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def limit(memory_bytes: int, seconds: int, clock_s: int, niceness: int = 10) -> None:
    """Bound memory, processor time and time of this process and of what it becomes by exec, and forbid it to write
    files."""
    signal.alarm(clock_s)  # ends the process also when the server that started it is gone
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU says why
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(niceness)  # pictures wait for messages, not the reverse


def limit_files(count: int) -> None:
    """Forbid to open more than `count` files, with those that are open."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def allow_only(names: Iterable[str]) -> bool:
    """Refuse every system call except these, for good. Returns whether the kernel can do that here."""
    return _install(names, listed=_ALLOW, other=_REFUSE)


def refuse(names: Iterable[str]) -> bool:
    """Refuse these system calls, for good. Returns whether the kernel can do that here."""
    return _install(names, listed=_REFUSE, other=_ALLOW)


def _install(names: Iterable[str], listed: int, other: int) -> bool:
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    column, architecture = machine
    numbers = [number for name in names if (number := _CALLS[name][column]) is not None]
    program = b"".join(
        (
            _instruction(_LOAD, 4),
            _instruction(_EQUAL, architecture, 1, 0),
            _instruction(_RETURN, _REFUSE),
            _instruction(_LOAD, 0),
            _instruction(_AT_LEAST, _X32_BIT, 0, 1),
            _instruction(_RETURN, _REFUSE),
            *(_instruction(_EQUAL, number, len(numbers) - place, 0) for place, number in enumerate(numbers)),
            _instruction(_RETURN, other),
            _instruction(_RETURN, listed),
        )
    )
    library = ctypes.CDLL(None, use_errno=True)
    kept = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(kept))
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    return bool(library.prctl(_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(header, len(header)), 0, 0) == 0)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)

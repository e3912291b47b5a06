"""What a limited process can still do: tried in processes that limit themselves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import nexo

SOURCE = Path(nexo.__file__).parents[1]


def run(lines: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    start = f"import os, socket, sys; sys.path.insert(0, {str(SOURCE)!r}); from nexo.files.media import jail\n"
    code = start + "def tried(call):\n try: call()\n except OSError as error: return error.errno\n" + lines
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=timeout_s)


def test_a_decoder_can_only_compute_and_answer(tmp_path: Path) -> None:
    calls = (
        "lambda: open('/etc/hostname')",
        f"lambda: open({str(tmp_path / 'new')!r}, 'w')",
        "lambda: socket.socket()",
        "lambda: os.fork()",
        "lambda: os.kill(1, 0)",
        "lambda: os.execv('/bin/true', ['true'])",
        f"lambda: os.mkdir({str(tmp_path / 'folder')!r})",
    )
    done = run(f"jail.allow_only(jail.COMPUTING)\nprint([tried(call) for call in ({', '.join(calls)})])")
    assert done.stdout.strip() == str([1] * len(calls))


def test_a_program_has_no_network_and_cannot_touch_other_processes() -> None:
    calls = ("lambda: socket.socket()", "lambda: os.kill(os.getppid(), 0)", "lambda: os.unlink('/nowhere')")
    done = run(f"jail.refuse(jail.OUTSIDE)\nprint([tried(call) for call in ({', '.join(calls)})])")
    assert done.stdout.strip() == str([1] * len(calls))


def test_files_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "new"
    done = run(f"jail.limit(1 << 30, 60, 60)\nos.write(os.open({str(target)!r}, os.O_CREAT | os.O_WRONLY), b'x')")
    assert done.returncode != 0
    assert target.read_bytes() == b""


def test_memory_is_bounded() -> None:
    done = run("jail.limit(256 << 20, 60, 60)\ntry: bytearray(300 << 20)\nexcept MemoryError: print('refused')")
    assert done.stdout.strip() == "refused"


def test_time_is_bounded_without_a_server() -> None:
    assert run("jail.limit(1 << 30, 1, 100)\nwhile True: pass").returncode == -signal.SIGXCPU
    assert run("jail.limit(1 << 30, 30, 1)\nimport signal; signal.pause()").returncode == -signal.SIGALRM

"""The warning about file descriptors that run out, in a process with few of them."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import os, resource
from nexo.logs import set_up_logs
from nexo.metrics.file_watch import FileWatch
set_up_logs("info", as_json=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
now = 0.0
watch = FileWatch(lambda: now)
watch.look()
opened = []
try:
    while True:
        opened.append(os.dup(2))
except OSError:
    pass
for now in (1.0, 2.0, 30.0, 62.0, 63.0):
    watch.look()
for number in opened:
    os.close(number)
watch.look()
watch.look()
"""


def test_running_out_of_file_descriptors_is_logged_once_a_minute() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("files_exhausted", "error"),
        ("files_exhausted", "error"),
        ("files_available", "info"),
    ]
    assert lines[0]["limit"] == 64

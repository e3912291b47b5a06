"""The process that becomes another program, which gets the limits with it: ffmpeg and ffprobe."""

from __future__ import annotations

import os

from nexo.files.media import jail

_FILES_MAX = 64


def main(memory_bytes: str, seconds: str, clock_s: str, program: str, *arguments: str) -> None:
    jail.limit(int(memory_bytes), int(seconds), int(clock_s))
    jail.limit_files(_FILES_MAX)
    jail.refuse(jail.OUTSIDE)
    os.execve(program, [program, *arguments], {})

"""The process that reads the headers of one recording and ends."""

from __future__ import annotations

from typing import BinaryIO

from nexo.files.media import jail
from nexo.files.media.durations import read_recording
from nexo.files.media.worker import STANDARD_FILES, Answer, answer


def main(memory_bytes: str, seconds: str, clock_s: str, mime: str) -> None:
    jail.limit(int(memory_bytes), int(seconds), int(clock_s))
    jail.limit_files(STANDARD_FILES)
    jail.allow_only(jail.COMPUTING)

    def look(stream: BinaryIO) -> Answer:
        found = read_recording(stream, mime)._asdict()
        return {key: value for key, value in found.items() if value is not None}, []

    answer(look)

"""The word list file of the content filter, read again when it changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import structlog

from nexo.core.filter import NO_FILTER, Mode, WordFilter
from nexo.errors import StartupError

_LOOK_EVERY_S = 1.0

log = structlog.get_logger()


def load_words(path: Path) -> list[str]:
    """Returns the words: one per line, without surrounding spaces. Blank lines are left out; # has no special
    meaning."""
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError as error:
        raise StartupError(f"cannot read the word list {path} (filter.file): {error.strerror}") from error
    words = []
    for number, line in enumerate(lines, start=1):
        try:
            words.append(line.decode().strip())
        except UnicodeDecodeError as error:
            raise StartupError(f"line {number} of the word list {path} (filter.file) is not UTF-8") from error
    return [word for word in words if word]


class FilterFile:
    """The filter as the file has it now. A bad file is an error at the start; later the old list stays."""

    def __init__(self, path: Path | None, mode: Mode, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = None if mode == "off" else path
        self.is_on = self._path is not None
        self._mode = mode
        self._clock = clock
        self._look_at_s = clock() + _LOOK_EVERY_S
        self._filter = NO_FILTER
        self._seen: tuple[int, int, int] | None = None
        self._told = ""
        if self._path is not None:
            self._read(self._path)

    def reload(self) -> None:
        """Look at the file now instead of within a second."""
        self._look_at_s = self._clock()
        self.current()

    def current(self) -> WordFilter:
        if self._path is not None and self._clock() >= self._look_at_s:
            self._look_at_s = self._clock() + _LOOK_EVERY_S
            try:
                self._read(self._path)
                self._told = ""
            except StartupError as error:
                # Tried again each second, because the cause may end without a change of the file; logged once.
                if str(error) != self._told:
                    self._told = str(error)
                    log.warning("filter_file_kept_old", reason=self._told)
        return self._filter

    def _read(self, path: Path) -> None:
        try:
            # Before reading: a change in between makes the file be read again, not overlooked.
            status = path.stat()
        except OSError as error:
            raise StartupError(f"cannot read the word list {path} (filter.file): {error.strerror}") from error
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen != self._seen:
            self._filter = WordFilter(load_words(path), self._mode)
            self._seen = seen

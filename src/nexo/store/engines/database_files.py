"""What a backup needs of a database that is a file. Databases of servers are dumped by tools of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

Pages = Callable[[int, int], None]  # how many of how many were copied


class FileInUse(Exception):
    """Another program has the database open."""


class FileDamaged(Exception):
    """The structure of a database file is broken, or it is no database; the text has the engine's words."""


class DatabaseFiles(ABC):
    """Operations on whole database files. Failures that are none of these two are raised as the driver's error."""

    @abstractmethod
    def copy(self, source: Path, target: Path, progress: Pages) -> None:
        """Copy a database as it is at one moment, while others read and write it. `target` is an empty file, and
        complete in itself afterwards. Raises FileDamaged for a source that cannot be read to its end."""

    @abstractmethod
    def check_whole(self, path: Path) -> None:
        """Read a whole file; raises FileDamaged when something is wrong with its structure."""

    @abstractmethod
    def read_revision(self, path: Path) -> str | None:
        """Returns the revision of the schema; None for a file that is no store of Nexo."""

    @abstractmethod
    def write_notes(self, path: Path, notes: Mapping[str, str]) -> None:
        """Put notes on a backup into its file."""

    @abstractmethod
    def take_notes(self, path: Path) -> dict[str, str]:
        """Returns the notes and removes them without a trace; empty for a file without any."""

    @abstractmethod
    def fold(self, path: Path) -> bool:
        """Move everything that belongs to a database into its one file. Returns False for a damaged one, where the
        engine cannot; raises FileInUse while another program has it open."""

    @abstractmethod
    def beside(self, path: Path) -> list[Path]:
        """Returns the files that belong to a database besides its own, whether they exist or not."""


class DumpCommands(NamedTuple):
    """Lines for a shell with which a server's database is backed up and restored by its own tools."""

    backup: tuple[str, ...]
    restore: tuple[str, ...]
    password: str  # where the tools find the password

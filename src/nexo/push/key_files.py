"""Files with keys that an operator names."""

from __future__ import annotations

from pathlib import Path

from nexo.errors import StartupError

MAX_BYTES = 64 * 1024


def read_key_file(setting: str, path: str) -> str:
    """Returns the text of a file. Raises StartupError, which names the setting."""
    try:
        with open(Path(path), encoding="utf-8") as file:
            return file.read(MAX_BYTES)
    except OSError as error:
        raise StartupError(f"{setting}: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartupError(f"{setting}: {path} is not text") from error

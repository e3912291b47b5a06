"""The files that are uploaded: what the outbox keeps of them, and their bytes."""

from __future__ import annotations

import mimetypes
import os
from pathlib import Path

from nexo_client.errors import ClientError
from nexo_client.types import MsgType, Upload

_KINDS = {"image": MsgType.IMAGE, "video": MsgType.VIDEO, "audio": MsgType.AUDIO}


def media_type(name: str) -> int:
    """Returns the type of the message that a file is sent as; the server decides by its bytes what it shows of it."""
    guessed, _ = mimetypes.guess_type(name)
    if guessed is None or guessed.endswith("+xml"):
        return MsgType.FILE
    return _KINDS.get(guessed.partition("/")[0], MsgType.FILE)


def describe_file(file: str | Path | bytes, name: str) -> Upload:
    """Returns what the outbox keeps of a file. Raises OSError when it cannot be read, `bad_file` when it is empty."""
    if isinstance(file, bytes):
        upload = Upload(name or "file", len(file))
    else:
        path = Path(file).absolute()
        with path.open("rb") as opened:
            state = os.fstat(opened.fileno())
        upload = Upload(name or path.name, state.st_size, str(path), state.st_mtime_ns)
    if upload.size == 0:
        raise ClientError("bad_file", f"{upload.name} is empty")
    return upload


def read_part(upload: Upload, start: int, count: int) -> bytes:
    """Returns a part of a file that is still the one that was sent."""
    try:
        with open(upload.path, "rb") as file:
            state = os.fstat(file.fileno())
            if (state.st_size, state.st_mtime_ns) != (upload.size, upload.modified_ns):
                raise ClientError("file_changed")
            file.seek(start)
            content = file.read(count)
    except OSError as error:
        raise ClientError("file_changed", str(error)) from None
    if len(content) != count:
        raise ClientError("file_changed")
    return content

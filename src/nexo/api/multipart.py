"""The one file of a form (`multipart/form-data`), read as it arrives."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from urllib.parse import unquote

from nexo.errors import NexoError

HEAD_MAX_BYTES = 8 * 1024
FRAMING_MAX_BYTES = 64 * 1024  # of a form around its file: other fields, heads and boundaries

_BOUNDARY = re.compile(r"""multipart/form-data\s*;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))""", re.IGNORECASE)
_NAME = re.compile(r"""(?:^|;)\s*name\s*=\s*(?:"([^"]*)"|([^;\s]*))""", re.IGNORECASE)
_FILE_NAME = re.compile(r"""(?:^|;)\s*filename\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^;\s]*))""", re.IGNORECASE)
_ENCODED_NAME = re.compile(r"""(?:^|;)\s*filename\*\s*=\s*UTF-8'[^']*'([^;\s]*)""", re.IGNORECASE)


def boundary_of(content_type: str) -> bytes | None:
    """Returns the boundary of a form; None for another type of body."""
    if not content_type.lower().startswith("multipart/form-data"):
        return None
    found = _BOUNDARY.match(content_type)
    if found is None:
        raise NexoError("bad_request", "The form names no boundary")
    return (found[1] or found[2]).encode("latin-1")


def file_name_of(disposition: str) -> str:
    """Returns the name in a Content-Disposition header; empty without one."""
    if found := _ENCODED_NAME.search(disposition):
        return unquote(found[1], errors="replace")
    if found := _FILE_NAME.search(disposition):
        text = found[1] if found[1] is not None else found[2]
        return re.sub(r"\\(.)", r"\1", text).replace("%22", '"')
    return ""


class FormReader:
    """Reads a form up to the field that is wanted, and then that field."""

    def __init__(self, body: AsyncIterator[bytes], boundary: bytes) -> None:
        self._body = body
        self._delimiter = b"\r\n--" + boundary
        self._buffer = bytearray(b"\r\n")  # the first boundary has no line before it
        self._skipped = 0

    async def find(self, field: str) -> str:
        """Returns the file name of the field, whose bytes `pieces` yields then. Raises when there is no such field."""
        async for data in self._until_delimiter():
            self._skip(len(data))
        while True:
            head = await self._head()
            if head is None:
                raise NexoError("bad_request", f"The form has no field {field!r}")
            name = _NAME.search(head)
            if name is not None and (name[1] if name[1] is not None else name[2]) == field:
                return file_name_of(head)
            async for data in self._until_delimiter():
                self._skip(len(data))

    def pieces(self) -> AsyncIterator[bytes]:
        return self._until_delimiter()

    async def _head(self) -> str | None:
        """Returns the Content-Disposition of the next part; None at the end of the form."""
        while b"\r\n\r\n" not in self._buffer:
            if self._buffer.startswith(b"--"):
                return None
            if len(self._buffer) > HEAD_MAX_BYTES:
                raise NexoError("bad_request", "The head of a form's field is too long")
            await self._fill()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._skip(len(head))
        self._buffer = bytearray(rest)
        self._buffer[:0] = b"\r\n"  # an empty field is followed by its delimiter at once
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-disposition":
                return value.decode("utf-8", "replace").strip()
        return ""

    async def _until_delimiter(self) -> AsyncIterator[bytes]:
        keep = len(self._delimiter) - 1
        before = 2  # the end of the line before the field, which `_head` and the start put there
        while True:
            found = self._buffer.find(self._delimiter)
            end = found if found >= 0 else max(0, len(self._buffer) - keep)
            if end:
                data = bytes(self._buffer[min(before, end) : end])
                before -= min(before, end)
                if data:
                    yield data
            if found >= 0:
                del self._buffer[: found + len(self._delimiter)]
                return
            del self._buffer[:end]
            await self._fill()

    async def _fill(self) -> None:
        try:
            self._buffer += await anext(self._body)
        except StopAsyncIteration:
            raise NexoError("bad_request", "The form ends before its last boundary") from None

    def _skip(self, size: int) -> None:
        self._skipped += size
        if self._skipped > FRAMING_MAX_BYTES:
            raise NexoError("file_too_large", "The form has too much besides its file")

"""Documents of an export of MongoDB: `mongodump` (NAME.bson, also with .gz) or `bsondump` (NAME.json, a document per
line, in either form of extended JSON). They are read one after another, whatever their number."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from nexo.errors import StartupError

DOCUMENT_MAX_BYTES = 48 << 20  # MongoDB's own limit is 16 MiB; JSON is longer
DEPTH_MAX = 100
_SUFFIXES = (".bson", ".bson.gz", ".json", ".jsonl", ".json.gz")
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_NUMBERS = ("$numberLong", "$numberInt", "$numberDouble", "$numberDecimal")


def find(folder: Path, name: str) -> Path | None:
    """Returns the file of a collection; of several the first in the order of the suffixes."""
    return next((path for suffix in _SUFFIXES if (path := folder / f"{name}{suffix}").is_file()), None)


def documents(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Yields the documents of a collection; none if the export does not have it. Raises StartupError for a file that
    cannot be read."""
    path = find(folder, name)
    if path is None:
        return
    try:
        with cast(IO[bytes], gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as file:
            yield from _bson(file) if ".bson" in path.name else _lines(file)
    except (OSError, EOFError, ValueError, struct.error, IndexError, msgspec.DecodeError, RecursionError) as error:
        raise StartupError(f"the export {path} cannot be read: {error}") from error


def _lines(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    number = 0
    while line := file.readline(DOCUMENT_MAX_BYTES):
        number += 1
        line = line.strip()
        if not line:
            continue
        try:
            found = _decode(line)
        except msgspec.DecodeError as error:
            raise ValueError(f"line {number}: {error}") from error
        yield {name: plain(value) for name, value in found.items()}


def plain(value: Any, depth: int = 0) -> Any:
    """Returns a value of extended JSON as a plain one; times are milliseconds."""
    if depth > DEPTH_MAX:
        raise ValueError("a document is nested too deeply")
    if isinstance(value, list):
        return [plain(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, inside),) = value.items()
        if name in _NUMBERS:
            return int(inside) if name in _NUMBERS[:2] else float(inside)
        if name == "$date":
            return _moment(plain(inside, depth + 1))
        if name == "$oid":
            return inside
    return {name: plain(item, depth + 1) for name, item in value.items()}


def _moment(value: Any) -> int:
    if isinstance(value, str):
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    return int(value)


def _bson(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    while head := file.read(4):
        size = struct.unpack("<i", head)[0]
        if not 5 <= size <= DOCUMENT_MAX_BYTES:
            raise ValueError("a document has an impossible size")
        data = head + file.read(size - 4)
        if len(data) != size:
            raise ValueError("the last document is not complete")
        yield _read_document(data, 0, 0)[0]


def _read_document(data: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    if depth > DEPTH_MAX:
        raise ValueError("a document is nested too deeply")
    end = at + int(struct.unpack_from("<i", data, at)[0])
    at += 4
    found: dict[str, Any] = {}
    while (kind := data[at]) != 0:
        stop = data.index(0, at + 1)
        name = data[at + 1 : stop].decode()
        found[name], at = _read_value(kind, data, stop + 1, depth)
    if at + 1 != end:
        raise ValueError("a document has an impossible size")
    return found, end


def _read_value(kind: int, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    match kind:
        case 0x01:
            return struct.unpack_from("<d", data, at)[0], at + 8
        case 0x02 | 0x0D | 0x0E:
            size = struct.unpack_from("<i", data, at)[0]
            if size < 1 or at + 4 + size > len(data):
                raise ValueError("a text has an impossible size")
            return data[at + 4 : at + 3 + size].decode("utf-8", "replace"), at + 4 + size
        case 0x03:
            return _read_document(data, at, depth + 1)
        case 0x04:
            found, end = _read_document(data, at, depth + 1)
            return list(found.values()), end
        case 0x05:
            size = struct.unpack_from("<i", data, at)[0]
            if size < 0 or at + 5 + size > len(data):
                raise ValueError("a value has an impossible size")
            return data[at + 5 : at + 5 + size], at + 5 + size
        case 0x07:
            return data[at : at + 12].hex(), at + 12
        case 0x08:
            return data[at] != 0, at + 1
        case 0x09 | 0x11 | 0x12:
            return struct.unpack_from("<q", data, at)[0], at + 8
        case 0x06 | 0x0A | 0x7F | 0xFF:
            return None, at
        case 0x10:
            return struct.unpack_from("<i", data, at)[0], at + 4
        case 0x13:
            return None, at + 16
    raise ValueError(f"a value has the type {kind}, which OpenIM does not use")

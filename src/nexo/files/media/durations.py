"""How long a recording lasts, and how large a film is, as far as its headers state it. Nothing is decoded.

Runs only in a process that is limited to it, see `worker`: the files are what users sent.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_BOXES_MAX = 1000
_LARGEST_MS = 1000 * 3600 * 24 * 30
_SIDE_MAX = 16_384
_TAIL_BYTES = 131_072  # more than the longest page of Ogg


class Recording(NamedTuple):
    duration_ms: int | None = None
    width: int | None = None
    height: int | None = None


def read_recording(stream: BinaryIO, mime: str) -> Recording:
    """Returns what the headers state; what they leave open, or state wrongly, is None."""
    reader = _READERS.get(mime)
    try:
        found = reader(stream) if reader is not None else Recording()
    except (ValueError, struct.error, IndexError, ZeroDivisionError, OverflowError, OSError):
        return Recording()
    if found.duration_ms is not None and not 0 <= found.duration_ms <= _LARGEST_MS:
        found = found._replace(duration_ms=None)
    sides = (found.width or 0, found.height or 0)
    if not all(0 < side <= _SIDE_MAX for side in sides):
        found = found._replace(width=None, height=None)
    return found


def _wav(stream: BinaryIO) -> Recording:
    stream.seek(12)
    rate = 0
    for _ in range(_BOXES_MAX):
        kind, size = struct.unpack("<4sI", _exactly(stream, 8))
        if kind == b"fmt ":
            rate = struct.unpack_from("<I", _exactly(stream, 16), 8)[0]
            stream.seek(size - 16 + size % 2, os.SEEK_CUR)
        elif kind == b"data":
            here = stream.tell()
            left = stream.seek(0, os.SEEK_END) - here
            return Recording(min(size, left) * 1000 // rate)  # a writer that did not know the size wrote the largest
        else:
            stream.seek(size + size % 2, os.SEEK_CUR)
    return Recording()


def _flac(stream: BinaryIO) -> Recording:
    info = _exactly(stream, 42)
    if info[4] & 0x7F:
        return Recording()
    bits = int.from_bytes(info[18:26], "big")
    rate, samples = bits >> 44, bits & 0xFFFFFFFFF
    return Recording(samples * 1000 // rate) if samples else Recording()


def _ogg(stream: BinaryIO) -> Recording:
    head = stream.read(512)
    start = head.find(b"\x01vorbis")
    skipped = 0
    if start >= 0:
        rate = struct.unpack_from("<I", head, start + 12)[0]
    elif (start := head.find(b"OpusHead")) >= 0:
        rate, skipped = 48_000, struct.unpack_from("<H", head, start + 10)[0]
    else:
        return Recording()
    end = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, end - _TAIL_BYTES))
    tail = stream.read(_TAIL_BYTES)
    page = tail.rfind(b"OggS")
    while page >= 0:
        samples = struct.unpack_from("<q", tail, page + 6)[0]
        if samples > 0:  # a page on which no packet ends has none
            return Recording(max(0, samples - skipped) * 1000 // rate)
        page = tail.rfind(b"OggS", 0, page)
    return Recording()


def _mp4(stream: BinaryIO) -> Recording:
    end = stream.seek(0, os.SEEK_END)
    film = _box(stream, 0, end, b"moov")
    if film is None:
        return Recording()
    header = _box(stream, *film, b"mvhd")
    duration = None
    if header is not None:
        stream.seek(header[0])
        fields = _exactly(stream, min(32, header[1] - header[0]))
        if fields[0] == 1:
            scale, length = struct.unpack_from(">IQ", fields, 20)
        else:
            scale, length = struct.unpack_from(">II", fields, 12)
        if length not in (0, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
            duration = length * 1000 // scale
    width, height = _mp4_size(stream, *film)
    return Recording(duration, width, height)


def _mp4_size(stream: BinaryIO, start: int, end: int) -> tuple[int | None, int | None]:
    """Returns the size of the first track that has one, turned as its matrix turns it."""
    place = start
    for _ in range(_BOXES_MAX):
        track = _box(stream, place, end, b"trak")
        if track is None:
            return None, None
        header = _box(stream, *track, b"tkhd")
        if header is not None:
            stream.seek(header[0])
            fields = _exactly(stream, min(96, header[1] - header[0]))
            at = 52 if fields[0] == 1 else 40
            a, b = struct.unpack_from(">ii", fields, at)
            width, height = (value >> 16 for value in struct.unpack_from(">II", fields, at + 36))
            if width and height:
                return (height, width) if a == 0 and b != 0 else (width, height)
        place = track[1]
    return None, None


def _box(stream: BinaryIO, start: int, end: int, wanted: bytes) -> tuple[int, int] | None:
    """Returns where the content of the first box of this kind begins and ends."""
    place = start
    for _ in range(_BOXES_MAX):
        if place + 8 > end:
            return None
        stream.seek(place)
        size, kind = struct.unpack(">I4s", _exactly(stream, 8))
        content = place + 8
        if size == 1:
            size = struct.unpack(">Q", _exactly(stream, 8))[0]
            content += 8
        elif size == 0:
            size = end - place
        if size < content - place or place + size > end:
            return None
        if kind == wanted:
            return content, place + size
        place += size
    return None


def _matroska(stream: BinaryIO) -> Recording:
    """Reads Info of the first segment, which writers of finished files put near the start."""
    head = stream.read(65_536)
    size, at = _number(head, 4)  # of the header of the file
    at += size
    if head[at : at + 4] != b"\x18\x53\x80\x67":
        return Recording()
    _, at = _number(head, at + 4)
    for element, start, end in _elements(head, at, len(head)):
        if element == b"\x15\x49\xa9\x66":
            return _matroska_info(head, start, min(end, len(head)))
    return Recording()


def _matroska_info(head: bytes, start: int, end: int) -> Recording:
    scale, length = 1_000_000, 0.0
    for element, begin, behind in _elements(head, start, end):
        value = head[begin:behind]
        if element == b"\x2a\xd7\xb1":
            scale = int.from_bytes(value, "big")
        elif element == b"\x44\x89" and len(value) in (4, 8):
            length = struct.unpack(">f" if len(value) == 4 else ">d", value)[0]
    return Recording(int(length * scale / 1_000_000)) if length > 0 else Recording()


def _elements(data: bytes, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yields the elements of a place: their ids, and where their content begins and ends."""
    at = start
    while at < end:
        width = 9 - data[at].bit_length()
        size, content = _number(data, at + width)
        yield data[at : at + width], content, content + size
        at = content + size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number of variable length, and where it ends."""
    width = 9 - data[at].bit_length()
    if width > 8:
        raise ValueError("not a number")
    value = int.from_bytes(data[at : at + width], "big") & (1 << 7 * width) - 1
    return value, at + width


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise ValueError("the file ends too early")
    return data


_READERS = {
    "audio/wav": _wav,
    "audio/flac": _flac,
    "audio/ogg": _ogg,
    "audio/mp4": _mp4,
    "video/mp4": _mp4,
    "video/quicktime": _mp4,
    "video/3gpp": _mp4,
    "video/3gpp2": _mp4,
    "video/webm": _matroska,
    "video/x-matroska": _matroska,
}

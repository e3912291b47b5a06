"""Pictures for messages, made here."""

from __future__ import annotations

import struct
import zlib


def gradient_png(width: int, height: int, number: int = 0) -> bytes:
    """Each number has other colours."""
    shades = bytes((64 + x * 128 // width) % 256 for x in range(width))
    lines = []
    for y in range(height):
        green, blue = (y * 200 // height + 11 * number) % 256, (37 * number + 90) % 256
        lines.append(b"\0" + b"".join(bytes((red, green, blue)) for red in shades))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(lines), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

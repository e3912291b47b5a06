"""Opaque cursors: a place in a listing, as text that clients hand back unread."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Annotated, Any, TypeVar

import msgspec

from nexo.errors import NexoError

T = TypeVar("T")

CURSOR_MAX_CHARS = 48 * 1024

Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]  # what every engine takes for an integer


def encode_cursor(place: Any) -> str:
    packed = zlib.compress(msgspec.msgpack.encode(place), 1)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(cursor: str, form: type[T]) -> T:
    if len(cursor) > CURSOR_MAX_CHARS:
        raise NexoError("bad_cursor", "The cursor is longer than any the server gives out")
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        # a cursor unpacks to little more than its own size; anything else is not ours
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, 1 << 20)
        if unpacker.unconsumed_tail:
            raise ValueError("too large")
        return msgspec.msgpack.decode(plain, type=form)
    except (ValueError, binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise NexoError("bad_cursor", "Use the cursor as it was given, or none") from error

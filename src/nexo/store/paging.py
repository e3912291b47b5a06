"""Opaque cursors: a place in a listing, as text that clients send back unchanged."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Annotated, Any, TypeVar

import msgspec

from nexo.errors import NexoError
from nexo.ids import is_user_id

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
        # no cursor of the server unpacks to much more than its own size
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(packed, 1 << 20)
        if unpacker.unconsumed_tail:
            raise ValueError("too large")
        return msgspec.msgpack.decode(plain, type=form)
    except (ValueError, binascii.Error, zlib.error, msgspec.MsgspecError) as error:
        raise NexoError("bad_cursor", "Use the cursor as it was given, or none") from error


def read_user_cursor(cursor: str | None) -> str:
    """Returns the user id at which the page before has ended; empty without a cursor."""
    after = decode_cursor(cursor, str) if cursor else ""
    if after and not is_user_id(after):
        raise NexoError("bad_cursor", "Use the cursor as it was given, or none")
    return after

"""Reading typed requests, for the dialects that carry them inside of a frame.

Unknown fields are ignored. A missing field or one of the wrong type is refused with the error of the
table that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from nexo.core.json_reader import UNSTORABLE, field_error, read_loosely, refusal, unstorable_field
from nexo.errors import NexoError

SEQ_MAX = (1 << 63) - 1
ECHO_MAX_CHARS = 256

Seq = Annotated[int, Meta(ge=0, le=SEQ_MAX)] | Annotated[str, Meta(pattern="^[0-9]{1,18}$")]
Echo = Annotated[str, Meta(max_length=ECHO_MAX_CHARS)]  # returned to the client unchanged
EchoNumber = Annotated[int, Meta(ge=-SEQ_MAX, le=SEQ_MAX)]

_decode_any = msgspec.json.Decoder().decode

T = TypeVar("T")


def reader(form: type[T], error_fields: Mapping[str, str]) -> Callable[[bytes | msgspec.Raw], T]:
    """A function from JSON to `form`. `error_fields` has what follows `missing_` and `bad_` in the error that
    names a field, where it is not the field's own name."""
    decode = msgspec.json.Decoder(form).decode

    def read(data: bytes | msgspec.Raw) -> T:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            raise refusal(error, error_fields) from None
        # numbers of thousands of digits, brackets without end
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise NexoError("bad_json") from None

    return read


def read_object(data: bytes | msgspec.Raw) -> dict[str, Any] | None:
    """Whatever JSON object this is, to find in a malformed request what is to be echoed; None if it is none.
    What cannot be stored is read as well; a lone surrogate, which could not be sent back, as a question mark."""
    try:
        found = _decode_any(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        try:
            found = json.loads(json.dumps(read_loosely(data), ensure_ascii=False).encode(errors="replace"))
        except RecursionError:
            return None
    return found if isinstance(found, dict) else None


def unstorable_error(data: bytes | msgspec.Raw, error_fields: Mapping[str, str], inside: str) -> NexoError:
    """The error for a frame that `read_object` reads and a strict decoder does not: it names a field of the object
    that the frame has `inside`, or of the frame itself."""
    found = read_loosely(data) or {}
    inner = found.get(inside)
    field = unstorable_field(inner if isinstance(inner, dict) else found)
    return field_error("bad", field or "", error_fields, f"{field or 'The frame'} {UNSTORABLE}")


def text_in(found: object, field: str) -> str | None:
    """The text that a malformed request has in this field."""
    value = found.get(field) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


def echo(value: object) -> str | int:
    """Returns what may be sent back of an identifier that can have any type."""
    if isinstance(value, str):
        return value[:ECHO_MAX_CHARS]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= SEQ_MAX:
        return value
    return ""


def seq(value: int | str) -> int:
    return int(value)

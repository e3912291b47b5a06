"""Reading typed requests, for the dialects that carry them inside of a frame.

Fields that nobody asked for are ignored. What is missing or of the wrong type is told by the error of the
table that names the field.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NoReturn, TypeVar

import msgspec
from msgspec import Meta

from nexo.errors import ERRORS, NexoError

SEQ_MAX = (1 << 63) - 1
ECHO_MAX_CHARS = 256

Seq = Annotated[int, Meta(ge=0, le=SEQ_MAX)] | Annotated[str, Meta(pattern="^[0-9]{1,18}$")]
Echo = Annotated[str, Meta(max_length=ECHO_MAX_CHARS)]  # what is sent back as it came
EchoNumber = Annotated[int, Meta(ge=-SEQ_MAX, le=SEQ_MAX)]

_MISSING = re.compile(r"missing required field `(\w+)`")
_WRONG = re.compile(r"(.*) - at `\$\.(\w+)")
_decode_any = msgspec.json.Decoder().decode

UNSTORABLE = "has a lone surrogate, or a number that is endless or not finite"

T = TypeVar("T")


def reader(form: type[T], error_fields: Mapping[str, str]) -> Callable[[bytes | msgspec.Raw], T]:
    """A function from JSON to `form`. `error_fields` has what follows `missing_` and `bad_` in the error that
    names a field, where it is not the field's own name."""
    decode = msgspec.json.Decoder(form).decode

    def read(data: bytes | msgspec.Raw) -> T:
        try:
            return decode(data)
        except msgspec.ValidationError as error:
            _refuse(str(error), error_fields)
        # numbers of thousands of digits, brackets without end
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise NexoError("bad_json") from None

    return read


def _refuse(complaint: str, error_fields: Mapping[str, str]) -> NoReturn:
    if missing := _MISSING.search(complaint):
        field, kind, detail = missing[1], "missing", f"The field {missing[1]} is required"
    elif wrong := _WRONG.search(complaint):
        field, kind, detail = wrong[2], "bad", f"{wrong[2]}: {wrong[1]}"
    else:
        raise NexoError("bad_request", complaint) from None
    raise field_error(kind, field, error_fields, detail) from None


def field_error(kind: str, field: str, error_fields: Mapping[str, str], detail: str) -> NexoError:
    """`kind` is missing or bad."""
    name = f"{kind}_{error_fields.get(field, field)}"
    return NexoError(name if name in ERRORS else "bad_request", detail)


def read_object(data: bytes | msgspec.Raw) -> dict[str, Any] | None:
    """Whatever JSON object this is, to find in a malformed request what is to be echoed; None if it is none.
    What cannot be stored is read as well; a lone surrogate, which could not be sent back, as a question mark."""
    try:
        found = _decode_any(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        try:
            found = json.loads(json.dumps(_read_loosely(data), ensure_ascii=False).encode(errors="replace"))
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None


def _read_loosely(data: bytes | msgspec.Raw) -> Any:
    """JSON, and what looks like it but cannot be stored: lone surrogates, numbers that are not finite or endless."""
    return json.loads(bytes(data).decode(), parse_int=lambda digits: int(digits) if len(digits) <= 20 else math.inf)


def unstorable_field(data: bytes | msgspec.Raw, inside: str = "") -> str:
    """Which field makes the difference between `read_object` and a strict decoder: one of the object, or of the
    object that it has `inside`."""
    found = _read_loosely(data)
    if isinstance(found.get(inside), dict):
        found = found[inside]
    for field, value in found.items():
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except ValueError:
            return str(field)
    return ""


def unstorable_error(data: bytes | msgspec.Raw, error_fields: Mapping[str, str], inside: str) -> NexoError:
    field = unstorable_field(data, inside)
    return field_error("bad", field, error_fields, f"{field or 'The frame'} {UNSTORABLE}")


def text_in(found: object, field: str) -> str | None:
    """The text that a malformed request has in this field."""
    value = found.get(field) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


def echo(value: object) -> str | int:
    """What can be sent back of an identifier that may be anything."""
    if isinstance(value, str):
        return value[:ECHO_MAX_CHARS]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= SEQ_MAX:
        return value
    return ""


def seq(value: int | str) -> int:
    return int(value)

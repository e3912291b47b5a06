"""Reading typed requests, for the dialects that carry them inside of a frame.

Fields that nobody asked for are ignored. What is missing or of the wrong type is told by the error of the
table that names the field.
"""

from __future__ import annotations

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
    name = f"{kind}_{error_fields.get(field, field)}"
    raise NexoError(name if name in ERRORS else "bad_request", detail) from None


def read_object(data: bytes | msgspec.Raw) -> dict[str, Any] | None:
    """Whatever JSON object this is, to find in a malformed request what is to be echoed; None if it is none."""
    try:
        found = _decode_any(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def echo(value: object) -> str | int:
    """What can be sent back of an identifier that may be anything."""
    if isinstance(value, str):
        return value[:ECHO_MAX_CHARS]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= SEQ_MAX:
        return value
    return ""


def seq(value: int | str) -> int:
    return int(value)

"""Errors for JSON that a typed decoder refuses: the same for HTTP bodies and for frames.

A decoder refuses with a sentence; this module turns it into the error of the table that names the field. JSON that no
engine could store (a lone surrogate, an infinite number) is read nevertheless, to find the wrong field and the fields
that an answer echoes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from nexo.errors import ERRORS, NexoError

UNSTORABLE = "has a lone surrogate, or a number that is endless or not finite"
INTEGER_MAX_DIGITS = 20

_MISSING = re.compile(r"missing required field `(\w+)`")
_WRONG = re.compile(r"(.*) - at `\$\.(\w+)")


def refusal(error: msgspec.ValidationError, names: Mapping[str, str]) -> NexoError:
    """Returns the error for a decoder's exception. `names` maps a field to the name that follows `missing_` and `bad_`
    in its errors, where the two names differ."""
    complaint = str(error)
    if missing := _MISSING.search(complaint):
        return field_error("missing", missing[1], names, f"The field {missing[1]} is required")
    if wrong := _WRONG.search(complaint):
        return field_error("bad", wrong[2], names, f"{wrong[2]}: {wrong[1]}")
    return NexoError("bad_request", complaint)


def wrong_field(error: msgspec.ValidationError) -> str:
    """Returns the field with the wrong type; empty when the decoder named none."""
    found = _WRONG.search(str(error))
    return found[2] if found else ""


def field_error(kind: str, field: str, names: Mapping[str, str], detail: str) -> NexoError:
    """Returns an error name. `kind` is missing or bad; `bad_request` where the table has no such error."""
    name = f"{kind}_{names.get(field, field)}"
    return NexoError(name if name in ERRORS else "bad_request", detail)


def read_loosely(data: bytes | Raw) -> dict[str, Any] | None:
    """Returns the object in JSON, also where it cannot be stored: lone surrogates stay as they are, a number
    too long or not finite becomes a float that is not finite. None if it is no object."""
    try:
        found = json.loads(bytes(data).decode(), parse_int=_read_integer)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _read_integer(digits: str) -> float:
    return int(digits) if len(digits) <= INTEGER_MAX_DIGITS else math.inf


def unstorable_field(found: Mapping[str, Any]) -> str | None:
    """Returns the first field whose value cannot be stored, or None. Empty when its name cannot be encoded either."""
    for field, value in found.items():
        if not _is_storable(value):
            return field if _is_storable(field) else ""
    return None


def _is_storable(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True

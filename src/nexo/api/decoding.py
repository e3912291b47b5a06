"""From bytes to typed requests. What is wrong is told by the error that names the field, where there is one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect as shapes

from nexo.api.requests import FIELD_ERRORS, Nothing, Request
from nexo.errors import ERRORS, NexoError

_MISSING = re.compile(r"missing required field `(\w+)`")
_WRONG = re.compile(r"(.*) - at `\$\.(\w+)")
_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_QUERY_FIELDS_MAX = 50

Decode = Callable[[bytes], Request]


def error_names(request: type[Request]) -> dict[str, str]:
    """For each field, as clients write it, what follows `missing_` and `bad_` in the error that names it."""
    names = {}
    for field in msgspec.structs.fields(request):
        plain = field.encode_name if field.name.endswith("_") else field.name
        names[field.encode_name] = request.error_names.get(plain) or FIELD_ERRORS.get(plain, plain)
    return names


def shape_errors(request: type[Request]) -> set[str]:
    """The errors that a request of the wrong shape can meet."""
    found = {"bad_request"}
    names = error_names(request)
    for field in msgspec.structs.fields(request):
        kinds = ("missing", "bad") if field.required else ("bad",)
        found |= {f"{kind}_{names[field.encode_name]}" for kind in kinds} & ERRORS.keys()
    return found


def body_decoder(request: type[Request]) -> Decode:
    names = error_names(request)
    decode = msgspec.json.Decoder(request).decode
    may_be_empty = issubclass(request, Nothing)

    def decode_body(body: bytes) -> Request:
        if may_be_empty and not body:
            return request()
        try:
            return decode(body)
        except msgspec.ValidationError as error:
            _refuse(error, names)
        except (msgspec.DecodeError, ValueError, RecursionError):
            _refuse_unstorable(body, names)

    return decode_body


def query_decoder(request: type[Request]) -> Decode:
    names = error_names(request)
    readers = {field.encode_name: _reader_of(shapes.type_info(field.type)) for field in msgspec.structs.fields(request)}
    required = {field.encode_name for field in msgspec.structs.fields(request) if field.required}

    def decode_query(query: bytes) -> Request:
        values: dict[str, Any] = {}
        try:
            for name, text in _pairs(query) if query else ():
                if name in values:
                    raise NexoError("bad_request", f"{name[:100]} is there twice")
                read = readers[name]
                if text or name not in required:  # nothing, where something is needed, is as good as absent
                    values[name] = read(text)
        except KeyError:
            raise NexoError("bad_request", f"There is no parameter {name[:100]!r}") from None
        except ValueError as error:
            _refuse_field(names[name], "bad", f"{name} {error}")
        try:
            return msgspec.convert(values, request)
        except msgspec.ValidationError as error:
            _refuse(error, names)

    return decode_query


class _Echo(msgspec.Struct):
    client_msg_id: str | None = None


_decode_echo = msgspec.json.Decoder(_Echo).decode


def find_client_msg_id(body: bytes) -> str | None:
    """The client_msg_id of a request that failed, whatever else is wrong with it: the rest is skipped unread."""
    try:
        return _decode_echo(body).client_msg_id
    except (msgspec.DecodeError, ValueError, RecursionError):
        found = (_read_loosely(body) or {}).get("client_msg_id")
        return found if isinstance(found, str) and found.isascii() else None


def _read_loosely(body: bytes) -> dict[str, Any] | None:
    """An object in JSON, or in what looks like it but cannot be stored: with lone surrogates, and with numbers that
    are endless or not finite."""
    try:
        found = json.loads(body.decode(), parse_int=lambda digits: int(digits) if len(digits) <= 20 else math.inf)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse_unstorable(body: bytes, names: dict[str, str]) -> NoReturn:
    for name, value in (_read_loosely(body) or {}).items():
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, RecursionError):
            field = name if name in names else "A field"  # an unknown name may be unfit to be told
            detail = f"{field} has a lone surrogate, or a number that is endless or not finite"
            _refuse_field(names.get(name, ""), "bad", detail)
    raise NexoError("bad_json") from None


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        raise NexoError("bad_request", "The query is not in the form name=value&name=value, in UTF-8") from None


def _reader_of(shape: shapes.Type) -> Callable[[str], Any]:
    """How the text of a parameter becomes what its field takes; a ValueError says what it has to be."""
    match shape:
        case shapes.Metadata(type=inner):
            return _reader_of(inner)
        case shapes.IntType():
            return _read_integer
        case shapes.ListType(item_type=item):
            read = _reader_of(item)
            return lambda text: [read(part) for part in text.split(",")]
        case shapes.StrType():
            return str
        case _:
            raise TypeError(f"a query cannot hold {shape}")


def _read_integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError("is a whole number")
    return int(text)


def _refuse(error: msgspec.ValidationError, names: dict[str, str]) -> NoReturn:
    text = str(error)
    if missing := _MISSING.search(text):
        _refuse_field(names[missing[1]], "missing", f"The field {missing[1]} is required")
    if wrong := _WRONG.search(text):
        _refuse_field(names.get(wrong[2], ""), "bad", f"{wrong[2]}: {wrong[1]}")
    raise NexoError("bad_request", text) from None


def _refuse_field(field: str, kind: str, detail: str) -> NoReturn:
    name = f"{kind}_{field}"
    raise NexoError(name if name in ERRORS else "bad_request", detail) from None

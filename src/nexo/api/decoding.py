"""Decodes bytes into typed requests. A wrong field is refused with the error that names it, where there is one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect as shapes

from nexo.api.requests import FIELD_ERRORS, ApiRequest, Nothing
from nexo.core.json_reader import UNSTORABLE, field_error, read_loosely, refusal, unstorable_field
from nexo.errors import ERRORS, NexoError

_INTEGER = re.compile(r"-?[0-9]{1,4000}")
_QUERY_FIELDS_MAX = 50
KEPT_AS_JSON = ("content", "extra")

Decode = Callable[[bytes], ApiRequest]


def error_names(request: type[ApiRequest]) -> dict[str, str]:
    """Returns for each field, by the name that clients use, the part of the error name that follows `missing_` and
    `bad_`."""
    names = {}
    for field in msgspec.structs.fields(request):
        plain = field.encode_name if field.name.endswith("_") else field.name
        names[field.encode_name] = request.error_names.get(plain) or FIELD_ERRORS.get(plain, plain)
    return names


def shape_errors(request: type[ApiRequest]) -> set[str]:
    """The errors that a request of the wrong shape can meet."""
    found = {"bad_request"}
    names = error_names(request)
    for field in msgspec.structs.fields(request):
        kinds = ("missing", "bad") if field.required else ("bad",)
        found |= {f"{kind}_{names[field.encode_name]}" for kind in kinds}
        found |= {f"missing_{names.get(name, name)}" for name in _required_inside(shapes.type_info(field.type))}
    return found & ERRORS.keys()


def _required_inside(shape: shapes.Type) -> set[str]:
    """Returns the required fields of structs in this field: a decoder reports one that is missing by its name alone."""
    match shape:
        case shapes.Metadata(type=inner) | shapes.ListType(item_type=inner):
            return _required_inside(inner)
        case shapes.UnionType(types=types):
            return set().union(*map(_required_inside, types))
        case shapes.StructType(fields=fields):
            own = {field.encode_name for field in fields if field.required}
            return own.union(*(_required_inside(field.type) for field in fields))
        case _:
            return set()


def body_decoder(request: type[ApiRequest]) -> Decode:
    names = error_names(request)
    decode = msgspec.json.Decoder(request).decode
    may_be_empty = issubclass(request, Nothing)
    check_texts = _text_check(request, names)

    def decode_body(body: bytes) -> ApiRequest:
        if may_be_empty and not body:
            return request()
        try:
            found = decode(body)
            return found if b"\\u0000" not in body else check_texts(found)
        except msgspec.ValidationError as error:
            raise refusal(error, names) from None
        except (msgspec.DecodeError, ValueError, RecursionError):
            raise _unreadable(body, names) from None

    return decode_body


def query_decoder(request: type[ApiRequest]) -> Decode:
    names = error_names(request)
    readers = {field.encode_name: _reader_of(shapes.type_info(field.type)) for field in msgspec.structs.fields(request)}
    required = {field.encode_name for field in msgspec.structs.fields(request) if field.required}
    check_texts = _text_check(request, names)

    def decode_query(query: bytes) -> ApiRequest:
        values: dict[str, Any] = {}
        try:
            for name, text in _pairs(query) if query else ():
                value = readers[name](text)
                known = values.get(name)
                if known is not None and isinstance(value, list):
                    value = known + value  # a list may be separated by commas, or repeated
                elif name in values:
                    raise NexoError("bad_request", f"{name[:100]} is there twice")
                if text or name not in required:  # an empty value of a required field counts as absent
                    values[name] = value
        except KeyError:
            raise NexoError("bad_request", f"There is no parameter {name[:100]!r}") from None
        except ValueError as error:
            raise field_error("bad", name, names, f"{name} {error}") from None
        try:
            found = msgspec.convert(values, request)
        except msgspec.ValidationError as error:
            raise refusal(error, names) from None
        return found if b"%00" not in query else check_texts(found)

    return decode_query


def _text_check(request: type[ApiRequest], names: dict[str, str]) -> Callable[[ApiRequest], ApiRequest]:
    """Returns a check of the fields that are texts: not every database can compare or keep the character NUL. What is
    kept as JSON, as content, may have it."""
    fields = [(field.name, field.encode_name) for field in msgspec.structs.fields(request)]

    def check(found: ApiRequest) -> ApiRequest:
        for name, shown in fields:
            value = getattr(found, name)
            is_kept_as_json = name in KEPT_AS_JSON
            texts = value if isinstance(value, list) else [value]
            if not is_kept_as_json and any(isinstance(text, str) and "\0" in text for text in texts):
                raise field_error("bad", shown, names, f"{shown} has the character NUL")
        return found

    return check


class _Echo(msgspec.Struct):
    client_msg_id: str | None = None


_decode_echo = msgspec.json.Decoder(_Echo).decode


def find_client_msg_id(body: bytes) -> str | None:
    """The client_msg_id of a request that failed, whatever else is wrong with it: the rest is skipped unread."""
    try:
        return _decode_echo(body).client_msg_id
    except (msgspec.DecodeError, ValueError, RecursionError):
        found = (read_loosely(body) or {}).get("client_msg_id")
        return found if isinstance(found, str) and found.isascii() else None


def _unreadable(body: bytes, names: dict[str, str]) -> NexoError:
    found = read_loosely(body)
    field = None if found is None else unstorable_field(found)
    if field is None:
        return NexoError("bad_json")
    if field not in names:
        return NexoError("bad_request", f"A field {UNSTORABLE}")
    return field_error("bad", field, names, f"{field} {UNSTORABLE}")


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), True, errors="strict", max_num_fields=_QUERY_FIELDS_MAX)
    except ValueError:
        raise NexoError("bad_request", "The query is not in the form name=value&name=value, in UTF-8") from None


def _read_flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("is true or false")
    return text == "true"


def _reader_of(shape: shapes.Type) -> Callable[[str], Any]:
    """Returns the converter from the text of a parameter to its type; its ValueError states what is expected."""
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
        case shapes.BoolType():
            return _read_flag
        case _:
            raise TypeError(f"a query cannot hold {shape}")


def _read_integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError("is a whole number")
    return int(text)

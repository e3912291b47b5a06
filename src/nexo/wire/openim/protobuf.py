"""Protobuf by tables: a message is a dict, and a table says which number, name and kind each field has. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexo.errors import NexoError

TEXT, BYTES, INT, BOOL, MESSAGE, MAP = range(6)
DEPTH_MAX = 16
FIELDS_MAX = 20_000  # of one message with all that is inside it

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_DEFAULTS: dict[int, Any] = {TEXT: "", BYTES: b"", INT: 0, BOOL: False, MESSAGE: None}
_SMALL = [bytes((number,)) for number in range(128)]


class Field:
    """One field. `inner` is the table of a message or of the values of a map whose keys are text; `is_list` makes it
    repeated."""

    __slots__ = ("inner", "is_list", "kind", "name", "tag")

    def __init__(
        self, number: int, name: str, kind: int = TEXT, inner: Table | None = None, is_list: bool = False
    ) -> None:
        self.name = name
        self.kind = kind
        self.inner = inner
        self.is_list = is_list
        self.tag = encode_varint(number << 3 | (_VARINT if kind in (INT, BOOL) else _LENGTH))


class Table:
    """The fields of a message type."""

    __slots__ = ("by_number", "defaults", "fields", "lists", "maps")

    def __init__(self, *fields: tuple[int, Field]) -> None:
        self.fields = [field for _, field in fields]
        self.by_number = dict(fields)
        simple = [field for field in self.fields if not field.is_list and field.kind != MAP]
        self.defaults = {field.name: _DEFAULTS[field.kind] for field in simple}
        self.lists = [field.name for field in self.fields if field.is_list]
        self.maps = [field.name for field in self.fields if field.kind == MAP]


def table(**fields: tuple[Any, ...]) -> Table:
    """Returns a table from `name=(number, kind, inner)`; a list of one such tuple is a repeated field."""
    made = []
    for name, row in fields.items():
        is_list = isinstance(row[0], tuple)
        number, kind, inner = (*(row[0] if is_list else row), None)[:3]
        made.append((number, Field(number, name, kind, inner, is_list)))
    return Table(*made)


def encode_varint(value: int) -> bytes:
    if 0 <= value < 128:
        return _SMALL[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF  # a negative number has ten bytes
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sized(data: bytes) -> bytes:
    return encode_varint(len(data)) + data


def encode(shape: Table, values: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a message. What is missing, or has the default of its kind, is left out."""
    out: list[bytes] = []
    for field in shape.fields:
        value = values.get(field.name)
        if not value and value is not None and field.kind != MESSAGE:
            continue
        if value is None:
            continue
        if field.kind == MAP:
            assert field.inner is not None
            out += [field.tag + _sized(_entry(field.inner, key, item)) for key, item in value.items()]
        elif not field.is_list:
            out.append(field.tag + _plain(field, value))
        elif field.kind in (INT, BOOL):
            out.append(encode_varint(_number_of(field) << 3 | _LENGTH) + _sized(b"".join(map(encode_varint, value))))
        else:
            out += [field.tag + _plain(field, item) for item in value]
    return b"".join(out)


def _number_of(field: Field) -> int:
    return _read_varint(field.tag, 0, len(field.tag))[0] >> 3


def _plain(field: Field, value: Any) -> bytes:
    kind = field.kind
    if kind == TEXT:
        return _sized(value.encode())
    if kind in (INT, BOOL):
        return encode_varint(int(value))
    if kind == MESSAGE:
        assert field.inner is not None
        return _sized(encode(field.inner, value))
    return _sized(value)


def _entry(inner: Table, key: str, item: Any) -> bytes:
    """Returns an entry of a map: field 1 is the key, field 2 the value, as the table `inner` has it."""
    return encode(inner, {"key": key, "value": item})


def entries(kind: int, inner: Table | None = None) -> Table:
    """Returns the table of the entries of a map from text to this."""
    return Table((1, Field(1, "key")), (2, Field(2, "value", kind, inner)))


# -- reading -----------------------------------------------------------------------------------------------


def _bad(reason: str) -> NexoError:
    return NexoError("bad_request", f"The protobuf message is not well-formed: {reason}")


def _read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end or shift > 63:
            raise _bad("a number does not end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7


def decode(shape: Table, data: bytes) -> dict[str, Any]:
    """Returns the fields of a message, all of them: those that are missing have the default of their kind. Unknown
    fields are left out. Raises NexoError for anything that is no such message."""
    return _decode(shape, data, 0, len(data), 0, [FIELDS_MAX])


def _decode(shape: Table, data: bytes, at: int, end: int, depth: int, left: list[int]) -> dict[str, Any]:
    if depth > DEPTH_MAX:
        raise _bad("it is nested too deeply")
    found: dict[str, Any] = dict(shape.defaults)
    for name in shape.lists:
        found[name] = []
    for name in shape.maps:
        found[name] = {}
    find = shape.by_number.get
    while at < end:
        left[0] -= 1
        if left[0] < 0:
            raise _bad("it has too many fields")
        key, at = _read_varint(data, at, end)
        wire = key & 7
        field = find(key >> 3)
        if wire == _VARINT:
            number, at = _read_varint(data, at, end)
            if field is not None and field.kind in (INT, BOOL):
                _put(field, found, bool(number) if field.kind == BOOL else _signed(number))
        elif wire == _LENGTH:
            size, at = _read_varint(data, at, end)
            if size > end - at:
                raise _bad("a field is longer than the message")
            if field is not None:
                _take(field, found, data, at, at + size, depth, left)
            at += size
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
            if at > end:
                raise _bad("a number does not end")
        else:
            raise _bad(f"wire type {wire}")
    return found


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _put(field: Field, found: dict[str, Any], value: Any) -> None:
    if field.is_list:
        found[field.name].append(value)
    else:
        found[field.name] = value


def _take(field: Field, found: dict[str, Any], data: bytes, at: int, end: int, depth: int, left: list[int]) -> None:
    """Take a field that has a length into `found`."""
    kind = field.kind
    if kind == TEXT:
        try:
            _put(field, found, data[at:end].decode())
        except UnicodeDecodeError:
            raise _bad("a text is not UTF-8") from None
    elif kind == BYTES:
        _put(field, found, data[at:end])
    elif kind == MESSAGE:
        assert field.inner is not None
        _put(field, found, _decode(field.inner, data, at, end, depth + 1, left))
    elif kind == MAP:
        assert field.inner is not None
        entry = _decode(field.inner, data, at, end, depth + 1, left)
        found[field.name][entry["key"]] = entry["value"]
    elif field.is_list:  # numbers, packed
        while at < end:
            left[0] -= 1
            if left[0] < 0:
                raise _bad("it has too many fields")
            number, at = _read_varint(data, at, end)
            found[field.name].append(bool(number) if kind == BOOL else _signed(number))

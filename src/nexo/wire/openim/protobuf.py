"""Protobuf by tables: a message is a dict, and a table says which number, name and kind each field has. Pure.

Every message of a client passes here, so the common forms are written out: numbers of one byte, short texts, flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexo.errors import NexoError

INT, BOOL, TEXT, BYTES, MESSAGE, MAP = range(6)
DEPTH_MAX = 16
FIELDS_MAX = 20_000  # of one message with all that is inside it
FLAG_MAX_BYTES = 64
FLAGS_MAX = 256

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_DEFAULTS: dict[int, Any] = {TEXT: "", BYTES: b"", INT: 0, BOOL: False, MESSAGE: None}
_SMALL = [bytes((number,)) for number in range(128)]


class Field:
    """One field. `inner` is the table of a message or of the values of a map whose keys are text; `is_list` makes it
    repeated."""

    __slots__ = ("inner", "is_list", "kind", "name", "packed_tag", "tag")

    def __init__(
        self, number: int, name: str, kind: int = TEXT, inner: Table | None = None, is_list: bool = False
    ) -> None:
        self.name = name
        self.kind = kind
        self.inner = inner
        self.is_list = is_list
        self.tag = encode_varint(number << 3 | (_VARINT if kind <= BOOL else _LENGTH))
        self.packed_tag = encode_varint(number << 3 | _LENGTH)


class Table:
    """The fields of a message type, by name for writing and by the number in front of them for reading."""

    __slots__ = ("by_key", "by_name", "defaults", "fields", "is_flag", "lists", "maps")

    def __init__(self, *fields: tuple[int, Field]) -> None:
        self.fields = [field for _, field in fields]
        self.by_name = {field.name: field for field in self.fields}
        self.by_key: dict[int, tuple[int, str, Field]] = {}
        for number, field in fields:
            wire = _VARINT if field.kind <= BOOL else _LENGTH
            kind = _OTHER if field.is_list else field.kind
            self.by_key[number << 3 | wire] = (kind, field.name, field)
            if field.is_list:
                self.by_key[number << 3 | _LENGTH] = (_OTHER, field.name, field)
        simple = [field for field in self.fields if not field.is_list and field.kind != MAP]
        self.defaults = {field.name: _DEFAULTS[field.kind] for field in simple}
        self.lists = [field.name for field in self.fields if field.is_list]
        self.maps = [field.name for field in self.fields if field.kind == MAP]
        self.is_flag = [field.kind for field in self.fields] == [TEXT, BOOL]  # an entry of a map of flags


_OTHER = MAP + 1  # a kind that is read by `_take`


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
    if value < 16_384 and value > 0:
        return bytes((value & 127 | 128, value >> 7))
    if 1 << 35 <= value < 1 << 42:  # a time
        high = (value >> 14 & 127 | 128, value >> 21 & 127 | 128, value >> 28 & 127 | 128, value >> 35)
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, *high))
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
    find = shape.by_name.get
    for name, value in values.items():
        if not value and type(value) is not dict:
            continue
        field = find(name)
        if field is None:
            continue
        kind = field.kind
        if field.is_list or kind == MAP:
            out += _repeated(field, value)
            continue
        out.append(field.tag)
        if kind <= BOOL:
            number = int(value)
            out.append(_SMALL[number] if 0 <= number < 128 else encode_varint(number))
            continue
        raw = value.encode() if kind == TEXT else value if kind == BYTES else _inside(field, value)
        size = len(raw)
        out.append(_SMALL[size] if size < 128 else encode_varint(size))
        out.append(raw)
    return b"".join(out)


def _inside(field: Field, value: Mapping[str, Any]) -> bytes:
    assert field.inner is not None
    return encode(field.inner, value)


def _repeated(field: Field, value: Any) -> list[bytes]:
    kind, tag = field.kind, field.tag
    if kind == MAP:
        assert field.inner is not None
        return [tag + _sized(encode(field.inner, {"key": key, "value": item})) for key, item in value.items()]
    if kind <= BOOL:
        return [field.packed_tag + _sized(b"".join(encode_varint(int(item)) for item in value))] if value else []
    if kind == MESSAGE:
        return [tag + _sized(_inside(field, item)) for item in value]
    return [tag + _sized(item.encode() if kind == TEXT else item) for item in value]


def sized_field(number: int, data: bytes) -> bytes:
    """Returns a field that has a length, of a number below 16."""
    return _SMALL[number << 3 | _LENGTH] + encode_varint(len(data)) + data


def number_field(number: int, value: int) -> bytes:
    return _SMALL[number << 3] + encode_varint(value)


def entries(kind: int, inner: Table | None = None) -> Table:
    """Returns the table of the entries of a map from text to this: field 1 is the key, field 2 the value."""
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
    # a field has at least two bytes, and a packed number one: only a long message can have too many
    left = None if len(data) <= FIELDS_MAX else [FIELDS_MAX]
    try:
        return _decode(shape, data, 0, len(data), 0, left)
    except UnicodeDecodeError:
        raise _bad("a text is not UTF-8") from None
    except IndexError:
        raise _bad("a number does not end") from None


def _count(left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise _bad("it has too many fields")


def _decode(shape: Table, data: bytes, at: int, end: int, depth: int, left: list[int] | None) -> dict[str, Any]:
    if depth > DEPTH_MAX:
        raise _bad("it is nested too deeply")
    found: dict[str, Any] = shape.defaults.copy()
    for name in shape.lists:
        found[name] = []
    for name in shape.maps:
        found[name] = {}
    find = shape.by_key.get
    while at < end:
        if left is not None:
            _count(left)
        key = data[at]
        at += 1
        if key > 127:
            key, at = _read_varint(data, at - 1, end)
        known = find(key)
        if known is None:
            at = _skip(key & 7, data, at, end)
            continue
        number = data[at]  # the value, or how long it is
        at += 1
        if number > 127:
            number, at = _read_varint(data, at - 1, end)
        kind, name, field = known
        if kind == INT:
            found[name] = number - (1 << 64) if number >> 63 else number
            continue
        if kind == BOOL:
            found[name] = number != 0
            continue
        if key & 7 == _VARINT:  # one of a list of numbers
            found[name].append(number != 0 if field.kind == BOOL else _signed(number))
            continue
        stop = at + number
        if stop > end:
            raise _bad("a field is longer than the message")
        if kind == TEXT:
            found[name] = data[at:stop].decode()
        elif kind == BYTES:
            found[name] = data[at:stop]
        else:
            _take(field, found, data, at, stop, depth, left)
        at = stop
    if at > end:
        raise _bad("a number does not end")
    return found


def _skip(wire: int, data: bytes, at: int, end: int) -> int:
    """Returns where a field ends that no table has."""
    if wire == _VARINT:
        return _read_varint(data, at, end)[1]
    if wire == _LENGTH:
        size, at = _read_varint(data, at, end)
        at += size
    elif wire in (_FIXED64, _FIXED32):
        at += 8 if wire == _FIXED64 else 4
    else:
        raise _bad(f"wire type {wire}")
    if at > end:
        raise _bad("a field is longer than the message")
    return at


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


_flags: dict[bytes, tuple[str, bool]] = {}  # entries of maps of flags, of which clients send the same few


def _flag(inner: Table, entry: bytes, depth: int) -> tuple[str, bool]:
    known = _flags.get(entry)
    if known is None:
        found = _decode(inner, entry, 0, len(entry), depth, None)
        known = found["key"], found["value"]
        if len(_flags) >= FLAGS_MAX:
            _flags.clear()
        _flags[entry] = known
    return known


def _take(
    field: Field, found: dict[str, Any], data: bytes, at: int, end: int, depth: int, left: list[int] | None
) -> None:
    """Take a field that has a length, and is no plain text, into `found`."""
    kind, name, inner = field.kind, field.name, field.inner
    if kind == MAP:
        assert inner is not None
        if inner.is_flag and end - at <= FLAG_MAX_BYTES:
            key, value = _flag(inner, data[at:end], depth + 1)
        else:
            entry = _decode(inner, data, at, end, depth + 1, left)
            key, value = entry["key"], entry["value"]
        found[name][key] = value
        return
    if kind <= BOOL:  # a list of numbers, packed
        listed = found[name]
        while at < end:
            if left is not None:
                _count(left)
            number, at = _read_varint(data, at, end)
            listed.append(number != 0 if kind == BOOL else _signed(number))
        return
    one: Any
    if kind == MESSAGE:
        assert inner is not None
        one = _decode(inner, data, at, end, depth + 1, left)
    else:
        one = data[at:end].decode() if kind == TEXT else data[at:end]
    if field.is_list:
        found[name].append(one)
    else:
        found[name] = one

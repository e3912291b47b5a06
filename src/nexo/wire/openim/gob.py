"""Go's gob, as far as OpenIM's frames need it: one struct of texts, bytes and numbers, with its type in front. Pure.

A frame is the definition of a struct type and one value of it. Fields are matched by name. Anything else that gob has
is refused.
"""

from __future__ import annotations

from typing import Any

from nexo.errors import NexoError

BOOL, INT, UINT, FLOAT, BYTES, TEXT = 1, 2, 3, 4, 5, 6  # gob's numbers of its basic types
_FIRST_ID = 65  # of a type that the encoder defines
FIELDS_MAX = 64
_STRUCT = 3  # the field of a wire type that describes a struct


def _bad(reason: str) -> NexoError:
    return NexoError("bad_request", f"The frame is no gob of a request: {reason}")


def encode_uint(value: int) -> bytes:
    if value < 128:
        return bytes((value,))
    size = (value.bit_length() + 7) // 8
    return bytes((256 - size,)) + value.to_bytes(size, "big")


def encode_int(value: int) -> bytes:
    return encode_uint(~value << 1 | 1 if value < 0 else value << 1)


def _text(value: bytes) -> bytes:
    return encode_uint(len(value)) + value


class Encoder:
    """Encodes values of one struct type. The definition of the type is made once."""

    def __init__(self, name: str, fields: dict[str, int]) -> None:
        """`fields` are names and basic types, in order."""
        self._fields = list(fields.items())
        listed = b"".join(
            b"\x01" + _text(field.encode()) + b"\x01" + encode_int(kind) + b"\0" for field, kind in self._fields
        )
        common = b"\x01" + _text(name.encode()) + b"\x01" + encode_int(_FIRST_ID) + b"\0"
        struct = b"\x01" + common + b"\x01" + encode_uint(len(self._fields)) + listed + b"\0"
        definition = encode_int(-_FIRST_ID) + bytes((_STRUCT,)) + struct + b"\0"
        self._definition = _text(definition)

    def encode(self, values: dict[str, Any]) -> bytes:
        """Returns the definition and the value; what is empty is left out, as Go does."""
        out = [encode_int(_FIRST_ID)]
        last = -1
        for i, (name, kind) in enumerate(self._fields):
            value = values.get(name)
            if not value:
                continue
            out.append(encode_uint(i - last))
            last = i
            if kind == INT:
                out.append(encode_int(value))
            else:
                out.append(_text(value.encode() if kind == TEXT else value))
        out.append(b"\0")
        return self._definition + _text(b"".join(out))


class _Reader:
    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def uint(self) -> int:
        if self.at >= self.end:
            raise _bad("it ends too early")
        first = self.data[self.at]
        self.at += 1
        if first < 128:
            return first
        size = 256 - first
        if size > 8 or self.at + size > self.end:
            raise _bad("a number is too long")
        value = int.from_bytes(self.data[self.at : self.at + size], "big")
        self.at += size
        return value

    def int(self) -> int:
        value = self.uint()
        return ~(value >> 1) if value & 1 else value >> 1

    def bytes(self) -> bytes:
        size = self.uint()
        if size > self.end - self.at:
            raise _bad("a text is longer than the frame")
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            raise _bad("a text is not UTF-8") from None

    def message(self) -> _Reader:
        size = self.uint()
        if size > self.end - self.at:
            raise _bad("a part is longer than the frame")
        self.at += size
        return _Reader(self.data, self.at - size, self.at)


def decode(data: bytes) -> dict[str, Any]:
    """Returns the fields of the one struct in the frame by name: texts, bytes, numbers and flags. Raises NexoError."""
    outer = _Reader(data)
    types: dict[int, list[tuple[str, int]]] = {}
    while outer.at < outer.end:
        part = outer.message()
        number = part.int()
        if number >= 0:
            if number not in types:
                raise _bad("its type is not defined")
            return _read_value(part, types[number])
        if len(types) >= 8:
            raise _bad("it defines too many types")
        fields = _read_definition(part)
        if fields is not None:
            types[-number] = fields
    raise _bad("it has no value")


def _read_definition(part: _Reader) -> list[tuple[str, int]] | None:
    """Returns the fields of a struct type; None for another type."""
    if part.uint() != _STRUCT:
        return None
    fields: list[tuple[str, int]] = []
    field = 0
    while delta := part.uint():
        field += delta
        if field == 1:
            _skip_common(part)
        elif field == 2:
            for _ in range(_count(part)):
                fields.append(_read_field(part))
        else:
            raise _bad("a type has an unknown part")
    return fields


def _count(part: _Reader) -> int:
    count = part.uint()
    if count > FIELDS_MAX:
        raise _bad("a type has too many fields")
    return count


def _skip_common(part: _Reader) -> None:
    field = 0
    while delta := part.uint():
        field += delta
        if field == 1:
            part.bytes()
        else:
            part.int()


def _read_field(part: _Reader) -> tuple[str, int]:
    name, kind, field = "", 0, 0
    while delta := part.uint():
        field += delta
        if field == 1:
            name = part.text()
        elif field == 2:
            kind = part.int()
        else:
            raise _bad("a field has an unknown part")
    return name, kind


def _read_value(part: _Reader, fields: list[tuple[str, int]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = -1
    while delta := part.uint():
        at += delta
        if at >= len(fields):
            raise _bad("a value has too many fields")
        name, kind = fields[at]
        if kind == TEXT:
            found[name] = part.text()
        elif kind == BYTES:
            found[name] = part.bytes()
        elif kind == INT:
            found[name] = part.int()
        elif kind in (UINT, BOOL):
            found[name] = part.uint()
        else:
            raise _bad("a field has a type that no request has")
    return found

"""WebSocket frames of the server: unmasked, made once and written to every receiver."""

from __future__ import annotations


def _heads(first: int) -> list[bytes]:
    """Frame heads of small payloads, made beforehand: almost every frame has one of them."""
    return [
        bytes((first, size)) if size < 126 else bytes((first, 126)) + size.to_bytes(2, "big") for size in range(1024)
    ]


_TEXT, _BINARY = _heads(0x81), _heads(0x82)


def text_frame(payload: bytes) -> bytes:
    size = len(payload)
    return _TEXT[size] + payload if size < 1024 else _large_frame(0x81, payload)


def binary_frame(payload: bytes) -> bytes:
    size = len(payload)
    return _BINARY[size] + payload if size < 1024 else _large_frame(0x82, payload)


def _large_frame(first: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 65536:
        return bytes((first, 126)) + size.to_bytes(2, "big") + payload
    return bytes((first, 127)) + size.to_bytes(8, "big") + payload

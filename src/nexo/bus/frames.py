"""Frames between instances: a number and opaque payloads."""

from __future__ import annotations

from enum import IntEnum

import msgspec

# Redis would take 512 MiB; a frame is held in memory by publisher, Redis and receiver.
FRAME_MAX_BYTES = 1 << 20


class FrameKind(IntEnum):
    DATA = 0
    HEARTBEAT = 1  # the number is that of the last frame
    GOODBYE = 2  # as HEARTBEAT; no other frame follows


class BusFrame(msgspec.Struct, array_like=True, frozen=True):
    kind: FrameKind
    publisher: str
    number: int
    payloads: list[bytes] = []


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(BusFrame).decode


def encode_frame(frame: BusFrame) -> bytes:
    return _encode(frame)


def decode_frame(data: bytes) -> BusFrame:
    """Raises msgspec.MsgspecError for anything else."""
    return _decode(data)


def split_payloads(payloads: list[bytes]) -> list[list[bytes]]:
    """Returns the payloads of as few frames as the size allows; one payload is never divided."""
    parts: list[list[bytes]] = []
    size = 0
    for payload in payloads:
        if not parts or size + len(payload) > FRAME_MAX_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(payload)
        size += len(payload)
    return parts

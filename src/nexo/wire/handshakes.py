"""Defaults shared by Nexo's own dialects: the outcome of a handshake, no answer to messages of the other kind (text or
binary), no echo of a send."""

from __future__ import annotations

from typing import Any

import msgspec

from nexo.core.model import Message
from nexo.errors import NexoError


def encode_outcome(error: NexoError | None) -> bytes:
    """Returns the outcome of a handshake: the body of a refusal, or the first frame if the client asked for one."""
    if error is None:
        return b'{"err_code":0,"err_msg":""}'
    return msgspec.json.encode({"err_code": error.number, "err_msg": error.name, "detail": error.detail})


def answer_nothing(payload: bytes) -> bytes | None:
    return None


def echo_nothing(message: Message, ref: Any) -> bytes:
    return b""

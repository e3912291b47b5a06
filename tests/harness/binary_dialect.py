"""A dialect of binary, compressed frames, which only tests know, and a server that speaks it beside the others.

    with ServerProcess(wrapper=binary_dialect.SERVER) as server: ...

It has what a chat needs and nothing else: a client signs in and sends, in MessagePack inside gzip.
"""

from __future__ import annotations

import gzip
import sys
from typing import Any

import msgspec

from nexo.cli import main
from nexo.core import commands, events
from nexo.errors import NexoError
from nexo.wire.dialect import BadFrame
from nexo.wire.framing import binary_frame
from nexo.wire.handshakes import answer_nothing, echo_nothing, encode_outcome
from nexo.wire.registry import DIALECTS

NAME = "test.binary.v1"
SERVER = (sys.executable, "-P", __file__)  # a wrapper of `nexo serve`

_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode
_encode = msgspec.msgpack.Encoder().encode


def pack(fields: dict[str, Any]) -> bytes:
    return gzip.compress(_encode(fields))


def unpack(payload: bytes) -> dict[str, Any]:
    return _decode(gzip.decompress(payload))


def _framed(payload: bytes) -> bytes:
    return binary_frame(gzip.compress(payload))


class Binary:
    name = NAME
    signs_in = True
    confirms = False
    is_binary = True
    catches_up = False
    resyncs = True
    echo_s = 0.0
    encode_outcome = staticmethod(encode_outcome)
    answer_text = staticmethod(answer_nothing)
    echo = staticmethod(echo_nothing)

    frame = staticmethod(_framed)

    def for_connection(self, token: str | None) -> Binary:
        return self

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, None]:
        try:
            fields = unpack(frame)
        except (OSError, EOFError, msgspec.DecodeError):
            raise BadFrame(NexoError("bad_json", "A frame is MessagePack inside gzip"), violation=True) from None
        if "token" in fields:
            return commands.Auth(fields["token"], None, {}), None
        return commands.Send(fields["id"], fields["to"], None, 1, fields["text"]), None

    def log_fields(self, ref: None) -> dict[str, str | int]:
        return {}

    def encode(self, event: events.Event, ref: Any = None) -> bytes:
        match event:
            case events.SignedIn():
                return _encode({"hello": event.user_id})
            case events.Saved():
                return _encode({"saved": event.message.client_msg_id, "seq": event.message.seq})
            case events.Pushed():
                text = msgspec.json.decode(event.message.content)
                return _encode({"from": event.message.sender_id, "seq": event.message.seq, "text": text})
            case events.Failed() | events.SignInFailed():
                return _encode({"error": event.error.name})
        return b"" if ref is not None else _encode({"other": type(event).__name__})


if __name__ == "__main__":
    DIALECTS[NAME] = Binary()
    del sys.argv[0]  # this file; the command is behind it
    main()

"""The dialect of OpenIM's clients: anything that is no request is refused with an error, in every framing."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.core import commands, events
from nexo.core.model import Message
from nexo.errors import NexoError
from nexo.wire.dialect import BadFrame, Deferred
from nexo.wire.openim import gob, tables
from nexo.wire.openim.codec import OpenimCodec, codec_for
from nexo.wire.openim.protobuf import decode, encode
from nexo.wire.openim.shown import no_names

REQUEST = gob.Encoder(
    "Req", {"ReqIdentifier": gob.INT, "MsgIncr": gob.TEXT, "OperationID": gob.TEXT, "Data": gob.BYTES}
)
CODECS = [codec_for("js", "", "", no_names), codec_for("", "", "", no_names), codec_for("", "gzip", "", no_names)]
NUMBERS = [1001, 1002, 1003, 1005, 1006, 1007, 2003, 2004, 2005, 7]
TEXT = Message(42, "a" * 32, "si_ann:ben", 7, "ann", 1, '"hello"', 1_800_000_000_000, number=5)


def framed(codec: OpenimCodec, number: int, data: bytes) -> bytes:
    if "js" in codec.name:
        body = {"reqIdentifier": number, "msgIncr": "1", "operationID": "op", "data": base64.b64encode(data).decode()}
        return json.dumps(body).encode()
    made = REQUEST.encode({"ReqIdentifier": number, "MsgIncr": "1", "OperationID": "op", "Data": data})
    return gzip.compress(made) if "gzip" in codec.name else made


def answer_in(codec: OpenimCodec, payload: bytes) -> dict[str, Any]:
    if "js" in codec.name:
        found: dict[str, Any] = json.loads(payload)
        return found
    found = gob.decode(gzip.decompress(payload) if "gzip" in codec.name else payload)
    data = base64.b64encode(found.get("Data", b"")).decode()
    return {"errCode": found.get("ErrCode", 0), "reqIdentifier": found["ReqIdentifier"], "data": data}


def check_any(codec: OpenimCodec, frame: bytes) -> None:
    outcome: events.Event = events.Done()
    try:
        _, ref = codec.decode(frame, "ann")
    except BadFrame as bad:
        outcome, ref = events.Failed(bad.error), bad.ref
    assert answer_in(codec, codec.encode(outcome, ref))["reqIdentifier"]


@pytest.mark.parametrize("codec", CODECS, ids=["js", "go", "go+gzip"])
@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_an_error(codec: OpenimCodec, frame: bytes) -> None:
    check_any(codec, frame)
    check_any(codec, gzip.compress(frame))


@pytest.mark.parametrize("codec", CODECS, ids=["js", "go", "go+gzip"])
@given(st.sampled_from(NUMBERS), st.binary(max_size=300))
def test_any_protobuf_in_a_frame_is_a_request_or_an_error(codec: OpenimCodec, number: int, data: bytes) -> None:
    check_any(codec, framed(codec, number, data))


def test_a_frame_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(BadFrame):
        CODECS[2].decode(gzip.compress(bytes(50_000_000)), "ann")


@pytest.mark.parametrize("codec", CODECS, ids=["js", "go", "go+gzip"])
def test_a_text_is_sent_and_shown_as_it_was(codec: OpenimCodec) -> None:
    data = {
        "sendID": "ann", "recvID": "ben", "clientMsgID": "a" * 32, "sessionType": 1, "contentType": 101,
        "content": b'{"content":"hello"}', "ex": "kept", "createTime": 5, "senderPlatformID": 5,
    }  # fmt: skip
    command, ref = codec.decode(framed(codec, 1003, encode(tables.MSG_DATA, data)), "ann")
    assert isinstance(command, commands.Send)
    assert (command.recv_id, command.content, command.extra["openim"]["x"]) == ("ben", "hello", "kept")
    extra = json.dumps(command.extra, separators=(",", ":"))
    message = Message(42, "a" * 32, "si_ann:ben", 7, "ann", 1, '"hello"', 6, extra=extra, number=5)
    pushed = decode(tables.MESSAGES, base64.b64decode(answer_in(codec, codec.echo(message, ref))["data"]))
    (shown,) = pushed["msgs"]["si_ann_ben"]["Msgs"]
    assert (shown["seq"], shown["content"], shown["ex"], shown["clientMsgID"]) == (
        5, b'{"content":"hello"}', "kept", "a" * 32
    )  # fmt: skip


def test_another_sender_than_the_user_is_refused() -> None:
    data = encode(tables.MSG_DATA, {"sendID": "eve", "recvID": "ben", "sessionType": 1, "contentType": 101})
    with pytest.raises(BadFrame) as bad:
        CODECS[0].decode(framed(CODECS[0], 1003, data), "ann")
    assert bad.value.error.name == "identity_mismatch"


def test_heartbeats_are_answered_and_other_texts_are_not() -> None:
    assert CODECS[0].answer_text(b'{"type":"ping"}') == b'{"type":"pong"}'
    assert CODECS[2].answer_text(b'{"type":"ping","body":"7"}') == b'{"type":"pong","body":"7"}'
    assert CODECS[0].answer_text(b'{"type":"hello"}') is None
    assert CODECS[0].answer_text(b"ping") is None


def test_events_wait_for_what_they_need_and_kicks_have_their_frame() -> None:
    recalled = Message(43, None, "si_ann:ben", 8, "ann", 100, '{"server_msg_id":"42","seq":7,"by":"ann"}', 7)
    assert isinstance(CODECS[0].encode(events.Pushed(recalled)), Deferred)
    assert CODECS[0].frame(CODECS[0].encode(events.Pushed(recalled))) == b""
    assert answer_in(CODECS[0], CODECS[0].encode(events.Failed(NexoError("kicked"))))["reqIdentifier"] == 2002
    assert CODECS[0].encode(events.Failed(NexoError("server_shutdown"))) == b""

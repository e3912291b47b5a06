"""The request dialect against its golden frames, and what its codec remembers of a connection."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from harness import golden
from harness.samples import ANN, EVENTS
from nexo.core import commands
from nexo.wire.dialect import BadFrame
from nexo.wire.request.answers import PUSHES
from nexo.wire.request.codec import DIALECT, RequestCodec
from nexo.wire.request.requests import REQUESTS


def a_codec() -> RequestCodec:
    return DIALECT.for_connection("the token")


def test_every_number_is_written_down() -> None:
    files = golden.files("request")
    asked = {name[:4] for name, file in files.items() if "requests" in file and name[:4].isdigit()}
    assert (
        asked
        == {str(number) for number in REQUESTS}
        == {str(number) for number in (*range(1001, 1015), *range(1020, 1026))}
    )
    pushed = {name[:4] for name, file in files.items() if "pushes" in file}
    assert pushed == {str(number) for number in (*range(2001, 2019), 2020, 2021, 2024, 2025, 2026)}
    shown = {type(EVENTS[case["event"]]) for file in files.values() for case in file.get("pushes", [])}
    assert shown == set(PUSHES)


def request(number: int, data: Any, **fields: Any) -> bytes:
    return json.dumps({"req_identifier": number, "msg_incr": "1", "data": data, **fields}).encode()


def test_once_base64_always_base64_and_only_on_that_connection() -> None:
    codec, other = a_codec(), a_codec()
    assert codec.name == other.name == "nexo.request.v1"
    codec.decode(request(1001, {}), ANN)
    assert codec.name == "nexo.request.v1"
    codec.decode(request(1001, base64.b64encode(b"{}").decode()), ANN)
    assert codec.name != other.name, "they cannot share frames any more"
    codec.decode(request(1001, {}), ANN)
    packed, plain = (json.loads(each.encode(EVENTS["message, reply"])) for each in (codec, other))
    assert json.loads(base64.b64decode(packed["data"])) == plain["data"]
    assert {**packed, "data": None} == {**plain, "data": None}


def test_a_token_is_renewed_once_for_each_that_is_new() -> None:
    codec = a_codec()

    def kind(token: str | None) -> type[commands.Command]:
        return type(codec.decode(request(1001, {}, token=token), ANN)[0])

    shown = [None, "the token", "newer", "newer", None, "", "the token", "the token"]
    renewals = [False, False, True, False, False, False, True, False]
    assert [kind(token) is commands.WithToken for token in shown] == renewals


def test_a_bad_request_with_a_new_token_leaves_the_token_for_the_next() -> None:
    codec = a_codec()
    with pytest.raises(BadFrame):
        codec.decode(request(1002, {}, token="newer"), ANN)
    command, _ = codec.decode(request(1001, {}, token="newer"), ANN)
    assert isinstance(command, commands.WithToken)


def test_numbers_are_echoed_as_numbers_and_not_without_bound() -> None:
    codec = a_codec()
    _, ref = codec.decode(b'{"req_identifier":1001,"msg_incr":7,"operation_id":-8}', ANN)
    answer = json.loads(codec.encode(EVENTS["done"], ref))
    assert (answer["msg_incr"], answer["operation_id"]) == (7, -8)
    for long in ('"' + "x" * 300 + '"', "9" * 30, "9" * 5000):
        with pytest.raises(BadFrame) as caught:
            codec.decode(b'{"req_identifier":1001,"msg_incr":%b,"operation_id":"op"}' % long.encode(), ANN)
        frame = codec.encode(EVENTS["error"], caught.value.ref)
        assert len(frame) < 600

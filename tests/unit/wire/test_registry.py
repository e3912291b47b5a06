"""What holds for every dialect: nothing but Nexo's errors comes out of a decoder, and every event goes in."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness import golden, ws_client
from harness.golden import Case, told
from harness.samples import ANN, EVENTS, TEXT
from nexo.core import commands, events
from nexo.core.model import Message, MsgType, Quote
from nexo.wire.dialect import BadFrame, Dialect
from nexo.wire.registry import DIALECTS, choose

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
# values that some field of some request would take
LIKELY = JSON | st.sampled_from(
    [1001, 1002, 1003, 1005, 1011, 2001, 1, 2, 0, -1, "1", "c1", "ann", "g_Team00000001", "si_ann:ben", "p_ann_ben"]
)
ODD = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b'"text"',
    b"{",
    b'{"type":"AUTH"}{"type":"AUTH"}',
    b"\xff\xfe",
    b'{"type":"\\ud800"}',
    b'{"cmd":"chat.ack","data":{"msg_id":' + b"9" * 6000 + b"}}",
    b'{"req_identifier":1009,"data":{"server_msg_id":' + b"9" * 6000 + b"}}",
    b'{"type":"PULL","beginSeq":' + b"9" * 6000 + b"}",
    b'{"cmd":"heartbeat","data":' + b"[" * 30_000,
    b'{"req_identifier":1001,"data":' + b'{"a":' * 20_000,
    b'{"type":"PING","x":' + b"[" * 60_000 + b"]" * 60_000 + b"}",
    b'{"req_identifier":1001,"data":"' + base64.b64encode(b"[" * 30_000) + b'"}',
]


@pytest.fixture(params=list(DIALECTS.values()), ids=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    chosen: Dialect = request.param
    return chosen.for_connection("the token")


def names_of(dialect: Dialect) -> list[str]:
    """Everything a frame or the data in it may be called, from the golden frames of the dialect."""
    found: set[str] = set()
    for frame in golden.frames(golden.short(dialect.name)):
        found |= frame.keys()
        if isinstance(frame.get("data"), dict):
            found |= frame["data"].keys()
    return sorted(found)


def check_any(dialect: Dialect, frame: bytes, user_id: str | None) -> None:
    """Decodes to a command, or is refused by an error that can be told."""
    outcome: events.Event = EVENTS["error"]
    try:
        command, ref = dialect.decode(frame, user_id)
    except BadFrame as bad:
        outcome, ref = events.Failed(bad.error), bad.ref
    else:
        assert isinstance(command, get_args(commands.Command))
    assert isinstance(json.loads(dialect.encode(outcome, ref)), dict)


@pytest.mark.parametrize("user_id", [ANN, None])
@pytest.mark.parametrize("frame", ODD, ids=range(len(ODD)))
def test_odd_bytes_are_refused_or_understood(dialect: Dialect, frame: bytes, user_id: str | None) -> None:
    check_any(dialect, frame, user_id)


@pytest.mark.parametrize("name", DIALECTS)
@given(frame=st.binary(max_size=200), user_id=st.sampled_from([ANN, None]))
def test_arbitrary_bytes_are_refused_or_understood(name: str, frame: bytes, user_id: str | None) -> None:
    check_any(DIALECTS[name].for_connection(None), frame, user_id)


@cache
def likely(name: str) -> tuple[st.SearchStrategy[dict[str, Any]], st.SearchStrategy[dict[str, Any]]]:
    """Fields that requests of this dialect may have, and good frames; made once, which takes as long as a test."""
    names = st.sampled_from(names_of(DIALECTS[name].for_connection(None)))
    return st.dictionaries(names, LIKELY, max_size=8), st.sampled_from(golden.frames(golden.short(name)))


@pytest.mark.parametrize("name", DIALECTS)
@given(data=st.data(), user_id=st.sampled_from([ANN, None]))
def test_arbitrary_objects_are_refused_or_understood(name: str, data: st.DataObject, user_id: str | None) -> None:
    codec = DIALECTS[name].for_connection(None)
    fields, good_frames = likely(name)
    good = data.draw(good_frames)
    frame = {**good, **data.draw(fields)}
    if data.draw(st.booleans()):
        inner = good.get("data")
        frame["data"] = {**(inner if isinstance(inner, dict) else {}), **data.draw(fields)}
    check_any(codec, json.dumps(frame).encode(), user_id)


# -- golden frames -------------------------------------------------------------------------------------------


def codec_of(name: str) -> Dialect:
    return DIALECTS[name].for_connection("the token")


def test_every_dialect_has_golden_frames() -> None:
    assert {golden.short(name) for name in DIALECTS} == {folder.name for folder in golden.ROOT.iterdir()}
    assert all(golden.frames(golden.short(name)) for name in DIALECTS)


FLAGS = ("on", "accept", "sent")
REQUEST_CASES = golden.all_cases("requests")


@pytest.mark.parametrize(("name", "case"), REQUEST_CASES)
def test_requests_are_the_commands_they_mean(name: str, case: Case) -> None:
    golden.check_request(codec_of(name), case)


@pytest.mark.parametrize(("name", "case"), golden.all_cases("answers"))
def test_answers_are_as_written_down(name: str, case: Case) -> None:
    golden.check_answer(codec_of(name), case)


@pytest.mark.parametrize(("name", "case"), golden.all_cases("refused"))
def test_what_is_wrong_is_named_and_echoed(name: str, case: Case) -> None:
    golden.check_refusal(codec_of(name), case)


@pytest.mark.parametrize(("name", "case"), golden.all_cases("pushes"))
def test_pushes_are_as_written_down(name: str, case: Case) -> None:
    golden.check_push(codec_of(name), case)


@pytest.mark.parametrize(("name", "case"), REQUEST_CASES)
def test_unknown_fields_are_ignored(name: str, case: Case) -> None:
    frame = {**case["frame"], "unknown": {"deep": [1]}, "future": None}
    if isinstance(frame.get("data"), dict):
        frame["data"] = {**frame["data"], "unknown": {"deep": [1]}, "future": None}
    command, _ = codec_of(name).decode(json.dumps(frame).encode(), case.get("as", ANN))
    assert told(command) == case["command"]


@pytest.mark.parametrize(("name", "case"), REQUEST_CASES)
@pytest.mark.parametrize("value", [{"a": 1}, [[1]], 1.5, True], ids=["object", "list", "float", "bool"])
def test_wrong_types_are_named_errors(name: str, case: Case, value: Any) -> None:
    """Whichever field has the wrong type: the request is refused for it, and goes on being told apart."""
    data = case["frame"].get("data")
    for field in data if isinstance(data, dict) else ():
        if field in ("content", "extra", "baselines", "send_at", "timestamp") or (field in FLAGS and value is True):
            continue
        frame = {**case["frame"], "data": {**data, field: value}}
        with pytest.raises(BadFrame) as caught:
            codec_of(name).decode(json.dumps(frame).encode(), case.get("as", ANN))
        assert not caught.value.violation, field
        named = caught.value.error.name
        assert named.startswith("bad_"), (field, named)
        assert named != "bad_request" or field in ("chat_type", *FLAGS), field


SENDS = {
    "nexo.envelope.v1": b'{"type":"SINGLE_CHAT","clientMsgId":"c1","to":"ben","msgType":6,"body":{"a":%b}}',
    "nexo.request.v1": (
        b'{"req_identifier":1003,"msg_incr":"7","data":{"client_msg_id":"c1","recv_id":"ben","msg_type":6,'
        b'"content":{"a":%b}}}'
    ),
    "nexo.command.v1": (
        b'{"cmd":"chat.send_message","request_id":"7","data":{"client_msg_id":"c1","chat_type":1,"to_id":"ben",'
        b'"msg_type":6,"content":{"a":%b}}}'
    ),
}


@pytest.mark.parametrize("value", [b'"\\ud83d"', b"1e999", b"-Infinity", b"NaN", b"9" * 6000])
@pytest.mark.parametrize("name", DIALECTS)
def test_what_cannot_be_stored_is_a_fault_of_that_one_request(name: str, value: bytes) -> None:
    """Half of an emoji is what a browser makes of a text that was cut: it must not look like broken JSON, which
    nobody can be told apart by and which ends the connection when it is tried again."""
    codec = DIALECTS[name].for_connection(None)
    with pytest.raises(BadFrame) as caught:
        codec.decode(SENDS[name] % value, ANN)
    assert not caught.value.violation
    assert caught.value.error.name == "bad_content"
    assert caught.value.ref.client_msg_id == "c1"
    answer = json.loads(codec.encode(events.Failed(caught.value.error), caught.value.ref))
    assert answer.get("msg_incr", answer.get("request_id", "7")) == "7"


@pytest.mark.parametrize(
    "frame",
    [b'{"type":"SINGLE_CHAT","clientMsgId":"\\ud800"}', b'{"req_identifier":1001,"msg_incr":"\\ud800"}',
     b'{"cmd":"heartbeat","request_id":"\\ud800"}', b'{"cmd":"auth.login","data":{"user_id":"\\ud800"}}',
     b'{"type":"PING","\\ud800":NaN}', b'{"req_identifier":1003,"data":{"\\ud800":NaN}}',
     b'{"cmd":"chat.send_message","data":{"\\ud800":NaN}}'],
)  # fmt: skip
def test_what_cannot_be_sent_back_is_answered_all_the_same(dialect: Dialect, frame: bytes) -> None:
    for user_id in (ANN, None):
        check_any(dialect, frame, user_id)


# -- out -----------------------------------------------------------------------------------------------------


def test_there_is_a_sample_of_every_event() -> None:
    assert {type(event) for event in EVENTS.values()} == set(get_args(events.Event))


PUSHES = {
    events.Pushed,
    events.Saved,
    events.Withdrawn,
    events.Receipt,
    events.Notify,
    events.HeadsChanged,
    events.Resync,
    events.IsTyping,
    events.Presence,
    events.Failed,
    events.Synced,
}


@pytest.mark.parametrize("title", EVENTS)
def test_every_event_is_encoded_in_every_dialect(dialect: Dialect, title: str) -> None:
    event = EVENTS[title]
    payload = dialect.encode(event)
    if payload:
        assert isinstance(json.loads(payload), dict)
    else:
        assert type(event) not in PUSHES, "every push has a frame in every dialect"


@pytest.mark.parametrize("size", [1, 125, 126, 1023, 1024, 65_535, 65_536])
def test_a_dialect_frames_its_payloads_as_what_it_is(dialect: Dialect, size: int) -> None:
    opcode = ws_client.BINARY if dialect.is_binary else ws_client.TEXT
    payload = b"x" * size
    assert list(ws_client.parse_frames(bytearray(dialect.frame(payload)))) == [(opcode, payload)]


@pytest.mark.parametrize("title", ["saved", "accepted", "error"])
def test_a_send_is_always_answered(dialect: Dialect, title: str) -> None:
    _, ref = dialect.decode(SENDS[dialect.name] % b"1", ANN)
    assert dialect.encode(EVENTS[title], ref)


MESSAGES = st.builds(
    Message,
    st.integers(1, (1 << 63) - 1),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=8),
    st.sampled_from(["si_ann:ben", "sg_g_Team00000001"]),
    st.integers(1, 1 << 40),
    st.sampled_from(["ann", "ben"]),
    st.just(int(MsgType.TEXT)),
    st.text(max_size=20).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.integers(0, 1 << 44),
    mentions=st.lists(st.sampled_from(["ann", "ben", "cy"]), unique=True, max_size=2).map(tuple),
    reply_to=st.none() | st.integers(1, 1 << 62),
    quote=st.none() | st.builds(Quote, st.integers(1, 1 << 62), st.just("ben"), st.just(1), st.text(max_size=5)),
    extra=st.none() | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(json.dumps),
)
# where each dialect has the same things
PLACES = {
    "nexo.envelope.v1": ("serverMsgId", "clientMsgId", "msgSeq", "from", "body", "ts", "replyToServerMsgId"),
    "nexo.request.v1": ("server_msg_id", "client_msg_id", "seq", "sender_id", "content", "send_at", "reply_to"),
    "nexo.command.v1": ("msg_id", "client_msg_id", "seq", "from_user_id", "content", "timestamp", "reply_to"),
}


@pytest.mark.parametrize("name", DIALECTS)
@given(message=MESSAGES)
@example(message=TEXT)
def test_a_message_is_the_same_in_every_dialect(name: str, message: Message) -> None:
    frame = json.loads(DIALECTS[name].encode(events.Pushed(message)))
    data = frame.get("data", frame)
    assert [data[place] for place in PLACES[name]] == [
        str(message.server_msg_id),
        message.client_msg_id,
        message.seq,
        message.sender_id,
        json.loads(message.content),
        message.send_at,
        None if message.reply_to is None else str(message.reply_to),
    ]
    assert data["mentions"] == list(message.mentions)
    assert ("quote" in data) == (message.quote is not None)
    assert data.get("extra") == (None if message.extra is None else json.loads(message.extra))


# -- which one -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "query", "subprotocols", "chosen"),
    [
        ("/ws", (), (), "nexo.envelope.v1"),
        ("/ws", ("token",), (), "nexo.envelope.v1"),
        ("/ws", ("token", "send_id"), (), "nexo.request.v1"),
        ("/ws", ("v",), (), "nexo.request.v1"),
        ("/ws/cmd", (), (), "nexo.command.v1"),
        ("/ws/cmd", ("send_id",), (), "nexo.command.v1"),
        ("/ws/cmd", (), ("nexo.envelope.v1",), "nexo.envelope.v1"),
        ("/ws", ("send_id",), ("soap", "nexo.command.v1", "nexo.envelope.v1"), "nexo.command.v1"),
    ],
)
def test_the_dialect_is_chosen_by_subprotocol_else_by_path_and_query(
    path: str, query: tuple[str, ...], subprotocols: tuple[str, ...], chosen: str
) -> None:
    dialect, confirmed = choose(path, query, subprotocols)
    assert dialect.name == chosen
    assert confirmed == (chosen if subprotocols else None)

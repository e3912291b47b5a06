"""From bytes to requests: arbitrary input is refused by name, never by accident."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect as shapes

from nexo.api import requests
from nexo.api.decoding import KEPT_AS_JSON, body_decoder, error_names, find_client_msg_id, query_decoder, shape_errors
from nexo.api.requests import FIELD_ERRORS, ApiRequest
from nexo.api.routes import ROUTES
from nexo.errors import ERRORS, NexoError

BODIES = sorted({row.request for row in ROUTES if row.has_body}, key=lambda one: one.__name__)
QUERIES = sorted({row.request for row in ROUTES if not row.has_body}, key=lambda one: one.__name__)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)

# fields whose wrong type is `bad_request`
FLAGS_AND_COUNTS = ("accept", "pinned", "hidden", "refresh", "days", "sent", "others", "erase_messages")


def outcome(decode: Callable[[bytes], ApiRequest], data: bytes, request: type[ApiRequest]) -> ApiRequest | str:
    try:
        return decode(data)
    except NexoError as error:
        name = error.name
    assert name in shape_errors(request) | {"bad_json"}
    return name


@given(st.sampled_from(BODIES), st.binary(max_size=200))
def test_arbitrary_bytes_are_a_request_or_refused(request_: type[ApiRequest], data: bytes) -> None:
    outcome(body_decoder(request_), data, request_)
    find_client_msg_id(data)


@given(st.sampled_from(BODIES), st.data())
def test_arbitrary_values_in_known_fields_are_taken_or_refused(request_: type[ApiRequest], data: st.DataObject) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(request_)]
    values = data.draw(st.dictionaries(st.sampled_from([*names, "other"]), JSON))
    found = outcome(body_decoder(request_), json.dumps(values).encode(), request_)
    if isinstance(found, ApiRequest):
        assert "other" not in values


@given(st.sampled_from(QUERIES), st.binary(max_size=200))
def test_arbitrary_bytes_are_a_query_or_refused(request_: type[ApiRequest], data: bytes) -> None:
    outcome(query_decoder(request_), data, request_)


@given(st.sampled_from(QUERIES), st.data())
def test_arbitrary_parameters_are_taken_or_refused(request_: type[ApiRequest], data: st.DataObject) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(request_)]
    value = st.text() | st.integers().map(str) | st.lists(st.integers(0, 9).map(str)).map(",".join)
    pairs = data.draw(st.lists(st.tuples(st.sampled_from([*names, "other"]), value), max_size=5))
    query = urlencode(pairs, errors="surrogatepass").encode()
    outcome(query_decoder(request_), query, request_)


@pytest.mark.parametrize(
    "body",
    [b"", b"[" * 100_000, b'{"client_msg_id":' + b"1" * 5000 + b"}", b'{"a":"\xed\xa0\x80"}', b'"\\ud800"', b"NaN"],
)
def test_what_is_hard_to_read_is_refused_too(body: bytes) -> None:
    assert outcome(body_decoder(requests.SendRequest), body, requests.SendRequest) in (
        "bad_json",
        "bad_request",
        "bad_client_msg_id",
    )


def test_the_client_msg_id_is_found_beside_anything() -> None:
    for rest in (
        b'"a":1e999',
        b'"content":' + b"[" * 20 + b"]" * 20,
        b'"client_msg_idx":1',
        b'"b":{"client_msg_id":1}',
        b'"content":"\\ud800"',
        b'"content":NaN',
    ):
        assert find_client_msg_id(b'{"client_msg_id":"mine",' + rest + b"}") == "mine"
    for body in (
        b"",
        b"[]",
        b'{"client_msg_id":5}',
        b'{"client_msg_id":null}',
        b"{}",
        b'{"client_msg_id":"\\ud800"}',
        b"NaN",
    ):
        assert find_client_msg_id(body) is None


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'"content":"\\ud800"', "bad_content"),
        (b'"content":{"a":[NaN]}', "bad_content"),
        (b'"content":"x","extra":-Infinity', "bad_extra"),
        (b'"content":"x","mentions":["\\udfff"]', "bad_mentions"),
        (b'"content":"x","extra":' + b"9" * 5000, "bad_extra"),
        (b'"content":"x","other":"\\ud800"', "bad_request"),
        (b'"content":"x","\\udfff":"\\ud800"', "bad_request"),
        (b'"content":"x","extra":' + b"[" * 5000, "bad_json"),
        (b'"content":"\xff"', "bad_json"),
    ],
)
def test_what_no_engine_could_keep_is_told_by_the_field_that_has_it(body: bytes, error: str) -> None:
    with pytest.raises(NexoError) as refused:
        body_decoder(requests.SendRequest)(b'{"client_msg_id":"1",' + body + b"}")
    assert refused.value.name == error
    assert refused.value.detail.encode()  # can be told


def test_null_may_stand_for_what_is_left_out_of_a_message_and_of_a_mark() -> None:
    sent = {"client_msg_id": "1", "content": "x", "recv_id": "bob"}
    nulls = {"group_id": None, "mentions": None, "reply_to": None, "extra": None}
    decode = body_decoder(requests.SendRequest)
    assert decode(json.dumps(sent | nulls).encode()) == decode(json.dumps(sent).encode())
    read = body_decoder(requests.MarkReadRequest)(b'{"conversation_id":"x","seq":1,"last_msg_id":null}')
    assert read == requests.MarkReadRequest("x", seq=1)


def test_seqs_are_taken_as_numbers_and_as_strings() -> None:
    decode = body_decoder(requests.MarkReadRequest)
    for seq in ("5", '"5"', '"005"'):
        request = decode(b'{"conversation_id":"x","seq":%s}' % seq.encode())
        assert isinstance(request, requests.MarkReadRequest)
        assert int(request.seq) == 5  # type: ignore[arg-type]


WITHOUT_ERROR = (*FLAGS_AND_COUNTS, "archived", "marked_unread", "uses", "on", "merge", "title", "lang")


def test_every_field_error_that_is_named_is_in_the_table() -> None:
    assert {f"bad_{name}" for name in FIELD_ERRORS.values()} <= ERRORS.keys()
    without = {
        name
        for row in ROUTES
        for field, name in error_names(row.request).items()
        if f"bad_{name}" not in ERRORS and field not in WITHOUT_ERROR
    }
    assert without == set()


def _unbounded_numbers(shape: shapes.Type) -> bool:
    match shape:
        case shapes.Metadata(type=inner) | shapes.ListType(item_type=inner):
            return _unbounded_numbers(inner)
        case shapes.UnionType(types=types):
            return any(map(_unbounded_numbers, types))
        case shapes.IntType(le=highest):
            return highest is None
        case _:
            return False


# numbers of queries that a service checks or cuts before anything else sees them
CHECKED_BY_SERVICES = ("limit", "wait_s", "time")


@pytest.mark.parametrize("request_", QUERIES, ids=lambda one: one.__name__)
def test_no_number_of_a_query_is_larger_than_a_column(request_: type[ApiRequest]) -> None:
    for field in msgspec.structs.fields(request_):
        if field.encode_name not in CHECKED_BY_SERVICES:
            assert not _unbounded_numbers(shapes.type_info(field.type)), field.encode_name


@pytest.mark.parametrize("request_", [*BODIES, *QUERIES], ids=lambda one: one.__name__)
def test_no_text_has_the_character_that_databases_refuse(request_: type[ApiRequest]) -> None:
    """PostgreSQL takes no NUL, not even to compare: such a request failed on the server's side."""
    is_body = request_ in BODIES
    for field in msgspec.structs.fields(request_):
        name = field.encode_name
        if name in KEPT_AS_JSON:
            continue
        for value in ("x\0", ["x\0"]):
            text = value if isinstance(value, str) else value[0]
            data = json.dumps({name: value}) if is_body else urlencode([(name, text)])
            decode = body_decoder(request_) if is_body else query_decoder(request_)
            assert isinstance(outcome(decode, data.encode(), request_), str)

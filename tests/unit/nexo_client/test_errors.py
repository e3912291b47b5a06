"""The SDK's own tables say what the server's say: error names, message types, ids, quotes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo import ids as server_ids
from nexo.core import model as server_model
from nexo.core.content import quote_text
from nexo.errors import ERRORS
from nexo_client import ClientError, Message
from nexo_client.core import ids
from nexo_client.core.messages import quote_of
from nexo_client.errors import REASONS, Reason
from nexo_client.types import FIRST_EVENT, MsgType

USER_IDS = st.from_regex(r"[A-Za-z0-9._@-]{1,8}", fullmatch=True)


def test_errors_that_close_or_may_be_retried_are_known_to_the_sdk_as_the_server_has_them() -> None:
    there = {
        row.name: Reason(row.sentence, row.retry, row.close_code if row.closes else 0)
        for row in ERRORS.values()
        if row.closes or row.retry
    }
    assert {name: reason for name, reason in REASONS.items() if name in ERRORS} == there


def test_an_error_that_the_sdk_does_not_know_is_final() -> None:
    error = ClientError("of_a_newer_server", "Some detail")
    assert (error.is_transient, error.detail) == (False, "Some detail")


def test_message_types_have_the_servers_numbers() -> None:
    assert {kind.name: kind.value for kind in MsgType}.items() <= {
        k.name: k.value for k in server_model.MsgType
    }.items()
    assert server_model.FIRST_EVENT == FIRST_EVENT


@given(USER_IDS, USER_IDS)
def test_conversations_have_the_servers_names(one: str, other: str) -> None:
    if one == other:
        return
    conversation_id = ids.single_conversation_id(one, other)
    assert conversation_id == server_ids.single_conversation_id(other, one)
    assert (ids.peer_of(conversation_id, one), ids.peer_of(conversation_id, other)) == (other, one)
    assert (ids.peer_of(conversation_id, "~"), ids.group_of(conversation_id)) == (None, None)


def test_group_conversations_have_the_servers_names() -> None:
    conversation_id = ids.group_conversation_id("g_0123456789ab")
    assert conversation_id == server_ids.group_conversation_id("g_0123456789ab")
    assert (ids.group_of(conversation_id), ids.peer_of(conversation_id, "alice")) == ("g_0123456789ab", None)


@pytest.mark.parametrize(
    ("msg_type", "content"),
    [
        (1, "word " * 100),
        (7, "short"),
        (2, {"url": "u"}),
        (5, {"url": "u", "name": "n" * 300}),
        (6, {"url": "u"}),
        (8, {"title": "t"}),
    ],
)
def test_quotes_are_those_that_the_server_makes(msg_type: int, content: object) -> None:
    fields = {"server_msg_id": "1", "client_msg_id": None, "conversation_id": "si_a:b", "seq": 1, "sender_id": "a"}
    quote = quote_of(Message(**fields, msg_type=msg_type, content=content))  # type: ignore[arg-type]
    assert quote is not None
    assert quote.text == quote_text(msg_type, server_json(content))


def server_json(content: object) -> str:
    return msgspec.json.encode(content).decode()

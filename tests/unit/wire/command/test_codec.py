"""The command dialect against its golden frames, and how it names conversations."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from harness import golden
from harness.samples import ANN, EVENTS
from nexo.errors import NexoError
from nexo.ids import group_conversation_id, is_user_id, peer_of, single_conversation_id
from nexo.wire.command.answers import ANSWERS, PUSHES
from nexo.wire.command.codec import DIALECT
from nexo.wire.command.names import conversation_by_name, conversation_of, naming, shown_name
from nexo.wire.command.requests import REQUESTS
from nexo.wire.dialect import BadFrame

# few characters, so that ids meet the underscores around them
USER_IDS = st.text("ab_", min_size=1, max_size=6).filter(is_user_id)


def test_every_command_answer_and_push_is_written_down() -> None:
    files = golden.files("command")
    assert {name for name, file in files.items() if "requests" in file} == set(REQUESTS)
    answered = {type(EVENTS[case["event"]]) for file in files.values() for case in file.get("answers", [])}
    assert set(ANSWERS) <= answered
    shown = {type(EVENTS[case["event"]]) for file in files.values() for case in file.get("pushes", [])}
    assert shown == set(PUSHES)
    for name, file in files.items():
        for case in file.get("pushes", []):
            assert case["frame"]["cmd"] == name


def test_errors_say_whether_everybody_may_ask() -> None:
    def refusal(frame: object, user_id: str | None) -> BadFrame:
        with pytest.raises(BadFrame) as caught:
            DIALECT.decode(json.dumps(frame).encode(), user_id)
        return caught.value

    register = refusal({"cmd": "auth.register"}, None)
    assert (register.error.name, register.for_all, register.signs_in) == ("missing_password", True, False)
    token = refusal({"cmd": "auth.token"}, None)
    assert (token.error.name, token.signs_in) == ("missing_token", True)
    assert not refusal({"cmd": "auth.token"}, ANN).signs_in
    send = refusal({"cmd": "chat.send_message"}, None)
    assert (send.error.name, send.for_all, send.signs_in) == ("unauthorized", False, False)


# -- names ---------------------------------------------------------------------------------------------------


@given(USER_IDS, USER_IDS)
def test_a_chat_is_named_by_its_peer_from_both_sides(me: str, peer: str) -> None:
    if me == peer:
        with pytest.raises(NexoError):
            conversation_of(me, 1, peer)
        return
    conversation_id = conversation_of(me, 1, peer)
    assert conversation_id == conversation_of(peer, 1, me) == single_conversation_id(me, peer)
    assert peer_of(conversation_id, me) == peer
    assert naming(conversation_id)["user_ids"] == tuple(sorted((me, peer)))
    assert shown_name(conversation_id) == "p_{}_{}".format(*sorted((me, peer)))


@given(USER_IDS, USER_IDS)
@example("a_z_a", "z_a")
def test_a_name_is_read_back_as_what_it_was_or_not_at_all(me: str, peer: str) -> None:
    assume(me != peer)
    conversation_id = single_conversation_id(me, peer)
    name = shown_name(conversation_id)
    others = {name[2 : -len(me) - 1], name[len(me) + 3 :]} - {peer, me}
    if any(is_user_id(other) and shown_name(single_conversation_id(me, other)) == name for other in others):
        with pytest.raises(NexoError, match="two readings"):
            conversation_by_name(me, name)
    else:
        assert conversation_by_name(me, name) == conversation_id


def test_ids_with_underscores_do_not_meet() -> None:
    assert shown_name("si_a:b_c") == shown_name("si_a_b:c") == "p_a_b_c"
    assert conversation_by_name("a", "p_a_b_c") == "si_a:b_c"
    assert conversation_by_name("c", "p_a_b_c") == "si_a_b:c"
    assert conversation_by_name("b_c", "p_a_b_c") == "si_a:b_c"
    assert conversation_by_name("a_b", "p_a_b_c") == "si_a_b:c"
    with pytest.raises(NexoError, match="two readings"):
        conversation_by_name("a_z_a", "p_a_z_a_z_a")
    for stranger in ("b", "d", "a_b_c"):
        with pytest.raises(NexoError, match="no chat of yours"):
            conversation_by_name(stranger, "p_a_b_c")


def test_a_user_who_is_called_like_a_group_is_no_group() -> None:
    group_like = "g_Team00000001"
    assert conversation_of("a", 1, group_like) == f"si_a:{group_like}"
    assert conversation_of("a", 2, group_like) == group_conversation_id(group_like)
    assert conversation_by_name("a", group_like) == group_conversation_id(group_like)
    assert conversation_by_name("a", f"p_a_{group_like}") == f"si_a:{group_like}"

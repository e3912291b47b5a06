"""Names of conversations for OpenIM's clients: two chats never meet under one name."""

from __future__ import annotations

from itertools import combinations

import pytest

from nexo.ids import single_conversation_id
from nexo.wire.openim.names import name_of, read_name, twin_of

IDS = ["a", "b", "a_b", "b_c", "c", "a_b_a", "b_a", "m_z_m", "m_z", "z_m", "g", "abcdefghijkl", "x_", "_x"]


def test_every_user_reads_a_name_as_the_chat_that_has_it() -> None:
    for first, second in combinations(IDS, 2):
        chat = single_conversation_id(first, second)
        name = name_of(chat)
        if name:
            for user_id in (first, second):
                assert read_name(name, user_id) == (chat, False)
                assert read_name(twin_of(chat), user_id) == (chat, True)


def test_no_user_has_two_chats_of_one_name() -> None:
    for user_id in IDS:
        names = [name_of(single_conversation_id(user_id, other)) for other in IDS if other != user_id]
        known = [name for name in names if name]
        assert len(known) == len(set(known))


@pytest.mark.parametrize("name", ["si_a_b", "si_", "si_b_a", "sg_x", "n_", "x", "", "si_a:b"])
def test_a_stranger_and_a_wrong_name_get_nothing(name: str) -> None:
    assert read_name(name, "eve") is None


def test_groups_keep_their_names() -> None:
    assert name_of("sg_g_abcdefghijkl") == "sg_g_abcdefghijkl"
    assert read_name("n_g_abcdefghijkl", "eve") == ("sg_g_abcdefghijkl", True)

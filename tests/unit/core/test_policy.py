"""Who may do what: each rule as a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.people import a_conversation, a_member
from nexo.core import policy
from nexo.core.model import Kind, Message, MsgType, Role
from nexo.errors import NexoError

NOW = 1_000_000
MEMBER, ADMIN, OWNER = Role.MEMBER, Role.ADMIN, Role.OWNER


def verdict(check: Callable[..., Any], *arguments: Any) -> str:
    try:
        check(*arguments)
    except NexoError as error:
        return error.name
    return "ok"


@pytest.mark.parametrize(
    ("conversation", "member", "wanted"),
    [
        ({}, {}, "ok"),
        ({"status": 1}, {}, "group_not_available"),
        ({"status": 2}, {}, "group_not_available"),
        ({"status": 1}, None, "group_not_available"),
        ({}, None, "not_group_member"),
        ({}, {"status": 1}, "member_not_active"),
        ({}, {"status": 2}, "member_not_active"),
        ({}, {"muted_until": -1}, "speak_muted"),
        ({}, {"muted_until": NOW + 1}, "speak_muted"),
        ({}, {"muted_until": NOW}, "ok"),
        ({}, {"muted_until": -1, "role": OWNER}, "speak_muted"),
        ({"mute_until": -1}, {}, "speak_muted"),
        ({"mute_until": NOW + 1}, {}, "speak_muted"),
        ({"mute_until": NOW}, {}, "ok"),
        ({"mute_until": -1}, {"role": ADMIN}, "ok"),
        ({"mute_until": -1}, {"role": OWNER}, "ok"),
        ({"kind": Kind.SINGLE}, {}, "ok"),
        ({"kind": Kind.SINGLE}, {"blocked": 1}, "blocked"),
        ({"kind": Kind.SINGLE}, None, "conversation_not_found"),
    ],
)
def test_who_may_send(conversation: dict[str, Any], member: dict[str, Any] | None, wanted: str) -> None:
    sender = None if member is None else a_member(**member)
    assert verdict(policy.check_may_send, a_conversation(**conversation), sender, NOW) == wanted


@pytest.mark.parametrize(
    ("check", "allowed"),
    [
        (policy.check_manager, {ADMIN, OWNER}),
        (policy.check_owner, {OWNER}),
        (lambda member: policy.check_may_mention_all(a_conversation(), member), {ADMIN, OWNER}),
        (lambda member: policy.check_may_mention_all(a_conversation(kind=Kind.SINGLE), member), set()),
        (lambda member: policy.check_may_invite(member, "open"), {MEMBER, ADMIN, OWNER}),
        (lambda member: policy.check_may_invite(member, "approval"), {MEMBER, ADMIN, OWNER}),
        (lambda member: policy.check_may_invite(member, "invite"), {ADMIN, OWNER}),
    ],
)
def test_what_a_role_allows(check: Callable[..., Any], allowed: set[Role]) -> None:
    for role in Role:
        assert verdict(check, a_member(role=role)) == ("ok" if role in allowed else "no_permission")


def test_only_the_owner_cannot_leave() -> None:
    answers = [verdict(policy.check_may_leave, a_member(role=role)) for role in (MEMBER, ADMIN, OWNER)]
    assert answers == ["ok", "ok", "owner_cannot_leave"]


def test_one_acts_only_on_those_below_and_never_on_oneself() -> None:
    for mine in Role:
        for theirs in Role:
            actor, target = a_member(role=mine), a_member(user_id="bob", role=theirs)
            wanted = "ok" if mine != MEMBER and theirs < mine else "no_permission"
            assert verdict(policy.check_may_act_on, actor, target) == wanted
        assert verdict(policy.check_may_act_on, a_member(role=mine), a_member(role=MEMBER)) == "no_permission"


@pytest.mark.parametrize(
    ("message", "role", "kind", "admin_recall", "wanted"),
    [
        ({}, MEMBER, Kind.GROUP, True, "ok"),
        ({"send_at": NOW - 120_000}, MEMBER, Kind.GROUP, True, "ok"),
        ({"send_at": NOW - 120_001}, MEMBER, Kind.GROUP, True, "recall_timeout"),
        ({"send_at": NOW - 120_001}, ADMIN, Kind.GROUP, True, "ok"),
        ({"send_at": NOW - 120_001}, ADMIN, Kind.GROUP, False, "recall_timeout"),
        ({"sender_id": "bob"}, MEMBER, Kind.GROUP, True, "not_message_sender"),
        ({"sender_id": "bob"}, OWNER, Kind.GROUP, True, "ok"),
        ({"sender_id": "bob"}, OWNER, Kind.GROUP, False, "not_message_sender"),
        ({"sender_id": "bob"}, OWNER, Kind.SINGLE, True, "not_message_sender"),
        ({"msg_type": MsgType.JOINED}, OWNER, Kind.GROUP, True, "message_not_found"),
        ({"msg_type": MsgType.RECALLED}, MEMBER, Kind.GROUP, True, "message_not_found"),
    ],
)
def test_who_may_recall(message: dict[str, Any], role: Role, kind: Kind, admin_recall: bool, wanted: str) -> None:
    known: dict[str, Any] = {"server_msg_id": 1, "client_msg_id": "c", "conversation_id": "x", "seq": 1}
    known |= {"sender_id": "alice", "msg_type": 1, "content": '""', "send_at": NOW}
    stored = Message(**known | message)
    assert verdict(policy.check_may_recall, stored, a_member(role=role), kind, NOW, 120, admin_recall) == wanted

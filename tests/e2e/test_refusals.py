"""Every reason for which the server says no to one request on a socket: named, echoed, and not closing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from harness import processes
from harness.chat import Client, fresh_id, meet
from harness.replica import Frame
from harness.server_process import ServerProcess
from nexo.errors import ERRORS


class Scene(NamedTuple):
    ann: Client
    ben: Client
    cid: Client


def text(**fields: Any) -> Frame:
    """A message of ann's to ben, with some of it changed; None leaves a field out."""
    frame = {"type": "SINGLE_CHAT", "clientMsgId": "c1", "to": "BEN", "body": "hello"} | fields
    return {name: value for name, value in frame.items() if value is not None}


def ack(**fields: Any) -> Frame:
    return {"type": "ACK", "ackType": "read"} | fields


# One frame of ann's is enough to be refused so. BEN stands for ben's user id.
FRAMES: dict[str, list[Frame]] = {
    "missing_receiver": [text(to=None), text(to=""), {"type": "TYPING", "on": True}],
    "missing_client_msg_id": [text(clientMsgId=None), text(clientMsgId="")],
    "missing_content": [
        text(body=None),
        text(msgType=2, body=None),
        text(msgType=2, body={"name": "no url"}),
        text(type="GROUP_CHAT", to=None, groupId="g_000000000000", body=None),
    ],
    "missing_group_id": [text(type="GROUP_CHAT", to=None)],
    "missing_reply_to": [text(msgType=7)],
    "missing_server_msg_id": [ack(), {"type": "MESSAGE_REVOKE"}],
    "missing_conversation_id": [ack(msgSeq=1), {"type": "PULL"}],
    "missing_seq": [ack(conversationId="si_a:b")],
    "missing_user_id": [{"type": "PRESENCE"}],
    "missing_token": [{"type": "REAUTH"}],
    "bad_client_msg_id": [
        text(clientMsgId=" c1"),
        text(clientMsgId="x" * 65),
        text(clientMsgId="ü"),
        text(clientMsgId=1),
    ],
    "bad_receiver": [
        text(to="not a user id"),
        text(to="@all"),
        text(to=["BEN"]),
        text(groupId="g_000000000000"),
        text(type="GROUP_CHAT", groupId="g_000000000000"),
    ],
    "bad_group_id": [text(type="GROUP_CHAT", to=None, groupId=5)],
    "bad_content": [
        text(body=5),
        text(body={"text": "an object"}),
        text(body="nul \0"),
        text(msgType=2, body="a string"),
        text(msgType=2, body={"url": "x" * 513}),
        text(msgType=2, body={"url": "x", "sise": 1}),
        text(msgType=6, body={"big": 1 << 64}),
        text(msgType=6, body={"nul": "\0"}),
    ],
    "bad_msg_type": [text(msgType=0), text(msgType=8), text(msgType=100), text(msgType="1"), text(msgType=True)],
    "bad_mentions": [text(mentions=["not a user id"]), text(mentions="BEN"), text(mentions=[1])],
    "bad_reply_to": [text(replyToServerMsgId="abc"), text(replyToServerMsgId=-1), text(replyToServerMsgId=[])],
    "bad_extra": [text(extra={"nul": "\0"}), text(extra=1 << 70), text(extra=[1]), text(extra="x")],
    "bad_user_id": [
        {"type": "PRESENCE", "subscribe": ["not a user id"]},
        {"type": "PRESENCE", "subscribe": [f"u{i}" for i in range(101)]},
        {"type": "PRESENCE", "subscribe": "BEN"},
        {"type": "PING", "from": 5},
    ],
    "bad_server_msg_id": [ack(serverMsgId="abc"), ack(serverMsgId=-1), ack(serverMsgId=[]), ack(serverMsgId="9" * 19)],
    "bad_conversation_id": [
        {"type": "PULL", "conversationId": "nonsense"},
        {"type": "PULL", "conversationId": 5},
        {"type": "SYNC", "conversations": "si_a:b"},
        {"type": "SYNC", "conversations": [f"si_a:b{i}" for i in range(1001)]},
    ],
    "bad_seq": [
        ack(conversationId="si_a:b", msgSeq="x"),
        {"type": "PULL", "conversationId": "si_a:b", "beginSeq": "x"},
        {"type": "PULL", "conversationId": "si_a:b", "beginSeq": 1.5},
        {"type": "PULL", "conversationId": "si_a:b", "endSeq": []},
    ],
    "bad_cursor": [{"type": "SYNC", "cursor": "nonsense"}, {"type": "SYNC", "cursor": 5}],
    "bad_limit": [{"type": "PULL", "conversationId": "si_a:b", "limit": "x"}],
    "bad_baselines": [{"type": "RESEND", "baselines": []}, {"type": "RESEND", "baselines": {"si_a:b": None}}],
    "bad_token": [{"type": "REAUTH", "token": 5}],
    "bad_device_id": [{"type": "PING", "deviceId": 5}],
    "bad_request": [{"type": "TYPING", "to": "BEN", "on": "yes"}, {"type": "AUTH", "token": "again"}],
    "unknown_ack_type": [ack(ackType="saved", serverMsgId="1"), ack(ackType=None, serverMsgId="1"), ack(ackType=5)],
    "body_too_long": [text(body="x" * 4097), text(msgType=6, body={"x": "y" * 16_384}), text(extra="x" * 16_385)],
    "cannot_send_to_self": [text(to="ANN")],
    "user_not_found": [text(to="nobody-there")],
    "group_not_found": [
        text(type="GROUP_CHAT", to=None, groupId="g_000000000000"),
        text(type="GROUP_CHAT", to=None, groupId="nonsense"),
        {"type": "PULL", "conversationId": "sg_g_000000000000"},
    ],
    "identity_mismatch": [text(**{"from": "BEN"}), {"type": "PING", "from": "BEN"}],
    "message_not_found": [
        ack(serverMsgId="1"),
        {"type": "MESSAGE_REVOKE", "serverMsgId": "1"},
        text(replyToServerMsgId="1"),
    ],
    "conversation_not_found": [{"type": "PULL", "conversationId": "si_other:people"}],
    "ack_not_allowed": [
        ack(conversationId="si_other:people", msgSeq=1),
        ack(conversationId="sg_g_000000000000", msgSeq=1),
        ack(conversationId="nonsense", msgSeq=1),
        ack(conversationId="CHAT", msgSeq=0),
    ],
}

# Refused so by what the tests of this file and of those named do.
ELSEWHERE = {
    "not_group_member": "here",
    "member_not_active": "here",
    "group_not_available": "here",
    "speak_muted": "here",
    "no_permission": "here",
    "blocked": "here",
    "client_msg_id_reused": "here",
    "not_message_sender": "here",
    "recall_timeout": "here",
    "content_rejected": "here",
    "bad_json": "test_protocol_violations.py",
    "missing_type": "test_protocol_violations.py",
    "unknown_type": "test_protocol_violations.py",
    "unauthorized": "test_signing_in.py",
    "auth_timeout": "test_signing_in.py",
    "token_expired": "test_signing_in.py",
    "session_invalid": "test_signing_in.py",
    "reauth_uid_mismatch": "test_signing_in.py",
    "kicked": "test_session_policies.py",
    "replaced": "test_session_policies.py",
    "too_many_requests": "test_limits.py",
    "server_busy": "test_send_order.py",
    "slow_consumer": "test_slow_consumers.py",
    "not_implemented": "test_call_endings.py",  # calls are switched off
    **dict.fromkeys(
        (
            "busy",
            "call_not_found",
            "call_not_participant",
            "call_not_ringing",
            "callee_offline",
            "only_callee_can_accept",
            "only_caller_can_cancel",
            "sdp_too_long",
            "unsupported_call_kind",
        ),
        "test_calls.py",
    ),
    "server_shutdown": "test_life.py",
    "not_found": "test_signing_in.py",  # an upgrade on another path
    "user_disabled": "test_moderators.py",
    "user_deleted": "an account that was closed cannot sign in",
    "not_contact": "contract/test_contacts.py",
    "not_editable": "contract/test_edits.py",
    "edit_timeout": "contract/test_edits.py",
    "too_many_reactions": "contract/test_reactions.py",
    "too_many_pins": "contract/test_pins_and_forwards.py",
    "file_not_found": "contract/test_files.py",
    "internal_error": "the log has the cause; nothing a client can do leads there",
}
HTTP_ONLY = {
    "scope_missing",
    "key_expired",
    "key_not_found",
    "hook_not_found",
    "too_many_hooks",
    "code_invalid",
    "passwords_off",
    "method_not_allowed",
    "invalid_credentials",
    "admin_only",
    "user_exists",
    "registration_closed",
    "owner_cannot_leave",
    "group_members_too_few",
    "group_full",
    "conversation_private_cannot_delete",
    "join_request_not_found",
    "cursor_expired",
    "not_forwardable",
    "session_not_found",
    "contact_request_not_found",
    "too_many_contacts",
    "too_many_links",
    "link_expired",
    "too_many_deleted",
    "too_many_uploads",
    "upload_expired",
    "storage_full",
    "quota_exceeded",
    "file_too_large",
    "file_type_refused",
}
# Named after a field of a request of the HTTP API that no frame has.
OTHER_FIELDS = {
    name
    for name in ERRORS
    if name.startswith(("missing_", "bad_")) and name not in FRAMES and name not in ("missing_type", "bad_json")
}


def test_every_error_of_the_table_is_met_on_a_socket_or_cannot_be() -> None:
    known = FRAMES.keys() | ELSEWHERE.keys() | HTTP_ONLY | OTHER_FIELDS
    assert ERRORS.keys() == known


CASES = [(reason, frame) for reason, frames in FRAMES.items() for frame in frames]


@pytest.mark.parametrize("reason", FRAMES)
async def test_a_frame_that_cannot_be_done_is_refused_by_name_and_the_connection_lives(
    server: ServerProcess, reason: str
) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        chat = (await ben.say(ann, "there is a chat"))["conversationId"]
        names = {"ANN": ann.user_id, "BEN": ben.user_id, "CHAT": chat}
        for frame in FRAMES[reason]:
            asked = {name: _named(value, names) for name, value in frame.items()}
            await ann.send(asked)
            error = await ann.expect("ERROR")
            assert error["reason"] == reason, f"{asked} → {error}"
            assert len(error["detail"]) > 5
            for echoed in ("clientMsgId", "serverMsgId"):
                given = asked.get(echoed)
                if (
                    given is not None
                    and given != ""
                    and isinstance(given, str | int)
                    and not (echoed == "clientMsgId" and isinstance(given, int))
                ):
                    assert error[echoed] == str(given)
        await ann.say(ben, "still here")


def _named(value: Any, names: dict[str, str]) -> Any:
    return names.get(value, value) if isinstance(value, str) else value


async def test_who_was_never_in_a_group_is_not_a_member(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        message = await ann.say(group)
        await dan.send(frame := dan.message(group, "let me in"))
        await dan.expect_error("not_group_member", clientMsgId=frame["clientMsgId"])
        await dan.send({"type": "PULL", "conversationId": f"sg_{group}"})
        await dan.expect_error("not_group_member")
        await dan.acknowledge(message)
        await dan.expect_error("ack_not_allowed", serverMsgId=message["serverMsgId"])
        await dan.send({"type": "MESSAGE_REVOKE", "serverMsgId": message["serverMsgId"]})
        await dan.expect_error("message_not_found", serverMsgId=message["serverMsgId"])
        await dan.send({"type": "ACK", "ackType": "read", "conversationId": f"sg_{group}", "msgSeq": 1})
        await dan.expect_error("ack_not_allowed")
        await ann.expect_nothing("ACK", ackType="read")


async def test_who_left_or_was_removed_is_not_active(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        mine = await ben.say(group, "before")
        await ben.me.post("/group/quit", group_id=group)
        await ann.me.post("/group/remove_member", group_id=group, user_id=cid.user_id)
        for client in (ben, cid):
            await client.send(frame := client.message(group, "after"))
            await client.expect_error("member_not_active", clientMsgId=frame["clientMsgId"])
        await ben.send({"type": "MESSAGE_REVOKE", "serverMsgId": mine["serverMsgId"]})
        await ben.expect_error("member_not_active")


async def test_in_a_dismissed_group_nothing_can_be_sent_or_recalled(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        mine = await ben.say(group, "before")
        await ann.me.post("/group/dismiss", group_id=group)
        await ben.expect("GROUP_EVENT", msgType=108)
        for client in (ann, ben):
            await client.send(client.message(group, "after"))
            await client.expect_error("group_not_available")
        await ben.send({"type": "MESSAGE_REVOKE", "serverMsgId": mine["serverMsgId"]})
        await ben.expect_error("group_not_available")


async def test_who_is_muted_may_not_speak_until_the_mute_is_lifted(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ann.me.post("/group/mute", group_id=group, user_id=ben.user_id, duration_s=-1)
        await ben.send(frame := ben.message(group, "may I"))
        await ben.expect_error("speak_muted", clientMsgId=frame["clientMsgId"])
        await cid.say(group, "I may")
        await ann.me.post("/group/mute", group_id=group, user_id=ben.user_id, duration_s=0)
        await ben.send(frame)  # under the same clientMsgId: nothing was stored before
        await ben.expect("ACK", ackType="saved", clientMsgId=frame["clientMsgId"])
        await ann.me.post("/group/mute", group_id=group, duration_s=600)
        await cid.send(cid.message(group, "now me"))
        await cid.expect_error("speak_muted")
        await ann.say(group, "owners are spared")


async def test_only_managers_mention_everybody(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        await ben.send(ben.message(group, "all of you", mentions=["@all"]))
        await ben.expect_error("no_permission")
        await ann.say(group, "all of you", mentions=["@all"])
        assert (await ben.expect("GROUP_CHAT"))["important"] is True


async def test_who_is_blocked_is_told_so_and_nothing_is_stored(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben, "hello")
        await ben.me.post("/user/block", user_id=ann.user_id)
        await ann.send(frame := ann.message(ben, "are you there?"))
        await ann.expect_error("blocked", clientMsgId=frame["clientMsgId"])
        await ben.say(ann, "one way still works")
        await ben.me.post("/user/unblock", user_id=ann.user_id)
        assert (await ann.say(ben, "again"))["msgSeq"] == 3


async def test_a_client_msg_id_stands_for_one_message(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        frame = ann.message(ben, "the first")
        first = await ann.ask(frame, "ACK")
        again = await ann.ask(frame, "ACK")
        assert again == first
        for other in (frame | {"body": "another"}, frame | {"to": cid.user_id}, frame | {"extra": {"a": 1}}):
            await ann.send_raw(json.dumps(other))
            await ann.expect_error("client_msg_id_reused", clientMsgId=frame["clientMsgId"])
        assert (await ann.say(ben, "the second"))["msgSeq"] == 2


async def test_one_recalls_only_what_one_has_sent(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        message = await ann.say(ben)
        await ben.send({"type": "MESSAGE_REVOKE", "serverMsgId": message["serverMsgId"], "clientMsgId": "r1"})
        await ben.expect_error("not_message_sender", serverMsgId=message["serverMsgId"], clientMsgId="r1")


async def test_an_acknowledgement_of_a_message_that_one_may_not_see_is_not_allowed(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        early = await ann.say(group, "before dan came")
        await ann.me.post("/group/invite", group_id=group, user_ids=[dan.user_id])
        await dan.expect("GROUP_EVENT", msgType=102)
        await dan.acknowledge(early)
        await dan.expect_error("ack_not_allowed", serverMsgId=early["serverMsgId"])
        await dan.send(dan.message(group, "what?", replyToServerMsgId=early["serverMsgId"]))
        await dan.expect_error("message_not_found")


@pytest.fixture(scope="module")
def strict_server() -> Iterator[ServerProcess]:
    """It refuses a word, and nothing can be recalled."""
    words = processes.new_dir("words") / "words.txt"
    words.write_text("rhubarb\n")
    with ServerProcess(filter__file=words, filter__mode="reject", recall__window_s=0) as running:
        yield running


async def test_a_message_with_a_listed_word_is_rejected(strict_server: ServerProcess) -> None:
    async with meet(strict_server, "ann", "ben") as (ann, ben):
        await ann.send(frame := ann.message(ben, "some RHUBARB, please"))
        await ann.expect_error("content_rejected", clientMsgId=frame["clientMsgId"])
        await ann.say(ben, "some rhub arb, please")


async def test_after_the_window_nothing_is_recalled(strict_server: ServerProcess) -> None:
    async with meet(strict_server, "ann", "ben") as (ann, ben):
        message = await ann.say(ben)
        await ben.expect("SINGLE_CHAT")
        await ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": message["serverMsgId"], "clientMsgId": fresh_id()})
        await ann.expect_error("recall_timeout", serverMsgId=message["serverMsgId"])

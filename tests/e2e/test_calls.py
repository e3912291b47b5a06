"""Calls between connected clients: every step and every refusal, what the devices of both users get, and the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.chat import Client, Person, fetch_messages, fresh_id, meet, world
from harness.server_process import ServerProcess
from nexo.store import schema

OFFER, ANSWER = "v=0 offer", "v=0 answer"


async def devices(person: Person, *names: str) -> list[Client]:
    """Returns a connection of each device; with several instances each is on another one."""
    return [await person.connect(await person.log_in(5, name)) for name in names]


def invitation(callee: Client | Person, **fields: Any) -> dict[str, Any]:
    frame = {"type": "CALL_INVITE", "to": callee.user_id, "callKind": "video", "sdp": OFFER, "clientMsgId": fresh_id()}
    return frame | fields


async def ring(caller: Client, *callees: Client, **fields: Any) -> str:
    """Returns the call that rings at all these devices of one user."""
    frame = invitation(callees[0], **fields)
    answer = await caller.ask(frame, "CALL_INVITE_OK", clientMsgId=frame["clientMsgId"])
    for callee in callees:
        got = await callee.expect("CALL_INVITE")
        shown = {name: got[name] for name in ("callId", "from", "callKind", "sdp")}
        assert shown == {
            "callId": answer["callId"],
            "from": caller.user_id,
            "callKind": frame["callKind"],
            "sdp": frame["sdp"],
        }
    return str(answer["callId"])


async def talk(caller: Client, callee: Client) -> str:
    """Returns a call that was answered."""
    call_id = await ring(caller, callee)
    await callee.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
    await caller.expect("CALL_ACCEPT", callId=call_id, sdp=ANSWER)
    return call_id


async def record(client: Client, call_id: str) -> dict[str, Any]:
    """Returns the record of a call, which every device of both gets as a message of the caller."""
    frame = await client.expect("SINGLE_CHAT", where=lambda one: one["body"]["call_id"] == call_id, msgType=120)
    assert frame["clientMsgId"] is None
    return frame


async def assert_unread(person: Person, conversation_id: str, count: int) -> None:
    (entry,) = (await person.get("/conversation/newest_seq", conversation_ids=conversation_id))["conversations"]
    assert entry["unread"] == count, entry


async def test_a_call_is_answered_by_the_first_of_three_devices(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        (caller,), (phone, desk, pad) = await devices(ann, "phone"), await devices(ben, "phone", "desk", "pad")
        call_id = await ring(caller, phone, desk, pad)
        await desk.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
        accepted = await caller.expect("CALL_ACCEPT", callId=call_id)
        assert (accepted["sdp"], accepted["from"]) == (ANSWER, ben.user_id)
        for other in (phone, pad):
            assert await other.expect("CALL_END", callId=call_id) == {
                "type": "CALL_END",
                "callId": call_id,
                "reason": "answered_elsewhere",
            }
        await phone.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
        await phone.expect("CALL_ERROR", reason="call_not_ringing", callId=call_id)
        await caller.send({"type": "CALL_ICE", "callId": call_id, "candidate": "candidate:1", "sdpMLineIndex": 0})
        relayed = await desk.expect("CALL_ICE", callId=call_id)
        assert relayed == {
            "type": "CALL_ICE",
            "callId": call_id,
            "from": ann.user_id,
            "candidate": "candidate:1",
            "sdpMLineIndex": 0,
        }
        again = {"type": "offer", "sdp": "v=0 again"}
        await desk.send({"type": "CALL_ICE", "callId": call_id, "description": again})
        assert (await caller.expect("CALL_ICE", callId=call_id))["description"] == again
        await desk.send({"type": "CALL_END", "callId": call_id})
        for side in (caller, desk):
            ended = await side.expect("CALL_END", callId=call_id)
            assert ended["reason"] == "ended"
            assert ended["durationMs"] >= 0
        for device in (caller, phone, desk, pad):
            written = await record(device, call_id)
            assert (written["from"], written["to"]) == (ann.user_id, ben.user_id)
            body = {name: written["body"][name] for name in ("kind", "outcome", "duration_ms")}
            assert body == {"kind": "video", "outcome": "completed", "duration_ms": ended["durationMs"]}
        await phone.settle()
        assert phone.seen("CALL_ICE") == pad.seen("CALL_ICE") == []
        assert len(phone.seen("CALL_END")) == 1
        await assert_unread(ben, written["conversationId"], 0)


async def test_rejected_canceled_and_missed_calls_end_on_both_sides_with_one_record_each(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        (caller,), of_ben = await devices(ann, "phone"), await devices(ben, "phone", "desk")
        first = await ring(caller, *of_ben, callKind="audio")
        await of_ben[0].send({"type": "CALL_REJECT", "callId": first})
        for device in (caller, *of_ben):
            assert (await device.expect("CALL_END", callId=first))["reason"] == "rejected"
            assert (await record(device, first))["body"]["outcome"] == "rejected"
        conversation_id = caller.seen("SINGLE_CHAT")[0]["conversationId"]
        await assert_unread(ben, conversation_id, 0)
        second = await ring(caller, *of_ben)
        await caller.send({"type": "CALL_CANCEL", "callId": second})
        for device in (caller, *of_ben):
            ended = await device.expect("CALL_END", callId=second)
            assert ended["reason"] == "canceled"
            assert "durationMs" not in ended
            assert (await record(device, second))["body"]["outcome"] == "canceled"
        await assert_unread(ben, conversation_id, 1)
        await assert_unread(ann, conversation_id, 0)
        stored = [message["content"]["call_id"] for message in await fetch_messages(ben, conversation_id)]
        assert stored == [first, second]
        listed = await ben.get("/call/list", limit=1)
        assert listed["has_more"]
        rest = await ben.get("/call/list", cursor=listed["next_cursor"])
        calls = listed["calls"] + rest["calls"]
        assert [(one["call_id"], one["outcome"], one["kind"]) for one in calls] == [
            (second, "canceled", "video"),
            (first, "rejected", "audio"),
        ]
        assert all(one["caller_id"] == ann.user_id and one["duration_ms"] == 0 for one in calls)


async def test_hanging_up_while_it_rings_cancels_or_rejects(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for side, outcome in ((ann, "canceled"), (ben, "rejected")):
            call_id = await ring(ann, ben)
            await side.send({"type": "CALL_END", "callId": call_id, "reason": "hangup"})
            for device in (ann, ben):
                assert (await device.expect("CALL_END", callId=call_id))["reason"] == outcome
                assert (await record(device, call_id))["body"]["outcome"] == outcome
        call_id = await talk(ann, ben)
        await ann.send({"type": "CALL_END", "callId": call_id, "reason": "failed"})
        assert (await ben.expect("CALL_END", callId=call_id))["reason"] == "failed"
        assert (await record(ben, call_id))["body"]["outcome"] == "failed"


def rows_with(server: ServerProcess, mark: str) -> set[str]:
    """The tables that have this text in a row."""
    found = {name: server.select(f"SELECT * FROM {name}") for name in schema.metadata.tables}
    return {name for name, rows in found.items() if any(mark in str(row) for row in rows)}


@pytest.mark.parametrize("end", ["CALL_ACCEPT", "CALL_REJECT", "CALL_CANCEL"])
async def test_what_devices_describe_is_stored_while_it_rings_and_nowhere_else(server: ServerProcess, end: str) -> None:
    mark = fresh_id()
    async with meet(server, "ann", "ben") as (ann, ben):
        call_id = await ring(ann, ben, sdp=f"v=0 {mark}")
        for side, other in ((ann, ben), (ben, ann)):
            await side.send({"type": "CALL_ICE", "callId": call_id, "candidate": f"candidate:{mark}"})
            await other.expect("CALL_ICE", callId=call_id)
        assert rows_with(server, mark) == {"calls"}
        await (ann if end == "CALL_CANCEL" else ben).send({"type": end, "callId": call_id, "sdp": f"v=0 {mark}"})
        await ann.expect("CALL_ACCEPT" if end == "CALL_ACCEPT" else "CALL_END", callId=call_id)
        assert rows_with(server, mark) == set()
        if end == "CALL_ACCEPT":
            await ann.send({"type": "CALL_END", "callId": call_id})
        await record(ben, call_id)
        assert rows_with(server, mark) == set()


async def test_a_repeated_invitation_is_the_same_call(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        frame = invitation(ben)
        call_id = (await ann.ask(frame, "CALL_INVITE_OK"))["callId"]
        assert (await ann.ask(frame, "CALL_INVITE_OK"))["callId"] == call_id
        await ann.send(frame | {"to": cid.user_id})
        refused = await ann.expect("CALL_ERROR", reason="client_msg_id_reused")
        assert refused["clientMsgId"] == frame["clientMsgId"]
        await ben.expect("CALL_INVITE")
        await ben.expect_nothing("CALL_INVITE")
        await ann.send({"type": "CALL_CANCEL", "callId": call_id})
        await ben.expect("CALL_END")
        assert (await ann.ask(frame, "CALL_INVITE_OK"))["callId"] == call_id
        await ben.expect_nothing("CALL_INVITE")


async def test_who_takes_part_in_a_call_is_busy(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        call_id = await ring(ann, ben)
        for _ in range(2):
            for callee in (ann, ben):
                await cid.send(invitation(callee))
                refused = await cid.expect("CALL_ERROR", reason="busy")
                assert "callId" not in refused
                assert refused["clientMsgId"]
            for caller in (ann, ben):
                await caller.send(invitation(cid))
                assert (await caller.expect("CALL_ERROR", reason="busy"))["callId"] == call_id
            if not ann.seen("CALL_ACCEPT"):
                await ben.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
                await ann.expect("CALL_ACCEPT")
        await ben.send({"type": "CALL_END", "callId": call_id})
        await record(ann, call_id)
        await ring(cid, ann)


async def test_two_who_call_each_other_share_one_call(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for _ in range(5):
            await asyncio.gather(ann.send(invitation(ben)), ben.send(invitation(ann)))
            answers = [await client.expect("CALL_INVITE_OK") for client in (ann, ben)]
            assert answers[0]["callId"] == answers[1]["callId"]
            call_id = answers[0]["callId"]
            (listed,) = (await ann.me.get("/call/list", limit=1))["calls"]
            assert listed["call_id"] == call_id
            caller, callee = (ann, ben) if listed["caller_id"] == ann.user_id else (ben, ann)
            await callee.expect("CALL_INVITE", callId=call_id, from_=caller.user_id)
            await callee.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
            await caller.expect("CALL_ACCEPT", callId=call_id)
            assert caller.seen("CALL_INVITE", callId=call_id) == []
            await caller.send({"type": "CALL_END", "callId": call_id})
            for side in (ann, ben):
                await record(side, call_id)
        assert len((await ann.me.get("/call/list"))["calls"]) == 5


async def test_a_device_that_connects_while_it_rings_gets_the_invitation_and_the_candidates(
    server: ServerProcess,
) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        (caller,), (phone,) = await devices(ann, "phone"), await devices(ben, "phone")
        call_id = await ring(caller, phone)
        for number in range(70):
            await caller.send({"type": "CALL_ICE", "callId": call_id, "candidate": {"candidate": f"c{number}"}})
        await phone.expect("CALL_ICE", where=lambda one: one["candidate"]["candidate"] == "c69")
        (desk,) = await devices(ben, "desk")
        await desk.expect("CALL_INVITE", callId=call_id, sdp=OFFER)
        await desk.expect("CALL_ICE", where=lambda one: one["candidate"]["candidate"] == "c63")
        await desk.settle()
        assert len(desk.seen("CALL_ICE")) == 64
        await desk.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
        await caller.expect("CALL_ACCEPT")
        (pad,) = await devices(ben, "pad")
        await pad.settle()
        assert pad.seen("CALL_INVITE") == pad.seen("CALL_ICE") == []
        await caller.send({"type": "CALL_END", "callId": call_id})
        await record(desk, call_id)


WRONG: dict[str, dict[str, Any]] = {
    "missing_receiver": {"type": "CALL_INVITE", "to": None},
    "missing_client_msg_id": {"type": "CALL_INVITE", "clientMsgId": None},
    "missing_call_kind": {"type": "CALL_INVITE", "callKind": None},
    "missing_sdp": {"type": "CALL_INVITE", "sdp": ""},
    "unsupported_call_kind": {"type": "CALL_INVITE", "callKind": "fax"},
    "sdp_too_long": {"type": "CALL_INVITE", "sdp": "x" * 65_001},
    "bad_sdp": {"type": "CALL_INVITE", "sdp": 5},
    "cannot_send_to_self": {"type": "CALL_INVITE", "to": "me"},
    "user_not_found": {"type": "CALL_INVITE", "to": "nobody.at.all"},
    "identity_mismatch": {"type": "CALL_INVITE", "from": "somebody"},
    "missing_call_id": {"type": "CALL_ACCEPT", "sdp": ANSWER},
    "call_not_found": {"type": "CALL_END", "callId": "12345"},
    "missing_candidate": {"type": "CALL_ICE"},
    "bad_candidate": {"type": "CALL_ICE", "candidate": "x" * 3000},
    "bad_reason": {"type": "CALL_END", "reason": "a reason with spaces"},
}


@pytest.mark.parametrize("reason", WRONG)
async def test_a_frame_that_is_wrong_is_refused_as_a_call_error(server: ServerProcess, reason: str) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        frame = dict(WRONG[reason])
        if frame["type"] == "CALL_INVITE":
            frame = invitation(ben) | frame
            if frame["to"] == "me":
                frame["to"] = ann.user_id
        elif reason != "missing_call_id":
            frame = {"callId": "12345", **frame}
        await ann.send(frame)
        refused = await ann.expect("CALL_ERROR", reason=reason)
        assert refused.get("clientMsgId") == frame.get("clientMsgId")
        assert refused.get("callId") == frame.get("callId")
        await ben.settle()
        assert ben.seen("CALL_INVITE") == []


async def test_only_participants_in_their_roles_may_act(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        call_id = await ring(ann, ben)

        async def refuse(client: Client, kind: str, reason: str, **fields: Any) -> None:
            await client.send({"type": kind, "callId": call_id, **fields})
            await client.expect("CALL_ERROR", reason=reason, callId=call_id)

        for kind in ("CALL_ACCEPT", "CALL_REJECT", "CALL_CANCEL", "CALL_ICE", "CALL_END"):
            await refuse(cid, kind, "call_not_participant", sdp=ANSWER, candidate="c")
        await refuse(ann, "CALL_ACCEPT", "only_callee_can_accept", sdp=ANSWER)
        await refuse(ann, "CALL_REJECT", "only_callee_can_accept")
        await refuse(ben, "CALL_CANCEL", "only_caller_can_cancel")
        await ben.send({"type": "CALL_ACCEPT", "callId": call_id, "sdp": ANSWER})
        await ann.expect("CALL_ACCEPT")
        await refuse(ben, "CALL_REJECT", "call_not_ringing")
        await refuse(ann, "CALL_CANCEL", "call_not_ringing")
        await ann.send({"type": "CALL_END", "callId": call_id})
        await record(ben, call_id)
        await refuse(ben, "CALL_ACCEPT", "call_not_ringing", sdp=ANSWER)
        await refuse(ben, "CALL_ICE", "call_not_found", candidate="c")
        await refuse(ben, "CALL_END", "call_not_found")


async def test_who_is_blocked_or_calls_a_user_without_a_device_is_refused(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        caller, _ = await ann.connect(), await ben.connect()
        await caller.send(invitation(cid))
        await caller.expect("CALL_ERROR", reason="callee_offline")
        await ben.post("/user/block", user_id=ann.user_id)
        await caller.send(invitation(ben))
        await caller.expect("CALL_ERROR", reason="blocked")
        assert (await ann.get("/call/list"))["calls"] == []


async def test_the_record_can_be_deleted_for_oneself_and_not_changed(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
        call_id = await ring(ann, ben)
        await ann.send({"type": "CALL_CANCEL", "callId": call_id})
        written = await record(ben, call_id)
        await ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": written["serverMsgId"]})
        await ann.expect("ERROR")
        await assert_unread(ben.me, written["conversationId"], 1)
        await ben.me.post("/msg/delete", server_msg_ids=[written["serverMsgId"]])
        await assert_unread(ben.me, written["conversationId"], 0)
        assert await fetch_messages(ben.me, written["conversationId"]) == []

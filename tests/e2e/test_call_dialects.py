"""A call between the three dialects, and its refusals there."""

from __future__ import annotations

import pytest

from harness.chat import fresh_id, world
from harness.dialects import CommandSpeaker, Frame, Refused, RequestSpeaker
from harness.server_process import ServerProcess


async def pushed(speaker: CommandSpeaker, cmd: str) -> Frame:
    """Returns the data of a push, which has the name of a request."""
    frame = await speaker.answer(cmd=cmd, request_id="")
    return dict(frame["data"])


async def test_a_call_goes_from_one_dialect_to_another(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        commands, requests, envelope = (
            await CommandSpeaker.connect(ann),
            await RequestSpeaker.connect(ben),
            await cid.connect(),
        )
        made = {"call_kind": "audio", "sdp": "v=0 offer", "client_msg_id": fresh_id()}
        for wrong, reason in (
            ({"call_kind": "fax"}, "unsupported_call_kind"),
            ({"sdp": "x" * 65_001}, "sdp_too_long"),
            ({"sdp": None}, "missing_sdp"),
            ({"to_id": None}, "missing_receiver"),
        ):
            with pytest.raises(Refused, match=reason):
                await commands.ask("call.invite", **({"to_id": ben.user_id} | made | wrong))
        invited = await commands.ask("call.invite", to_id=ben.user_id, **made)
        call_id = invited["call_id"]
        assert invited == {"call_id": call_id, "client_msg_id": made["client_msg_id"]}
        rings = await requests.pushed(2020)
        assert rings == {"call_id": call_id, "user_id": ann.user_id, "call_kind": "audio", "sdp": "v=0 offer"}
        with pytest.raises(Refused, match="busy"):
            await requests.ask(1020, recv_id=cid.user_id, **(made | {"client_msg_id": fresh_id()}))
        with pytest.raises(Refused, match="only_caller_can_cancel"):
            await requests.ask(1023, call_id=call_id)
        with pytest.raises(Refused, match="only_callee_can_accept"):
            await commands.ask("call.accept", call_id=call_id, sdp="v=0")
        await requests.ask(1021, call_id=call_id, sdp="v=0 answer")
        assert (await pushed(commands, "call.accept"))["sdp"] == "v=0 answer"
        await requests.ask(1024, call_id=call_id, candidate="candidate:1", sdp_mid="0")
        assert (await pushed(commands, "call.ice"))["candidate"] == "candidate:1"
        await commands.ask("call.ice", call_id=call_id, description={"type": "offer", "sdp": "v=0 again"})
        assert (await requests.pushed(2024))["description"]["type"] == "offer"
        with pytest.raises(Refused, match="call_not_ringing"):
            await requests.ask(1022, call_id=call_id)
        await commands.ask("call.end", call_id=call_id)
        ended = await requests.pushed(2025)
        assert (ended["call_id"], ended["reason"]) == (call_id, "ended")
        assert ended["duration_ms"] >= 0
        written = await requests.pushed(2001)
        assert (written["msg_type"], written["content"]["outcome"]) == (120, "completed")
        shown = await commands.pushed("chat.message")
        assert (shown["msg_type"], shown["from_user_id"]) == (120, ann.user_id)
        with pytest.raises(Refused, match="call_not_found"):
            await requests.ask(1025, call_id=call_id)
        await envelope.send(
            {"type": "CALL_INVITE", "to": ann.user_id, "callKind": "video", "sdp": "v=0", "clientMsgId": fresh_id()}
        )
        rung = await pushed(commands, "call.invite")
        await commands.ask("call.reject", call_id=rung["call_id"])
        await envelope.expect("CALL_END", reason="rejected")
        for speaker in (commands, requests):
            await speaker.close()


# what is sent, as the request's number and the command's name with fields; `call` is one that cid takes no part in
REFUSED: tuple[tuple[str, int, str, dict[str, object]], ...] = (
    ("missing_receiver", 1020, "call.invite", {"user": None}),
    ("missing_client_msg_id", 1020, "call.invite", {"client_msg_id": None}),
    ("missing_call_kind", 1020, "call.invite", {"call_kind": None}),
    ("missing_sdp", 1020, "call.invite", {"sdp": None}),
    ("unsupported_call_kind", 1020, "call.invite", {"call_kind": "fax"}),
    ("sdp_too_long", 1020, "call.invite", {"sdp": "x" * 65_001}),
    ("callee_offline", 1020, "call.invite", {"user": "dan"}),
    ("blocked", 1020, "call.invite", {"user": "eve"}),
    ("busy", 1020, "call.invite", {"user": "ann"}),
    ("missing_call_id", 1021, "call.accept", {"sdp": "v=0"}),
    ("missing_sdp", 1021, "call.accept", {"call": True}),
    ("call_not_participant", 1021, "call.accept", {"call": True, "sdp": "v=0"}),
    ("call_not_participant", 1022, "call.reject", {"call": True}),
    ("call_not_participant", 1023, "call.cancel", {"call": True}),
    ("call_not_participant", 1024, "call.ice", {"call": True, "candidate": "c"}),
    ("call_not_participant", 1025, "call.end", {"call": True}),
    ("missing_candidate", 1024, "call.ice", {"call": True}),
    ("call_not_found", 1022, "call.reject", {"call_id": "12345"}),
)


async def test_every_refusal_has_the_same_reason_in_every_dialect(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cid, dan, eve = await here.people("ann", "ben", "cid", "dan", "eve")
        caller, _, _ = await ann.connect(), await ben.connect(), await eve.connect()
        await eve.post("/user/block", user_id=cid.user_id)
        frame = {"type": "CALL_INVITE", "to": ben.user_id, "callKind": "audio", "sdp": "v=0", "clientMsgId": fresh_id()}
        call_id = (await caller.ask(frame, "CALL_INVITE_OK"))["callId"]
        users = {"ann": ann.user_id, "ben": ben.user_id, "dan": dan.user_id, "eve": eve.user_id}
        commands, requests, envelope = (
            await CommandSpeaker.connect(cid),
            await RequestSpeaker.connect(cid),
            await cid.connect(),
        )
        for reason, number, name, given in REFUSED:
            fields = dict(given)
            if name == "call.invite":
                fields = {"call_kind": "audio", "sdp": "v=0", "client_msg_id": fresh_id()} | fields
                user = users.get(str(fields.pop("user", "ben")))
            elif fields.pop("call", False):
                fields["call_id"] = call_id
            to_id, recv_id = ({"to_id": user}, {"recv_id": user}) if name == "call.invite" else ({}, {})
            with pytest.raises(Refused, match=reason):
                await commands.ask(name, **fields, **to_id)
            with pytest.raises(Refused, match=reason):
                await requests.ask(number, **fields, **recv_id)
            shown = {"type": name.upper().replace(".", "_"), **fields, **({"to": user} if to_id else {})}
            for old, new in (("call_id", "callId"), ("call_kind", "callKind"), ("client_msg_id", "clientMsgId")):
                if old in shown:
                    shown[new] = shown.pop(old)
            await envelope.send(shown)
            refused = await envelope.expect("CALL_ERROR")
            assert (refused["reason"], refused.get("callId")) == (reason, shown.get("callId"))
        await caller.send({"type": "CALL_CANCEL", "callId": call_id})
        await caller.expect("CALL_END")
        for speaker in (commands, requests):
            await speaker.close()


async def test_a_call_that_is_not_answered_times_out_in_every_dialect() -> None:
    with ServerProcess(calls__ring_s=1, policy__single_chat="contacts") as strict:
        async with world(strict, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            commands, requests = await CommandSpeaker.connect(ann), await RequestSpeaker.connect(ben)
            made = {"to_id": ben.user_id, "call_kind": "audio", "sdp": "v=0"}
            with pytest.raises(Refused, match="not_contact"):
                await commands.ask("call.invite", **made, client_msg_id=fresh_id())
            await ann.post("/contact/request", user_id=ben.user_id)
            await ben.post("/contact/decide", user_id=ann.user_id, accept=True)
            call_id = (await commands.ask("call.invite", **made, client_msg_id=fresh_id()))["call_id"]
            await requests.pushed(2020)
            assert await pushed(commands, "call.timeout") == {"call_id": call_id}
            assert await requests.pushed(2026) == {"call_id": call_id}
            for speaker in (commands, requests):
                await speaker.close()

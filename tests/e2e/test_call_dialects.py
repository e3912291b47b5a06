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

"""What a server logs at its most talkative: one line per event, and never a secret or what people write."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from harness import processes
from harness.chat import PASSWORD, Refused, fresh_id, meet, world
from harness.server_process import ServerProcess
from harness.waiting import until

BODY = "zxcv-body-of-a-message"
SECRET_WORDS = {
    "body": BODY,
    "extra": "zxcv-extra-of-a-message",
    "nickname": "zxcv-nickname",
    "announcement": "zxcv-announcement",
    "join message": "zxcv-join-message",
    "password": PASSWORD,
    "new password": "zxcv-new-password",
    "wrong password": "zxcv-wrong-password",
}


async def live(server: ServerProcess, secrets: dict[str, str]) -> None:
    """Everything that people do, well and badly."""
    async with meet(server, "ann", "ben", "cid", check_pushes=False) as (ann, ben, cid):
        here = ann.me.world
        await ann.me.put("/user/update", nickname=SECRET_WORDS["nickname"])
        message = await ann.say(ben, BODY, extra={"x": SECRET_WORDS["extra"]})
        await ann.say(ben, {"url": "https://x.example/" + BODY}, msgType=2)
        await ben.acknowledge(await ben.expect("SINGLE_CHAT"), "read")
        await ann.expect("ACK", ackType="read")
        await ann.ask({"type": "MESSAGE_REVOKE", "serverMsgId": message["serverMsgId"]}, "ACK", ackType="revoked")
        group = await ann.me.found_group(ben, cid, name=BODY, introduction=BODY, join_policy="approval")
        await ann.me.put("/group/update", group_id=group, announcement=SECRET_WORDS["announcement"])
        await ann.say(group, BODY, mentions=["@all"])
        dan = await here.person("dan")
        await dan.post("/group/join", group_id=group, message=SECRET_WORDS["join message"])
        await ann.me.post("/group/dismiss", group_id=group)
        await ann.me.send(ben, BODY)
        # refusals of all kinds
        await ann.send(ann.message("nobody-there", BODY))
        await ann.expect_error("user_not_found")
        await ann.send(frame := ann.message(ben, BODY))
        await ann.expect("ACK", clientMsgId=frame["clientMsgId"])
        await ann.send(frame | {"body": BODY + "2"})
        await ann.expect_error("client_msg_id_reused")
        await ann.send_raw(BODY)
        await ann.expect_error("bad_json")
        await ann.send({"type": BODY[:20], "body": BODY})
        await ann.expect_error("unknown_type")
        await ann.send({"type": "SINGLE_CHAT", "clientMsgId": BODY, "to": 5, "body": BODY, "token": secrets["access"]})
        await ann.expect_error("bad_receiver")
        for call in (
            here.call("POST", "/auth/login", json={"user_id": ann.user_id, "password": SECRET_WORDS["wrong password"]}),
            here.call("POST", "/auth/refresh", json={"refresh_token": secrets["access"]}),
            ann.me.post("/msg/send", recv_id=ben.user_id, content=BODY, client_msg_id=fresh_id(), nonsense=BODY),
            ann.me.call("POST", "/msg/send", content=BODY.encode()),
            here.call("GET", "/msg/pull", params={"token": secrets["access"], "conversation_id": BODY}),
        ):
            with pytest.raises(Refused):
                await call
        # signing in and out, in every way
        tokens = await ann.me.log_in(device_id="phone")
        secrets |= {"second access": tokens.access, "second refresh": tokens.refresh}
        by_header = await ann.me.open(headers={"Authorization": f"Bearer {tokens.access}"})
        await by_header.signed_in()
        uri = f"{server.ws_address}?token={tokens.access}&send_id={ann.user_id}&platform_id=5"
        with pytest.raises(InvalidStatus):
            await ann.me.open(uri=uri + "&v=nonsense!")
        bad = await ann.me.open()
        await bad.send({"type": "AUTH", "token": secrets["access"] + "x"})
        await bad.expect("AUTH_FAIL")
        await by_header.ask({"type": "REAUTH", "token": tokens.access}, "AUTH_OK")
        changed = await ann.me.post("/auth/password", old_password=PASSWORD, new_password=SECRET_WORDS["new password"])
        secrets |= {"third access": changed["access_token"], "third refresh": changed["refresh_token"]}
        await by_header.expect_close()
        ann.cut()
        await ben.settle()


async def test_no_token_password_or_message_is_in_the_log_at_debug_level() -> None:
    words = processes.new_dir("words") / "words.txt"
    words.write_text("unlikely\n")
    secrets: dict[str, str] = {}
    with ServerProcess(log_level="debug", filter__file=words, receipts__flush_ms=1) as server:
        async with meet(server, "eve", check_pushes=False) as (eve,):
            secrets |= {"access": eve.me.tokens.access, "refresh": eve.me.tokens.refresh}
        await live(server, secrets)
        secrets["signing secret"] = (server.data / "secret").read_text().strip()
        assert await asyncio.to_thread(server.stop) == 0
        said = server.output
    assert said.count("\n") > 30, "it logs at this level"
    found = [name for name, text in (SECRET_WORDS | secrets).items() if text in said]
    assert found == []
    # nor a part of one: tokens have three parts, and each says enough
    for name, token in secrets.items():
        for part in re.split(r"[.]", token):
            assert len(part) < 20 or part not in said, name
    assert "eyJ" not in said, "a JSON web token begins so"


async def test_every_line_is_one_event_with_its_connection_or_request() -> None:
    with ServerProcess(log_level="debug") as server:
        await live(server, {"access": "x"})
        assert await asyncio.to_thread(server.stop) == 0
        lines = server.output.splitlines()[3:]  # the greeting
    events = [json.loads(line) for line in lines]
    assert all({"event", "level", "timestamp"} <= event.keys() for event in events)
    assert {event["level"] for event in events} <= {"debug", "info", "warning"}
    kinds = {event["event"] for event in events}
    assert {"request", "signed_in", "connection_dropped", "stopping"} <= kinds
    assert all(event["request_id"] for event in events if event["event"] == "request")
    assert all(event["conn"] for event in events if event["event"] in ("signed_in", "connection_dropped"))
    assert not any("Traceback" in line for line in lines)


async def test_the_id_of_a_request_is_the_callers_own_and_in_the_log() -> None:
    with ServerProcess(log_level="debug") as server:
        async with meet(server, "ann", check_pushes=False) as (ann,):
            response = await ann.me.world.http.get("/healthz", headers={"X-Request-Id": "abc-123"})
            assert response.headers["x-request-id"] == "abc-123"
        assert await asyncio.to_thread(server.stop) == 0
        assert '"request_id": "abc-123"' in server.output


async def test_at_debug_level_every_acknowledgement_resend_and_failed_push_says_who_what_and_where() -> None:
    with ServerProcess(log_level="debug", receipts__flush_ms=1) as server:
        async with meet(server, "ann", "ben", check_pushes=False) as (ann, ben):
            saved = await ann.say(ben, BODY)
            message = await ben.expect("SINGLE_CHAT")
            await ben.acknowledge(message, "delivered")
            await ann.expect("ACK", ackType="delivered")
            await ben.send({"type": "ACK", "ackType": "read", "conversationId": message["conversationId"], "msgSeq": 1})
            await ann.expect("ACK", ackType="read")
            await ben.send({"type": "ACK", "ackType": "read", "serverMsgId": "987654321"})
            await ben.expect_error("message_not_found")
            await ben.send({"type": "ACK", "ackType": "read", "conversationId": BODY, "msgSeq": 1})
            await ben.expect_error("ack_not_allowed")
            await ben.close()
            again = await ann.say(ben, BODY)
            back = await ben.me.connect(device_id="phone")
            await back.settle()
        assert await asyncio.to_thread(server.stop) == 0
        events = [json.loads(line) for line in server.output.splitlines()[3:]]
    delivered, read, unknown, nowhere = (event for event in events if event["event"] == "acknowledged")
    who = {
        "server_msg_id": int(saved["serverMsgId"]),
        "conversation_id": saved["conversationId"],
        "sender": ann.user_id,
        "user": ben.user_id,
        "result": "moved",
    }
    assert who.items() <= delivered.items()
    cursors = ("delivered_from", "delivered_to", "read_from", "read_to")
    assert [delivered[name] for name in cursors] == [0, 1, 0, 0]
    assert delivered["ack_type"] == "delivered"
    assert delivered["conn"]
    assert delivered["instance"]
    assert who.items() <= read.items()
    assert [read[name] for name in cursors] == [1, 1, 0, 1]
    assert (unknown["result"], unknown["server_msg_id"]) == ("message_not_found", 987654321)
    assert (nowhere["result"], nowhere["conversation_id"]) == ("ack_not_allowed", None), "what clients write is not"
    (resent,) = (event for event in events if event["event"] == "resent_message")
    assert resent["server_msg_id"] == int(again["serverMsgId"])
    assert (resent["sender"], resent["user"], resent["device"]) == (ann.user_id, ben.user_id, "phone")


async def test_level_and_acknowledgements_are_switched_while_the_server_runs_and_by_sighup() -> None:
    folder = processes.new_dir("log-switch")
    file = folder / "nexo.toml"
    file.write_text("")
    with ServerProcess(receipts__flush_ms=1, options=["--config", str(file)], log_level=None) as server:

        def lines(event: str) -> list[dict[str, Any]]:
            found = [json.loads(line) for line in server.output.splitlines() if line.startswith("{")]
            return [line for line in found if line["event"] == event]

        def command(*words: str) -> None:
            done = server.run("log", *words)
            assert done.returncode == 0, done.stderr

        async with meet(server, "ann", "ben", "cid", check_pushes=False) as (ann, ben, cid):

            async def talk() -> None:
                for reader in (ben, cid):
                    saved = await ann.say(reader, BODY)
                    await reader.acknowledge(
                        await reader.expect("SINGLE_CHAT", serverMsgId=saved["serverMsgId"]), "read"
                    )
                    await ann.expect("ACK", ackType="read", serverMsgId=saved["serverMsgId"])

            await talk()
            assert lines("acknowledged") == []
            command("ack", "--user", ben.user_id)
            await until(lambda: lines("log_settings"), "the control file is followed")
            await talk()
            await until(lambda: lines("acknowledged"), "at level info")
            assert {(line["user"], line["level"]) for line in lines("acknowledged")} == {(ben.user_id, "info")}
            assert lines("request") == []
            command("ack", "off")
            command("level", "debug")
            await until(lambda: lines("log_settings")[-1]["log_level"] == "debug", "the level changes")
            await talk()
            await until(lambda: {line["user"] for line in lines("acknowledged")} == {ben.user_id, cid.user_id}, "all")
            assert lines("acknowledged")[-1]["level"] == "debug"
            command("reset")
            await until(lambda: lines("log_settings")[-1]["log_level"] == "info", "as configured")
            file.write_text('[log]\nlevel = "debug"\n')
            server.signal(signal.SIGHUP)
            await until(lambda: lines("log_settings")[-1]["log_level"] == "debug", "the configuration is read again")
            file.write_text("nonsense = 1")
            server.signal(signal.SIGHUP)
            await until(lambda: lines("configuration_kept_old"), "a wrong one changes nothing")
            assert len({line["conn"] for line in lines("signed_in")}) == 3, "no client was disconnected"


async def test_what_a_client_calls_its_request_is_in_every_line_of_it() -> None:
    with ServerProcess(log_level="debug") as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            query = urlencode({"token": ann.tokens.access, "send_id": ann.user_id, "platform_id": 5})
            async with connect(f"{server.ws_address}?{query}", proxy=None) as socket:
                for number, name, data in (
                    (1003, "op-send", {"client_msg_id": "c-1", "recv_id": ben.user_id, "content": BODY}),
                    (1003, "op-self", {"client_msg_id": "c-2", "recv_id": ann.user_id, "content": BODY}),
                    (1005, "op-pull", {"conversation_id": "sg_g_000000000000", "begin_seq": 1}),
                    (1008, "op-ack", {"conversation_id": "sg_g_000000000000", "seq": 1}),
                ):
                    frame = {"req_identifier": number, "msg_incr": "1", "operation_id": name, "data": data}
                    await socket.send(json.dumps(frame))
                    while json.loads(await socket.recv())["operation_id"] != name:
                        pass
            response = await here.http.post(
                "/auth/password",
                json={"old_password": PASSWORD, "new_password": SECRET_WORDS["new password"]},
                headers={"X-Request-Id": "change-7", "Authorization": f"Bearer {ann.tokens.access}"},
            )
            assert response.status_code == 200
        assert await asyncio.to_thread(server.stop) == 0
        events = [json.loads(line) for line in server.output.splitlines() if line.startswith("{")]
    named = {event["operation_id"]: event for event in events if event.get("operation_id")}
    found = {name: (event["event"], event["result"]) for name, event in named.items()}
    assert found == {
        "op-send": ("send", "saved"),
        "op-self": ("send", "cannot_send_to_self"),
        "op-pull": ("socket_request", "group_not_found"),
        "op-ack": ("acknowledged", "ack_not_allowed"),
    }
    assert all(event["conn"] and event["user"] == ann.user_id for event in named.values())
    (changed,) = (event for event in events if event["event"] == "password_changed")
    assert changed["request_id"] == "change-7"
    others = [event["event"] for event in events if event.get("request_id") == "change-7"]
    assert others == ["password_changed", "request"]

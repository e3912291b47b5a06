"""Every frame of the envelope dialect, in both directions, with its shape to the letter (SPEC §20)."""

from __future__ import annotations

from typing import Any

from harness.chat import fresh_id, meet, world
from harness.replica import Frame
from harness.server_process import ServerProcess

MESSAGE = {
    "type": str,
    "serverMsgId": str,
    "clientMsgId": str,
    "conversationId": str,
    "msgSeq": int,
    "from": str,
    "msgType": int,
    "mentions": list,
    "replyToServerMsgId": (str, type(None)),
    "extra": (dict, list, str, int, type(None)),
    "status": int,
    "ts": int,
}
SYNC_ENTRY = {
    "conversationId": str,
    "headSeq": int,
    "minSeq": int,
    "readSeq": int,
    "deliveredSeq": int,
    "unread": int,
    "deletedRev": int,
}


def assert_shape(frame: Frame, **fields: Any) -> None:
    """Exactly these fields: a type, several types, or the value itself. `from_` stands for `from`."""
    wanted = {"from" if name == "from_" else name: value for name, value in fields.items()}
    if wanted.get("type") in ("ACK", "ERROR", "AUTH_FAIL"):
        wanted.setdefault("ts", int)
    assert frame.keys() == wanted.keys(), frame
    for name, value in wanted.items():
        if isinstance(value, type | tuple):
            assert isinstance(frame[name], value), f"{name} in {frame}"
            assert not (value is int and isinstance(frame[name], bool)), f"{name} in {frame}"
        else:
            assert frame[name] == value, f"{name} in {frame}"


def single(a: Any, b: Any) -> str:
    low, high = sorted((a.user_id, b.user_id))
    return f"si_{low}:{high}"


async def test_auth_is_answered_with_auth_ok_then_sync_then_resend_done(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        await ben.send(ann, "while you were away")
        client = await ann.connect()
        ok, sync, resent, done = client.frames
        assert_shape(ok, type="AUTH_OK", userId=ann.user_id, connId=str, heartbeatMs=30_000)
        assert_shape(sync, type="SYNC", conversations=list, hasMore=False)
        (entry,) = sync["conversations"]
        assert_shape(entry, **SYNC_ENTRY)
        assert entry == {
            "conversationId": single(ann, ben),
            "headSeq": 1,
            "minSeq": 1,
            "readSeq": 0,
            "deliveredSeq": 0,
            "unread": 1,
            "deletedRev": 0,
        }
        assert (resent["type"], resent["resend"]) == ("SINGLE_CHAT", True)
        assert done == {"type": "RESEND_DONE", "hasMore": False}


async def test_a_refused_auth_is_auth_fail_with_its_reason(server: ServerProcess) -> None:
    async with world(server) as here:
        client = await (await here.person("ann")).open()
        await client.send({"type": "AUTH", "token": "nonsense"})
        failed = await client.expect("AUTH_FAIL")
        assert_shape(failed, type="AUTH_FAIL", reason="unauthorized", detail=str)
        assert await client.expect_close() in range(4000, 4500)


async def test_reauth_is_answered_with_auth_ok(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        tokens = await ann.me.log_in()
        ok = await ann.ask({"type": "REAUTH", "token": tokens.access}, "AUTH_OK")
        assert_shape(ok, type="AUTH_OK", userId=ann.user_id, connId=ann.seen("AUTH_OK")[0]["connId"], heartbeatMs=int)


async def test_ping_is_answered_with_pong_also_before_signing_in(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        client = await ann.open()
        assert await client.ask({"type": "PING"}, "PONG") == {"type": "PONG"}
        await client.send({"type": "PONG"})
        await client.sign_in()
        assert await client.ask({"type": "PING"}, "PONG") == {"type": "PONG"}


async def test_a_single_message_is_acknowledged_saved_and_pushed(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        sent = ann.message(ben, "hello", extra={"color": "blue"})
        ack = await ann.ask(sent, "ACK")
        name = single(ann, ben)
        assert_shape(
            ack,
            type="ACK",
            ackType="saved",
            clientMsgId=sent["clientMsgId"],
            serverMsgId=str,
            conversationId=name,
            msgSeq=1,
            ts=int,
        )
        pushed = await ben.expect("SINGLE_CHAT")
        assert_shape(pushed, **MESSAGE | {"to": ben.user_id, "body": "hello", "extra": {"color": "blue"}})
        assert {key: pushed[key] for key in ("serverMsgId", "clientMsgId", "conversationId", "msgSeq", "ts")} == {
            key: ack[key] for key in ("serverMsgId", "clientMsgId", "conversationId", "msgSeq", "ts")
        }
        assert (pushed["from"], pushed["msgType"], pushed["mentions"], pushed["status"]) == (ann.user_id, 1, [], 0)
        assert pushed["serverMsgId"].isdigit()


async def test_the_senders_other_connections_get_the_message_and_the_sending_one_only_its_ack(
    server: ServerProcess,
) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        other = await ann.me.connect()
        ack = await ann.say(ben, "from here")
        copy = await other.expect("SINGLE_CHAT")
        assert (copy["from"], copy["to"], copy["serverMsgId"]) == (ann.user_id, ben.user_id, ack["serverMsgId"])
        await ann.expect_nothing("SINGLE_CHAT")


async def test_every_message_type_keeps_its_body(server: ServerProcess) -> None:
    bodies: list[tuple[int, Any]] = [
        (1, "text ✓ \u0001 \U0001f600"),
        (2, {"url": "https://x.example/a.png", "width": 10, "height": 20}),
        (3, {"url": "https://x.example/a.mp4", "duration_ms": 1500}),
        (4, {"url": "https://x.example/a.ogg", "name": "voice"}),
        (5, {"url": "https://x.example/a.zip", "name": "a.zip", "size": 123456789}),
        (6, {"any": {"thing": [1, 2.5, None, True]}}),
    ]
    async with meet(server, "ann", "ben") as (ann, ben):
        for msg_type, body in bodies:
            await ann.say(ben, body, msgType=msg_type)
            pushed = await ben.expect("SINGLE_CHAT")
            assert (pushed["msgType"], pushed["body"]) == (msg_type, body)


async def test_a_reply_carries_its_quote(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        first = await ann.say(ben, "who comes?")
        await ben.say(ann, "me", msgType=7, replyToServerMsgId=first["serverMsgId"])
        reply = await ann.expect("SINGLE_CHAT")
        assert_shape(reply, **MESSAGE | {"to": ann.user_id, "body": "me", "quote": dict})
        assert reply["replyToServerMsgId"] == first["serverMsgId"]
        assert_shape(reply["quote"], serverMsgId=first["serverMsgId"], from_=ann.user_id, msgType=1, text="who comes?")


async def test_a_group_message_carries_its_group_and_marks_the_mentioned(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        ack = await ann.say(group, "look", mentions=[ben.user_id])
        assert ack["conversationId"] == f"sg_{group}"
        told = await ben.expect("GROUP_CHAT")
        assert_shape(told, **MESSAGE | {"groupId": group, "body": "look", "important": True})
        assert told["mentions"] == [ben.user_id]
        assert_shape(await cid.expect("GROUP_CHAT"), **MESSAGE | {"groupId": group, "body": "look"})


async def test_receipts_name_the_message_its_place_and_who_has_it(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben)
        got = await ben.expect("SINGLE_CHAT")
        for kind in ("delivered", "read"):
            await ben.acknowledge(got, kind)
            assert_shape(
                await ann.expect("ACK", ackType=kind),
                type="ACK",
                ackType=kind,
                conversationId=single(ann, ben),
                serverMsgId=ack["serverMsgId"],
                msgSeq=1,
                from_=ben.user_id,
            )


async def test_a_recall_is_acknowledged_and_told_to_all_in_one_frame(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben, "oops")
        request_id = fresh_id()
        await ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": ack["serverMsgId"], "clientMsgId": request_id})
        assert_shape(
            await ann.expect("ACK", ackType="revoked"),
            type="ACK",
            ackType="revoked",
            serverMsgId=ack["serverMsgId"],
            clientMsgId=request_id,
            conversationId=single(ann, ben),
            msgSeq=2,
        )
        for client in (ann, ben):
            assert_shape(
                await client.expect("MESSAGE_REVOKED"),
                type="MESSAGE_REVOKED",
                serverMsgId=ack["serverMsgId"],
                conversationId=single(ann, ben),
                msgSeq=2,
                from_=ann.user_id,
                ts=int,
            )
            await client.expect_nothing("MESSAGE_REVOKED")
            await client.expect_nothing("GROUP_EVENT")


async def test_group_events_carry_type_body_and_actor(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid, name="walkers")
        for client in (ann, ben, cid):
            event = await client.expect("GROUP_EVENT")
            spoken = ("conversationId", "groupId", "serverMsgId", "msgSeq", "msgType", "body", "from", "ts")
            assert {key: event[key] for key in spoken} == {
                "conversationId": f"sg_{group}",
                "groupId": group,
                "serverMsgId": event["serverMsgId"],
                "msgSeq": 1,
                "msgType": 101,
                "body": {"group_id": group, "name": "walkers", "by": ann.user_id},
                "from": ann.user_id,
                "ts": event["ts"],
            }
            assert isinstance(event["serverMsgId"], str)
            assert isinstance(event["ts"], int)


async def test_pull_is_answered_with_messages_and_where_to_go_on(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        for text in "abcde":
            await ann.say(ben, text)
        name = single(ann, ben)
        page = await ben.ask({"type": "PULL", "conversationId": name, "beginSeq": 2, "limit": 2}, "PULL_OK")
        assert_shape(page, type="PULL_OK", conversationId=name, messages=list, headSeq=5, nextSeq=4, hasMore=True)
        assert [message["body"] for message in page["messages"]] == ["b", "c"]
        assert_shape(page["messages"][0], **MESSAGE | {"to": ben.user_id, "body": "b"})
        rest = await ben.ask({"type": "PULL", "conversationId": name, "beginSeq": "4", "endSeq": "9"}, "PULL_OK")
        assert ([message["msgSeq"] for message in rest["messages"]], rest["nextSeq"], rest["hasMore"]) == (
            [4, 5],
            6,
            False,
        )


async def test_sync_can_be_asked_for_again_as_a_whole_or_for_some(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        await ben.say(ann)
        await cid.say(ann)
        whole = await ann.ask({"type": "SYNC"}, "SYNC")
        assert_shape(whole, type="SYNC", conversations=list, hasMore=False)
        assert [entry["conversationId"] for entry in whole["conversations"]] == [single(ann, cid), single(ann, ben)]
        some = await ann.ask({"type": "SYNC", "conversations": [single(ann, ben), "si_x:y", "nonsense"]}, "SYNC")
        assert [entry["conversationId"] for entry in some["conversations"]] == [single(ann, ben)]
        assert_shape(some["conversations"][0], **SYNC_ENTRY)


async def test_resend_gives_undelivered_messages_marked_so_and_ends_with_resend_done(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben, "one")
        await ben.expect("SINGLE_CHAT")
        await ben.send({"type": "RESEND"})
        again = await ben.expect("SINGLE_CHAT")
        assert_shape(again, **MESSAGE | {"to": ben.user_id, "body": "one", "resend": True})
        assert_shape(await ben.expect("RESEND_DONE"), type="RESEND_DONE", hasMore=False)


async def test_a_resent_recall_is_marked_as_resent_too(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben, "one")
        await ann.ask({"type": "MESSAGE_REVOKE", "serverMsgId": ack["serverMsgId"]}, "ACK", ackType="revoked")
        assert "resend" not in await ben.expect("MESSAGE_REVOKED")
        await ben.send({"type": "RESEND"})
        assert (await ben.expect("MESSAGE_REVOKED"))["resend"] is True


async def test_typing_is_told_to_the_others(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        await ann.say(ben)
        for on in (True, False):
            await ann.send({"type": "TYPING", "to": ben.user_id, "on": on})
            told = await ben.expect("TYPING")
            assert_shape(told, type="TYPING", from_=ann.user_id, conversationId=single(ann, ben), on=on)
        group = await ann.me.found_group(ben, cid)
        await cid.expect("GROUP_EVENT")
        await ann.send({"type": "TYPING", "groupId": group, "on": True})
        for client in (ben, cid):
            told = await client.expect("TYPING")
            assert_shape(told, type="TYPING", from_=ann.user_id, conversationId=f"sg_{group}", on=True)
        await ann.expect_nothing("TYPING")


async def test_presence_is_told_when_subscribed_and_on_change(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        cid = await ann.me.world.person("cid")
        now = await ann.ask({"type": "PRESENCE", "subscribe": [ben.user_id, cid.user_id]}, "PRESENCE")
        assert_shape(now, type="PRESENCE", users=list)
        assert now["users"] == [
            {"userId": ben.user_id, "online": True, "platforms": [5]},
            {"userId": cid.user_id, "online": False, "platforms": []},
        ]
        await cid.connect()
        told = await ann.expect("PRESENCE")
        assert told == {"type": "PRESENCE", "users": [{"userId": cid.user_id, "online": True, "platforms": [5]}]}
        await ben.close()
        told = await ann.expect("PRESENCE")
        assert told["users"] == [{"userId": ben.user_id, "online": False, "platforms": []}]


async def test_an_error_says_its_reason_and_echoes_what_it_answers(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        frame = ann.message("nobody-there", "hello")
        error = await ann.ask(frame, "ERROR")
        assert_shape(error, type="ERROR", reason="user_not_found", detail=str, clientMsgId=frame["clientMsgId"])
        await ann.send({"type": "ACK", "ackType": "read", "serverMsgId": "12345"})
        error = await ann.expect("ERROR")
        assert_shape(error, type="ERROR", reason="message_not_found", detail=str, serverMsgId="12345")
        await ann.send({"type": "MESSAGE_REVOKE", "serverMsgId": 12345, "clientMsgId": "x"})
        error = await ann.expect("ERROR")
        assert_shape(error, type="ERROR", reason="message_not_found", detail=str, serverMsgId="12345", clientMsgId="x")


async def test_a_field_of_the_wrong_type_is_named_and_what_is_there_is_echoed(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        await ann.send({"type": "SINGLE_CHAT", "clientMsgId": "c1", "to": 7, "body": "x"})
        assert_shape(await ann.expect("ERROR"), type="ERROR", reason="bad_receiver", detail=str, clientMsgId="c1")
        await ann.send({"type": "ACK", "ackType": "read", "serverMsgId": 99, "msgSeq": []})
        assert_shape(await ann.expect("ERROR"), type="ERROR", reason="bad_seq", detail=str, serverMsgId="99")


async def test_fields_that_nobody_knows_are_ignored(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.say(ben, "hello", traceId="abc", someday={"maybe": 1}, ts=17, important=True, status=9)
        pushed = await ben.expect("SINGLE_CHAT")
        assert_shape(pushed, **MESSAGE | {"to": ben.user_id, "body": "hello", "status": 0})

"""What is done over HTTP is told on sockets, and what was said on sockets is read over HTTP."""

from __future__ import annotations

import pytest

from harness.chat import Refused, meet, world
from harness.server_process import ServerProcess

CAMEL = {
    "serverMsgId",
    "clientMsgId",
    "conversationId",
    "msgSeq",
    "from",
    "msgType",
    "body",
    "mentions",
    "replyToServerMsgId",
    "extra",
    "status",
    "ts",
}


async def test_a_message_sent_over_http_is_pushed_to_everybody_also_to_its_sender(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        sent = await ann.me.send(ben, "by post", extra={"k": 1})
        assert sent.keys() == {"server_msg_id", "client_msg_id", "conversation_id", "seq", "send_at", "status"}
        for client in (ann, ben):
            got = await client.expect("SINGLE_CHAT")
            assert (got["serverMsgId"], got["body"], got["extra"]) == (sent["server_msg_id"], "by post", {"k": 1})


async def test_a_retry_over_http_is_the_same_message(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        first = await ann.me.send(ben, "by post", client_msg_id="retry-1")
        assert await ann.me.send(ben, "by post", client_msg_id="retry-1") == first
        with pytest.raises(Refused) as refused:
            await ann.me.send(ben, "another", client_msg_id="retry-1")
        assert (refused.value.status, refused.value.name) == (409, "client_msg_id_reused")
        assert refused.value.body["client_msg_id"] == "retry-1"


async def test_a_recall_over_http_is_told_on_sockets(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        message = await ann.say(ben)
        done = await ann.me.post("/msg/recall", server_msg_id=message["serverMsgId"])
        assert done == {"server_msg_id": message["serverMsgId"], "seq": 2}
        for client in (ann, ben):
            await client.expect("MESSAGE_REVOKED", serverMsgId=message["serverMsgId"], msgSeq=2)


async def test_the_routes_of_seed_002_give_the_envelopes_names_newest_first(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid") as (ann, ben, cid):
        group = await ann.me.found_group(ben, cid)
        for i in range(60):
            await ann.me.send(ben, f"s{i}")
            await ann.me.send(group, f"g{i}")
        page = await ben.me.get("/single-chat/message/cursor", peerUserId=ann.user_id)
        assert page.keys() >= {"messages", "headSeq", "hasMore"}
        assert [m["msgSeq"] for m in page["messages"]] == list(range(60, 10, -1))  # fifty when nothing is said
        assert page["messages"][0].keys() == CAMEL | {"to"}
        assert (page["hasMore"], page["headSeq"]) == (True, 60)
        page = await ben.me.get("/single-chat/message/cursor", peerUserId=ann.user_id, lastSeq=11, limit=200)
        assert [m["msgSeq"] for m in page["messages"]] == list(range(10, 0, -1))
        assert page["hasMore"] is False
        page = await ben.me.get("/group/message/cursor", groupId=group, lastSeq=4)
        assert [(m["msgSeq"], m["msgType"]) for m in page["messages"]] == [(3, 1), (2, 1), (1, 101)]
        assert page["messages"][0].keys() == CAMEL | {"groupId"}
        page = await ben.me.get("/group/message/since", groupId=group, sinceSeq=58)
        assert [m["body"] for m in page["messages"]] == ["g57", "g58", "g59"]
        page = await ben.me.get("/group/message/since", groupId=group)
        assert [m["msgSeq"] for m in page["messages"]] == list(range(1, 51))


async def test_the_routes_of_seed_002_show_only_what_one_may_see(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben", "cid", "dan") as (ann, ben, cid, dan):
        group = await ann.me.found_group(ben, cid)
        await ann.say(group, "private")
        for path in ("/group/message/cursor", "/group/message/since"):
            with pytest.raises(Refused, match="not_group_member"):
                await dan.me.get(path, groupId=group)
            with pytest.raises(Refused, match="group_not_found"):
                await dan.me.get(path, groupId="g_000000000000")
        page = await dan.me.get("/single-chat/message/cursor", peerUserId=ann.user_id)
        assert page["messages"] == []


async def test_what_is_told_is_what_is_in_the_database(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        ack = await ann.say(ben, "kept", extra={"k": [1]})
        found = server.select(
            "SELECT m.server_msg_id,m.seq,m.sender_id,m.client_msg_id,m.msg_type,m.content,m.extra,m.status,m.send_at "
            f"FROM messages m JOIN conversations c ON c.id=m.conv WHERE c.conversation_id='{ack['conversationId']}'"
        )
        assert found == [
            (int(ack["serverMsgId"]), 1, ann.user_id, ack["clientMsgId"], 1, '"kept"', '{"k":[1]}', 0, ack["ts"])
        ]


async def test_online_is_who_is_connected(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        await ben.connect()
        found = await ann.get("/user/online", user_ids=f"{ann.user_id},{ben.user_id},nobody-there")
        for one in found["users"][:2]:
            assert one.pop("last_seen_at") > 0
        assert found["users"] == [
            {"user_id": ann.user_id, "online": False, "platforms": []},
            {"user_id": ben.user_id, "online": True, "platforms": [5]},
            {"user_id": "nobody-there", "online": False, "platforms": []},
        ]


async def test_http_goes_on_while_sockets_are_open(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        for path in ("/", "/docs", "/openapi.json", "/metrics", "/healthz"):
            assert (await ann.me.world.http.get(path)).status_code == 200
        connections = (await ann.me.world.http.get("/metrics")).text
        assert "nexo_connections" in connections

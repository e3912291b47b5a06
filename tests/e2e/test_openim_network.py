"""OpenIM's SDKs when the network breaks, and with two instances of the server."""

from __future__ import annotations

import pytest

from harness.chat import world
from harness.cluster import cluster
from harness.openim import chat_of, host, openim_client, people
from harness.proxy import proxy_to
from harness.server_process import ServerProcess
from harness.waiting import until

KINDS = ("js", "go")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_catches_up_after_its_network_was_gone(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here, proxy_to(f"tcp://127.0.0.1:{server.port}") as proxy:
        ann, ben = await people(here, "ann", "ben")
        chat = chat_of(ann.user_id, ben.user_id)
        address = proxy.url.partition("://")[2]
        async with openim_client(kind, address, ann.user_id, ann.tokens.access) as client:
            await ben.send(ann, "before")
            await client.message("before")
            proxy.refuse()
            proxy.cut()
            for number in range(3):
                await ben.send(ann, f"missed {number}")
            proxy.flow()
            expected = ["before", *(f"missed {number}" for number in range(3))]
            await until(lambda: client.history_is(chat, expected))
            assert await client.unread(chat) == 4
            await client.call("sendText", {"text": "back again", "recvID": ben.user_id})


async def test_users_of_two_instances_are_one_chat() -> None:
    with cluster("postgresql", 2) as two:
        async with world(two, check_pushes=False) as here:
            ann, ben = await people(here, "ann", "ben")
            chat = chat_of(ann.user_id, ben.user_id)
            talker = await ben.connect(uri=two[1].ws_address)
            async with openim_client("js", host(two[0]), ann.user_id, ann.tokens.access) as client:
                sent = await client.call("sendText", {"text": "over there", "recvID": ben.user_id})
                await talker.expect("SINGLE_CHAT", body="over there")
                reply = await talker.say(ann, "and back")
                assert (await client.message("and back"))["seq"] == 2
                await talker.me.post("/conversation/read", conversation_id=reply["conversationId"], seq=2)
                (receipt,) = await client.event("OnRecvC2CReadReceipt")
                assert sent["clientMsgID"] in receipt["msgIDList"]
                await talker.me.post("/msg/recall", server_msg_id=reply["serverMsgId"])
                await client.event("OnNewRecvMessageRevoked", lambda data: data["revokerID"] == ben.user_id)
                group = await ben.found_group(ann)
                await client.event("OnJoinedGroupAdded", lambda data: data["groupID"] == group)
                await ben.send(group, "in the group")
                await client.message("in the group")
                second = await ann.log_in(platform_id=7, device_id="desk")
                async with openim_client("go", host(two[1]), ann.user_id, second.access) as desk:
                    assert (await desk.history(chat))[0] == "over there"
                    await client.call("sendText", {"text": "to both", "recvID": ben.user_id})
                    await desk.message("to both")

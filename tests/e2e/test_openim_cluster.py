"""OpenIM's SDKs with two instances of the server: a user of one, and a Nexo user of the other."""

from __future__ import annotations

from harness.chat import world
from harness.cluster import cluster
from harness.openim import chat_of, host, openim_client, people


async def test_users_of_two_instances_are_one_chat() -> None:
    with cluster("postgresql", 2) as two:
        async with world(two, check_pushes=False) as here:
            ann, ben, cid = await people(here, "ann", "ben", "cid")
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
                group = await ben.found_group(ann, cid)
                await client.event("OnJoinedGroupAdded", lambda data: data["groupID"] == group)
                await ben.send(group, "in the group")
                await client.message("in the group")
                second = await ann.log_in(platform_id=7, device_id="desk")
                async with openim_client("go", host(two[1]), ann.user_id, second.access) as desk:
                    assert (await desk.history(chat))[0] == "over there"
                    await client.call("sendText", {"text": "to both", "recvID": ben.user_id})
                    await desk.message("to both")

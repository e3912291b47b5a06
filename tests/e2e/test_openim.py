"""OpenIM's own SDKs against a real server: with each other, and with users of the envelope dialect."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from harness.chat import world
from harness.openim import OpenimRefusal, chat_of, host, openim_client, people
from harness.server_process import ServerProcess
from harness.waiting import until

KINDS = ("js", "go")


@pytest.mark.parametrize("kind", KINDS)
async def test_two_users_of_an_sdk_chat_read_recall_and_meet_in_a_group(server: ServerProcess, kind: str) -> None:
    async with world(server) as here:
        ann, ben = await people(here, "ann", "ben")
        async with (
            openim_client(kind, host(server), ann.user_id, ann.tokens.access) as first,
            openim_client(kind, host(server), ben.user_id, ben.tokens.access) as second,
        ):
            chat = chat_of(ann.user_id, ben.user_id)
            sent = await first.call("sendText", {"text": "hello", "recvID": ben.user_id})
            received = await second.message("hello")
            assert received["clientMsgID"] == sent["clientMsgID"]
            await second.call("sendText", {"text": "hi back", "recvID": ann.user_id})
            await first.message("hi back")
            assert await second.unread(chat) == 1
            await second.call("markConversationMessageAsRead", chat)
            (receipt,) = await first.event("OnRecvC2CReadReceipt")
            assert sent["clientMsgID"] in receipt["msgIDList"]
            await until(lambda: second.history_is(chat, ["hello", "hi back"]))  # the own one comes after its answer
            await first.call("revokeMessage", {"conversationID": chat, "clientMsgID": sent["clientMsgID"]})
            recalled = await second.event("OnNewRecvMessageRevoked")
            assert (recalled["clientMsgID"], recalled["revokerID"]) == (sent["clientMsgID"], ann.user_id)
            await first.call("changeInputStates", {"conversationID": chat, "focus": True})
            typing = await second.event("OnConversationUserInputStatusChanged")
            assert (typing["userID"], typing["conversationID"]) == (ann.user_id, chat)
            info = {"groupName": "pair", "groupType": 2}
            asked = {"memberUserIDs": [ben.user_id], "adminUserIDs": [], "ownerUserID": ann.user_id, "groupInfo": info}
            group = (await first.call("createGroup", asked))["groupID"]
            await second.event("OnJoinedGroupAdded", lambda data: data["groupID"] == group)
            await first.call("sendText", {"text": "to the group", "groupID": group})
            assert (await second.message("to the group"))["seq"] == 1
            assert await second.unread(f"sg_{group}") == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_an_sdk_and_the_envelope_dialect_are_one_chat(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = [await person.connect() for person in await people(here, "ann", "ben")]
        me, peer = ben.me, ann.me.user_id
        chat = chat_of(peer, me.user_id)
        for number in range(3):
            await ann.say(ben, f"missed {number}")
        async with openim_client(kind, host(server), me.user_id, me.tokens.access) as client:
            assert await client.history(chat) == ["missed 0", "missed 1", "missed 2"]
            assert await client.unread(chat) == 3
            await client.call("sendText", {"text": "from an SDK", "recvID": peer})
            got = await ann.expect("SINGLE_CHAT", body="from an SDK")
            reply = await ann.say(ben, "a reply", msgType=7, replyToServerMsgId=got["serverMsgId"])
            shown = await client.message("a reply")
            assert shown["quoteElem"]["quoteMessage"]["textElem"]["content"] == "from an SDK"
            place = {"description": "here", "longitude": 1.5, "latitude": 2.5}
            created = {"create": "createLocationMessage", "argument": place, "recvID": peer}
            await client.call("sendCreated", created)
            await ann.expect("SINGLE_CHAT", body="[Location] here")
            await ann.me.post("/msg/recall", server_msg_id=reply["serverMsgId"])
            await client.event("OnNewRecvMessageRevoked", lambda data: data["revokerID"] == peer)
            await client.call("markConversationMessageAsRead", chat)
            await ann.expect("ACK", ackType="read")
            assert (await me.get("/conversation/list"))["conversations"][0]["unread"] == 0


async def test_friends_blacklist_and_administration_of_a_group(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await people(here, "ann", "ben")
        async with (
            openim_client("js", host(server), ann.user_id, ann.tokens.access) as first,
            openim_client("go", host(server), ben.user_id, ben.tokens.access) as second,
        ):
            await first.call("addFriend", {"toUserID": ben.user_id, "reqMsg": "hey"})
            await second.event("OnFriendApplicationAdded", lambda data: data["reqMsg"] == "hey")
            await second.call("acceptFriendApplication", {"toUserID": ann.user_id, "handleMsg": ""})
            await first.event("OnFriendAdded", lambda data: data["userID"] == ben.user_id)
            await second.event("OnFriendAdded", lambda data: data["userID"] == ann.user_id)
            await first.call("addBlack", {"toUserID": ben.user_id, "ex": ""})
            with pytest.raises(OpenimRefusal) as refused:
                await second.call("sendText", {"text": "blocked", "recvID": ann.user_id})
            assert refused.value.code == 1302
            await first.call("removeBlack", ben.user_id)
            asked = {"memberUserIDs": [ben.user_id], "groupInfo": {"groupName": "two", "groupType": 2}}
            group = (await first.call("createGroup", asked))["groupID"]
            await second.event("OnJoinedGroupAdded", lambda data: data["groupID"] == group)
            await first.call("changeGroupMemberMute", {"groupID": group, "userID": ben.user_id, "mutedSeconds": 60})
            with pytest.raises(OpenimRefusal) as muted:
                await second.call("sendText", {"text": "muted", "groupID": group})
            assert muted.value.code == 1402
            await first.call("dismissGroup", group)
            await second.event("OnJoinedGroupDeleted", lambda data: data["groupID"] == group)


async def test_uploads_become_files_that_receivers_can_read(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = [await person.connect() for person in await people(here, "ann", "ben")]
        me = ann.me
        async with openim_client("js", host(server), me.user_id, me.tokens.access) as client:
            url = (await client.call("uploadText", {"name": "note.txt", "text": "some bytes"}))["url"]
            file = {"filePath": "", "fileName": "note.txt", "uuid": "u", "sourceUrl": url, "fileSize": 10}
            created = {"create": "createFileMessageByURL", "argument": file, "recvID": ben.me.user_id}
            await client.call("sendCreated", created)
            got = await ben.expect("SINGLE_CHAT", msgType=5)
            assert got["body"]["name"] == "note.txt"
            async with httpx.AsyncClient() as http:
                assert (await http.get(server.address + got["body"]["url"])).content == b"some bytes"


async def post(server: ServerProcess, path: str, body: dict[str, Any], token: str = "") -> dict[str, Any]:
    async with httpx.AsyncClient() as http:
        answer = await http.post(f"{server.address}/openim{path}", json=body, headers={"token": token} if token else {})
    assert answer.status_code == 200
    found: dict[str, Any] = json.loads(answer.content)
    return found


async def test_a_backend_gets_tokens_for_its_users_and_nobody_else_does(server: ServerProcess) -> None:
    key = server.run("key", "add", "openim", "--scope", "tokens,users").stdout.split()[0]
    registered = await post(server, "/user/user_register", {"users": [{"userID": "oim1", "nickname": "One"}]}, key)
    assert registered["errCode"] == 0
    issued = await post(server, "/auth/get_user_token", {"userID": "oim1", "platformID": 5}, key)
    token = issued["data"]["token"]
    shown = await post(server, "/user/get_users_info", {"userIDs": ["oim1"]}, token)
    assert shown["data"]["usersInfo"][0]["nickname"] == "One"
    assert (await post(server, "/auth/get_user_token", {"userID": "oim1"}))["errCode"] == 1503
    assert (await post(server, "/auth/get_user_token", {"userID": "oim1"}, token))["errCode"] == 1503
    assert (await post(server, "/user/get_users_info", {"userIDs": []}, "wrong"))["errCode"] == 1503
    assert (await post(server, "/friend/get_friend_list", {"userID": "another"}, token))["errCode"] == 1002
    assert (await post(server, "/auth/get_admin_token", {"secret": "guess", "userID": "x"}))["errCode"] == 1002

"""What users of OpenIM's SDKs and of the envelope dialect see of each other: friends, groups, settings, deletions,
files, presence, several devices."""

from __future__ import annotations

import json

import httpx
import pytest

from harness.chat import Refused, world
from harness.openim import OpenimRefusal, chat_of, host, openim_client, people
from harness.server_process import ServerProcess
from harness.waiting import until

KINDS = ("js", "go")
NOTE = b"some bytes of a note"


@pytest.mark.parametrize("kind", KINDS)
async def test_friends_and_blacklist(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cid = await people(here, "ann", "ben", "cid")
        talker = await ben.connect()
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as client:
            await client.call("addFriend", {"toUserID": ben.user_id, "reqMsg": "hey"})
            await talker.expect("FRIEND_REQUEST", **{"from": ann.user_id, "body": "hey"})
            await ben.post("/contact/decide", user_id=ann.user_id, accept=True)
            await client.event("OnFriendAdded", lambda data: data["userID"] == ben.user_id)
            await cid.post("/contact/request", user_id=ann.user_id, message="me too")
            await client.event("OnFriendApplicationAdded", lambda data: data["fromUserID"] == cid.user_id)
            await client.call("refuseFriendApplication", {"toUserID": cid.user_id, "handleMsg": "no"})
            assert (await cid.get("/contact/list"))["contacts"] == []
            await client.call("addBlack", {"toUserID": ben.user_id, "ex": ""})
            with pytest.raises(Refused) as refused:
                await ben.send(ann, "blocked")
            assert refused.value.name == "blocked"
            assert [one["userID"] for one in await client.call("getBlackList")] == [ben.user_id]
            await client.call("removeBlack", ben.user_id)
            await ben.post("/user/block", user_id=ann.user_id)
            with pytest.raises(OpenimRefusal) as barred:
                await client.call("sendText", {"text": "blocked too", "recvID": ben.user_id})
            assert barred.value.code == 1302
            await ben.post("/user/unblock", user_id=ann.user_id)
            await client.call("deleteFriend", ben.user_id)
            await client.event("OnFriendDeleted", lambda data: data["userID"] == ben.user_id)
            assert (await ben.get("/contact/list"))["contacts"] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_group_of_both(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cid = await people(here, "ann", "ben", "cid")
        talker = await ben.connect()
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as client:
            asked = {"memberUserIDs": [ben.user_id], "groupInfo": {"groupName": "of both", "groupType": 2}}
            group = (await client.call("createGroup", asked))["groupID"]
            await talker.expect("GROUP_EVENT", groupId=group)
            await ben.send(group, "from a Nexo user")
            assert (await client.message("from a Nexo user"))["groupID"] == group
            assert await client.unread(f"sg_{group}") == 1
            await client.call("markConversationMessageAsRead", f"sg_{group}")
            assert await client.unread(f"sg_{group}") == 0
            sent = await client.call("sendText", {"text": "from an SDK", "groupID": group})
            await talker.expect("GROUP_CHAT", body="from an SDK")
            await ben.post("/conversation/read", conversation_id=f"sg_{group}", seq=99)
            read = await ben.get("/msg/receipts", server_msg_id=sent["serverMsgID"])
            assert read["read"] == [ben.user_id]
            await client.call("inviteUserToGroup", {"groupID": group, "userIDList": [cid.user_id], "reason": ""})
            assert group in [one["group_id"] for one in (await cid.get("/group/list"))["groups"]]
            await client.call("kickGroupMember", {"groupID": group, "userIDList": [cid.user_id], "reason": ""})
            assert (await cid.get("/group/list"))["groups"] == []
            await client.call("changeGroupMemberMute", {"groupID": group, "userID": ben.user_id, "mutedSeconds": 60})
            with pytest.raises(Refused) as muted:
                await ben.send(group, "muted")
            assert muted.value.name == "speak_muted"
            await client.call("changeGroupMemberMute", {"groupID": group, "userID": ben.user_id, "mutedSeconds": 0})
            await client.call("changeGroupMute", {"groupID": group, "isMute": True})
            with pytest.raises(Refused):
                await ben.send(group, "all are muted")
            await client.call("changeGroupMute", {"groupID": group, "isMute": False})
            await ben.post("/group/quit", group_id=group)
            await client.event("OnGroupMemberDeleted", lambda data: data["userID"] == ben.user_id)
            await client.call("dismissGroup", group)
            assert (await ann.get("/group/list"))["groups"] == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_group_that_a_nexo_user_runs(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cid = await people(here, "ann", "ben", "cid")
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as client:
            group = await ben.found_group(ann, cid, name="run by Nexo")
            await client.event("OnJoinedGroupAdded", lambda data: data["groupID"] == group)
            listed = await client.call("getGroupMemberList", {"groupID": group, "filter": 0, "offset": 0, "count": 50})
            assert {one["userID"] for one in listed} == {ann.user_id, ben.user_id, cid.user_id}
            await ben.post("/group/mute", group_id=group, user_id=ann.user_id, duration_s=60)
            await client.event("OnGroupMemberInfoChanged", lambda data: data["userID"] == ann.user_id)
            with pytest.raises(OpenimRefusal) as muted:
                await client.call("sendText", {"text": "muted", "groupID": group})
            assert muted.value.code == 1402
            await ben.post("/group/mute", group_id=group, user_id=ann.user_id, duration_s=0)
            await ben.put("/group/update", group_id=group, name="another name")
            await client.event("OnGroupInfoChanged", lambda data: data["groupName"] == "another name")
            await ben.post("/group/remove_member", group_id=group, user_id=cid.user_id)
            await client.event("OnGroupMemberDeleted", lambda data: data["userID"] == cid.user_id)
            await client.call("quitGroup", group)
            members = (await ben.get("/group/members", group_id=group))["members"]
            assert [member["user_id"] for member in members] == [ben.user_id]
            await ben.post("/group/invite", group_id=group, user_ids=[ann.user_id])
            await ben.send(group, "welcome back")
            await client.message("welcome back")
            await ben.post("/group/dismiss", group_id=group)
            await client.event("OnGroupDismissed", lambda data: data["groupID"] == group)


@pytest.mark.parametrize("kind", KINDS)
async def test_settings_deletion_presence_and_typing(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await people(here, "ann", "ben")
        talker = await ben.connect()
        chat, own_name = chat_of(ann.user_id, ben.user_id), f"si_{min(ann.user_id, ben.user_id)}:"
        own_name += max(ann.user_id, ben.user_id)
        kept, gone = [await ben.send(ann, text) for text in ("stays", "goes")]
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as client:
            assert await client.history(chat) == ["stays", "goes"]
            await client.call("setConversation", {"conversationID": chat, "isPinned": True, "recvMsgOpt": 2})
            (entry,) = (await ann.get("/conversation/list"))["conversations"]
            assert (entry["pinned"], entry["recv_msg_opt"]) == (True, 2)
            client.forget()
            await ann.put("/conversation/update", conversation_id=own_name, pinned=False)
            await client.event(
                "OnConversationChanged",
                lambda data: any(one["conversationID"] == chat and not one["isPinned"] for one in data),
            )
            shown = await client.message_by_text(chat, "goes")
            await client.call("deleteMessage", {"conversationID": chat, "clientMsgID": shown["clientMsgID"]})
            pulled = await ann.get("/msg/pull", conversation_id=own_name, begin_seq=1)
            assert [one["server_msg_id"] for one in pulled["messages"]] == [kept["server_msg_id"]]
            both = (await ben.get("/msg/pull", conversation_id=own_name, begin_seq=1))["messages"]
            assert gone["server_msg_id"] in [one["server_msg_id"] for one in both]
            await ann.post("/msg/delete", server_msg_ids=[kept["server_msg_id"]])
            if kind == "go":  # the other one keeps what it has shown until it is started again
                await until(lambda: client.history_is(chat, []))
            await client.call("subscribeUsersStatus", [ben.user_id])
            await talker.close()
            await client.event(
                "OnUserStatusChanged", lambda data: data["userID"] == ben.user_id and not data["platformIDs"]
            )
            talker = await ben.connect()
            await client.event(
                "OnUserStatusChanged", lambda data: data["userID"] == ben.user_id and data["platformIDs"]
            )
            await talker.send({"type": "PRESENCE", "subscribe": [ann.user_id]})
            assert (await talker.expect("PRESENCE"))["users"][0]["online"] is True
            await talker.send({"type": "TYPING", "to": ann.user_id, "on": True})
            await client.event("OnConversationUserInputStatusChanged", lambda data: data["userID"] == ben.user_id)
            await client.call("changeInputStates", {"conversationID": chat, "focus": True})
            await talker.expect("TYPING")
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as anew:
            assert await anew.history(chat) == []


@pytest.mark.parametrize("kind", KINDS)
async def test_files_both_ways(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await people(here, "ann", "ben")
        talker = await ben.connect()
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as client:
            await client.send_file("note.txt", NOTE, ben.user_id)
            got = await talker.expect("SINGLE_CHAT", msgType=5)
            headers = {"Authorization": f"Bearer {ben.tokens.access}"}
            stored = await here.call("POST", "/files?name=back.txt", content=NOTE, headers=headers)
            await ben.send(ann, {"file_id": stored["file_id"]}, msg_type=5)
            received = await client.event(
                "OnRecvNewMessages", lambda data: any(one["contentType"] == 105 for one in data)
            )
            file = next(one["fileElem"] for one in received if one["contentType"] == 105)
            assert file["fileName"] == "back.txt"
            async with httpx.AsyncClient() as http:
                assert (await http.get(server.address + got["body"]["url"])).content == NOTE
                assert (await http.get(file["sourceUrl"])).content == NOTE


async def test_several_devices_of_one_user(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await people(here, "ann", "ben")
        chat = chat_of(ann.user_id, ben.user_id)
        second = await ann.log_in(platform_id=7, device_id="desk")
        async with (
            openim_client("js", host(server), ann.user_id, ann.tokens.access) as web,
            openim_client("go", host(server), ann.user_id, second.access) as desk,
        ):
            await ben.send(ann, "to all devices")
            for device in (web, desk):
                await device.message("to all devices")
            sent = await web.call("sendText", {"text": "from the web", "recvID": ben.user_id})
            await desk.message("from the web")
            await desk.call("markConversationMessageAsRead", chat)
            assert (await ann.get("/conversation/list"))["conversations"][0]["unread"] == 0
            await desk.call("revokeMessage", {"conversationID": chat, "clientMsgID": sent["clientMsgID"]})
            await web.event("OnNewRecvMessageRevoked", lambda data: data["clientMsgID"] == sent["clientMsgID"])
            third = await ann.log_in(platform_id=5, device_id="new")
            async with openim_client("js", host(server), ann.user_id, third.access) as new:
                assert (await new.history(chat))[0] == "to all devices"
            await ann.call("POST", "/session/revoke", json={"others": True})
            await desk.event("OnKickedOffline")
            await web.call("sendText", {"text": "still here", "recvID": ben.user_id})


@pytest.mark.parametrize("kind", KINDS)
async def test_a_bad_token_and_a_signed_out_session(server: ServerProcess, kind: str) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await people(here, "ann")
        with pytest.raises((OpenimRefusal, TimeoutError)):
            async with openim_client(kind, host(server), ann.user_id, "wrong", patience_s=5.0) as _:
                pass
        other = await ann.log_in(platform_id=1, device_id="other")
        async with openim_client(kind, host(server), ann.user_id, ann.tokens.access) as client:
            await ann.call("POST", "/session/revoke", json={"others": True}, tokens=other)
            await client.event("OnKickedOffline")


async def test_the_go_core_comes_back_with_its_database(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await people(here, "ann", "ben")
        chat = chat_of(ann.user_id, ben.user_id)
        await ben.send(ann, "before")
        async with openim_client("go", host(server), ann.user_id, ann.tokens.access) as first:
            assert await first.history(chat) == ["before"]
            folder = first.data
        await ben.send(ann, "while away")
        async with openim_client("go", host(server), ann.user_id, ann.tokens.access, folder) as again:
            assert await again.history(chat) == ["before", "while away"]
            assert await again.unread(chat) == 2


async def test_bodies_that_no_client_sends_are_refused(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await people(here, "ann")
        headers = {"token": ann.tokens.access}
        for path in ("/user/get_users_info", "/msg/delete_msgs", "/group/create_group", "/friend/add_friend"):
            for body in (
                b"[]",
                b"{",
                b"7",
                b"\xff",
                b"[" * 5000,
                b'{"userIDs":7,"seqs":"x","groupInfo":{"groupName":[]}}',
            ):
                answer = await here.http.post(f"{server.address}/openim{path}", content=body, headers=headers)
                assert answer.status_code == 200
                assert json.loads(answer.content)["errCode"] in (1001, 1004, 1101), (path, body, answer.content)

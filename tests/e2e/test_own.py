"""What a user does for themselves reaches their other devices, in every dialect; expiry over real connections."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.chat import Client, Person, assert_push_equals_pull, world
from harness.dialects import CommandSpeaker, Deleted, EnvelopeSpeaker, RequestSpeaker, Speaker
from harness.server_process import ServerProcess
from harness.waiting import until


async def devices(person: Person, *names: str) -> list[Client]:
    return [await person.connect(device_id=name) for name in names]


def chat_of(ann: Person, ben: Person) -> str:
    low, high = sorted((ann.user_id, ben.user_id))
    return f"si_{low}:{high}"


async def test_deleting_on_one_device_deletes_on_the_others_and_nowhere_else(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        phone, desk = await devices(ann, "phone", "desk")
        (theirs,) = await devices(ben, "tab")
        name = chat_of(ann, ben)
        sent = [await theirs.say(ann, f"{n}") for n in range(4)]
        for client in (phone, desk):
            for n in range(4):
                await client.expect("SINGLE_CHAT", body=f"{n}")
        await ann.post("/msg/delete", server_msg_ids=[sent[1]["serverMsgId"], sent[2]["serverMsgId"]])
        for client in (phone, desk):
            told = await client.expect("DELETED")
            assert told["conversationId"] == name
            assert set(told["serverMsgIds"]) == {sent[1]["serverMsgId"], sent[2]["serverMsgId"]}
            assert told["deletedRev"] == 2
        await theirs.say(ann, "about that", replyToServerMsgId=sent[1]["serverMsgId"])
        for client in (phone, desk):
            assert "quote" not in await client.expect("SINGLE_CHAT", body="about that")
        (other,) = await devices(ben, "other")
        await theirs.say(ann, "and this", replyToServerMsgId=sent[0]["serverMsgId"])
        for client in (phone, other):
            assert (await client.expect("SINGLE_CHAT", body="and this"))["quote"]["text"] == "0"
        synced = await phone.ask({"type": "SYNC", "conversations": [name]}, "SYNC")
        assert [(entry["deletedRev"], entry["unread"]) for entry in synced["conversations"]] == [(2, 4)]
        again = await ann.connect(device_id="new")
        resent = [frame["body"] for frame in again.seen("SINGLE_CHAT")]
        assert resent == ["0", "3", "about that", "and this"]
        await phone.settle()
        await ann.post("/conversation/clear", conversation_id=name)
        for client in (phone, desk, again):
            told = await client.expect("DELETED", upToSeq=6)
            assert told["deletedRev"] == 3
        await theirs.say(ann, "afterwards", replyToServerMsgId=sent[3]["serverMsgId"])
        got = await desk.expect("SINGLE_CHAT", body="afterwards")
        assert "quote" not in got
        await theirs.expect_nothing("DELETED")
        assert [m["content"] for m in (await ben.get("/msg/pull", conversation_id=name, begin_seq=1))["messages"]] == [
            "0", "1", "2", "3", "about that", "and this", "afterwards",
        ]  # fmt: skip
        # signed in again, a device has what the others have, without what it received before
        late = await ann.connect(device_id="late")
        assert [frame["body"] for frame in late.seen("SINGLE_CHAT")] == ["afterwards"]
        for client in (phone, desk, theirs):
            await assert_push_equals_pull(client)


async def test_each_dialect_is_told_of_deletions(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        one, two = await CommandSpeaker.connect(ann), await CommandSpeaker.connect(ann)
        three, four = await RequestSpeaker.connect(ann), await EnvelopeSpeaker.connect(ann)
        sent = await ben.send(ann, "hello")
        assert await one.ask("chat.delete_for_me", msg_ids=[sent["server_msg_id"]]) == {}
        for speaker in (two, three, four):
            told = await speaker.expect(Deleted)
            assert told == Deleted(ben.user_id, (sent["server_msg_id"],), None, 1)
        assert await one.ask("chat.delete_for_me", msg_ids=[sent["server_msg_id"]]) == {}
        await ann.post("/conversation/clear", conversation_id=sent["conversation_id"])
        for speaker in (one, two, three, four):  # the first got no event of what it had asked for itself
            assert await speaker.expect(Deleted) == Deleted(ben.user_id, (), 1, 2)


async def frame_of(speaker: Speaker, where: Any = lambda data: True, **fields: Any) -> Any:
    def look() -> Any:
        for frame in speaker.frames:
            if all(frame.get(name) == value for name, value in fields.items()) and where(frame.get("data", frame)):
                return frame
        return None

    return await speaker._wait(look, f"a frame with {fields}")


async def test_settings_follow_the_user_over_their_devices(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        (phone,) = await devices(ann, "phone")
        command, request = await CommandSpeaker.connect(ann), await RequestSpeaker.connect(ann)
        sent = await ben.send(ann, "hello")
        name = sent["conversation_id"]
        await ann.put("/conversation/update", conversation_id=name, archived=True, draft={"text": "dear"})
        (entry,) = (await phone.expect("SYNC", where=lambda f: f["conversations"] != []))["conversations"]
        assert (entry["conversationId"], entry["archived"], entry["draft"]) == (name, True, {"text": "dear"})
        told = await frame_of(command, cmd="chat.heads")
        assert told["data"]["conversations"][0]["draft"] == {"text": "dear"}
        told = await frame_of(request, req_identifier=2013)
        assert told["data"]["conversations"][0]["archived"] is True
        await ann.put("/conversation/update", conversation_id=name, archived=False, draft=None)
        (entry,) = (await phone.expect("SYNC"))["conversations"]
        assert "archived" not in entry
        assert "draft" not in entry


async def test_a_silent_conversation_is_pushed_silently_until_its_time(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        (phone,), (theirs,) = await devices(ann, "phone"), await devices(ben, "tab")
        saved = await theirs.say(ann, "loud")
        assert "silent" not in await phone.expect("SINGLE_CHAT", body="loud")
        name = saved["conversationId"]
        await ann.put("/conversation/update", conversation_id=name, silent_until=saved["ts"] + 600_000)
        await theirs.say(ann, "shh")
        assert (await phone.expect("SINGLE_CHAT", body="shh"))["silent"] is True
        await ann.put("/conversation/update", conversation_id=name, silent_until=0)
        await theirs.say(ann, "loud again")
        assert "silent" not in await phone.expect("SINGLE_CHAT", body="loud again")


async def test_a_message_expires_for_everyone_at_its_time_in_every_dialect(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        (phone,) = await devices(ann, "phone")
        command, request = await CommandSpeaker.connect(ben), await RequestSpeaker.connect(ben)
        saved = await phone.say(ben, "for five seconds", expiresS=5)
        assert saved["expiresAt"] == saved["ts"] + 5000
        shown = (await frame_of(command, cmd="chat.message"))["data"]
        assert shown["expires_at"] == saved["expiresAt"]
        assert (await frame_of(request, req_identifier=2001))["data"]["expires_at"] == saved["expiresAt"]
        answer = await command.ask(
            "chat.send_message", chat_type=1, to_id=ann.user_id, client_msg_id="e1", content="x", expires_s=60
        )
        assert answer["expires_at"] == answer["timestamp"] + 60_000
        answer = await request.ask(1003, client_msg_id="e2", recv_id=ann.user_id, content="x", expires_s=60)
        assert answer["expires_at"] == answer["send_at"] + 60_000
        for body in ("x", "x"):
            assert "expiresAt" in await phone.expect("SINGLE_CHAT", body=body)
        await phone.send(phone.message(ben, "too short", expiresS=4))
        await phone.expect_error("bad_expires")

        async def is_blank() -> bool:
            page = await ben.get("/msg/pull", conversation_id=saved["conversationId"], begin_seq=1)
            message = page["messages"][0]
            assert (message["status"], message["content"]) in ((0, "for five seconds"), (2, ""))
            return bool(message["status"] == 2)

        await until(is_blank)


class Hesitant(EnvelopeSpeaker):
    """Stops reading at the first message, until it is resumed."""

    def _take(self, frame: Any) -> None:
        super()._take(frame)
        if frame["type"] == "SINGLE_CHAT" and len([one for one in self.frames if one["type"] == "SINGLE_CHAT"]) == 1:
            self.pause()


async def test_what_is_deleted_during_a_resend_is_not_sent_any_more() -> None:
    water = {"backpressure__high_water_bytes": 65_536, "backpressure__low_water_bytes": 4096}
    with ServerProcess(**water, backpressure__close_after_ms=120_000) as narrow:
        async with world(narrow, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            (theirs,) = await devices(ben, "tab")
            pad = {"pad": "y" * 16_000}
            saved = [await theirs.say(ann, f"{n:04}" + "x" * 4000, extra=pad) for n in range(200)]
            ids = [frame["serverMsgId"] for frame in saved]
            slow = Hesitant(ann)
            await slow._open(ann.tokens.access, {"max_queue": 1})
            signing_in = asyncio.ensure_future(slow._sign_in(ann.tokens.access, {}))
            await frame_of(slow, type="SINGLE_CHAT")
            # most of it waits on the server: no buffer on the way is as large
            await ann.post("/msg/delete", server_msg_ids=ids[150:])
            slow.resume()
            await signing_in
            resent = [frame["serverMsgId"] for frame in slow.frames if frame["type"] == "SINGLE_CHAT"]
            assert resent == ids[:150]

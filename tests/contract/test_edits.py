"""Edits: what members see after one, who may make one, how it is repeated, and what it leaves as it was."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.api import Api, make_group, make_key, open_api, send
from harness.core import run
from nexo.store.check import check

_numbers = iter(range(1, 1_000_000))


async def edit(api: Api, caller: str, message: Any, content: Any = "better", **fields: Any) -> Any:
    asked = {"client_msg_id": f"e{next(_numbers)}", "server_msg_id": message["server_msg_id"], "content": content}
    return await api.put(caller, "/msg/edit", **{**asked, **fields})


async def history(api: Api, reader: str, conversation_id: str) -> list[Any]:
    """Returns all messages, ascending."""
    found = await api.get(reader, "/msg/pull", conversation_id=conversation_id, begin_seq=1)
    return list(found.data["messages"])


async def entry(api: Api, reader: str, conversation_id: str) -> Any:
    entries = (await api.get(reader, "/conversation/list")).data["conversations"]
    return next((one for one in entries if one["conversation_id"] == conversation_id), None)


async def test_an_edit_changes_the_message_and_nothing_else(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        first = await send(api, "ann", "bob", "helo")
        name = first["conversation_id"]
        reply = await send(api, "bob", "ann", "what?", reply_to=first["server_msg_id"])
        before = await entry(api, "bob", name)
        edited = (await edit(api, "ann", first, "hello")).data
        assert edited["server_msg_id"] == first["server_msg_id"]
        assert edited["seq"] == 3
        assert set(edited) == {"server_msg_id", "conversation_id", "seq", "edited_at"}
        message, quoting, event = await history(api, "bob", name)
        assert (message["content"], message["edited_at"], message["seq"]) == ("hello", edited["edited_at"], 1)
        assert quoting["quote"]["text"] == "hello"
        assert (event["msg_type"], event["seq"], event["client_msg_id"]) == (110, 3, None)
        assert event["content"] == {
            "server_msg_id": first["server_msg_id"],
            "seq": 1,
            "edited_at": edited["edited_at"],
            "by": "ann",
            "content": "hello",
            "mentions": [],
        }
        after = await entry(api, "bob", name)
        assert (after.pop("last_message")["server_msg_id"], after.pop("head_seq")) == (reply["server_msg_id"], 3)
        assert after == {name: value for name, value in before.items() if name not in ("last_message", "head_seq")}
        assert (await check(api.core.store.url)).findings == []


async def test_an_edit_is_repeated_as_safely_as_a_send(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob", "one", client_msg_id="s1")
        again = [edit(api, "ann", sent, "two", client_msg_id="x") for _ in range(4)]
        answers = [answer.data for answer in await asyncio.gather(*again)]
        assert answers == [answers[0]] * 4
        other = await edit(api, "ann", sent, "three")
        assert other.data["seq"] == 3
        assert (await edit(api, "ann", sent, "two", client_msg_id="x")).data == answers[0]
        assert (await edit(api, "ann", sent, "four", client_msg_id="x")).error == "client_msg_id_reused"
        assert (await edit(api, "ann", sent, "four", client_msg_id="s1")).error == "client_msg_id_reused"
        reused = {"client_msg_id": "x", "recv_id": "bob", "content": "two"}
        assert (await api.post("ann", "/msg/send", **reused)).error == "client_msg_id_reused"
        same = (await edit(api, "ann", sent, "three")).data
        assert same == other.data
        plain = await send(api, "ann", "bob", "as it is")
        assert (await edit(api, "ann", plain, "as it is")).data["seq"] == plain["seq"]
        messages = await history(api, "bob", sent["conversation_id"])
        assert [message["msg_type"] for message in messages] == [1, 110, 110, 1]
        assert messages[0]["content"] == "three"


async def test_only_the_sender_edits_only_texts_and_only_in_time(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        sent = await send(api, "ann", "bob")
        assert (await edit(api, "bob", sent)).error == "not_message_sender"
        assert (await edit(api, "cy", sent)).error == "message_not_found"
        assert (await edit(api, "ann", {"server_msg_id": "77"})).error == "message_not_found"
        assert (await edit(api, "ann", sent, "")).error == "missing_content"
        assert (await edit(api, "ann", sent, {"a": 1})).error == "bad_content"
        picture = await send(api, "ann", "bob", {"url": "https://example.com/a.png"}, msg_type=2)
        assert (await edit(api, "ann", picture, {"url": "https://example.com/b.png"})).error == "not_editable"
        custom = await send(api, "ann", "bob", {"card": 1}, msg_type=6)
        assert (await edit(api, "ann", custom, {"card": 2})).status == 200
        event = (await history(api, "ann", sent["conversation_id"]))[-1]
        assert (await edit(api, "ann", event)).error == "not_editable"
        await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        assert (await edit(api, "ann", sent)).error == "not_editable"
        missing = await api.put("ann", "/msg/edit", server_msg_id=custom["server_msg_id"], content={"card": 3})
        assert missing.error == "missing_client_msg_id"
        await api.post("bob", "/user/block", user_id="ann")
        assert (await edit(api, "ann", custom, {"card": 3})).error == "blocked"
    async with open_api(core_url, edit__window_s=0) as api:
        await api.sign_up("dee", "eve")
        assert (await edit(api, "dee", await send(api, "dee", "eve"))).error == "edit_timeout"


async def test_one_client_msg_id_for_two_things_at_once_is_one_of_them(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        for number in range(6):
            first, second = await send(api, "ann", "bob"), await send(api, "ann", "cy")
            answers = await asyncio.gather(
                edit(api, "ann", first, "one", client_msg_id=f"x{number}"),
                edit(api, "ann", second, "two", client_msg_id=f"x{number}"),
                api.post("ann", "/msg/send", client_msg_id=f"x{number}", recv_id="bob", content="three"),
            )
            assert sorted(answer.status for answer in answers) == [200, 409, 409]
            assert {answer.error for answer in answers if answer.status == 409} == {"client_msg_id_reused"}
        assert (await check(api.core.store.url)).findings == []


@pytest.mark.parametrize("mode", ["mask", "reject"])
async def test_an_edit_passes_the_filter(core_url: str, tmp_path: Path, mode: str) -> None:
    words = tmp_path / "words.txt"
    words.write_text("darn\n")
    async with open_api(core_url, ["ann", "bob"], filter__file=str(words), filter__mode=mode) as api:
        sent = await send(api, "ann", "bob")
        answer = await edit(api, "ann", sent, "darn it")
        forwarded = {"client_msg_id": "f", "server_msg_ids": [sent["server_msg_id"]], "to": [{"recv_id": "bob"}]}
        merged = {"merge": True, "title": "darn"}
        if mode == "reject":
            assert answer.error == "content_rejected"
            assert (await api.post("ann", "/msg/forward", **forwarded, **merged)).error == "content_rejected"
            return
        assert answer.data["content"] == "*** it"
        message, event = await history(api, "bob", sent["conversation_id"])
        assert (message["content"], event["content"]["content"]) == ("*** it", "*** it")
        assert (await api.post("ann", "/msg/forward", **forwarded, **merged)).status == 200
        assert (await history(api, "bob", sent["conversation_id"]))[-1]["content"]["title"] == "***"


async def test_a_message_is_edited_a_hundred_times_at_most(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        for number in range(3):
            assert (await edit(api, "ann", sent, f"version {number}")).status == 200
        key = await make_key(api, "moderate")
        versions = (await api.get(key, f"/server/messages/{sent['server_msg_id']}")).data["versions"]
        assert [one["content"] for one in versions] == ["hello", "version 0", "version 1"]
        assert {one["cause"] for one in versions} == {"edit"}
        insert = "INSERT INTO message_versions (server_msg_id,version,content,replaced_by,cause) VALUES (?,?,?,?,2)"
        for number in range(4, 100):
            await run(api.core, insert, int(sent["server_msg_id"]), number, '"x"', "ann")
        assert (await edit(api, "ann", sent, "the hundredth")).status == 200
        assert (await edit(api, "ann", sent, "one more")).error == "not_editable"


async def test_a_member_who_left_before_an_edit_sees_the_version_before_it(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy", "dee"]) as api:
        group = await make_group(api, "ann", "bob", "cy")
        name = group["conversation_id"]
        sent = await send(api, "ann", group["group_id"], "one")
        await edit(api, "ann", sent, "two")
        reply = await send(api, "bob", group["group_id"], "yes", reply_to=sent["server_msg_id"])
        await api.post("cy", "/group/quit", group_id=group["group_id"])
        await api.post("ann", "/group/invite", group_id=group["group_id"], user_ids=["dee"])
        await edit(api, "ann", sent, "three")
        await edit(api, "ann", sent, "four")
        for reader, text in (("bob", "four"), ("cy", "two")):
            by_id = {message["server_msg_id"]: message for message in await history(api, reader, name)}
            assert by_id[sent["server_msg_id"]]["content"] == text
            assert by_id[reply["server_msg_id"]]["quote"]["text"] == text
            edits = [one for one in by_id.values() if one["msg_type"] == 110]
            assert {one["content"]["content"] for one in edits} == {text}
        assert "three" not in str(await history(api, "cy", name))
        bare = [message for message in await history(api, "dee", name) if message["msg_type"] == 110]
        assert [set(event["content"]) for event in bare] == [{"server_msg_id", "seq", "edited_at", "by"}] * 2
        await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        for reader in ("ann", "bob", "cy"):
            shown = str(await history(api, reader, name))
            assert not any(text in shown for text in ("'one'", "'three'", "'four'"))
            assert "'two'" not in shown
        assert (await check(api.core.store.url)).findings == []


async def test_an_added_mention_counts_at_the_edit(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy", "dee"]) as api:
        group = await make_group(api, "ann", "bob", "cy")
        group_id, name = group["group_id"], group["conversation_id"]
        sent = await send(api, "ann", group_id, "hi", mentions=["cy"])
        await api.post("bob", "/conversation/read", conversation_id=name, seq=sent["seq"])
        await api.post("ann", "/group/invite", group_id=group_id, user_ids=["dee"])
        edited = await edit(api, "ann", sent, "hi bob", mentions=["cy", "bob", "dee", "ann", "nobody"])
        seen = {reader: await entry(api, reader, name) for reader in ("bob", "cy", "dee")}
        assert {reader: (one["unread"], one["unread_mentions"]) for reader, one in seen.items()} == {
            "bob": (0, 1),
            "cy": (1, 1),
            "dee": (0, 0),
        }
        message = next(one for one in await history(api, "bob", name) if one["seq"] == sent["seq"])
        assert message["mentions"] == ["cy", "bob", "ann"]
        event = (await history(api, "bob", name))[-1]
        assert (event["mentions"], event["content"]["mentions"]) == (["bob"], ["cy", "bob", "ann"])
        assert (await edit(api, "ann", sent, "hi all", mentions=["@all"])).error == "no_permission"
        await edit(api, "ann", sent, "hi", mentions=[])
        assert (await entry(api, "bob", name))["unread_mentions"] == 1
        await api.post("bob", "/conversation/read", conversation_id=name, seq=edited.data["seq"])
        assert (await entry(api, "bob", name))["unread_mentions"] == 0
        assert (await check(api.core.store.url)).findings == []


async def test_a_hidden_conversation_stays_hidden_through_an_edit(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob")
        name = sent["conversation_id"]
        await api.put("bob", "/conversation/update", conversation_id=name, hidden=True)
        await edit(api, "ann", sent)
        await api.post("ann", "/msg/pin", server_msg_id=sent["server_msg_id"], on=True)
        assert await entry(api, "bob", name) is None
        assert (await entry(api, "ann", name))["last_message"]["seq"] == 1
        last = await send(api, "ann", "bob", "new")
        for reader in ("ann", "bob"):
            shown = await entry(api, reader, name)
            assert (shown["last_message"]["seq"], shown["updated_at"]) == (4, last["send_at"])
        assert (await check(api.core.store.url)).findings == []


async def test_the_journal_has_the_message_as_it_now_is(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "events")
        sent = await send(api, "ann", "bob", "one")
        await edit(api, "ann", sent, "two")
        await edit(api, "ann", sent, "three")
        await api.post("ann", "/msg/pin", server_msg_id=sent["server_msg_id"], on=True)
        page = await api.get(key, "/server/events", cursor="begin", types="message.edited,message.pinned")
        edits = page.data["events"]
        assert [one["type"] for one in edits] == ["message.edited", "message.edited", "message.pinned"]
        assert {one["data"]["content"] for one in edits[:2]} == {"three"}
        assert edits[2]["data"] == {
            "server_msg_id": sent["server_msg_id"],
            "conversation_id": sent["conversation_id"],
            "seq": 1,
            "on": True,
            "by": "ann",
        }


async def test_an_edit_and_a_recall_at_once_leave_the_message_blank_or_whole(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        for number in range(8):
            sent = await send(api, "ann", "bob", f"secret {number}")
            edited, _ = await asyncio.gather(
                edit(api, "ann", sent, f"hidden {number}"),
                api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"]),
            )
            assert edited.status == 200 or edited.error == "not_editable"
        messages = await history(api, "bob", sent["conversation_id"])
        assert [message["seq"] for message in messages] == list(range(1, len(messages) + 1))
        assert not any(word in str(messages) for word in ("secret", "hidden"))
        assert (await check(api.core.store.url)).findings == []

"""Pinned messages, and copies of messages that a user forwards."""

from __future__ import annotations

from typing import Any

from harness.api import Api, make_group, open_api, send
from harness.core import look, run
from nexo.store.check import check

_numbers = iter(range(1, 1_000_000))


async def pin(api: Api, caller: str, message: Any, on: bool = True) -> Any:
    return await api.post(caller, "/msg/pin", server_msg_id=message["server_msg_id"], on=on)


async def pins(api: Api, reader: str, conversation_id: str) -> list[str]:
    found = (await api.get(reader, "/msg/pins", conversation_id=conversation_id)).data["messages"]
    return [message["content"] for message in found]


async def forward(api: Api, caller: str, messages: list[Any], *targets: str, **fields: Any) -> Any:
    to = [{"group_id" if target.startswith("g_") else "recv_id": target} for target in targets]
    ids = [message["server_msg_id"] for message in messages]
    asked = {"client_msg_id": f"f{next(_numbers)}", "server_msg_ids": ids, "to": to}
    return await api.post(caller, "/msg/forward", **{**asked, **fields})


async def history(api: Api, reader: str, conversation_id: str) -> list[Any]:
    found = await api.get(reader, "/msg/pull", conversation_id=conversation_id, begin_seq=1)
    return list(found.data["messages"])


async def test_pins_are_for_managers_and_for_both_peers(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy", "dee"]) as api:
        group = await make_group(api, "ann", "bob", "cy")
        name = group["conversation_id"]
        first = await send(api, "bob", group["group_id"], "first")
        second = await send(api, "bob", group["group_id"], "second")
        assert (await pin(api, "bob", first)).error == "no_permission"
        assert (await pin(api, "dee", first)).error == "message_not_found"
        pinned = (await pin(api, "ann", first)).data
        assert pinned == {"server_msg_id": first["server_msg_id"], "conversation_id": name, "seq": 4}
        assert (await pin(api, "ann", first)).data == pinned
        await pin(api, "ann", second)
        assert await pins(api, "bob", name) == ["second", "first"]
        event = (await history(api, "bob", name))[3]
        assert (event["msg_type"], event["content"]) == (
            112,
            {"server_msg_id": first["server_msg_id"], "seq": 2, "on": True, "by": "ann"},
        )
        await api.post("cy", "/group/quit", group_id=group["group_id"])
        await api.post("ann", "/group/invite", group_id=group["group_id"], user_ids=["dee"])
        third = await send(api, "ann", group["group_id"], "third")
        await pin(api, "ann", third)
        assert await pins(api, "cy", name) == ["second", "first"]
        assert await pins(api, "dee", name) == ["third"]
        assert (await pin(api, "ann", first, on=False)).data["seq"] == 10
        assert (await pin(api, "ann", first, on=False)).data["seq"] == 10
        await api.post("ann", "/msg/recall", server_msg_id=second["server_msg_id"])
        assert await pins(api, "bob", name) == ["third"]
        assert (await pin(api, "ann", second)).error == "message_not_found"
        assert (await pin(api, "ann", event)).error == "message_not_found"
        single = await send(api, "ann", "bob", "hi")
        assert (await pin(api, "bob", single)).status == 200
        assert await pins(api, "ann", single["conversation_id"]) == ["hi"]
        assert (await api.get("dee", "/msg/pins", conversation_id=single["conversation_id"])).status == 404
        await api.post("ann", "/group/dismiss", group_id=group["group_id"])
        assert (await pin(api, "ann", third, on=False)).error == "group_not_available"
        assert (await check(api.core.store.url)).findings == []


async def test_fifty_messages_can_be_pinned(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        first, second = [await send(api, "ann", "bob", text) for text in ("first", "second")]
        ((conv,),) = await look(api.core, "SELECT id FROM conversations WHERE head_seq=2")
        for number in range(49):
            await run(api.core, "INSERT INTO pins (conv,server_msg_id,is_on) VALUES (?,?,1)", conv, number)
        assert (await pin(api, "ann", first)).status == 200
        assert (await pin(api, "bob", second)).error == "too_many_pins"
        await pin(api, "bob", first, on=False)
        assert (await pin(api, "bob", second)).status == 200


async def test_copies_are_sent_in_order_and_only_once(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy", "dee"]) as api:
        group = await make_group(api, "bob", "cy", "dee")
        first = await send(api, "ann", "bob", "one", mentions=["bob"], extra={"mood": 1})
        second = await send(api, "ann", "bob", "two", msg_type=7, reply_to=first["server_msg_id"])
        third = await send(api, "bob", "ann", {"url": "https://example.com/a.png", "name": "a"}, msg_type=2)
        fields = {"client_msg_id": "again"}
        sent = (await forward(api, "bob", [first, second, third], "cy", group["group_id"], **fields)).data["sent"]
        assert [set(one) for one in sent] == [{"recv_id", "server_msg_ids"}, {"group_id", "server_msg_ids"}]
        copies = await history(api, "cy", "si_bob:cy")
        assert [(one["msg_type"], one["content"]) for one in copies] == [
            (1, "one"),
            (1, "two"),
            (2, {"url": "https://example.com/a.png", "name": "a"}),
        ]
        assert [one["server_msg_id"] for one in copies] == sent[0]["server_msg_ids"]
        assert [one["forwarded_from"] for one in copies] == [
            {"sender_id": "ann", "send_at": first["send_at"]},
            {"sender_id": "ann", "send_at": second["send_at"]},
            {"sender_id": "bob", "send_at": third["send_at"]},
        ]
        assert {one["sender_id"] for one in copies} == {"bob"}
        assert (copies[0]["mentions"], copies[0]["extra"], copies[1]["reply_to"]) == ([], {"mood": 1}, None)
        await api.post("ann", "/msg/recall", server_msg_id=first["server_msg_id"])
        again = await forward(api, "bob", [first, second, third], "cy", group["group_id"], **fields)
        assert again.data["sent"] == sent
        assert len(await history(api, "cy", "si_bob:cy")) == 3
        other = await forward(api, "bob", [second], "cy", **fields)
        assert other.error == "client_msg_id_reused"
        onward = (await forward(api, "cy", [copies[1]], "dee")).data["sent"]
        (copy,) = await history(api, "dee", "si_cy:dee")
        assert copy["server_msg_id"] == onward[0]["server_msg_ids"][0]
        assert copy["forwarded_from"]["sender_id"] == "ann"
        assert (await check(api.core.store.url)).findings == []


async def test_each_target_has_its_own_error(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        sent = await send(api, "ann", "bob")
        await api.post("cy", "/user/block", user_id="ann")
        answer = await forward(api, "ann", [sent], "cy", "bob", "nobody", "ann", "g_AAAAAAAAAAAA")
        found = answer.data["sent"]
        assert [one.get("error") for one in found] == [
            "blocked",
            None,
            "user_not_found",
            "cannot_send_to_self",
            "group_not_found",
        ]
        assert [one.get("recv_id") for one in found] == ["cy", "bob", "nobody", "ann", None]


async def test_what_cannot_be_forwarded_is_refused_as_a_whole(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        sent = await send(api, "ann", "bob")
        gone = await send(api, "ann", "bob", "gone")
        await api.post("ann", "/msg/recall", server_msg_id=gone["server_msg_id"])
        event = (await history(api, "ann", sent["conversation_id"]))[-1]
        assert (await forward(api, "ann", [sent, gone], "cy")).error == "not_forwardable"
        assert (await forward(api, "ann", [event], "cy")).error == "not_forwardable"
        assert (await forward(api, "cy", [sent], "bob")).error == "message_not_found"
        hidden = await send(api, "ann", "bob", "hidden")
        await api.post("bob", "/msg/delete", server_msg_ids=[hidden["server_msg_id"]])
        assert (await forward(api, "bob", [sent, hidden], "cy")).error == "message_not_found"
        assert (await forward(api, "ann", [], "cy")).error == "missing_server_msg_ids"
        assert (await forward(api, "ann", [sent])).error == "missing_to"
        assert (await forward(api, "ann", [sent], *["cy"] * 21)).error == "bad_to"
        many = [{"server_msg_id": str(number)} for number in range(1, 102)]
        assert (await forward(api, "ann", many, "cy")).error == "bad_server_msg_ids"
        assert (await forward(api, "ann", many[:41], *["cy"] * 5)).error == "bad_to"
        assert (await forward(api, "ann", [sent], to=[{}])).error == "bad_to"
        assert await history(api, "cy", "si_ann:cy") == []


async def test_a_merged_forward_is_one_message_of_what_the_caller_saw(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        first = await send(api, "ann", "bob", "one")
        second = await send(api, "bob", "ann", "two")
        (to,) = (await forward(api, "bob", [first, second], "cy", merge=True, title="Lunch")).data["sent"]
        (merged,) = await history(api, "cy", "si_bob:cy")
        assert to["server_msg_ids"] == [merged["server_msg_id"]]
        assert (merged["msg_type"], "forwarded_from" in merged) == (8, False)
        assert merged["content"] == {
            "title": "Lunch",
            "items": [
                {"sender_id": "ann", "send_at": first["send_at"], "msg_type": 1, "content": "one"},
                {"sender_id": "bob", "send_at": second["send_at"], "msg_type": 1, "content": "two"},
            ],
        }
        reply = await send(api, "cy", "bob", "nice", reply_to=merged["server_msg_id"])
        assert (await history(api, "bob", "si_bob:cy"))[-1]["quote"]["text"] == "Lunch"
        assert reply["seq"] == 2
        long = [await send(api, "ann", "bob", "x" * 4000) for _ in range(5)]
        assert (await forward(api, "bob", long, "cy", merge=True)).error == "body_too_long"
        own = {"client_msg_id": "own", "recv_id": "cy", "msg_type": 8, "content": {"title": "", "items": []}}
        assert (await api.post("bob", "/msg/send", **own)).error == "bad_msg_type"


async def test_copies_count_as_sends(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"], limits__sends_per_s=1, limits__sends_burst=5) as api:
        sent = [await send(api, "ann", "bob", f"{number}") for number in range(3)]
        assert (await forward(api, "ann", sent, "bob")).status == 200
        refused = await forward(api, "ann", sent, "bob")
        assert refused.error == "too_many_requests"

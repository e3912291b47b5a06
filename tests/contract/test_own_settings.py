"""A conversation of one's own: archived, silent, marked unread, a draft, own fields; and the place of a date."""

from __future__ import annotations

from typing import Any

from harness.api import Api, make_group, open_api, send
from harness.core import look, run
from nexo.ids import now_ms

CHAT = "si_ann:bob"


async def entry(api: Api, user: str = "bob") -> Any:
    (found,) = (await api.get(user, "/conversation/list")).data["conversations"]
    return found


async def update(api: Api, user: str = "bob", **fields: Any) -> Any:
    return (await api.put(user, "/conversation/update", conversation_id=CHAT, **fields)).data


async def heads_told(api: Api) -> list[Any]:
    return [what for kind, what in api.publisher.take() if kind == "settings_changed"]


async def test_settings_are_shown_and_told_to_the_other_devices(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        first = await send(api, "ann", "bob", "hi")
        found = await entry(api)
        defaults = {"archived": False, "silent_until": 0, "marked_unread": False, "message_ttl_s": 0}
        defaults |= {"draft": None, "extra": None}
        assert {name: found[name] for name in defaults} == defaults
        api.publisher.take()
        until = now_ms() + 60_000
        wanted = {
            "archived": True,
            "silent_until": until,
            "marked_unread": True,
            "draft": {"text": "I am", "reply_to": first["server_msg_id"]},
            "extra": {"label": "work"},
        }
        changed = await update(api, pinned=True, **wanted)
        assert {name: changed[name] for name in wanted} == wanted
        assert await entry(api) == changed
        ((user, (head,)),) = await heads_told(api)
        assert (user, head.conversation_id, head.archived, head.silent_until) == ("bob", CHAT, True, until)
        (synced,) = (await api.get("bob", "/conversation/sync")).data["conversations"]
        assert {name: synced[name] for name in wanted} == wanted
        assert synced["pinned"] is True
        (other,) = (await api.get("ann", "/conversation/sync")).data["conversations"]
        assert set(other) & {*wanted, "pinned"} == set()
        cleared = await update(api, archived=False, silent_until=0, marked_unread=False, draft=None, extra=None)
        assert {name: cleared[name] for name in defaults} == defaults
        (synced,) = (await api.get("bob", "/conversation/sync")).data["conversations"]
        assert set(synced) & set(wanted) == set()
        assert (await update(api, draft={"text": ""}))["draft"] == {"text": ""}
        assert (await update(api, hidden=False))["draft"] == {"text": ""}


async def test_wrong_settings_are_refused(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        await send(api, "ann", "bob", "hi")
        for fields, error in (
            ({"draft": {"text": "x" * 4097}}, "bad_draft"),
            ({"draft": {"text": "x\0"}}, "bad_draft"),
            ({"draft": {"text": 5}}, "bad_draft"),
            ({"draft": "x"}, "bad_draft"),
            ({"draft": {"text": "x", "reply_to": "y"}}, "bad_draft"),
            ({"extra": [1]}, "bad_extra"),
            ({"extra": {"x": "y" * 17_000}}, "body_too_long"),
            ({"silent_until": -1}, "bad_time"),
            ({"silent_until": 10**15}, "bad_time"),
            ({"silent_until": "soon"}, "bad_time"),
            ({"archived": 1}, "bad_request"),
            ({"marked_unread": "no"}, "bad_request"),
        ):
            answer = await api.put("bob", "/conversation/update", conversation_id=CHAT, **fields)
            assert answer.error == error, fields
        longest = {"text": "😀" * 4096}
        assert (await update(api, draft=longest))["draft"] == longest


async def test_an_archived_conversation_returns_with_the_next_message_unless_muted(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        await send(api, "ann", "bob", "hi")
        await update(api, archived=True)
        assert (await entry(api))["archived"] is True
        await send(api, "ann", "bob", "again")
        assert (await entry(api))["archived"] is False
        for mute in ({"recv_msg_opt": 2}, {"recv_msg_opt": 1}, {"silent_until": now_ms() + 600_000}):
            await update(api, archived=True, **mute)
            await send(api, "ann", "bob", "shh")
            assert (await entry(api))["archived"] is True, mute
            # what came meanwhile does not bring it back, the next does
            await update(api, recv_msg_opt=0, silent_until=0)
            assert (await entry(api))["archived"] is True
            await send(api, "ann", "bob", "ring")
            assert (await entry(api))["archived"] is False
        # neither does it return when the silence ends by itself
        await update(api, archived=True, silent_until=now_ms() + 600_000)
        await send(api, "ann", "bob", "shh")
        ((sent_at,),) = await look(api.core, "SELECT last_send_at FROM conversations")
        await run(api.core, "UPDATE members SET silent_until=? WHERE user_id='bob'", sent_at)
        assert (await entry(api))["archived"] is True
        await send(api, "ann", "bob", "ring")
        assert (await entry(api))["archived"] is False


async def test_a_conversation_is_silent_until_its_time(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        await send(api, "ann", "bob", "hi")
        api.publisher.take()
        await update(api, silent_until=now_ms() + 60_000)
        assert ("audience_changed", CHAT) in api.publisher.take()
        listeners = (await api.core.store.groups.audience(CHAT)).listeners
        assert [listeners[user].is_silent for user in ("ann", "bob")] == [False, True]
        assert await api.core.conversations.silenced("bob") == {CHAT}
        await run(api.core, "UPDATE members SET silent_until=? WHERE user_id='bob'", now_ms() - 1)
        assert not (await api.core.store.groups.audience(CHAT)).listeners["bob"].is_silent
        assert await api.core.conversations.silenced("bob") == set()


async def test_reading_takes_the_mark_of_an_unread_conversation_away(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        first = await send(api, "ann", "bob", "hi")
        await api.post("bob", "/conversation/read", conversation_id=CHAT, seq=first["seq"])
        await update(api, marked_unread=True)
        found = await entry(api)
        assert (found["marked_unread"], found["unread"]) == (True, 0)
        await api.post("bob", "/conversation/read", conversation_id=CHAT, seq=first["seq"])
        assert (await entry(api))["marked_unread"] is False
        await update(api, marked_unread=True)
        second = await send(api, "ann", "bob", "there")
        await api.core.acknowledging.ack_seq("bob", "read", CHAT, second["seq"])
        await api.core.store.cursors.flush()
        found = await entry(api)
        assert (found["marked_unread"], found["unread"]) == (False, 0)


async def test_a_time_has_its_place_in_a_conversation(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cy"]) as api:
        for n in range(20):
            await send(api, "ann", "bob", f"{n}")
        await run(api.core, "UPDATE messages SET send_at=1000*seq")

        async def place(time: int, user: str = "bob", name: str = CHAT) -> Any:
            return (await api.get(user, "/conversation/at", conversation_id=name, time=time)).data["seq"]

        assert [await place(time) for time in (0, 1000, 1001, 9999, 10_000, 20_000)] == [1, 1, 2, 10, 10, 20]
        assert await place(20_001) is None
        await api.post("bob", "/conversation/clear", conversation_id=CHAT)
        assert (await place(0), await place(0, "ann")) == (None, 1)
        assert await place(0, "bob", "si_bob:cy") is None
        # of a group only what one may see: the time between two spans leads behind it
        group = await make_group(api, "ann", "bob", "cy")
        await api.post("bob", "/group/quit", group_id=group["group_id"])
        await send(api, "ann", group["group_id"], "unseen")
        await api.post("bob", "/group/join", group_id=group["group_id"])
        await run(api.core, "UPDATE messages SET send_at=1000*seq WHERE conv=(SELECT MAX(conv) FROM members)")
        name = group["conversation_id"]
        assert [await place(time, "bob", name) for time in (0, 2000, 2001, 4000, 4001)] == [1, 2, 4, 4, None]
        assert [await place(time, "ann", name) for time in (2001,)] == [3]
        for query, error in (
            ({"conversation_id": CHAT}, "missing_time"),
            ({"conversation_id": CHAT, "time": "noon"}, "bad_time"),
            ({"conversation_id": CHAT, "time": -1}, "bad_time"),
            ({"conversation_id": "si_ann:cy", "time": 1}, "conversation_not_found"),
            ({"conversation_id": "x", "time": 1}, "bad_conversation_id"),
        ):
            assert (await api.get("bob", "/conversation/at", **query)).error == error, query

"""Invite links, members' own fields, types and extras of groups, join requests reported to managers."""

from __future__ import annotations

import asyncio
from typing import Any

from harness.api import Api, make_group, open_api
from harness.core import run
from nexo.core import events
from nexo.store.check import check

PEOPLE = ("ann", "bob", "cat", "dan", "eve")


async def new_link(api: Api, user: str, group_id: str, **fields: Any) -> str:
    return str((await api.post(user, "/group/link", group_id=group_id, **fields)).data["code"])


async def member_ids(api: Api, user: str, group_id: str) -> list[str]:
    found = (await api.get(user, "/group/members", group_id=group_id)).data["members"]
    return [member["user_id"] for member in found]


async def test_a_link_lets_a_stranger_in_without_approval(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        group = await make_group(api, "ann", "bob", "cat", join_policy="invite", avatar="https://x.example/a.png")
        group_id = group["group_id"]
        link = (await api.post("ann", "/group/link", group_id=group_id)).data
        assert (link["group_id"], link["creator_id"], link["expires_at"], link["uses"], link["used"]) == (
            group_id, "ann", None, None, 0,
        )  # fmt: skip
        seen = (await api.get("dan", "/group/link", code=link["code"])).data
        assert seen == {
            "group_id": group_id,
            "name": "team",
            "avatar": "https://x.example/a.png",
            "member_count": 3,
            "is_member": False,
        }
        joined = (await api.post("dan", "/group/join", code=link["code"])).data
        assert joined == {"status": "joined", "group_id": group_id}
        (dan,) = [
            member
            for member in (await api.get("dan", "/group/members", group_id=group_id)).data["members"]
            if member["user_id"] == "dan"
        ]
        assert dan["inviter_id"] == "ann"
        assert (await api.post("dan", "/group/join", code=link["code"])).data["status"] == "joined"
        (listed,) = (await api.get("ann", "/group/links", group_id=group_id)).data["links"]
        assert (listed["code"], listed["used"]) == (link["code"], 1)
        assert (await check(api.core.store.url)).findings == []


async def test_links_end_by_time_by_uses_and_by_hand(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        once = await new_link(api, "ann", group_id, uses=1)
        assert (await api.post("dan", "/group/join", code=once)).status == 200
        assert (await api.post("eve", "/group/join", code=once)).error == "link_expired"
        revoked = await new_link(api, "ann", group_id)
        assert (await api.post("ann", "/group/link/revoke", code=revoked)).status == 200
        assert (await api.post("ann", "/group/link/revoke", code=revoked)).status == 200
        assert (await api.post("eve", "/group/join", code=revoked)).error == "link_expired"
        assert (await api.get("eve", "/group/link", code=revoked)).error == "link_expired"
        short = await new_link(api, "ann", group_id, expires_s=1)
        await run(api.core, "UPDATE group_links SET expires_at=1 WHERE code=?", short)
        assert (await api.post("eve", "/group/join", code=short)).error == "link_expired"
        for code in ("no-such-code", "ä", "x" * 100):
            assert (await api.post("eve", "/group/join", code=code)).error == "link_expired"
            assert (await api.get("eve", "/group/link", code=code)).error == "link_expired"
            assert (await api.post("ann", "/group/link/revoke", code=code)).error == "link_expired"
        assert (await api.get("ann", "/group/links", group_id=group_id)).data["links"] == []


async def test_the_last_use_of_a_link_is_taken_by_one_of_twenty(core_url: str) -> None:
    crowd = [f"u{number:02}" for number in range(20)]
    async with open_api(core_url, PEOPLE) as api:
        for user in crowd:
            await api.sign_up(user)
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        for uses in (1, 7):
            code = await new_link(api, "ann", group_id, uses=uses)
            answers = await asyncio.gather(*(api.post(user, "/group/join", code=code) for user in crowd))
            outcomes = [answer.body["err_msg"] or answer.data["status"] for answer in answers]
            assert sorted(set(outcomes)) == ["joined", "link_expired"]
            members = set(await member_ids(api, "ann", group_id)) & set(crowd)
            assert len(members) == outcomes.count("joined") == uses
            assert members == {user for user, outcome in zip(crowd, outcomes, strict=True) if outcome == "joined"}
            for user in members:
                await api.post(user, "/group/quit", group_id=group_id)
        assert (await check(api.core.store.url)).findings == []


async def test_links_are_for_managers_and_bounded(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, group__max_links=2, group__max_members=4) as api:
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        await api.post("ann", "/group/set_member_role", group_id=group_id, user_id="bob", role="admin")
        assert (await api.post("cat", "/group/link", group_id=group_id)).error == "no_permission"
        assert (await api.post("dan", "/group/link", group_id=group_id)).error == "not_group_member"
        assert (await api.post("ann", "/group/link", group_id="g_000000000000")).error == "group_not_found"
        assert (await api.get("cat", "/group/links", group_id=group_id)).error == "no_permission"
        assert (await api.get("dan", "/group/links", group_id=group_id)).error == "not_group_member"
        assert (await api.get("dan", "/group/links", group_id="g_000000000000")).error == "group_not_found"
        for fields, error in (
            ({"expires_s": 0}, "bad_expires"),
            ({"uses": 0}, "bad_uses"),
            ({"uses": "x"}, "bad_uses"),
            ({"expires_s": 10**12}, "bad_expires"),
        ):
            assert (await api.post("ann", "/group/link", group_id=group_id, **fields)).error == error
        code = await new_link(api, "bob", group_id, uses=5)
        await new_link(api, "ann", group_id)
        assert (await api.post("ann", "/group/link", group_id=group_id)).error == "too_many_links"
        assert (await api.post("cat", "/group/link/revoke", code=code)).error == "no_permission"
        assert (await api.post("dan", "/group/join", code=code)).status == 200
        assert (await api.post("eve", "/group/join", code=code)).error == "group_full"
        assert (await api.post("eve", "/group/join")).error == "missing_group_id"
        assert (await api.post("eve", "/group/join", code=code, group_id=group_id)).error == "bad_request"
        await api.post("ann", "/group/dismiss", group_id=group_id)
        assert (await api.post("eve", "/group/join", code=code)).error == "group_not_available"
        assert (await api.get("eve", "/group/link", code=code)).error == "group_not_available"


async def test_a_member_has_a_nickname_avatar_and_extra_of_their_own(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        avatar = "https://x.example/b.png"
        fields = {"group_nickname": "Bobby", "group_avatar": avatar, "extra": {"desk": 7}}
        shown = (await api.put("bob", "/group/member", group_id=group_id, **fields)).data
        wanted = {"user_id": "bob", "role": "member", "nickname": "Bobby", "inviter_id": "ann", **fields}
        assert {name: shown[name] for name in wanted} == wanted
        listed = (await api.get("cat", "/group/members", group_id=group_id)).data["members"]
        assert listed[1] == shown
        name = f"sg_{group_id}"
        last = (await api.get("cat", "/msg/history", conversation_id=name, limit=1)).data["messages"][0]
        assert (last["msg_type"], last["content"]) == (
            107,
            {"changes": {"member": {"user_id": "bob", **fields}}, "by": "bob"},
        )
        emptied = (await api.put("bob", "/group/member", group_id=group_id, group_nickname="", extra=None)).data
        assert (emptied["nickname"], emptied["group_nickname"], emptied["extra"]) == ("Bob", "", None)
        for fields, error in (
            ({}, "bad_request"),
            ({"group_nickname": "x" * 129}, "bad_nickname"),
            ({"group_avatar": "javascript:alert(1)"}, "bad_avatar"),
            ({"extra": [1]}, "bad_extra"),
        ):
            assert (await api.put("bob", "/group/member", group_id=group_id, **fields)).error == error, fields
        assert (await api.put("dan", "/group/member", group_id=group_id, extra={})).error == "not_group_member"
        assert (await check(api.core.store.url)).findings == []


async def test_a_group_has_a_type_and_an_extra_that_can_be_changed(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        group = await make_group(api, "ann", "bob", "cat", group_type=3, extra={"a": 1})
        assert (group["group_type"], group["extra"]) == (3, {"a": 1})
        changed = (await api.put("ann", "/group/update", group_id=group["group_id"], group_type=4, extra={"b": 2})).data
        assert (changed["group_type"], changed["extra"]) == (4, {"b": 2})
        last = (await api.get("bob", "/msg/history", conversation_id=group["conversation_id"], limit=1)).data
        assert last["messages"][0]["content"]["changes"] == {"group_type": 4, "extra": {"b": 2}}
        emptied = (await api.put("ann", "/group/update", group_id=group["group_id"], extra=None)).data
        assert (emptied["group_type"], emptied["extra"]) == (4, None)
        refused = await api.put("ann", "/group/update", group_id=group["group_id"], group_type=40_000)
        assert refused.error == "bad_kind"


async def test_a_request_to_join_is_reported_to_owner_and_admins_once(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        group_id = (await make_group(api, "ann", "bob", "cat", join_policy="approval"))["group_id"]
        await api.post("ann", "/group/set_member_role", group_id=group_id, user_id="bob", role="admin")
        api.publisher.take()
        for _ in range(2):
            answer = await api.post("dan", "/group/join", group_id=group_id, message="let me in")
            assert answer.data == {"status": "pending"}
        frames = [what for name, what in api.publisher.take() if name == "user_event"]
        assert [receiver for receiver, _ in frames] == ["ann", "bob"]
        for _, frame in frames:
            assert isinstance(frame, events.JoinRequested)
            assert (frame.group_id, frame.user_id, frame.message) == (group_id, "dan", "let me in")
        (listed,) = (await api.get("bob", "/group/join_requests", group_id=group_id)).data["requests"]
        assert (listed["user_id"], listed["message"]) == ("dan", "let me in")

"""Groups (SPEC §8): who may do what, the events that tell of it (§3), and the spans they open and close."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from harness.commits import CommitLog
from harness.core import found_group, look, open_test_core, refused, run, say
from harness.rows import changed_rows, snapshot
from harness.statements import recorded
from nexo.assembly.core import Core
from nexo.core.model import Message
from nexo.errors import NexoError
from nexo.ids import is_group_id, now_ms
from nexo.store.account_store import SqlAccounts

PEOPLE = ("alice", "bob", "carol", "dave", "erin", "frank")
UNKNOWN_GROUP = "g_000000000000"


async def seqs(core: Core, user: str, name: str) -> list[int]:
    return [message.seq for message in (await core.conversations.pull(user, name)).messages]


async def events(core: Core, user: str, name: str) -> list[tuple[int, Any]]:
    """Type and content of every event that a user sees."""
    messages = (await core.conversations.pull(user, name)).messages
    return [(message.msg_type, msgspec.json.decode(message.content)) for message in messages if message.is_event]


def told(event: Message | None) -> tuple[int, str, Any]:
    assert event is not None
    assert (event.client_msg_id, event.mentions, event.reply_to, event.extra) == (None, (), None, None)
    return event.msg_type, event.sender_id, msgspec.json.decode(event.content)


async def roles(core: Core, group_id: str, viewer: str = "alice") -> dict[str, int]:
    members, _, _ = await core.groups.members(viewer, group_id)
    return {member.user_id: member.role for member in members}


async def staffed_group(core: Core, **fields: Any) -> tuple[str, str]:
    """alice owns it, bob and carol are admins, dave and erin members; frank is outside."""
    group_id, name = await found_group(core, "alice", "bob", "carol", "dave", "erin", **fields)
    for admin in ("bob", "carol"):
        await core.groups.set_role("alice", group_id, admin, "admin")
    return group_id, name


# -- founding ------------------------------------------------------------------------------------------


async def test_a_new_group_has_its_creator_and_everybody_invited_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        commits = CommitLog()
        core.store.seam.attach(commits)
        group = await core.groups.create(
            "alice",
            name="Tëam 😀",
            member_ids=["bob", "alice", "carol", "bob"],
            avatar="https://" + "a" * 504,
            introduction="i" * 512,
            join_policy="approval",
            extra={"k": "値"},
        )
        [(_, created)] = commits.take()
        event = created.event
        assert is_group_id(group.group_id)
        assert group.conversation_id == f"sg_{group.group_id}"
        assert (group.name, group.avatar, group.introduction) == ("Tëam 😀", "https://" + "a" * 504, "i" * 512)
        assert (group.owner_id, group.creator_id, group.member_count, group.status) == ("alice", "alice", 3, 0)
        assert (group.join_policy, group.extra, group.announcement) == ("approval", '{"k":"値"}', "")
        assert await core.groups.info(group.group_id) == group
        assert await roles(core, group.group_id) == {"alice": 2, "bob": 0, "carol": 0}
        assert told(event) == (101, "alice", {"group_id": group.group_id, "name": "Tëam 😀", "by": "alice"})
        for user in ("alice", "bob", "carol"):
            assert (await core.conversations.pull(user, group.conversation_id)).messages == [event]


async def test_unknown_users_cannot_be_founders_and_are_named(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        with refused("user_not_found") as caught:
            await core.groups.create("alice", name="team", member_ids=["bob", "nobody", "carol", "noone"])
        assert caught.value.data["user_ids"] == ["nobody", "noone"]
        assert "nobody" in caught.value.detail
        with refused("user_not_found") as caught:
            await core.groups.create("alice", name="team", member_ids=["bob", "no one", "carol\x00"])
        assert caught.value.data["user_ids"] == ["no one", "carol\x00"]
        assert await look(core, "SELECT * FROM conversations") == []
        assert await look(core, "SELECT * FROM chat_groups") == []


async def test_a_group_needs_enough_members_and_takes_no_more_than_it_may(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, group__max_members=4) as core:
        for too_few in ([], ["bob"], ["bob", "alice", "bob"]):
            with refused("group_members_too_few"):
                await core.groups.create("alice", name="team", member_ids=too_few)
        with refused("group_full"):
            await core.groups.create("alice", name="team", member_ids=["bob", "carol", "dave", "erin"])
        group_id, name = await found_group(core, "alice", "bob", "carol")
        with refused("group_full"):
            await core.groups.invite("alice", group_id, ["dave", "erin"])
        assert (await core.groups.invite("alice", group_id, ["dave"])).added == ["dave"]
        with refused("group_full"):
            await core.groups.join("erin", group_id)
        assert (await core.groups.info(group_id)).member_count == 4
        assert (await core.conversations.pull("alice", name)).head_seq == 2
        await core.groups.leave("dave", group_id)
        assert (await core.groups.join("erin", group_id))[0] == "joined"


async def test_the_smallest_group_is_configured(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, group__min_create_members=1) as core:
        group = await core.groups.create("alice", name="alone", member_ids=[])
        assert group.member_count == 1


async def test_what_describes_a_group_has_its_limits(core_url: str) -> None:
    wrong = [
        ("name", "", "missing_name"),
        ("name", " \t", "missing_name"),
        ("name", "n" * 129, "bad_name"),
        ("name", "a\x00", "bad_name"),
        ("name", "\ud800", "bad_name"),
        ("avatar", "a" * 513, "bad_avatar"),
        ("introduction", "i" * 513, "bad_introduction"),
        ("join_policy", "closed", "bad_join_policy"),
    ]
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        for field, value, error in wrong:
            with refused(error):
                await core.groups.create("alice", **{"name": "team", "member_ids": ["bob", "carol"], field: value})
            with refused(error):
                await core.groups.update("alice", group_id, **{field: value})
        with refused("bad_announcement"):
            await core.groups.update("alice", group_id, announcement="a" * 4097)
        with refused("bad_extra"):
            await core.groups.create("alice", name="team", member_ids=["bob", "carol"], extra="\x00")
        with refused("bad_request"):
            await core.groups.update("alice", group_id)


# -- joining -------------------------------------------------------------------------------------------


async def test_joining_an_open_group_is_told_and_hides_what_was_before(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", group_id, "before")
        status, change = await core.groups.join("dave", group_id)
        assert (status, change.added) == ("joined", ["dave"])
        assert told(change.event) == (102, "dave", {"user_ids": ["dave"], "by": "dave"})
        assert await seqs(core, "dave", name) == [3]
        (head,) = await core.conversations.heads("dave", [name])
        assert (head.head_seq, head.min_seq, head.read_seq, head.delivered_seq, head.unread) == (3, 3, 2, 2, 0)
        await say(core, "alice", group_id, "after")
        assert await seqs(core, "dave", name) == [3, 4]


async def test_joining_twice_is_joining_once(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await core.groups.join("dave", group_id)
        status, change = await core.groups.join("dave", group_id)
        assert (status, change.event) == ("joined", None)
        assert (await core.groups.info(group_id)).member_count == 4
        assert (await core.conversations.pull("alice", name)).head_seq == 2


async def test_a_request_to_join_waits_for_the_owner_or_an_admin(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", join_policy="approval")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        for user, message in (("dave", "let me in"), ("erin", ""), ("dave", "please")):
            status, change = await core.groups.join(user, group_id, message)
            assert (status, change.event) == ("pending", None)
        with refused("bad_message"):
            await core.groups.join("frank", group_id, "m" * 513)
        for user in ("alice", "bob"):
            waiting = await core.groups.join_requests(user, group_id)
            assert [(request.user_id, request.message) for request in waiting] == [("dave", "let me in"), ("erin", "")]
        for user, error in (("carol", "no_permission"), ("dave", "not_group_member"), ("frank", "not_group_member")):
            with refused(error):
                await core.groups.join_requests(user, group_id)
            with refused(error):
                await core.groups.decide_join(user, group_id, "dave", True)
        change = await core.groups.decide_join("bob", group_id, "dave", True)
        assert change.added == ["dave"]
        assert told(change.event) == (102, "bob", {"user_ids": ["dave"], "by": "bob"})
        assert (await core.groups.decide_join("alice", group_id, "erin", False)).event is None
        assert await core.groups.join_requests("alice", group_id) == []
        for user in ("dave", "erin", "frank"):
            with refused("join_request_not_found"):
                await core.groups.decide_join("alice", group_id, user, True)
        assert sorted(await roles(core, group_id)) == ["alice", "bob", "carol", "dave"]
        assert (await core.groups.join("erin", group_id))[0] == "pending"  # declined is not banned


async def test_who_got_in_another_way_no_longer_waits(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", join_policy="approval")
        await core.groups.join("dave", group_id)
        await core.groups.invite("bob", group_id, ["dave"])
        assert await core.groups.join_requests("alice", group_id) == []


async def test_one_cannot_join_where_only_invitation_is_possible(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", join_policy="invite")
        with refused("no_permission"):
            await core.groups.join("dave", group_id)
        assert (await core.groups.join("bob", group_id))[0] == "joined"  # is there already


# -- inviting ------------------------------------------------------------------------------------------


async def test_any_member_invites_and_learns_who_was_left_out_and_why(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        odd = ["nobody", "a b", "x\x00y", "\ud800", "u" * 65, "@all", ""]
        change = await core.groups.invite("bob", group_id, ["dave", "carol", *odd, "dave", "erin", "bob"])
        assert change.added == ["dave", "erin"]
        reasons = {user: "user_not_found" for user in odd} | {"carol": "already_member", "bob": "already_member"}
        assert dict(change.skipped) == reasons
        assert told(change.event) == (102, "bob", {"user_ids": ["dave", "erin"], "by": "bob"})
        assert await seqs(core, "erin", name) == [2]
        again = await core.groups.invite("bob", group_id, ["dave", "nobody"])
        assert (again.event, again.added) == (None, [])
        assert dict(again.skipped) == {"dave": "already_member", "nobody": "user_not_found"}
        assert (await core.conversations.pull("alice", name)).head_seq == 2


async def test_inviting_needs_somebody_to_invite_and_not_too_many(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        with refused("missing_member_ids"):
            await core.groups.invite("alice", group_id, [])
        with refused("bad_member_ids"):
            await core.groups.invite("alice", group_id, [f"u{n}" for n in range(501)])


async def test_under_the_policy_invite_only_owner_and_admins_invite(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", join_policy="invite")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        with refused("no_permission"):
            await core.groups.invite("carol", group_id, ["dave"])
        assert (await core.groups.invite("bob", group_id, ["dave"])).added == ["dave"]
        assert (await core.groups.invite("alice", group_id, ["erin"])).added == ["erin"]


# -- leaving and being removed -------------------------------------------------------------------------


async def test_leaving_is_told_and_hides_what_comes_later(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", group_id, "before")
        change = await core.groups.leave("bob", group_id)
        assert told(change.event) == (103, "bob", {"user_id": "bob"})
        await say(core, "alice", group_id, "after")
        assert await seqs(core, "bob", name) == [1, 2, 3]
        assert (await core.conversations.pull("bob", name)).head_seq == 3
        assert await seqs(core, "carol", name) == [1, 2, 3, 4]
        assert sorted(await roles(core, group_id)) == ["alice", "carol"]
        assert (await core.groups.info(group_id)).member_count == 2
        with refused("not_group_member"):
            await core.groups.leave("bob", group_id)


async def test_the_owner_cannot_leave(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        with refused("owner_cannot_leave"):
            await core.groups.leave("alice", group_id)
        await core.groups.transfer("alice", group_id, "bob")
        await core.groups.leave("alice", group_id)


async def test_the_owner_removes_anyone_an_admin_only_members_and_nobody_the_owner(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await staffed_group(core)
        for actor, target, error in (
            ("dave", "erin", "no_permission"),
            ("dave", "alice", "no_permission"),
            ("dave", "dave", "no_permission"),
            ("bob", "carol", "no_permission"),
            ("bob", "alice", "no_permission"),
            ("bob", "bob", "no_permission"),
            ("alice", "alice", "no_permission"),
            ("frank", "dave", "not_group_member"),
            ("alice", "frank", "not_group_member"),
        ):
            with refused(error):
                await core.groups.remove(actor, group_id, target)
        change = await core.groups.remove("bob", group_id, "dave")
        assert told(change.event) == (104, "bob", {"user_ids": ["dave"], "by": "bob"})
        await core.groups.remove("alice", group_id, "bob")
        await core.groups.remove("alice", group_id, "erin")
        await say(core, "alice", group_id, "later")
        assert await roles(core, group_id) == {"alice": 2, "carol": 1}
        assert await seqs(core, "dave", name) == [1, 2, 3, 4]
        assert (await events(core, "dave", name))[-1] == (104, {"user_ids": ["dave"], "by": "bob"})
        with refused("not_group_member"):
            await core.groups.remove("bob", group_id, "carol")


async def test_coming_back_opens_a_second_span_with_both_cursors_just_below_it(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await say(core, "alice", group_id, "2, seen", mentions=["bob"])
        await core.groups.leave("bob", group_id)  # 3
        await say(core, "alice", group_id, "4, missed", mentions=["@all"])
        status, change = await core.groups.join("bob", group_id)  # 5
        assert (status, change.added) == ("joined", ["bob"])
        await say(core, "alice", group_id, "6, seen")
        assert await seqs(core, "bob", name) == [1, 2, 3, 5, 6]
        (head,) = await core.conversations.heads("bob", [name])
        assert (head.min_seq, head.read_seq, head.delivered_seq, head.unread, head.head_seq) == (5, 4, 4, 1, 6)
        ((entry,), _, _) = await core.conversations.entries("bob")
        assert entry.unread_mentions == 0
        await core.groups.remove("alice", group_id, "bob")  # 7
        await say(core, "alice", group_id, "8, missed")
        await core.groups.invite("carol", group_id, ["bob"])  # 9
        assert await seqs(core, "bob", name) == [1, 2, 3, 5, 6, 7, 9]
        missed = (await core.conversations.pull("alice", name, 8)).messages[0]
        with refused("message_not_found"):
            await core.store.messages.find("bob", missed.server_msg_id)


async def test_who_comes_back_is_a_plain_member_and_still_muted(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        await core.groups.mute("alice", group_id, "bob", -1)
        await core.groups.leave("bob", group_id)
        await core.groups.join("bob", group_id)
        assert (await roles(core, group_id))["bob"] == 0
        with refused("speak_muted"):
            await say(core, "bob", group_id)


# -- roles ---------------------------------------------------------------------------------------------


async def test_ownership_goes_to_a_member_and_the_old_owner_becomes_one(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await staffed_group(core)
        for actor, target, error in (
            ("bob", "dave", "no_permission"),
            ("dave", "dave", "no_permission"),
            ("frank", "dave", "not_group_member"),
            ("alice", "frank", "not_group_member"),
            ("alice", "alice", "bad_user_id"),
            ("alice", "no one", "bad_user_id"),
        ):
            with refused(error):
                await core.groups.transfer(actor, group_id, target)
        change = await core.groups.transfer("alice", group_id, "dave")
        assert told(change.event) == (105, "alice", {"from": "alice", "to": "dave"})
        assert await roles(core, group_id) == {"alice": 0, "bob": 1, "carol": 1, "dave": 2, "erin": 0}
        assert (await core.groups.info(group_id)).owner_id == "dave"
        with refused("no_permission"):
            await core.groups.dismiss("alice", group_id)


async def test_only_the_owner_makes_and_unmakes_admins(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        change = await core.groups.set_role("alice", group_id, "bob", "admin")
        assert told(change.event) == (106, "alice", {"user_id": "bob", "role": "admin", "by": "alice"})
        assert (await core.groups.set_role("alice", group_id, "bob", "admin")).event is None
        for actor, target, role, error in (
            ("bob", "carol", "admin", "no_permission"),
            ("bob", "bob", "member", "no_permission"),
            ("carol", "carol", "admin", "no_permission"),
            ("alice", "alice", "member", "no_permission"),
            ("alice", "bob", "owner", "bad_role"),
            ("alice", "frank", "admin", "not_group_member"),
            ("frank", "bob", "member", "not_group_member"),
        ):
            with refused(error):
                await core.groups.set_role(actor, group_id, target, role)
        change = await core.groups.set_role("alice", group_id, "bob", "member")
        assert told(change.event) == (106, "alice", {"user_id": "bob", "role": "member", "by": "alice"})
        assert await roles(core, group_id) == {"alice": 2, "bob": 0, "carol": 0}
        assert (await core.conversations.pull("alice", name)).head_seq == 3


async def test_owner_and_admins_change_what_describes_the_group(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await staffed_group(core)
        changes = {"name": "n" * 128, "avatar": "https://a", "introduction": "", "announcement": "公告" * 2048}
        commits = CommitLog()
        core.store.seam.attach(commits)
        group = await core.groups.update("bob", group_id, join_policy="invite", **changes)
        [(_, change)] = commits.take()
        assert told(change.event) == (107, "bob", {"changes": changes | {"join_policy": "invite"}, "by": "bob"})
        assert group == await core.groups.info(group_id)
        assert (group.name, group.avatar, group.introduction) == ("n" * 128, "https://a", "")
        assert (group.announcement, group.join_policy) == ("公告" * 2048, "invite")
        for user, error in (("dave", "no_permission"), ("frank", "not_group_member")):
            with refused(error):
                await core.groups.update(user, group_id, name="x")
        await core.groups.leave("bob", group_id)
        with refused("not_group_member"):
            await core.groups.update("bob", group_id, name="x")


async def test_muting_follows_rank_and_tells_until_when(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await staffed_group(core)
        before = now_ms()
        change = await core.groups.mute("bob", group_id, "dave", 60)
        msg_type, sender, content = told(change.event)
        assert (msg_type, sender, set(content)) == (109, "bob", {"user_id", "until"})
        assert content["user_id"] == "dave"
        assert before + 59_000 <= content["until"] <= now_ms() + 61_000
        members, _, _ = await core.groups.members("erin", group_id)
        assert {member.user_id: member.muted_until for member in members}["dave"] == content["until"]
        change = await core.groups.mute("bob", group_id, "dave", 0)
        assert told(change.event) == (109, "bob", {"user_id": "dave", "until": 0})
        await say(core, "dave", group_id)
        change = await core.groups.mute("alice", group_id, None, -1)
        assert told(change.event) == (109, "alice", {"user_id": None, "until": -1})
        assert (await core.groups.info(group_id)).mute_until == -1
        await core.groups.mute("alice", group_id, "bob", 5)
        for actor, target, duration, error in (
            ("bob", "carol", 5, "no_permission"),
            ("bob", "alice", 5, "no_permission"),
            ("bob", "bob", 0, "no_permission"),
            ("dave", "erin", 5, "no_permission"),
            ("dave", None, 0, "no_permission"),
            ("frank", None, 0, "not_group_member"),
            ("frank", "dave", 0, "not_group_member"),
            ("alice", "frank", 5, "not_group_member"),
            ("alice", "dave", -2, "bad_duration"),
            ("alice", None, 1 << 40, "bad_duration"),
        ):
            with refused(error):
                await core.groups.mute(actor, group_id, target, duration)


# -- the end -------------------------------------------------------------------------------------------


async def test_a_dismissed_group_stays_readable_and_takes_nothing_more(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await staffed_group(core, join_policy="approval")
        message = await say(core, "alice", group_id)
        await core.groups.leave("erin", group_id)
        for actor, error in (("bob", "no_permission"), ("dave", "no_permission"), ("frank", "not_group_member")):
            with refused(error):
                await core.groups.dismiss(actor, group_id)
        change = await core.groups.dismiss("alice", group_id)
        assert told(change.event) == (108, "alice", {"by": "alice"})
        for user in ("alice", "bob", "dave"):
            assert await seqs(core, user, name) == [1, 2, 3, 4, 5, 6]
        assert await seqs(core, "erin", name) == [1, 2, 3, 4, 5]
        for attempt in (
            core.groups.join("frank", group_id),
            core.groups.invite("alice", group_id, ["frank"]),
            core.groups.leave("bob", group_id),
            core.groups.remove("alice", group_id, "dave"),
            core.groups.transfer("alice", group_id, "bob"),
            core.groups.set_role("alice", group_id, "dave", "admin"),
            core.groups.mute("alice", group_id, None, 5),
            core.groups.update("alice", group_id, name="x"),
            core.groups.dismiss("alice", group_id),
            core.groups.decide_join("alice", group_id, "frank", True),
            core.conversations.recall("alice", message.server_msg_id),
            say(core, "alice", group_id),
        ):
            with refused("group_not_available"):
                await attempt
        assert (await core.groups.info(group_id)).status == 1
        assert await core.groups.mine("alice") == []
        entries, _, _ = await core.conversations.entries("dave")
        assert [entry.conversation_id for entry in entries] == [name]
        assert (await core.acknowledging.mark_read("dave", name, seq=99))[0] == 6


async def test_deleting_a_groups_conversation_dismisses_it_and_clears_every_list(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        other_id, other = await found_group(core, "alice", "bob", "carol")
        await core.groups.leave("carol", group_id)
        for actor, error in (("bob", "no_permission"), ("frank", "not_group_member"), ("carol", "not_group_member")):
            with refused(error):
                await core.conversations.delete(actor, name)
        change = await core.conversations.delete("alice", name)
        assert told(change.event) == (108, "alice", {"by": "alice"})
        for user in ("alice", "bob", "carol"):
            entries, _, _ = await core.conversations.entries(user)
            assert [entry.conversation_id for entry in entries] == [other]
            heads, _, _ = await core.conversations.sync(user)
            assert [head.conversation_id for head in heads] == [other]
            page = await core.conversations.offline(user)
            assert {message.conversation_id for message in page.messages} == {other}
        with refused("group_not_available"):
            await say(core, "alice", group_id)
        with refused("group_not_available"):
            await core.conversations.delete("alice", name)
        assert (await core.groups.info(group_id)).status != 0
        await core.groups.dismiss("alice", other_id)
        await core.conversations.delete("alice", other)  # one that is dismissed already
        assert (await core.conversations.entries("bob"))[0] == []


async def test_only_groups_can_be_deleted(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await say(core, "alice", "bob")
        with refused("conversation_private_cannot_delete"):
            await core.conversations.delete("alice", "si_alice:bob")
        with refused("group_not_found"):
            await core.conversations.delete("alice", f"sg_{UNKNOWN_GROUP}")
        with refused("bad_conversation_id"):
            await core.conversations.delete("alice", "sg_nonsense")


@pytest.mark.parametrize("delete", [False, True])
async def test_ending_a_large_group_costs_no_more_than_ending_a_small_one(core_url: str, delete: bool) -> None:
    users = [f"u{n:03}" for n in range(300)]
    async with open_test_core(core_url, users) as core:
        costs = []
        for count in (3, 300):
            group_id, _ = await found_group(core, *users[:count])
            before = await snapshot(core)
            with recorded(core) as recording:
                await core.groups.dismiss("u000", group_id, delete=delete)
            costs.append((recording.count, changed_rows(before, await snapshot(core))))
        assert costs[0] == costs[1]
        assert costs[0][1] == {"messages": 1, "conversations": 1, "chat_groups": 1, "journal": 1}


# -- looking -------------------------------------------------------------------------------------------


async def test_unknown_groups_are_not_found_by_anything(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        await found_group(core, "alice", "bob", "carol")
        for group_id in (UNKNOWN_GROUP, "nonsense", "", "g_" + "x" * 13, "g_\x00" + "x" * 11):
            for attempt in (
                core.groups.info(group_id),
                core.groups.join("alice", group_id),
                core.groups.leave("alice", group_id),
                core.groups.invite("alice", group_id, ["dave"]),
                core.groups.remove("alice", group_id, "bob"),
                core.groups.transfer("alice", group_id, "bob"),
                core.groups.set_role("alice", group_id, "bob", "admin"),
                core.groups.mute("alice", group_id, None, 5),
                core.groups.update("alice", group_id, name="x"),
                core.groups.dismiss("alice", group_id),
                core.groups.members("alice", group_id),
                core.groups.join_requests("alice", group_id),
                core.groups.decide_join("alice", group_id, "bob", True),
            ):
                with refused("group_not_found"):
                    await attempt


async def test_members_see_the_members_page_by_page(core_url: str) -> None:
    users = [f"u{n:02}" for n in range(25)]
    async with open_test_core(core_url, users) as core:
        group_id, _ = await found_group(core, *users[:24])
        await core.groups.leave("u07", group_id)
        found: list[str] = []
        cursor, has_more = "", True
        while has_more:
            page, cursor, has_more = await core.groups.members("u03", group_id, cursor or None, 10)
            assert len(page) <= 10
            assert has_more == bool(cursor)
            found += [member.user_id for member in page]
        assert found == [user for user in users[:24] if user != "u07"]
        (first, *_), _, _ = await core.groups.members("u03", group_id, None, 1)
        assert (first.user_id, first.role, first.nickname, first.muted_until) == ("u00", 2, "u00", 0)
        assert first.joined_at > 0
        for outsider in ("u24", "u07"):
            with refused("not_group_member"):
                await core.groups.members(outsider, group_id)


async def test_ones_groups_are_those_one_is_in_now(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        first, _ = await found_group(core, "alice", "bob", "carol")
        second, _ = await found_group(core, "bob", "alice", "carol")
        third, _ = await found_group(core, "carol", "alice", "bob")
        await core.groups.leave("alice", second)
        await core.groups.dismiss("carol", third)
        assert [group.group_id for group in await core.groups.mine("alice")] == [first]
        assert [group.group_id for group in await core.groups.mine("bob")] == [first, second]
        assert await core.groups.mine("dave") == []


# -- events --------------------------------------------------------------------------------------------


async def test_events_have_their_own_seq_and_never_count_as_unread(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, name = await found_group(core, "alice", "bob", "carol")
        await core.groups.update("alice", group_id, name="new")
        await core.groups.set_role("alice", group_id, "bob", "admin")
        await core.groups.mute("alice", group_id, None, 5)
        await core.groups.invite("alice", group_id, ["dave"])
        message = await say(core, "alice", group_id)
        await core.conversations.recall("alice", message.server_msg_id)
        assert [head.unread for head in await core.conversations.heads("carol", [name])] == [1]
        assert [head.unread for head in await core.conversations.heads("alice", [name])] == [0]
        page = await core.conversations.pull("carol", name)
        assert [message.seq for message in page.messages] == [1, 2, 3, 4, 5, 6, 7]
        assert [message.msg_type for message in page.messages] == [101, 107, 106, 109, 102, 1, 100]
        assert all(a.send_at < b.send_at for a, b in pairwise(page.messages))


async def test_every_change_of_membership_raises_the_epoch_and_others_do_not(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        epochs = [(await core.groups.join("dave", group_id))[1].member_epoch]
        epochs.append((await core.groups.invite("alice", group_id, ["erin"])).member_epoch)
        epochs.append((await core.groups.leave("dave", group_id)).member_epoch)
        epochs.append((await core.groups.remove("alice", group_id, "erin")).member_epoch)
        assert epochs == list(range(epochs[0], epochs[0] + 4))
        quiet = [
            await core.groups.set_role("alice", group_id, "bob", "admin"),
            await core.groups.mute("alice", group_id, None, 0),
            await core.groups.transfer("alice", group_id, "bob"),
        ]
        assert [change.member_epoch for change in quiet] == [epochs[-1]] * 3
        sent = await core.sending.send("alice", client_msg_id="e", group_id=group_id, content="hi")
        assert sent.member_epoch == epochs[-1]
        assert (await core.groups.dismiss("bob", group_id)).member_epoch == epochs[-1] + 1


async def test_a_change_that_is_refused_leaves_no_trace(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE, group__max_members=4) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", join_policy="approval")
        for user in ("dave", "erin"):
            await core.groups.join(user, group_id)
        await core.groups.decide_join("alice", group_id, "dave", True)
        before = await snapshot(core)
        with pytest.raises(NexoError, match="group_full"):
            await core.groups.decide_join("alice", group_id, "erin", True)
        assert changed_rows(before, await snapshot(core)) == {}
        await run(core, "UPDATE members SET role=0 WHERE user_id='alice'")
        with refused("no_permission"):
            await core.groups.decide_join("alice", group_id, "erin", True)


# -- blocks --------------------------------------------------------------------------------------------


async def block(core: Core, user: str, other: str) -> None:
    await SqlAccounts(core.store.database).block(user, other)


async def test_a_blocked_user_does_not_bring_the_blocker_into_a_group(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol")
        await block(core, "dave", "bob")
        await block(core, "carol", "bob")
        change = await core.groups.invite("bob", group_id, ["dave", "erin", "carol"])
        assert change.added == ["erin"]
        assert change.skipped == [("dave", "blocked"), ("carol", "already_member")]
        assert "dave" not in await roles(core, group_id)
        change = await core.groups.invite("bob", group_id, ["dave"])
        assert (change.event, change.skipped) == (None, [("dave", "blocked")])
        assert (await core.groups.invite("alice", group_id, ["dave"])).added == ["dave"]
        with pytest.raises(NexoError) as caught:
            await core.groups.create("bob", name="trap", member_ids=["alice", "dave", "carol"])
        assert (caught.value.name, caught.value.data) == ("blocked", {"user_ids": ["carol", "dave"]})


async def test_one_who_asked_to_join_is_let_in_by_an_admin_whom_they_blocked(core_url: str) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, "alice", "bob", "carol", join_policy="approval")
        await block(core, "dave", "alice")
        await core.groups.join("dave", group_id)
        await core.groups.decide_join("alice", group_id, "dave", True)
        assert "dave" in await roles(core, group_id)

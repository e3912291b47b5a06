"""Moderators: originals of recalled messages, recalling any message, a user's messages, disabled groups."""

from __future__ import annotations

from typing import Any

import pytest

from harness.api import Api, check_tally, make_group, make_key, open_api, send
from nexo.api import moderation
from nexo.ids import MODERATOR_ID
from nexo.store.check import check


async def journal_of(api: Api, *types: str) -> list[tuple[str, Any]]:
    page = await api.core.store.journal.page(await api.core.store.journal.place_of("begin"), 256, set(types))
    return [(entry.type, entry.data) for entry in page.entries]


async def recall(api: Api, sender: str, message: Any) -> None:
    assert (await api.post(sender, "/msg/recall", server_msg_id=message["server_msg_id"])).status == 200


async def test_what_was_recalled_is_readable_to_moderators_only(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "boss"]) as api:
        await api.accounts.set_admin("boss", True)
        key = await make_key(api, "moderate")
        first = await send(api, "ann", "bob", "hello")
        sent = await send(
            api, "ann", "bob", "you fool", reply_to=first["server_msg_id"], extra={"mood": 1}, mentions=["bob"]
        )
        await recall(api, "ann", sent)
        for caller in ("boss", key):
            seen = (await api.get(caller, f"/server/messages/{sent['server_msg_id']}")).data
            assert (seen["message"]["status"], seen["message"]["content"]) == (1, "")
            (version,) = seen["versions"]
            assert version.pop("replaced_at") == seen["message"]["recalled_at"]
            assert version == {
                "content": "you fool",
                "mentions": ["bob"],
                "reply_to": first["server_msg_id"],
                "extra": {"mood": 1},
                "replaced_by": "ann",
                "cause": "recall",
            }
        for person in ("ann", "bob"):
            assert (await api.get(person, f"/server/messages/{sent['server_msg_id']}")).error == "scope_missing"
            shown = await api.get(person, "/msg/history", conversation_id=sent["conversation_id"])
            assert "you fool" not in str(shown.body)
        whole = (await api.get(key, f"/server/messages/{first['server_msg_id']}")).data
        assert (whole["message"]["content"], whole["versions"]) == ("hello", [])
        assert (await api.get(key, "/server/messages/12345")).error == "message_not_found"
        assert (await api.get(key, "/server/messages/x")).error == "bad_server_msg_id"
        log = (await api.get(key, "/server/audit", target=sent["server_msg_id"])).data["entries"]
        assert [(entry["actor"], entry["act"]) for entry in log] == [
            ("key:moderate", "message.read"),
            ("user:boss", "message.read"),
        ]


async def test_nothing_is_kept_when_the_operator_keeps_nothing(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"], recall__keep_days=0) as api:
        key = await make_key(api, "moderate")
        for act in ("by the sender", "by a moderator"):
            sent = await send(api, "ann", "bob", "you fool")
            if act == "by the sender":
                await recall(api, "ann", sent)
            else:
                await api.post(key, f"/server/messages/{sent['server_msg_id']}/recall")
            assert (await api.get(key, f"/server/messages/{sent['server_msg_id']}")).data["versions"] == []


async def test_originals_are_trimmed_when_their_time_is_over(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "moderate")
        sent = await send(api, "ann", "bob", "you fool")
        await recall(api, "ann", sent)
        store = api.core.store.moderation
        assert await store.trim_versions(60_000) == 0
        assert len((await api.get(key, f"/server/messages/{sent['server_msg_id']}")).data["versions"]) == 1
        assert await store.trim_versions(-1) == 1
        assert (await api.get(key, f"/server/messages/{sent['server_msg_id']}")).data["versions"] == []
        assert await store.trim_versions(-1) == 0


async def test_a_moderator_recalls_any_message_at_any_time(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cat", "boss"], recall__window_s=0, recall__admin=False) as api:
        await api.accounts.set_admin("boss", True)
        key = await make_key(api, "moderate")
        group = await make_group(api, "ann", "bob", "cat")
        for caller, by, actor in (("boss", "boss", "user:boss"), (key, MODERATOR_ID, "key:moderate")):
            for target in ("bob", group["group_id"]):
                sent = await send(api, "ann", target, "spam")
                path = f"/server/messages/{sent['server_msg_id']}/recall"
                done = (await api.post(caller, path)).data
                assert done["seq"] == sent["seq"] + 1
                assert (await api.post(caller, path)).data == done, "repeated: the same answer"
                messages = (await api.get("bob", "/msg/history", conversation_id=sent["conversation_id"])).data
                event, blank = messages["messages"][:2]
                assert (event["msg_type"], event["sender_id"], event["content"]["by"]) == (100, by, by)
                assert (blank["status"], blank["content"]) == (1, "")
                (version,) = (await api.get(key, path.removesuffix("/recall"))).data["versions"]
                assert (version["content"], version["replaced_by"]) == ("spam", actor)
                log = (await api.get("boss", "/server/audit", target=sent["server_msg_id"])).data["entries"]
                assert [entry["actor"] for entry in log if entry["act"] == "message.recall"] == [actor]
                assert (await api.post(caller, f"/server/messages/{event['server_msg_id']}/recall")).error == (
                    "message_not_found"
                )
        facts = [(data.conversation_id, data.by) for _, data in await journal_of(api, "message.recalled")]
        assert [by for _, by in facts] == ["boss", "boss", MODERATOR_ID, MODERATOR_ID]
        assert [kind for kind, _ in api.publisher.told].count("recalled") == 4, "members are notified"
        assert (await api.post(key, "/server/messages/x/recall")).error == "bad_server_msg_id"
        assert (await check(api.core.store.url)).findings == []


async def test_a_moderator_lists_what_a_user_has_sent(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cat"]) as api:
        key = await make_key(api, "moderate")
        group = await make_group(api, "ann", "bob", "cat")
        sent = []
        for number in range(4):
            sent.append(await send(api, "ann", "bob", f"to bob {number}"))
            await send(api, "bob", "ann", "of another")
            sent.append(await send(api, "ann", group["group_id"], f"to the group {number}"))
        await recall(api, "ann", sent[-1])
        found: list[Any] = []
        query: dict[str, Any] = {"limit": 3}
        while True:
            page = (await api.get(key, "/server/users/ann/messages", **query)).data
            found += page["messages"]
            if not page["has_more"]:
                break
            query["before"] = page["next_before"]
        assert [one["server_msg_id"] for one in found] == [one["server_msg_id"] for one in reversed(sent)]
        assert [one["content"] for one in found[:2]] == ["", "to bob 3"], "as members see it"
        assert len((await api.get(key, "/server/users/ann/messages")).data["messages"]) == 8
        assert (await api.get(key, "/server/users/cat/messages")).data["messages"] == []
        assert (await api.get(key, "/server/users/nemo/messages")).error == "user_not_found"
        assert (await api.get(key, "/server/users/a%20b/messages")).error == "bad_user_id"
        assert (await api.get(key, "/server/users/ann/messages", limit=101)).error == "bad_limit"
        assert (await api.get(key, "/server/users/ann/messages", before="x")).error == "bad_server_msg_id"
        assert (await api.get("ann", "/server/users/ann/messages")).error == "scope_missing"
        log = (await api.get(key, "/server/audit", target="ann")).data["entries"]
        assert {entry["act"] for entry in log} == {"user.messages"}


async def test_a_disabled_group_can_be_read_and_not_changed_until_enabled(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cat", "dan"]) as api:
        key = await make_key(api, "moderate")
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        sent = await send(api, "ann", group_id, "hello")
        before = api.publisher.told.count(("audience_changed", f"sg_{group_id}"))
        assert (await api.post(key, f"/server/groups/{group_id}/disable", reason="spam")).status == 200
        assert (await api.post(key, f"/server/groups/{group_id}/disable", reason="spam")).status == 200
        assert api.publisher.told.count(("audience_changed", f"sg_{group_id}")) > before
        fields = {"client_msg_id": "x1", "group_id": group_id, "content": "no"}
        for caller, path, body in (
            ("bob", "/msg/send", fields),
            ("dan", "/group/join", {"group_id": group_id}),
            ("bob", "/group/quit", {"group_id": group_id}),
            ("ann", "/group/invite", {"group_id": group_id, "user_ids": ["dan"]}),
            ("ann", "/group/mute", {"group_id": group_id, "duration_s": 60}),
            ("ann", "/group/dismiss", {"group_id": group_id}),
            ("ann", "/msg/recall", {"server_msg_id": sent["server_msg_id"]}),
        ):
            assert (await api.post(caller, path, **body)).error == "group_not_available", path
        assert (await api.put("ann", "/group/update", group_id=group_id, name="x")).error == "group_not_available"
        read = (await api.get("bob", "/msg/history", conversation_id=f"sg_{group_id}")).data
        assert read["messages"][0]["content"] == "hello"
        assert (await api.get("bob", "/group/info", group_id=group_id)).data["status"] == 2
        assert [one["group_id"] for one in (await api.get("bob", "/group/list")).data["groups"]] == [group_id]
        assert (await api.post(key, f"/server/messages/{sent['server_msg_id']}/recall")).status == 200
        assert (await check(api.core.store.url)).findings == []
        assert (await api.post(key, f"/server/groups/{group_id}/enable")).status == 200
        assert (await api.post(key, f"/server/groups/{group_id}/enable")).status == 200
        assert (await api.post("bob", "/msg/send", **fields)).status == 200
        assert (await api.get("bob", "/group/info", group_id=group_id)).data["status"] == 0
        assert (await check(api.core.store.url)).findings == []
        entries = await journal_of(api, "group.disabled", "group.enabled")
        assert [(kind, data.group_id) for kind, data in entries] == [
            ("group.disabled", group_id),
            ("group.enabled", group_id),
        ]
        log = (await api.get(key, "/server/audit", target=group_id)).data["entries"]
        assert [(entry["act"], entry["detail"]) for entry in log] == [
            ("group.enable", {}),
            ("group.disable", {"reason": "spam"}),
        ]
        assert (await api.post("ann", "/group/dismiss", group_id=group_id)).status == 200
        for act in ("disable", "enable"):
            assert (await api.post(key, f"/server/groups/{group_id}/{act}")).error == "group_not_available"
            assert (await api.post(key, f"/server/groups/g_000000000000/{act}")).error == "group_not_found"
            assert (await api.post(key, f"/server/groups/x/{act}")).error == "bad_group_id"


async def test_a_consumer_gets_only_the_types_it_asked_for(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob", "cat"]) as api:
        key = await make_key(api, "shop", "moderate", "users")
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        await api.post(key, f"/server/groups/{group_id}/disable")
        await api.post(key, "/server/users/ann/disable")
        assert [kind for kind, _ in await journal_of(api, "user.disabled")] == ["user.disabled"]
        assert [kind for kind, _ in await journal_of(api, "group.created")] == ["group.created"]


async def test_a_code_to_reset_a_password_is_for_open_accounts(core_url: str) -> None:
    async with open_api(core_url, ["ann"]) as api:
        key = await make_key(api, "moderate")
        assert (await api.post(key, "/server/users/nemo/password_reset")).error == "user_not_found"
        assert (await api.post(key, "/server/users/a%20b/password_reset")).error == "bad_user_id"
        assert (await api.post(key, "/server/users/ann/password_reset")).status == 200
        await api.backend.accounts.disable("ann", "", "user:boss")
        assert (await api.post(key, "/server/users/ann/password_reset")).error == "user_disabled"
    async with open_api(core_url, auth__passwords=False) as api:
        assert (await api.post(await make_key(api, "m", "moderate"), "/server/users/ann/password_reset")).error == (
            "passwords_off"
        )


# The last test of this file: what all of them together have met.
def test_every_route_was_called_and_every_error_it_documents_was_met(
    request: pytest.FixtureRequest, core_url: str
) -> None:
    check_tally(request, moderation)

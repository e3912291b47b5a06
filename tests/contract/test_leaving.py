"""One's own account: sessions, who sees when one was last connected, closing it for good, taking data along."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec

from harness.api import PASSWORD, Api, SomeOnline, make_group, make_key, open_api, send
from harness.core import look, run
from nexo.assembly.people import account_chore
from nexo.service import account_work
from nexo.store import account_work as store_work
from nexo.store.check import check

PEOPLE = ("ann", "bob", "cat", "dan")


async def delete(api: Api, user: str, **fields: Any) -> Any:
    return await api.request(user, "DELETE", "/user", json=fields)


async def assert_sound(api: Api) -> None:
    assert (await check(api.core.store.url)).findings == []


async def befriend(api: Api, one: str, other: str) -> None:
    await api.post(one, "/contact/request", user_id=other)
    assert (await api.post(other, "/contact/decide", user_id=one, accept=True)).status == 200


# -- sessions --------------------------------------------------------------------------------------------


async def test_sessions_are_listed_with_device_address_and_time(core_url: str) -> None:
    async with open_api(core_url, ["ann"]) as api:
        phone = await api.accounts.login("ann", PASSWORD, 1, "phone", "192.0.2.7")
        listed = (await api.get("ann", "/session/list")).data["sessions"]
        assert [(one["device_id"], one["platform_id"], one["address"], one["current"]) for one in listed] == [
            ("", 5, "", True),
            ("phone", 1, "192.0.2.7", False),
        ]
        assert all(one["last_seen_at"] >= one["created_at"] > 0 for one in listed)
        key = await make_key(api, "shop", "act")
        refused = await api.request(key, "GET", "/session/list", headers={"Nexo-User": "ann"})
        assert refused.error == "scope_missing"
        assert (await api.post("ann", "/session/revoke", session_id=listed[1]["session_id"])).data == {"revoked": 1}
        api.tokens["phone"] = phone.access_token
        assert (await api.get("phone", "/user/info")).error == "session_invalid"
        assert len((await api.get("ann", "/session/list")).data["sessions"]) == 1
        assert (await api.post("ann", "/session/revoke", session_id=listed[1]["session_id"])).error == (
            "session_not_found"
        )


async def test_all_other_sessions_end_at_once(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        for number in range(3):
            api.tokens[f"d{number}"] = (await api.accounts.login("ann", PASSWORD, 5, f"d{number}")).access_token
        foreign = (await api.get("bob", "/session/list")).data["sessions"][0]["session_id"]
        assert (await api.post("ann", "/session/revoke", session_id=foreign)).error == "session_not_found"
        assert (await api.post("ann", "/session/revoke")).error == "missing_session_id"
        assert (await api.post("ann", "/session/revoke", session_id="")).error == "bad_session_id"
        assert (await api.post("ann", "/session/revoke", session_id="x", others=True)).error == "bad_request"
        assert (await api.post("ann", "/session/revoke", others=True)).data == {"revoked": 3}
        assert (await api.get("d1", "/user/info")).error == "session_invalid"
        assert (await api.get("ann", "/user/info")).status == 200
        assert (await api.get("bob", "/user/info")).status == 200


# -- last seen -------------------------------------------------------------------------------------------


async def test_the_last_time_is_shown_to_those_that_a_user_chooses(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        await befriend(api, "ann", "bob")
        await run(api.core, "UPDATE users SET last_seen_at=12345 WHERE user_id='ann'")

        async def seen_by(user: str) -> list[Any]:
            info = (await api.get(user, "/user/info", user_id="ann")).data
            (online,) = (await api.get(user, "/user/online", user_ids="ann")).data["users"]
            return [bool(info.get("last_seen_at")), bool(online.get("last_seen_at"))]

        assert (await api.get("ann", "/user/info")).data["privacy"] == {"last_seen": "everybody"}
        for choice, bob, cat in (("everybody", True, True), ("contacts", True, False), ("nobody", False, False)):
            changed = (await api.put("ann", "/user/update", privacy={"last_seen": choice})).data
            assert changed["privacy"] == {"last_seen": choice}
            assert (await seen_by("bob"), await seen_by("cat")) == ([bob, bob], [cat, cat]), choice
        assert (await api.put("ann", "/user/update", privacy={"last_seen": "friends"})).error == "bad_privacy"
        assert (await api.put("ann", "/user/update", privacy="nobody")).error == "bad_privacy"
        await api.put("ann", "/user/update", privacy={"last_seen": "everybody"})
        await api.post("ann", "/user/block", user_id="cat")
        assert await seen_by("cat") == [False, False]


async def test_presence_is_hidden_as_the_last_time_is(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, online=SomeOnline("ann")) as api:
        await befriend(api, "ann", "bob")
        hidden_from = api.core.store.conversations.hidden_from
        assert await hidden_from("cat", ["ann", "dan"]) == set()
        await api.put("ann", "/user/update", privacy={"last_seen": "contacts"})
        assert (await hidden_from("cat", ["ann", "dan"]), await hidden_from("bob", ["ann"])) == ({"ann"}, set())
        await api.put("ann", "/user/update", privacy={"last_seen": "nobody"})
        assert (await hidden_from("bob", ["ann"]), await hidden_from("ann", ["ann"])) == ({"ann"}, set())
        assert ("visibility_changed", "ann") in api.publisher.take()


# -- closing ---------------------------------------------------------------------------------------------


async def test_a_closed_account_cannot_be_used_and_its_id_is_never_given_again(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await make_key(api, "shop", "users", "act", "tokens")
        await api.put("ann", "/user/update", nickname="Ann A.", avatar="https://x.example/a.png", extra={"a": 1})
        said = await send(api, "ann", "bob", "hello")
        await befriend(api, "ann", "bob")
        await api.post("cat", "/contact/request", user_id="ann")
        assert (await delete(api, "ann", password="wrong wrong")).error == "invalid_credentials"
        assert (await api.request(key, "DELETE", "/user", json={}, headers={"Nexo-User": "ann"})).error == (
            "scope_missing"
        )
        assert (await delete(api, "ann", password=PASSWORD)).status == 200
        assert (await api.get("ann", "/user/info")).error == "user_deleted"
        login = await api.post(None, "/auth/login", user_id="ann", password=PASSWORD)
        assert login.error == "user_deleted"
        assert (await api.post(None, "/user/register", user_id="ann", password=PASSWORD)).error == "user_exists"
        put = await api.put(key, "/server/users", users=[{"user_id": "ann", "nickname": "back"}])
        assert put.error == "user_deleted"
        assert (await api.post(key, "/server/tokens", user_id="ann")).error == "user_deleted"
        shown = (await api.get("bob", "/user/info", user_id="ann")).data
        assert (shown["nickname"], shown["avatar"], shown["extra"], shown["deleted"]) == (
            "deleted user",
            "",
            None,
            True,
        )
        assert (await api.get("bob", "/user/search", q="an")).data["users"] == []
        assert (await api.get("bob", "/contact/list")).data["contacts"] == []
        assert (await api.get("cat", "/contact/requests", sent="true")).data["requests"] == []
        (kept,) = (await api.get("bob", "/msg/history", conversation_id=said["conversation_id"])).data["messages"]
        assert (kept["content"], kept["sender_id"]) == ("hello", "ann")
        for path, fields in (
            ("/msg/send", {"client_msg_id": "c1", "recv_id": "ann", "content": "are you there"}),
            ("/contact/request", {"user_id": "ann"}),
        ):
            assert (await api.post("bob", path, **fields)).error == "user_not_found", path
            assert (await api.post("dan", path, **fields)).error == "user_not_found", path
        assert await look(api.core, "SELECT 1 FROM sessions WHERE user_id='ann'") == []
        assert await look(api.core, "SELECT 1 FROM account_closings") == []
        store = api.core.store.journal
        page = await store.page(await store.place_of("begin"), 256, {"user.deleted"})
        assert [entry.user_id for entry in page.entries] == ["ann"]
        await assert_sound(api)


async def test_groups_of_a_closed_account_pass_to_the_oldest_admin_or_member_or_are_dismissed(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, group__min_create_members=1) as api:
        led = (await make_group(api, "ann", "bob", "cat", "dan"))["group_id"]
        await api.post("ann", "/group/set_member_role", group_id=led, user_id="dan", role="admin")
        plain = (await make_group(api, "ann", "cat"))["group_id"]
        await api.post("ann", "/group/invite", group_id=plain, user_ids=["bob"])
        alone = (await make_group(api, "ann"))["group_id"]
        theirs = (await make_group(api, "bob", "ann"))["group_id"]
        await api.put("ann", "/group/member", group_id=theirs, group_nickname="A.")
        assert (await delete(api, "ann", password=PASSWORD)).status == 200
        for group_id, viewer, owner, members in (
            (led, "bob", "dan", ["bob", "cat", "dan"]),
            (plain, "bob", "cat", ["bob", "cat"]),
            (theirs, "bob", "bob", ["bob"]),
        ):
            assert (await api.get(viewer, "/group/info", group_id=group_id)).data["owner_id"] == owner
            listed = (await api.get(viewer, "/group/members", group_id=group_id)).data["members"]
            assert [member["user_id"] for member in listed] == members
            history = (await api.get(viewer, "/msg/history", conversation_id=f"sg_{group_id}", limit=2)).data[
                "messages"
            ]
            wanted = [(103, {"user_id": "ann"})]
            if group_id != theirs:
                wanted.append((105, {"from": "ann", "to": owner}))
            assert [(one["msg_type"], one["content"]) for one in history][: len(wanted)] == wanted
        assert (await api.core.groups.info(alone)).status == 1
        left = await look(api.core, "SELECT group_nickname FROM members WHERE user_id='ann' AND group_nickname<>''")
        assert left == []
        await assert_sound(api)


async def test_messages_of_a_closed_account_are_erased_on_demand_with_every_version(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, limits__sends_per_s=0) as api:
        group = await make_group(api, "ann", "bob", "cat")
        for number in range(60):
            await send(api, "ann", group["group_id"], f"secret {number}")
        recalled = await send(api, "ann", "bob", "secret recalled")
        await api.post("ann", "/msg/recall", server_msg_id=recalled["server_msg_id"])
        quoted = await send(api, "ann", group["group_id"], "secret")
        await send(api, "bob", group["group_id"], "mine stays", reply_to=quoted["server_msg_id"])
        assert (await delete(api, "ann", password=PASSWORD, erase_messages=True)).status == 200
        found = await look(api.core, "SELECT content FROM messages")
        assert not [row for row in found if "secret" in row[0]]
        assert await look(api.core, "SELECT 1 FROM message_versions") == []
        history = (await api.get("bob", "/msg/history", conversation_id=group["conversation_id"])).data["messages"]
        assert "secret" not in str(history)
        assert [one["content"] for one in history if one["sender_id"] == "bob"] == ["mine stays"]
        await assert_sound(api)


async def test_what_a_closing_has_left_is_done_by_the_chores(core_url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(account_work, "AT_ONCE_S", -1.0)
    async with open_api(core_url, PEOPLE) as api:
        for other in ("bob", "cat", "dan"):
            await send(api, "ann", other, "secret")
            await befriend(api, "ann", other)
        assert (await delete(api, "ann", password=PASSWORD, erase_messages=True)).status == 200
        assert len(await look(api.core, "SELECT 1 FROM account_closings")) == 1
        await assert_sound(api)
        await account_chore(api.core.config, api.core.store).step()
        assert await look(api.core, "SELECT 1 FROM account_closings") == []
        assert await look(api.core, "SELECT 1 FROM contacts") == []
        assert "secret" not in str(await look(api.core, "SELECT content FROM messages"))
        await assert_sound(api)


async def test_closing_needs_the_password_or_a_fresh_session(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"], auth__fresh_s=1) as api:
        await run(api.core, "UPDATE sessions SET created_at=created_at-60000 WHERE user_id='ann'")
        assert (await delete(api, "ann")).error == "missing_password"
        assert (await api.post("ann", "/user/export")).error == "missing_password"
        assert (await delete(api, "bob")).status == 200
        assert (await delete(api, "ann", password=PASSWORD)).status == 200


async def test_a_backend_closes_an_account_by_its_key(core_url: str) -> None:
    async with open_api(core_url, PEOPLE) as api:
        key = await make_key(api, "shop", "users", "moderate")
        assert (await api.request("bob", "DELETE", "/server/users/ann")).error == "scope_missing"
        assert (await api.request(key, "DELETE", "/server/users/ann", params={"erase_messages": "true"})).status == 200
        assert (await api.request(key, "DELETE", "/server/users/ann")).error == "user_deleted"
        assert (await api.request(key, "DELETE", "/server/users/nemo")).error == "user_not_found"
        assert (await api.request(key, "DELETE", "/server/users/nexo.canary")).error == "bad_user_id"
        assert (await api.post(key, "/server/users/ann/enable")).error == "user_deleted"
        log = (await api.get(key, "/server/audit", target="ann")).data["entries"]
        assert [(entry["actor"], entry["act"], entry["detail"]) for entry in log] == [
            ("key:shop", "user.delete", {"erase_messages": True})
        ]


# -- export ----------------------------------------------------------------------------------------------


async def exported(api: Api, user: str) -> list[Any]:
    response = await api.http.get("/user/export/file", headers={"Authorization": f"Bearer {api.tokens[user]}"})
    assert (response.status_code, response.headers["content-type"]) == (200, "application/octet-stream")
    assert int(response.headers["content-length"]) == len(response.content)
    return [msgspec.json.decode(line) for line in gzip.decompress(response.content).splitlines()]


async def test_an_export_has_everything_that_its_user_may_see_and_nothing_else(core_url: str) -> None:
    async with open_api(core_url, PEOPLE, limits__sends_per_s=0) as api:
        await befriend(api, "ann", "bob")
        group = await make_group(api, "bob", "cat", "dan")
        await send(api, "bob", group["group_id"], "before ann")
        await api.post("ann", "/group/join", group_id=group["group_id"])
        await send(api, "bob", group["group_id"], "with ann")
        await api.post("ann", "/group/quit", group_id=group["group_id"])
        await send(api, "bob", group["group_id"], "after ann")
        await send(api, "bob", "cat", "not for ann")
        for number in range(250):
            await send(api, "ann", "bob", f"m{number}")
        assert (await api.get("ann", "/user/export")).error == "not_found"
        begun = (await api.post("ann", "/user/export", password=PASSWORD)).data
        assert begun["status"] == "done"
        assert (await api.get("ann", "/user/export")).data == begun
        lines = await exported(api, "ann")
        texts = [line["message"]["content"] for line in lines if line["type"] == "message"]
        said = [text for text in texts if isinstance(text, str)]
        assert sorted(said) == sorted(["with ann", *(f"m{number}" for number in range(250))])
        assert begun["messages"] == len(texts)
        assert lines[0] == {"type": "user", "user": lines[0]["user"]}
        assert [line["user_id"] for line in lines if line["type"] == "contact"] == ["bob"]
        assert (await api.get("bob", "/user/export/file")).error == "not_found"


async def test_one_export_runs_at_a_time_and_is_deleted_after_its_time(core_url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(account_work, "AT_ONCE_S", -1.0)
    async with open_api(core_url, PEOPLE) as api:
        for other in ("bob", "cat", "dan"):
            await send(api, "ann", other)
        begun = (await api.post("ann", "/user/export")).data
        chore = account_chore(api.core.config, api.core.store)
        if begun["status"] == "running":
            assert (await api.post("ann", "/user/export")).data["export_id"] == begun["export_id"]
            await chore.step()
        assert (await api.get("ann", "/user/export")).data["status"] == "done"
        again = (await api.post("ann", "/user/export")).data
        assert again["export_id"] != begun["export_id"]
        await chore.step()
        assert len([line for line in await exported(api, "ann") if line["type"] == "message"]) == 3
        await run(api.core, "UPDATE exports SET expires_at=1")
        assert (await api.get("ann", "/user/export")).error == "not_found"
        await chore.step()
        assert await look(api.core, "SELECT 1 FROM export_parts") == []


async def test_an_export_that_gets_too_large_is_given_up(core_url: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(store_work, "MIB", 100)
    async with open_api(core_url, PEOPLE, export__max_mb=1) as api:
        await send(api, "ann", "bob")
        assert (await api.post("ann", "/user/export")).data["status"] == "too_large"
        assert (await api.get("ann", "/user/export/file")).error == "not_found"
        assert await look(api.core, "SELECT 1 FROM export_parts") == []

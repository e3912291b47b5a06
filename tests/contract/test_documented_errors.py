"""Meets every error that the routes of people, reports, changes of messages, search, calls and push document."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api import PASSWORD, Answer, Api, check_tally, make_group, make_key, open_api, send
from harness.core import run
from harness.migrated import migrated_database
from nexo.api import calls, message_changes, people, push, reports, search
from nexo.store import pins

EMOJIS = "😀😁😂😃"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with migrated_database("sqlite", tmp_path) as url:
        yield url


async def meet(asked: Coroutine[Any, Any, Answer], error: str) -> None:
    assert (await asked).error == error


async def done(asked: Coroutine[Any, Any, Answer]) -> Any:
    answer = await asked
    assert answer.status == 200, answer.body
    return answer.data


async def close(api: Api, user_id: str) -> None:
    await done(api.request(user_id, "DELETE", "/user", json={"password": PASSWORD}))


async def test_contacts(url: str) -> None:
    async with open_api(
        url, ["ann", "bob", "cy", "dee", "eve"], **{"contact.max": 1, "contact.max_requests": 1}
    ) as api:
        await send(api, "ann", "eve")
        await close(api, "eve")
        for path in ("/contact/request", "/contact/decide", "/contact/remove"):
            more = {"accept": True} if path == "/contact/decide" else {}
            await meet(api.post("ann", path, user_id="eve", **more), "user_not_found")
        await meet(api.post("ann", "/contact/decide", user_id="bob", accept=True), "contact_request_not_found")
        await meet(api.post("ann", "/contact/remove", user_id="bob"), "not_contact")
        await meet(api.post("ann", "/contact/remark", user_id="bob", remark="x"), "not_contact")
        await api.post("dee", "/user/block", user_id="ann")
        await meet(api.post("ann", "/contact/request", user_id="dee"), "blocked")
        await done(api.post("ann", "/contact/request", user_id="bob"))
        await meet(api.post("ann", "/contact/request", user_id="cy"), "too_many_contacts")
        await done(api.post("bob", "/contact/decide", user_id="ann", accept=True))
        await done(api.post("ann", "/contact/remark", user_id="bob", remark="x"))
        await done(api.post("cy", "/contact/request", user_id="ann"))
        await meet(api.post("ann", "/contact/decide", user_id="cy", accept=True), "too_many_contacts")
        assert [one["user_id"] for one in (await done(api.get("ann", "/contact/list")))["contacts"]] == ["bob"]
        assert [one["user_id"] for one in (await done(api.get("ann", "/contact/requests")))["requests"]] == ["cy"]
        await done(api.post("ann", "/contact/remove", user_id="bob"))


async def test_members_and_links(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cy", "dee"], group__max_links=2) as api:
        group = {"group_id": (await make_group(api, "ann", "bob", "cy"))["group_id"]}
        await done(api.put("bob", "/group/member", **group, group_nickname="Bobby"))
        await meet(api.put("bob", "/group/member", **group, group_avatar=f"/files/f_{'a' * 22}"), "file_not_found")
        codes = [(await done(api.post("ann", "/group/link", **group)))["code"] for _ in range(2)]
        await meet(api.post("ann", "/group/link", **group), "too_many_links")
        await done(api.get("dee", "/group/link", code=codes[0]))
        await done(api.get("ann", "/group/links", **group))
        for caller, error in (("bob", "no_permission"), ("dee", "not_group_member")):
            await meet(api.post(caller, "/group/link", **group), error)
            await meet(api.get(caller, "/group/links", **group), error)
            await meet(api.post(caller, "/group/link/revoke", code=codes[0]), error)
        await done(api.post("ann", "/group/link/revoke", code=codes[0]))
        await done(api.post("ann", "/group/link/revoke", code=codes[0]))
        await meet(api.post("ann", "/group/link/revoke", code="unknown"), "link_expired")
        await meet(api.get("dee", "/group/link", code=codes[0]), "link_expired")
        unknown = {"group_id": "g_aaaaaaaaaaaa"}
        for path in ("/group/link", "/group/links"):
            method = "GET" if path == "/group/links" else "POST"
            asked = {"params": unknown} if method == "GET" else {"json": unknown}
            await meet(api.request("ann", method, path, **asked), "group_not_found")
        await meet(api.put("ann", "/group/member", **unknown, extra={}), "group_not_found")
        await meet(api.put("dee", "/group/member", **group, extra={}), "not_group_member")
        key = await make_key(api, "moderate")
        await done(api.post(key, f"/server/groups/{group['group_id']}/disable"))
        await meet(api.post("ann", "/group/link", **group), "group_not_available")
        await meet(api.get("dee", "/group/link", code=codes[1]), "group_not_available")
        await meet(api.post("ann", "/group/link/revoke", code=codes[1]), "group_not_available")
        await meet(api.put("ann", "/group/member", **group, extra={}), "group_not_available")


async def test_oneself_and_reports(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cy"]) as api:
        await done(api.get("ann", "/session/list"))
        await meet(api.post("ann", "/session/revoke"), "missing_session_id")
        await meet(api.post("ann", "/session/revoke", session_id="none"), "session_not_found")
        await done(api.post("ann", "/session/revoke", others=True))
        await meet(api.get("ann", "/user/export"), "not_found")
        await meet(api.get("ann", "/user/export/file"), "not_found")
        await run(api.core, "UPDATE sessions SET created_at=created_at-86400000")
        for password, error in ((None, "missing_password"), ("wrong wrong", "invalid_credentials")):
            await meet(api.post("ann", "/user/export", password=password), error)
            await meet(api.request("ann", "DELETE", "/user", json={"password": password}), error)
        await done(api.post("ann", "/user/export", password=PASSWORD))
        await done(api.get("ann", "/user/export"))
        assert (await api.get("ann", "/user/export/file")).status == 200
        sent = await send(api, "ann", "bob")
        reason = {"reason": "spam"}
        await meet(api.post("cy", "/msg/report", server_msg_id=sent["server_msg_id"], **reason), "message_not_found")
        await done(api.post("bob", "/msg/report", server_msg_id=sent["server_msg_id"], **reason))
        key = await make_key(api, "shop", "users", "moderate")
        (report,) = (await done(api.get(key, "/server/reports")))["reports"]
        path = f"/server/reports/{report['report_id']}/resolve"
        await meet(api.post(key, "/server/reports/999/resolve"), "not_found")
        await meet(api.post(key, path, resolution="x" * 513), "bad_reason")
        await done(api.post(key, path))
        for user_id, error in (("nemo", "user_not_found"), ("nexo.canary", "bad_user_id")):
            await meet(api.request(key, "DELETE", f"/server/users/{user_id}"), error)
        await done(api.request(key, "DELETE", "/server/users/cy"))
        await meet(api.request(key, "DELETE", "/server/users/cy"), "user_deleted")
        token = api.tokens["bob"]
        await close(api, "ann")
    async with open_api(url, auth__passwords=False) as api:
        api.tokens["bob"] = token
        await meet(api.post("bob", "/user/export", password=PASSWORD), "passwords_off")
        await meet(api.request("bob", "DELETE", "/user", json={"password": PASSWORD}), "passwords_off")


def edit(api: Api, caller: str, message: Any, content: Any = "new", name: str = "e", **more: Any) -> Any:
    fields = {"server_msg_id": message["server_msg_id"], "client_msg_id": name, "content": content, **more}
    return api.put(caller, "/msg/edit", **fields)


def forward(api: Api, caller: str, message: Any, name: str = "f", **more: Any) -> Any:
    fields = {"client_msg_id": name, "server_msg_ids": [message["server_msg_id"]], "to": [{"recv_id": "bob"}], **more}
    return api.post(caller, "/msg/forward", **fields)


async def test_changes_of_messages(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = tmp_path / "words.txt"
    words.write_text("darn\n")
    monkeypatch.setattr(pins, "PINS_MAX", 1)
    settings = {"filter__file": str(words), "filter__mode": "reject"}
    async with open_api(url, ["ann", "bob", "cy", "dee"], **settings) as api:
        group_id = (await make_group(api, "ann", "bob", "cy"))["group_id"]
        first, second = await send(api, "bob", group_id), await send(api, "bob", group_id)
        whole = {"server_msg_id": first["server_msg_id"]}
        for path, fields in (("/msg/react", {"emoji": "😀"}), ("/msg/pin", {})):
            await meet(api.post("dee", path, **whole, **fields), "message_not_found")
            await done(api.post("ann", path, **whole, **fields))
        await meet(api.get("dee", "/msg/reactions", **whole), "message_not_found")
        await done(api.get("ann", "/msg/reactions", **whole))
        for emoji in EMOJIS[1:3]:
            await done(api.post("ann", "/msg/react", **whole, emoji=emoji))
        await meet(api.post("ann", "/msg/react", **whole, emoji=EMOJIS[3]), "too_many_reactions")
        await meet(api.post("ann", "/msg/pin", server_msg_id=second["server_msg_id"]), "too_many_pins")
        await meet(api.post("bob", "/msg/pin", **whole), "no_permission")
        await done(api.get("ann", "/msg/pins", conversation_id=f"sg_{group_id}"))
        await meet(edit(api, "dee", first), "message_not_found")
        await meet(edit(api, "ann", first), "not_message_sender")
        await meet(edit(api, "bob", first, "darn"), "content_rejected")
        await meet(edit(api, "bob", first, mentions=["@all"]), "no_permission")
        await done(edit(api, "bob", first))
        await meet(edit(api, "bob", second), "client_msg_id_reused")
        picture = await send(api, "bob", group_id, {"url": "https://example.org/x.png"}, msg_type=2)
        await meet(edit(api, "bob", picture, {"url": "https://example.org/y.png"}, "e2"), "not_editable")
        await meet(forward(api, "dee", first), "message_not_found")
        await done(forward(api, "ann", first))
        await meet(forward(api, "ann", second), "client_msg_id_reused")
        await meet(forward(api, "ann", first, "f2", merge=True, title="darn"), "content_rejected")
        await meet(forward(api, "ann", first, "f3", merge=True, title="x\0"), "bad_content")
        expiring = await send(api, "ann", group_id, expires_s=600)
        await meet(forward(api, "ann", expiring, "f4"), "not_forwardable")
        await done(api.post("ann", "/group/mute", group_id=group_id, user_id="bob", duration_s=-1))
        await meet(edit(api, "bob", first, "newer", "e3"), "speak_muted")
        of_cy = await send(api, "cy", group_id)
        await api.post("cy", "/group/quit", group_id=group_id)
        await meet(edit(api, "cy", of_cy, "newer", "e4"), "member_not_active")
        single = await send(api, "ann", "bob")
        of_ann = {"server_msg_id": single["server_msg_id"]}
        await api.post("bob", "/user/block", user_id="ann")
        await meet(edit(api, "ann", single, "newer", "e5"), "blocked")
        for path, fields in (("/msg/react", {"emoji": "😀"}), ("/msg/pin", {"on": True})):
            await meet(api.post("cy", path, **whole, **fields), "member_not_active")
            await meet(api.post("ann", path, **of_ann, **fields), "blocked")
        await api.post("ann", "/group/dismiss", group_id=group_id)
        await meet(edit(api, "bob", second, "newer", "e6"), "group_not_available")
        for path, fields in (("/msg/react", {"emoji": "😀"}), ("/msg/pin", {"on": True})):
            await meet(api.post("ann", path, **whole, **fields), "group_not_available")
    async with open_api(url, edit__window_s=0) as api:
        await api.sign_up("fay", "guy")
        await meet(edit(api, "fay", await send(api, "fay", "guy")), "edit_timeout")


async def test_reading_search_calls_and_push(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cy", "dee"], search__enabled=False, calls__enabled=False) as api:
        await meet(api.get("ann", "/msg/search", q="hello"), "not_implemented")
        await meet(api.get("ann", "/call/list"), "not_implemented")
        await meet(api.get("ann", "/call/ice"), "not_implemented")
    async with open_api(
        url, ["fay", "guy", "hal", "ian"], search__enabled=True, push__hook__url="https://push.example.org"
    ) as api:
        group = await make_group(api, "fay", "guy", "hal")
        paths: dict[str, dict[str, Any]] = {
            "/msg/search": {"q": "hello"},
            "/msg/media": {"kind": "photo"},
            "/msg/pins": {},
        }
        for path, more in paths.items():
            for conversation_id, error in (
                ("sg_g_aaaaaaaaaaaa", "group_not_found"),
                (group["conversation_id"], "not_group_member"),
                ("si_fay:guy", "conversation_not_found"),
                ("elsewhere", "bad_conversation_id"),
            ):
                await meet(api.get("ian", path, conversation_id=conversation_id, **more), error)
            await done(api.get("fay", path, conversation_id=group["conversation_id"], **more))
        await done(api.get("fay", "/call/list"))
        await done(api.get("fay", "/call/ice"))
        await done(api.get("fay", "/push/config"))
        await meet(api.post("fay", "/push/register", kind="hook", device_id="d"), "missing_token")
        await meet(api.post("fay", "/push/register", kind="web", device_id="d"), "missing_subscription")
        await done(api.post("fay", "/push/register", kind="hook", device_id="d", token="opaque"))
        await done(api.post("fay", "/push/unregister", device_id="d"))


# The last test of this file: what all of them together have met.
def test_every_route_was_called_and_every_error_it_documents_was_met(request: pytest.FixtureRequest, url: str) -> None:
    for handlers in (people, reports, message_changes, search, calls, push):
        check_tally(request, handlers)

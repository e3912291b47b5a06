"""A product's backend by its key: users, tokens, acting for users, disabling, the audit log."""

from __future__ import annotations

import time
from typing import Any

import pytest

from harness.api import PASSWORD, check_tally, make_key, open_api, send
from harness.waiting import time_passes
from nexo.api import backend
from nexo.api.routes import ROUTES
from nexo.core.keys import SCOPES
from nexo.ids import now_ms


async def test_a_key_is_shown_once_and_stored_as_a_hash(core_url: str) -> None:
    async with open_api(core_url) as api:
        key, text = await api.backend.keys.add("shop", ["users"])
        assert text.startswith("nexo_sk_")
        assert len(text) == len("nexo_sk_") + 43
        assert text not in repr(await api.backend.keys.all())
        assert key.key_id in repr(await api.backend.keys.all())


async def test_users_are_created_and_updated_without_a_password(core_url: str) -> None:
    async with open_api(core_url) as api:
        key = await make_key(api, "users")
        done = await api.put(key, "/server/users", users=[{"user_id": "ann", "nickname": "Ann"}, {"user_id": "bob"}])
        assert [user["user_id"] for user in done.data["users"]] == ["ann", "bob"]
        again = await api.put(key, "/server/users", users=[{"user_id": "ann", "extra": {"vip": True}}])
        assert (again.data["users"][0]["nickname"], again.data["users"][0]["extra"]) == ("Ann", {"vip": True})
        answer = await api.get(key, "/server/users/ann")
        assert answer.data == again.data["users"][0] | {"disabled": False, "disabled_reason": ""}
        assert (await api.get(key, "/server/users/nemo")).error == "user_not_found"
        assert (await api.get(key, "/server/users/o%20d%20d")).error == "bad_user_id"
        refused = await api.post(None, "/auth/login", user_id="ann", password="!")
        assert refused.error == "invalid_credentials"


@pytest.mark.parametrize(
    ("users", "error"),
    [
        ([], "missing_user"),
        ([{"user_id": "a b"}], "bad_user_id"),
        ([{"user_id": "ann"}, {"user_id": "ann"}], "bad_user"),
        ([{"user_id": "ann", "nickname": "n" * 129}], "bad_nickname"),
        ([{"user_id": "ann", "avatar": "a" * 513}], "bad_avatar"),
        ([{"user_id": "ann", "avatar": "/files/f_" + "A" * 22}], "file_not_found"),
        ([{"user_id": "ann", "extra": "x" * 20_000}], "body_too_long"),
        ([{"user_id": f"u{n}"} for n in range(1001)], "bad_user"),
    ],
)
async def test_a_list_of_users_is_taken_whole_or_not_at_all(core_url: str, users: list[Any], error: str) -> None:
    async with open_api(core_url) as api:
        key = await make_key(api, "users")
        given = [{"user_id": "first"}, *users] if users else []
        assert (await api.put(key, "/server/users", users=given)).error == error
        assert (await api.get(key, "/server/users/first")).error == "user_not_found"


async def test_a_token_for_a_user_works_wherever_an_access_token_does(core_url: str) -> None:
    async with open_api(core_url, ["ann"]) as api:
        key = await make_key(api, "tokens")
        issued = (await api.post(key, "/server/tokens", user_id="ann", device_id="phone", ttl_s=60)).data
        assert issued["refresh_token"] == ""
        assert 55_000 < issued["expires_at"] - time.time() * 1000 <= 60_000
        assert (await api.get(issued["access_token"], "/user/info")).data["user_id"] == "ann"
        with_refresh = (await api.post(key, "/server/tokens", user_id="ann", refresh=True)).data
        renewed = (await api.post(None, "/auth/refresh", refresh_token=with_refresh["refresh_token"])).data
        assert (await api.get(renewed["access_token"], "/user/info")).data["user_id"] == "ann"
        for fields, error in (
            ({"user_id": "nemo"}, "user_not_found"),
            ({"user_id": "a b"}, "bad_user_id"),
            ({"user_id": "ann", "platform_id": 11}, "bad_platform_id"),
            ({"user_id": "ann", "ttl_s": 0}, "bad_ttl"),
        ):
            assert (await api.post(key, "/server/tokens", **fields)).error == error


async def test_sessions_are_revoked_by_device_or_all(core_url: str) -> None:
    async with open_api(core_url, ["ann"]) as api:
        key = await make_key(api, "tokens")
        tokens = [
            (await api.post(key, "/server/tokens", user_id="ann", device_id=device)).data["access_token"]
            for device in ("phone", "desk")
        ]
        revoked = await api.post(key, "/server/sessions/revoke", user_id="ann", device_id="phone")
        assert revoked.data == {"revoked": 1}
        assert (await api.get(tokens[0], "/user/info")).error == "session_invalid"
        assert (await api.get(tokens[1], "/user/info")).status == 200
        await api.post(key, "/server/sessions/revoke", user_id="ann")
        assert (await api.get(tokens[1], "/user/info")).error == "session_invalid"
        assert (await api.get("ann", "/user/info")).error == "session_invalid"
        assert (await api.post(key, "/server/sessions/revoke", user_id="nemo")).error == "user_not_found"
        assert (await api.post(key, "/server/sessions/revoke", user_id="a b")).error == "bad_user_id"


async def test_a_key_acts_for_the_user_it_names(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "act")
        acting = {"Nexo-User": "ann"}
        sent = await api.request(
            key, "POST", "/msg/send", headers=acting, json={"client_msg_id": "c1", "recv_id": "bob", "content": "hi"}
        )
        pulled = await api.get("bob", "/msg/history", conversation_id=sent.data["conversation_id"])
        assert [(one["sender_id"], one["content"]) for one in pulled.data["messages"]] == [("ann", "hi")]
        assert (await api.get(key, "/user/info")).error == "missing_user"
        assert (await api.request(key, "GET", "/user/info", headers={"Nexo-User": "nemo"})).error == "user_not_found"
        assert (await api.request(key, "GET", "/user/info", headers={"Nexo-User": "a b"})).error == "bad_user"


async def test_a_header_that_names_the_caller_is_there_once(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "act")
        for name, values in (("Nexo-User", ("ann", "bob")), ("Authorization", ("Bearer x", f"Bearer {key}"))):
            headers = [("Authorization", f"Bearer {key}"), *((name, value) for value in values)]
            answer = await api.http.get("/user/info", headers=headers)
            assert (answer.status_code, answer.json()["err_msg"]) == (400, "bad_request")


async def test_a_key_does_nothing_as_or_to_the_accounts_of_the_server(core_url: str) -> None:
    async with open_api(core_url) as api:
        key = await make_key(api, "shop", "act", "tokens", "users")
        acting = await api.request(key, "GET", "/user/info", headers={"Nexo-User": "nexo.canary"})
        assert acting.error == "bad_user"
        assert (await api.post(key, "/server/tokens", user_id="nexo.canary")).error == "bad_user_id"
        assert (await api.post(key, "/server/users/nexo.canary/disable")).error == "bad_user_id"


async def test_no_key_opens_what_only_a_user_may_do(core_url: str) -> None:
    async with open_api(core_url, ["ann"]) as api:
        await api.accounts.set_admin("ann", True)
        key = await make_key(api, "act")
        for method, path, body in (
            ("POST", "/auth/logout", {}),
            ("POST", "/auth/password", {"old_password": "x", "new_password": "y"}),
            ("GET", "/admin/stats", None),
        ):
            answer = await api.request(key, method, path, headers={"Nexo-User": "ann"}, json=body)
            assert (answer.status, answer.error) == (403, "scope_missing"), path
        audit = await api.request(key, "GET", "/server/audit", headers={"Nexo-User": "ann"})
        assert audit.error == "scope_missing", "acting for an administrator gives no administrator's rights"


async def test_a_bot_acts_as_its_user_and_as_no_other(core_url: str) -> None:
    async with open_api(core_url, ["bot", "ann"]) as api:
        key, text = await api.backend.keys.add("robot", (), user_id="bot")
        assert key.scopes == ()
        assert (await api.get(text, "/user/info")).data["user_id"] == "bot"
        assert (await api.request(text, "GET", "/user/info", headers={"Nexo-User": "bot"})).status == 200
        assert (await api.request(text, "GET", "/user/info", headers={"Nexo-User": "ann"})).error == "identity_mismatch"
        assert (await api.get(text, "/server/audit")).error == "scope_missing"


async def test_each_way_to_refuse_a_key_has_its_own_error(core_url: str) -> None:
    async with open_api(core_url, ["ann"]) as api:
        stranger = "nexo_sk_" + "A" * 43
        assert (await api.get(stranger, "/server/audit")).error == "unauthorized"
        assert (await api.get("nexo_sk_short", "/server/audit")).error == "unauthorized"
        expiring = await make_key(api, "moderate", expires_at=now_ms() + 400)
        assert (await api.get(expiring, "/server/audit")).status == 200
        await time_passes(0.45)
        assert (await api.get(expiring, "/server/audit")).error == "key_expired"
        keys = {scope: await make_key(api, f"only-{scope}", scope) for scope in SCOPES}
        for row in ROUTES:
            for scope in set(SCOPES) - set(row.scopes) if row.scopes else ():
                path = row.path.replace("{id}", "ann")
                refused = await api.request(keys[scope], row.method, path, json={} if row.has_body else None)
                assert (refused.status, refused.error) == (403, "scope_missing"), (row.path, scope)
        revoked = await make_key(api, "events")
        await api.backend.keys.revoke("events")
        assert (await api.get(revoked, "/server/audit")).error == "unauthorized"
        assert (await api.get("ann", "/server/audit")).error == "scope_missing"


async def test_a_disabled_user_is_out_until_enabled_again(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"]) as api:
        key = await make_key(api, "shop", "users", "act", "tokens")
        await send(api, "ann", "bob", "before")
        assert (await api.post(key, "/server/users/ann/disable", reason="spam")).status == 200
        refused = await api.get("ann", "/user/info")
        assert (refused.status, refused.error, refused.body["detail"]) == (403, "user_disabled", "spam")
        assert (await api.post(None, "/auth/login", user_id="ann", password=PASSWORD)).error == "user_disabled"
        assert (await api.post(None, "/auth/login", user_id="ann", password="wrong")).error == "invalid_credentials"
        assert (await api.post(key, "/server/tokens", user_id="ann")).error == "user_disabled"
        acting = await api.request(key, "GET", "/user/info", headers={"Nexo-User": "ann"})
        assert acting.error == "user_disabled"
        assert (await api.get(key, "/server/users/ann")).data["disabled_reason"] == "spam"
        assert (await api.post(key, "/server/users/ann/disable", reason="more spam")).status == 200
        assert (await api.post(key, "/server/users/ann/enable")).status == 200
        issued = (await api.post(key, "/server/tokens", user_id="ann")).data
        assert (await api.get(issued["access_token"], "/user/info")).data["user_id"] == "ann"
        assert (await api.get("ann", "/user/info")).error == "session_invalid", "its old sessions have ended"
        for act in ("disable", "enable"):
            assert (await api.post(key, f"/server/users/nemo/{act}")).error == "user_not_found"
            assert (await api.post(key, f"/server/users/a%20b/{act}")).error == "bad_user_id"


async def test_every_act_is_in_the_audit_log_with_its_actor(core_url: str) -> None:
    async with open_api(core_url, ["ann", "boss"]) as api:
        await api.accounts.set_admin("boss", True)
        key = await make_key(api, "shop", "users", "tokens", "moderate")
        await api.post(key, "/server/users/ann/disable", reason="spam")
        await api.post("boss", "/server/users/ann/enable")
        await api.post(key, "/server/sessions/revoke", user_id="ann", device_id="x")
        log = (await api.get("boss", "/server/audit", target="ann")).data
        assert [(entry["actor"], entry["act"], entry["target"]) for entry in log["entries"]] == [
            ("key:shop", "session.revoke", "ann"),
            ("user:boss", "user.enable", "ann"),
            ("key:shop", "user.disable", "ann"),
        ]
        assert log["entries"][2]["detail"] == {"reason": "spam"}
        page = (await api.get(key, "/server/audit", limit=2)).data
        assert (page["has_more"], len(page["entries"])) == (True, 2)
        rest = (await api.get(key, "/server/audit", limit=2, before=page["next_before"])).data
        assert [entry["act"] for entry in rest["entries"]] == ["user.disable"]
        assert (await api.get(key, "/server/audit", limit=0)).error == "bad_limit"


async def test_a_key_makes_codes_by_which_users_register(core_url: str) -> None:
    async with open_api(core_url, auth__registration="invite") as api:
        key = await make_key(api, "shop", "users", "moderate")
        made = (await api.post(key, "/server/invites", uses=2, days=3)).data
        assert (set(made), made["uses"]) == ({"code", "expires_at", "uses"}, 2)
        assert abs(made["expires_at"] - now_ms() - 3 * 86_400_000) < 60_000
        outcomes = [
            (await api.post(None, "/user/register", user_id=name, password=PASSWORD, code=made["code"])).status
            for name in ("ann", "bob", "eve")
        ]
        assert outcomes == [200, 200, 403]
        assert (await api.post(key, "/server/invites")).data["uses"] == 1
        for wrong in ({"uses": 0}, {"uses": 1_000_001}, {"days": 0}, {"days": 3651}, {"uses": "2"}, {"uses": True}):
            assert (await api.post(key, "/server/invites", **wrong)).error == "bad_request"
        entries = (await api.get(key, "/server/audit")).data["entries"]
        assert [(entry["actor"], entry["act"], entry["detail"]["uses"]) for entry in entries] == [
            ("key:shop", "registration.invite", 1),
            ("key:shop", "registration.invite", 2),
        ]
        assert made["code"] not in repr(entries)
        other = await make_key(api, "reader", "tokens")
        assert (await api.post(other, "/server/invites")).error == "scope_missing"


async def test_calls_are_limited_by_key(core_url: str) -> None:
    async with open_api(core_url, ["ann"], limits__key_requests_per_s=1, limits__key_requests_burst=3) as api:
        key = await make_key(api, "moderate")
        outcomes = [(await api.get(key, "/server/audit")).status for _ in range(5)]
        assert outcomes == [200, 200, 200, 429, 429]
        assert (await api.get("ann", "/user/info")).status == 200


# The last test of this file: what all of them together have met.
def test_every_route_was_called_and_every_error_it_documents_was_met(
    request: pytest.FixtureRequest, core_url: str
) -> None:
    check_tally(request, backend)

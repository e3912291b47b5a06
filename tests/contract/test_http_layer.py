"""What all routes have in common: signing in, strictness, failures, headers, logs, health and the pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from harness.api import PASSWORD, SECRET, Answer, Api, make_group, open_api, send
from harness.migrated import migrated_database
from nexo.api.decoding import error_names
from nexo.api.middleware import BODY_MAX_BYTES, LONG_BODIES
from nexo.api.requests import Nothing
from nexo.api.route import Route
from nexo.api.routes import ROUTES
from nexo.core.keys import SCOPES
from nexo.errors import ERRORS, NexoError
from nexo.ids import now_ms
from nexo.service.tokens import AccessTokens

# a good value for every field that some request needs
EXAMPLES: dict[str, Any] = {
    "password": PASSWORD,
    "old_password": PASSWORD,
    "new_password": "battery staple",
    "user_id": "bob",
    "user_ids": ["bob", "cat"],
    "member_ids": ["bob", "cat"],
    "q": "b",
    "refresh_token": "token",
    "client_msg_id": "1",
    "content": "hi",
    "recv_id": "bob",
    "server_msg_id": "1",
    "server_msg_ids": ["1"],
    "to": [{"recv_id": "bob"}],
    "emoji": "\U0001f44d",
    "on": True,
    "kind": "photo",
    "time": 1,
    "reason": "spam",
    "remark": "Bobby",
    "export_id": "1",
    "others": True,
    "conversation_id": "sg_g_aaaaaaaaaaaa",
    "begin_seq": 1,
    "seq": 1,
    "peerUserId": "bob",
    "groupId": "g_aaaaaaaaaaaa",
    "group_id": "g_aaaaaaaaaaaa",
    "name": "team",
    "accept": True,
    "role": "admin",
    "duration_s": 1,
    "users": [{"user_id": "bob"}],
    "code": "a-code",
    "url": "https://hooks.example/nexo",
    "types": ["message.saved"],
    "from": "begin",
    "device_id": "phone",
}
PLAIN = [row for row in ROUTES if row.stream is None]  # files: test_files.py and test_tus.py
WITHOUT_DATABASE = ("/healthz", "/user/online", "/call/ice", "/push/config")
FORGIVING = {"recv_id", "begin_seq", "seq"}  # not required by the struct; the handler wants one of several


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with migrated_database("sqlite", tmp_path) as url:
        yield url


def example(row: Route) -> dict[str, Any]:
    """The least that the route takes."""
    fields = msgspec.structs.fields(row.request)
    wanted = [field.encode_name for field in fields if field.required or field.encode_name in FORGIVING]
    wanted += {"/group/update": ["name"], "/group/join": ["group_id"], "/session/revoke": ["others"]}.get(row.path, [])
    return {name: EXAMPLES[name] for name in wanted if (row.path, name) != ("/msg/send", "group_id")}


async def make_key(api: Api) -> None:
    """Make a key with every scope, which calls the routes of backends in these tests."""
    _, api.tokens["key"] = await api.backend.keys.add("all", SCOPES)


def caller(row: Route) -> str:
    return "key" if row.scopes else "ann"


async def call(api: Api, user_id: str | None, row: Route, values: dict[str, Any]) -> Answer:
    if row.has_body:
        return await api.request(user_id, row.method, row.path, json=values)
    query = {name: ",".join(value) if isinstance(value, list) else value for name, value in values.items()}
    return await api.request(user_id, row.method, row.path, params=query)


def requests_in(logs: list[Any]) -> list[Any]:
    """Returns the lines of requests: what runs in the background writes others."""
    return [line for line in logs if line["event"] == "request"]


# -- all routes alike ------------------------------------------------------------------------------------


async def test_every_route_that_needs_a_token_asks_for_a_good_one(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        session = await api.accounts.authenticate(api.tokens["ann"])
        api.tokens["late"], _ = AccessTokens(SECRET, 1).sign(session, now_ms() - 5000)
        api.tokens["forged"], _ = AccessTokens("another secret, of somebody else", 1000).sign(session, now_ms())
        await api.accounts.logout(await api.accounts.authenticate(api.tokens["bob"]))
        for row in PLAIN:
            for user_id, error in (
                (None, "unauthorized"), ("forged", "unauthorized"), ("late", "token_expired"),
                ("bob", "session_invalid"),
            ):  # fmt: skip
                if row.signed_in:
                    answer = await api.request(user_id, row.method, row.path)
                    assert (answer.status, answer.error) == (401, error), row.path
                    assert answer.headers["www-authenticate"] == "Bearer"
        for odd in ("Bearer", "Basic abc", "bearer\t" + api.tokens["ann"], "Bearer \xe4"):
            answer = await api.request(None, "GET", "/user/info", headers={"Authorization": odd.encode("latin-1")})
            assert answer.error == "unauthorized"
        lower = {"Authorization": f"bearer {api.tokens['ann']}"}
        assert (await api.request(None, "GET", "/user/info", headers=lower)).status == 200


async def test_no_route_takes_fields_it_does_not_know(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        await make_key(api)
        for row in PLAIN:
            if row.has_body:
                answer = await api.request(caller(row), row.method, row.path, json={"nonsense": 1})
            else:
                answer = await api.request(caller(row), row.method, row.path, params={"nonsense": 1})
            assert answer.error == "bad_request", row.path
            assert "nonsense" in answer.body["detail"]


async def test_no_route_takes_what_is_not_a_json_object(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        await make_key(api)
        for row in PLAIN:
            if not row.has_body:
                continue
            user_id = caller(row)
            for body in (b"{", b"\xff", b"{'a':1}", b'{"a', b"null null", b'{"\\ud800":1}'):
                answer = await api.request(user_id, row.method, row.path, content=body)
                assert answer.error in ("bad_json", "bad_request"), (row.path, body)
            assert (await api.request(user_id, row.method, row.path, content=b"[]")).error == "bad_request"
            if row.request is not Nothing:
                assert (await api.request(user_id, row.method, row.path)).error == "bad_json"


async def test_no_route_takes_a_body_that_is_too_long(url: str) -> None:
    async with open_api(url, ["ann"]) as api:

        async def endless(size: int) -> Any:
            for _ in range(size // 4096 + 1):
                yield b" " * 4096

        await make_key(api)
        for row in PLAIN:
            if row.has_body:
                size = LONG_BODIES.get(row.path, BODY_MAX_BYTES)
                answer = await api.request(caller(row), row.method, row.path, content=b" " * (size + 1))
                assert (answer.status, answer.error) == (413, "body_too_long")
                answer = await api.request(caller(row), row.method, row.path, content=endless(size))
                assert (answer.status, answer.error) == (413, "body_too_long")


async def test_a_query_must_make_sense(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        for query in ("user_id=ann&user_id=ann", "user_id=%ff", "&".join(f"a{i}=1" for i in range(60))):
            assert (await api.request("ann", "GET", f"/user/info?{query}")).error == "bad_request"
        assert (await api.request("ann", "GET", "/user/info?")).status == 200
        assert (await api.request("ann", "GET", "/user/info?user_id=")).data["user_id"] == "ann"


async def test_other_methods_and_paths_are_refused_in_the_envelope(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        for path in ("/", "/nothing", "/user/info/", "/users", "/msg/send/x"):
            answer = await api.request("ann", "GET", path)
            assert answer.status == (200 if path == "/" else 404)
        wrong = await api.request("ann", "GET", "/msg/send")
        assert (wrong.status, wrong.error, wrong.headers["allow"]) == (405, "method_not_allowed", "POST")
        wrong = await api.request("ann", "POST", "/user/info")
        assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
        head = await api.request("ann", "HEAD", "/user/info")
        assert (head.status, head.body) == (200, "")
        for method in ("OPTIONS", "GET"):
            answer = await api.http.request(method, "/", extensions={"target": b"*"})
            assert answer.status_code == 404


async def test_hostile_text_is_refused_or_stored_on_every_engine(core_url: str) -> None:
    """None of it may reach a database that cannot take it."""
    async with open_api(core_url, ["ann", "bob", "cat"]) as api:
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        for text in ("\0", "a\0b", "'", '"; --', "%", "\\", "\U0001f600", "ａ", "x" * 1000, "\u202e"):
            answers = [
                await api.post("ann", "/group/invite", group_id=group_id, user_ids=["bob", text]),
                await api.post("ann", "/group/remove_member", group_id=group_id, user_id=text),
                await api.post("ann", "/group/join", group_id=text),
                await api.post("ann", "/group/create", name=text, member_ids=[text, "bob"]),
                await api.post("ann", "/conversation/read", conversation_id=text, seq=1),
                await api.post("ann", "/user/block", user_id=text),
                await api.post("ann", "/msg/send", client_msg_id=text, recv_id=text, content=text),
                await api.post(None, "/auth/login", user_id=text, password=text, device_id=text),
                await api.post(None, "/auth/refresh", refresh_token=text),
                await api.put("ann", "/user/update", nickname=text),
                await api.get("ann", "/user/search", q=text),
                await api.get("ann", "/user/online", user_ids=text),
                await api.get("ann", "/conversation/newest_seq", conversation_ids=text),
                await api.get("ann", "/conversation/list", cursor=text),
                await api.get("ann", "/msg/pull", conversation_id=text, begin_seq=1),
                await api.get("ann", "/single-chat/message/cursor", peerUserId=text),
                await api.get("ann", "/group/members", group_id=group_id, cursor=text),
            ]
            assert [answer.status for answer in answers if answer.status >= 500] == []


async def test_no_route_takes_a_text_or_number_that_databases_refuse(core_url: str) -> None:
    """One field at a time has it, beside values that are right: nothing else keeps it from the database."""
    async with open_api(core_url, ["ann", "bob", "cat"], search__enabled=True) as api:
        group = await make_group(api, "ann", "bob", "cat")
        right: dict[str, Any] = {
            "user_id": "bob", "recv_id": "bob", "group_id": group["group_id"], "client_msg_id": "c", "content": "x",
            "conversation_id": group["conversation_id"], "emoji": "👍", "q": "x", "kind": "photo", "seq": 1, "time": 1,
            "user_ids": ["bob"], "accept": True, "on": True, "begin_seq": 1, "name": "n", "server_msg_id": "1",
        }  # fmt: skip
        failed = []
        for row in ROUTES:
            if row.stream is not None or row.scopes or row.path in ("/auth/logout", "/auth/password", "/user"):
                continue
            fields = {field.encode_name: str(field.type) for field in msgspec.structs.fields(row.request)}
            usual = {name: right[name] for name in fields if name in right}
            for name, kind in fields.items():
                for value in ["a\0b"] * ("str" in kind) + [1 << 40, 1 << 63] * ("int" in kind):
                    given = usual | {name: value}
                    how = {"json": given} if row.has_body else {"params": given}
                    answer = await api.request("ann", row.method, row.path, **how)
                    if answer.status >= 500 and answer.error != "not_implemented":
                        failed.append((row.method, row.path, name, value))
        assert failed == []


async def test_every_field_of_the_wrong_type_is_told_by_its_own_error(url: str) -> None:
    async with open_api(url, ["ann"], limits__logins_per_min=0, limits__sends_per_s=0) as api:
        await make_key(api)
        for row in PLAIN:
            names = error_names(row.request)
            for field in msgspec.structs.fields(row.request):
                name = field.encode_name
                if row.has_body and name not in ("extra",):
                    answer = await call(api, caller(row), row, example(row) | {name: [[]]})
                elif not row.has_body and name.endswith(("_seq", "Seq", "limit", "seqs")):
                    answer = await call(api, caller(row), row, example(row) | {name: "x"})
                else:
                    continue
                expected = f"bad_{names[name]}"
                assert answer.error == (expected if expected in ERRORS else "bad_request"), (row.path, name)


async def test_every_missing_field_is_told_by_its_own_error(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        await make_key(api)
        for row in PLAIN:
            names = error_names(row.request)
            for field in msgspec.structs.fields(row.request):
                if field.required:
                    values = example(row)
                    del values[field.encode_name]
                    expected = f"missing_{names[field.encode_name]}"
                    answer = await call(api, caller(row), row, values)
                    assert answer.error == (expected if expected in ERRORS else "bad_request"), (row.path, field.name)


# -- failures --------------------------------------------------------------------------------------------


def break_services(api: Api, monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    """Whatever is asked of the core from now on fails; signing in does not."""

    async def fail(*_: Any, **__: Any) -> Any:
        raise failure

    core, backend = api.core, api.backend
    parts = [getattr(backend, name) for name in backend.__struct_fields__ if name != "keys"]
    parts += [getattr(api.people, name) for name in api.people.__struct_fields__]
    parts += [core.sending, core.acknowledging, core.conversations, core.groups, core.changes, core.forwarding]
    for service in (api.accounts, api.search, api.calls, api.devices, *parts):
        for name in {name for name in dir(type(service)) if name[0] != "_"} - {"authenticate", "stop"}:
            if asyncio.iscoroutinefunction(getattr(service, name)):
                monkeypatch.setattr(service, name, fail)
    api.failure = failure


async def test_an_unexpected_failure_is_an_internal_error_that_gives_nothing_away(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_api(url, ["ann"], limits__sends_per_s=0) as api:
        await make_key(api)
        break_services(api, monkeypatch, RuntimeError("the secret inside"))
        for row in PLAIN:
            if row.path in (*WITHOUT_DATABASE, "/readyz"):
                continue
            with capture_logs() as logs:
                answer = await call(api, caller(row), row, example(row))
            assert (answer.status, answer.error) == (500, "internal_error"), row.path
            assert "secret" not in str(answer)
            assert answer.body["request_id"] == answer.headers["x-request-id"]
            [failure] = [line for line in logs if line["log_level"] == "error"]
            assert (failure["event"], failure["path"]) == ("request_failed", row.path)
            assert failure["request_id"] == answer.body["request_id"]
            assert failure["exc_info"]


async def test_a_database_that_cannot_be_reached_is_told_as_busy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_api(url, ["ann"], limits__sends_per_s=0) as api:
        await make_key(api)
        break_services(api, monkeypatch, NexoError("server_busy", retry_after_ms=1500))
        for row in PLAIN:
            if row.path in WITHOUT_DATABASE:
                continue
            answer = await call(api, caller(row), row, example(row))
            assert (answer.status, answer.error) == (503, "server_busy"), row.path
            if row.path != "/readyz":
                assert (answer.body["retry_after_ms"], answer.headers["retry-after"]) == (1500, "2")


async def test_a_client_that_goes_away_in_the_middle_of_its_body_disturbs_nobody(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        with capture_logs() as logs:
            host, port = api.http.base_url.host, api.http.base_url.port
            assert port is not None
            _, writer = await asyncio.open_connection(host, port)
            writer.write(b"POST /auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()
            writer.close()
            assert (await api.get("ann", "/user/info")).status == 200
            deadline = time.monotonic() + 5
            while not any(line["path"] == "/auth/login" for line in requests_in(logs)) and time.monotonic() < deadline:
                await api.get("ann", "/user/info")
        assert {line["log_level"] for line in logs} <= {"debug", "info"}


# -- the layer around ------------------------------------------------------------------------------------


async def test_every_answer_has_an_id_that_is_also_in_the_log(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        with capture_logs() as logs:
            answer = await api.get("ann", "/user/info")
            named = await api.request("ann", "GET", "/nothing?a=b", headers={"X-Request-Id": "from.me-1"})
            odd = await api.request("ann", "GET", "/nothing", headers={"X-Request-Id": "no good"})
        assert named.headers["x-request-id"] == "from.me-1"
        assert odd.headers["x-request-id"] != "no good"
        first, second, _ = requests_in(logs)
        assert first.pop("ms") >= 0
        assert first == {
            "event": "request", "log_level": "debug", "request_id": answer.headers["x-request-id"], "method": "GET",
            "path": "/user/info", "status": 200, "user_id": "ann", "address": "127.0.0.1",
        }  # fmt: skip
        assert (second["log_level"], second["status"], second["path"]) == ("info", 404, "/nothing")


async def test_no_token_password_or_text_reaches_the_log(url: str) -> None:
    secrets = ["query-token", "a secret text", PASSWORD, "refresh-me"]
    async with open_api(url, ["ann", "bob"]) as api:
        secrets.append(api.tokens["ann"])
        with capture_logs() as logs:
            await api.get("ann", "/user/info?token=query-token")
            await api.get(None, "/nothing?token=query-token")
            await send(api, "ann", "bob", "a secret text")
            await api.post("ann", "/msg/send", client_msg_id="1", content=["a secret text"])
            await api.post(None, "/auth/login", user_id="ann", password=PASSWORD)
            await api.post(None, "/auth/refresh", refresh_token="refresh-me")
        assert len(requests_in(logs)) == 6
        for secret in secrets:
            assert secret not in str(logs)


async def test_every_answer_has_the_headers_that_protect_a_browser(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        for path in ("/user/info", "/nothing", "/", "/docs", "/docs/docs.js", "/openapi.json", "/healthz", "/metrics"):
            headers = (await api.get("ann", path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            policies = headers.get_list("content-security-policy")
            assert len(policies) == 1
            assert "default-src 'none'" in policies[0]
            assert "frame-ancestors 'none'" in policies[0]
            assert "unsafe" not in policies[0]
            assert "access-control-allow-origin" not in headers
        assert (await api.get("ann", "/user/info")).headers["cache-control"] == "no-store"


async def test_other_origins_are_let_in_only_when_configured(url: str) -> None:
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    async with open_api(url) as api:
        assert (await api.request(None, "OPTIONS", "/msg/send", headers=preflight)).status == 405
    async with open_api(url, http__cors_origins=["https://app.example"]) as api:
        answer = await api.request(None, "OPTIONS", "/msg/send", headers=preflight)
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "authorization" in answer.headers["access-control-allow-headers"]
        assert "access-control-allow-credentials" not in answer.headers
        plain = await api.request(None, "GET", "/healthz", headers={"Origin": "https://app.example"})
        assert plain.headers["access-control-allow-origin"] == "https://app.example"
        assert plain.headers["vary"] == "origin"
        refused = await api.request(None, "GET", "/user/info", headers={"Origin": "https://app.example"})
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "https://app.example")
        evil = await api.request(None, "OPTIONS", "/msg/send", headers=preflight | {"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in evil.headers
    async with open_api(url, http__cors_origins=["*"]) as api:
        answer = await api.request(None, "GET", "/healthz", headers={"Origin": "https://any.example"})
        assert answer.headers["access-control-allow-origin"] == "https://any.example"


async def test_the_address_comes_from_trusted_proxies_only(url: str) -> None:
    async def register(api: Api, forwarded_for: str) -> int:
        answer = await api.request(
            None, "POST", "/user/register", json={"password": PASSWORD}, headers={"X-Forwarded-For": forwarded_for}
        )
        return answer.status

    async with open_api(url, limits__registers_per_min=1) as api:
        assert [await register(api, "203.0.113.1"), await register(api, "203.0.113.2")] == [200, 429]
    async with open_api(url, limits__registers_per_min=1, http__trusted_proxies=["127.0.0.0/8"]) as api:
        assert [await register(api, "203.0.113.1"), await register(api, "203.0.113.2")] == [200, 200]
        assert await register(api, "198.51.100.9, 203.0.113.1") == 429
        with capture_logs() as logs:
            await register(api, "203.0.113.1, 127.0.0.2")
        assert [line["address"] for line in logs] == ["203.0.113.1"]


# -- health and pages ------------------------------------------------------------------------------------


async def test_the_server_is_alive_and_ready(url: str) -> None:
    async with open_api(url) as api:
        assert (await api.get(None, "/healthz")).data == {"status": "alive"}
        assert api.canaries == 0
        assert (await api.get(None, "/readyz")).data == {"status": "ready"}
        assert api.canaries == 1


async def test_what_keeps_the_server_from_being_ready_is_told(url: str) -> None:
    async with open_api(url) as api:
        api.failure = NexoError("server_busy", "The database does not answer")
        answer = await api.get(None, "/readyz")
        assert (answer.status, answer.error) == (503, "server_busy")
        assert "The database does not answer" in answer.body["detail"]
        assert (await api.get(None, "/healthz")).status == 200


async def test_many_who_ask_at_once_share_one_canary(url: str) -> None:
    async with open_api(url) as api:
        started = time.monotonic()
        answers = await asyncio.gather(*(api.get(None, "/readyz") for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        assert api.canaries <= 1 + int(time.monotonic() - started), "an answer is good for a second"


async def test_the_metrics_are_told(url: str) -> None:
    async with open_api(url) as api:
        answer = await api.get(None, "/metrics")
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert 'nexo_sends_total{result="saved"} 1.0' in answer.body


async def test_the_pages_need_nothing_from_elsewhere(url: str) -> None:
    async with open_api(url) as api:
        page = await api.get(None, "/docs")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for path, kind in (("/docs/docs.js", "text/javascript"), ("/docs/docs.css", "text/css")):
            assert path[1:] in page.body
            part = await api.get(None, path)
            assert part.headers["content-type"].startswith(kind)
            assert "//" not in part.body.replace("// ", "")
        assert "http" not in page.body.replace("<h1>Nexo HTTP", "").lower().replace("nexo http api", "")
        front = await api.get(None, "/")
        assert 'href="docs"' in front.body


async def test_requests_of_a_user_are_limited_and_those_of_others_are_not(url: str) -> None:
    async with open_api(url, ["ann", "ben"], limits__requests_per_s=1, limits__requests_burst=5) as api:
        for _ in range(5):
            assert (await api.get("ann", "/user/info")).status == 200
        refused = await api.get("ann", "/user/info")
        assert (refused.status, refused.error) == (429, "too_many_requests")
        assert refused.body["retry_after_ms"] > 0
        assert (await api.get("ben", "/user/info")).status == 200
        assert api.limits.refusals()["requests"] == 1


async def test_requests_without_a_valid_token_are_limited_by_address(url: str) -> None:
    async with open_api(url, ["ann"], limits__requests_per_s=1, limits__requests_burst=5) as api:
        for _ in range(3):
            assert (await api.get(None, "/user/info")).error == "unauthorized"
        for _ in range(2):
            assert (await api.post(None, "/auth/refresh", refresh_token="unknown")).error == "session_invalid"
        assert (await api.get(None, "/user/info")).error == "too_many_requests"
        assert (await api.post(None, "/auth/login", user_id="ann", password="x")).error == "too_many_requests"
        for _ in range(10):
            assert (await api.get(None, "/healthz")).status == 200
        assert (await api.get("ann", "/user/info")).status == 200


async def test_changes_of_groups_are_limited_per_user(url: str) -> None:
    async with open_api(url, ["ann", "ben", "cy"], limits__membership_per_min=4) as api:
        group = await make_group(api, "ann", "ben", "cy")
        for _ in range(2):
            assert (await api.post("ben", "/group/quit", group_id=group["group_id"])).status == 200
            assert (await api.post("ben", "/group/join", group_id=group["group_id"])).status == 200
        refused = await api.post("ben", "/group/quit", group_id=group["group_id"])
        assert (refused.status, refused.error) == (429, "too_many_requests")
        assert (await api.post("cy", "/group/quit", group_id=group["group_id"])).status == 200


async def test_exchanges_of_refresh_tokens_are_limited_per_session(url: str) -> None:
    async with open_api(url, ["ann"], limits__refreshes_per_min=3) as api:
        tokens = [await api.accounts.login("ann", PASSWORD) for _ in range(2)]
        token = tokens[0].refresh_token
        for _ in range(3):
            token = (await api.post(None, "/auth/refresh", refresh_token=token)).data["refresh_token"]
        refused = await api.post(None, "/auth/refresh", refresh_token=token)
        assert (refused.status, refused.error) == (429, "too_many_requests")
        assert (await api.post(None, "/auth/refresh", refresh_token=tokens[1].refresh_token)).status == 200


async def test_lines_of_forwarded_for_are_one_list_and_its_right_end_counts(url: str) -> None:
    """A proxy may add a line of its own; the client wrote the line before it."""
    async with open_api(url, limits__registers_per_min=1, http__trusted_proxies="127.0.0.1") as api:

        async def register(*lines: str) -> int:
            headers = [("X-Forwarded-For", line) for line in lines]
            response = await api.http.post("/user/register", json={"password": PASSWORD}, headers=headers)
            return response.status_code

        assert await register("198.51.100.1", "203.0.113.5") == 200
        for forged in ("198.51.100.2", "127.0.0.1", "198.51.100.3, 127.0.0.1", "unknown"):
            assert await register(forged, "203.0.113.5") == 429
        assert await register("203.0.113.5", "203.0.113.6") == 200

"""The HTTP API through a real server: every route, every error it documents, shapes to the letter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.api import (
    MET,
    PASSWORD,
    SECRET,
    Answer,
    Api,
    SomeOnline,
    make_group,
    make_key,
    need_whole_file,
    open_api,
    send,
)
from harness.core import look, run
from harness.migrated import migrated_database
from nexo.api import calls, message_changes, people, push, search
from nexo.api.routes import ROUTES
from nexo.errors import ERRORS
from nexo.ids import now_ms
from nexo.service.password_resets import PasswordResets

USER = {"user_id", "nickname", "avatar", "extra", "created_at"}
SIGNED_IN = {"user_id", "access_token", "refresh_token", "expires_at", "platform_id", "device_id"}
SENT = {"server_msg_id", "client_msg_id", "conversation_id", "seq", "send_at", "status"}
MESSAGE = {
    "server_msg_id", "client_msg_id", "conversation_id", "seq", "sender_id", "msg_type", "content", "mentions",
    "reply_to", "extra", "status", "send_at",
}  # fmt: skip
CAMEL_MESSAGE = {
    "serverMsgId", "clientMsgId", "conversationId", "msgSeq", "from", "msgType", "body", "mentions",
    "replyToServerMsgId", "extra", "status", "ts",
}  # fmt: skip
HEAD = {"conversation_id", "head_seq", "min_seq", "read_seq", "delivered_seq", "unread", "deleted_rev"}
CONVERSATION = HEAD | {
    "conversation_type", "last_message", "unread_mentions", "pinned", "recv_msg_opt", "updated_at",
    "archived", "silent_until", "marked_unread", "message_ttl_s", "draft", "extra",
}  # fmt: skip
SINGLE = CONVERSATION | {"peer_user_id", "peer_read_seq", "peer_delivered_seq"}
GROUP = {
    "group_id", "conversation_id", "name", "owner_id", "member_count", "status", "join_policy", "avatar",
    "introduction", "announcement", "group_type", "creator_id", "mute_until", "extra", "created_at",
}  # fmt: skip
# The last test looks at what all the others have met: they stay together.
pytestmark = pytest.mark.xdist_group("contract/test_http_api")

RECEIPTS = {"read", "delivered", "pending", "read_count", "delivered_count"}
PAGE = {"messages", "head_seq", "next_seq", "has_more"}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with migrated_database("sqlite", tmp_path) as url:
        yield url


# -- the envelope ----------------------------------------------------------------------------------------


async def test_success_and_failure_come_in_the_same_envelope(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        good = await api.get("ann", "/user/info")
        assert list(good.body) == ["err_code", "err_msg", "data"]
        assert (good.status, good.body["err_code"], good.body["err_msg"]) == (200, 0, "")
        bad = await api.get("ann", "/user/info", user_id="nobody")
        assert set(bad.body) == {"err_code", "err_msg", "data", "detail"}
        row = ERRORS["user_not_found"]
        assert (bad.status, bad.body["err_code"], bad.body["err_msg"]) == (row.http_status, row.number, row.name)
        assert bad.body["data"] is None
        assert bad.body["detail"]


async def test_the_failed_requests_client_msg_id_is_echoed_whatever_is_wrong(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        fields = {"client_msg_id": "mine", "recv_id": "bob", "content": "x"}
        wrong: list[dict[str, Any]] = [{}, {"content": 5}, {"mentions": "x"}, {"more": 1}, {"recv_id": "ann"}]
        for change in wrong:
            answer = await api.post("ann", "/msg/send", **fields | change)
            assert answer.error
            assert answer.body["client_msg_id"] == "mine"
        answer = await api.post(None, "/msg/send", **fields)
        assert (answer.error, answer.body["client_msg_id"]) == ("unauthorized", "mine")
        raw = '{"client_msg_id": "mine", "content": {"n": 1e999}, "recv_id": "bob", "msg_type": 6}'
        answer = await api.request("ann", "POST", "/msg/send", content=raw)
        assert (answer.error, answer.body["client_msg_id"]) == ("bad_content", "mine")
        answer = await api.post("ann", "/msg/send", **fields | {"client_msg_id": " odd "})
        assert (answer.error, answer.body["client_msg_id"]) == ("bad_client_msg_id", " odd ")


# -- users and sessions ----------------------------------------------------------------------------------


async def test_registering_gives_the_user_back_and_stores_it(url: str) -> None:
    async with open_api(url) as api:
        answer = await api.post(
            None,
            "/user/register",
            user_id="ann",
            password=PASSWORD,
            nickname="Ann",
            avatar="https://a.png",
            extra={"n": [1]},
        )
        user = answer.data
        assert set(user) == USER
        assert user | {"created_at": 0} == {
            "user_id": "ann", "nickname": "Ann", "avatar": "https://a.png", "extra": {"n": [1]}, "created_at": 0,
        }  # fmt: skip
        stored = await look(api.core, "SELECT user_id,nickname,avatar,extra,created_at FROM users")
        assert stored == [("ann", "Ann", "https://a.png", '{"n":[1]}', user["created_at"])]
        chosen = (await api.post(None, "/user/register", password=PASSWORD)).data
        assert chosen["user_id"]
        assert chosen["extra"] is None
        again = await api.post(None, "/user/register", user_id="ann", password=PASSWORD)
        assert (again.status, again.error) == (409, "user_exists")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "missing_password"),
        ({"password": "short"}, "bad_password"),
        ({"password": PASSWORD, "user_id": "a b"}, "bad_user_id"),
        ({"password": PASSWORD, "nickname": "x" * 129}, "bad_nickname"),
        ({"password": PASSWORD, "avatar": "x" * 513}, "bad_avatar"),
        ({"password": PASSWORD, "extra": "x" * 17_000}, "body_too_long"),
        ({"password": PASSWORD, "extra": "\0"}, "bad_extra"),
    ],
)
async def test_who_registers_badly_is_told_which_field_is_wrong(url: str, fields: dict[str, Any], error: str) -> None:
    async with open_api(url) as api:
        assert (await api.post(None, "/user/register", **fields)).error == error
        assert await look(api.core, "SELECT user_id FROM users") == []


async def test_login_refresh_and_password_answer_alike(url: str) -> None:
    async with open_api(url) as api:
        await api.accounts.register(PASSWORD, "ann")
        login = (await api.post(None, "/auth/login", user_id="ann", password=PASSWORD)).data
        assert set(login) == SIGNED_IN
        assert (login["user_id"], login["platform_id"], login["device_id"]) == ("ann", 5, "")
        assert login["expires_at"] > now_ms()
        phone = await api.post(None, "/auth/login", user_id="ann", password=PASSWORD, platform_id=1, device_id="phone")
        assert (phone.data["platform_id"], phone.data["device_id"]) == (1, "phone")
        fresh = (await api.post(None, "/auth/refresh", refresh_token=login["refresh_token"])).data
        assert set(fresh) == SIGNED_IN
        assert fresh["refresh_token"] != login["refresh_token"]
        api.tokens["ann"] = fresh["access_token"]
        changed = await api.post("ann", "/auth/password", old_password=PASSWORD, new_password="battery staple")
        assert set(changed.data) == SIGNED_IN
        assert (await api.get("ann", "/user/info")).error == "session_invalid"  # the token from before
        api.tokens["ann"] = changed.data["access_token"]
        assert (await api.get("ann", "/user/info")).data["user_id"] == "ann"
        api.tokens["ann"] = phone.data["access_token"]
        assert (await api.get("ann", "/user/info")).error == "session_invalid"  # another session
        assert (await api.post(None, "/auth/refresh", refresh_token=phone.data["refresh_token"])).error == (
            "session_invalid"
        )


async def test_wrong_credentials_are_refused(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        for user_id in ("ann", "nobody", "no such id"):
            answer = await api.post(None, "/auth/login", user_id=user_id, password="wrong password")
            assert (answer.status, answer.error) == (401, "invalid_credentials")
        answer = await api.post("ann", "/auth/password", old_password="wrong password", new_password="battery staple")
        assert answer.error == "invalid_credentials"
        answer = await api.post("ann", "/auth/password", old_password=PASSWORD, new_password="short")
        assert answer.error == "bad_password"
        answer = await api.post(None, "/auth/login", user_id="ann", password=PASSWORD, platform_id=11)
        assert answer.error == "bad_platform_id"
        answer = await api.post(None, "/auth/login", user_id="ann", password=PASSWORD, device_id="x" * 129)
        assert answer.error == "bad_device_id"
        assert (await api.post(None, "/auth/refresh", refresh_token="unknown")).error == "session_invalid"


async def test_logging_out_ends_the_session_and_its_access_token(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        assert (await api.get("ann", "/user/info")).status == 200
        assert (await api.post("ann", "/auth/logout")).data == {}
        assert (await api.get("ann", "/user/info")).error == "session_invalid"
        assert await look(api.core, "SELECT COUNT(*) FROM sessions WHERE revoked_at IS NULL") == [(0,)]


async def test_logging_out_needs_no_body(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        assert (await api.request("ann", "POST", "/auth/logout")).data == {}
        assert (await api.request("bob", "POST", "/auth/logout", content="[]")).error == "bad_request"


async def test_profiles_are_read_searched_and_changed(url: str) -> None:
    async with open_api(url, ["ann", "bob", "bobby"]) as api:
        assert (await api.get("ann", "/user/info")).data["user_id"] == "ann"
        other = (await api.get("ann", "/user/info", user_id="bob")).data
        assert (set(other), other["nickname"]) == (USER, "Bob")
        assert (await api.get("ann", "/user/info", user_id="nobody")).error == "user_not_found"
        assert (await api.get("ann", "/user/info", user_id="no body")).error == "bad_user_id"
        found = (await api.get("ann", "/user/search", q="bob")).data
        assert [user["user_id"] for user in found["users"]] == ["bob", "bobby"]
        assert set(found["users"][0]) == USER
        assert (await api.get("ann", "/user/search", q="")).error == "missing_query"
        assert (await api.get("ann", "/user/search", q="x" * 200)).error == "bad_query"
        changed = await api.put("ann", "/user/update", nickname="Anna", extra={"a": 1})
        assert (changed.data["nickname"], changed.data["extra"]) == ("Anna", {"a": 1})
        assert (await api.put("ann", "/user/update", extra=None)).data["extra"] is None
        assert (await api.put("ann", "/user/update")).data["nickname"] == "Anna"
        assert (await api.put("ann", "/user/update", nickname="x" * 129)).error == "bad_nickname"
        assert (await api.put("ann", "/user/update", nickname=None)).error == "bad_nickname"
        stored = await look(api.core, "SELECT nickname,extra FROM users WHERE user_id=?", "ann")
        assert stored == [("Anna", None)]


async def test_searching_can_be_switched_off(url: str) -> None:
    async with open_api(url, ["ann"], user__search=False) as api:
        assert (await api.get("ann", "/user/search", q="a")).error == "no_permission"


async def test_a_user_who_is_gone_cannot_be_read_or_changed(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        await api.get("ann", "/user/info")
        await run(api.core, "DELETE FROM users WHERE user_id=?", "ann")
        assert (await api.put("ann", "/user/update", nickname="x")).error == "user_not_found"


async def test_who_is_online_is_told_in_the_order_asked_for(url: str) -> None:
    async with open_api(url, ["ann"], online=SomeOnline("bob")) as api:
        answer = await api.get("ann", "/user/online", user_ids="cat,bob,cat")
        assert abs(answer.data["users"][1].pop("last_seen_at") - now_ms()) < 60_000
        assert answer.data == {
            "users": [
                {"user_id": "cat", "online": False, "platforms": []},
                {"user_id": "bob", "online": True, "platforms": [5]},
            ]
        }
        assert (await api.get("ann", "/user/online")).error == "missing_user_id"
        assert (await api.get("ann", "/user/online", user_ids="")).error == "missing_user_id"
        assert (await api.get("ann", "/user/online", user_ids="bob,")).error == "bad_user_id"
        assert (await api.get("ann", "/user/online", user_ids="a b")).error == "bad_user_id"
        many = ",".join(f"u{i}" for i in range(201))
        assert (await api.get("ann", "/user/online", user_ids=many)).error == "bad_user_id"


async def test_blocking_and_unblocking_tell_who_is_blocked(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        assert (await api.post("ann", "/user/block", user_id="bob")).data == {"user_ids": ["bob"]}
        assert (await api.post("ann", "/user/block", user_id="cat")).data == {"user_ids": ["bob", "cat"]}
        assert (await api.get("ann", "/user/blocks")).data == {"user_ids": ["bob", "cat"]}
        refused = await api.post("bob", "/msg/send", client_msg_id="1", recv_id="ann", content="x")
        assert (refused.status, refused.error) == (403, "blocked")
        assert (await api.post("ann", "/user/unblock", user_id="bob")).data == {"user_ids": ["cat"]}
        assert api.publisher.take() == [
            ("audience_changed", "si_ann:bob"), ("audience_changed", "si_ann:cat"), ("audience_changed", "si_ann:bob"),
        ]  # fmt: skip
        await send(api, "bob", "ann")
        for path in ("/user/block", "/user/unblock"):
            assert (await api.post("ann", path, user_id="nobody")).error == "user_not_found"
            assert (await api.post("ann", path, user_id="ann")).error == "bad_user_id"
            assert (await api.post("ann", path)).error == "missing_user_id"


# -- sending ---------------------------------------------------------------------------------------------


async def test_a_sent_message_is_stored_answered_and_published(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        answer = await api.post(
            "ann", "/msg/send", client_msg_id="1", recv_id="bob", content="hi", extra={"k": 1}, sender_id="ann"
        )
        sent = answer.data
        assert set(sent) == SENT
        assert isinstance(sent["server_msg_id"], str)
        assert (sent["client_msg_id"], sent["conversation_id"], sent["seq"], sent["status"]) == (
            "1", "si_ann:bob", 1, "saved",
        )  # fmt: skip
        stored = await look(api.core, "SELECT server_msg_id,seq,sender_id,content,extra,send_at FROM messages")
        assert stored == [(int(sent["server_msg_id"]), 1, "ann", '"hi"', '{"k":1}', sent["send_at"])]
        [(what, told)] = api.publisher.take()
        assert (what, told.fresh, str(told.message.server_msg_id)) == ("message_saved", True, sent["server_msg_id"])


async def test_a_retry_gets_the_same_answer_and_takes_no_seq(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        fields = {"client_msg_id": "1", "recv_id": "bob", "content": "hi"}
        first = (await api.post("ann", "/msg/send", **fields)).data
        assert (await api.post("ann", "/msg/send", **fields)).data == first
        assert [told.fresh for _, told in api.publisher.take()] == [True, False]
        other = await api.post("ann", "/msg/send", **fields | {"content": "other"})
        assert (other.status, other.error) == (409, "client_msg_id_reused")
        assert await look(api.core, "SELECT content FROM messages") == [('"hi"',)]


async def test_content_that_the_filter_changed_is_told(url: str, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("darn\n")
    async with open_api(url, ["ann", "bob"], filter__file=str(words)) as api:
        sent = await send(api, "ann", "bob", "well darn it")
        assert set(sent) == SENT | {"content"}
        assert sent["content"] == "well *** it"
        assert set(await send(api, "ann", "bob", "fine")) == SENT
    async with open_api(url, filter__file=str(words), filter__mode="reject") as api:
        api.tokens["ann"] = (await api.accounts.login("ann", PASSWORD)).access_token
        answer = await api.post("ann", "/msg/send", client_msg_id="x", recv_id="bob", content="darn")
        assert (answer.status, answer.error) == (422, "content_rejected")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"client_msg_id": ...}, "missing_client_msg_id"),
        ({"client_msg_id": ""}, "missing_client_msg_id"),
        ({"client_msg_id": 5}, "bad_client_msg_id"),
        ({"client_msg_id": "x" * 65}, "bad_client_msg_id"),
        ({"recv_id": ...}, "missing_receiver"),
        ({"recv_id": 5}, "bad_receiver"),
        ({"recv_id": "b b"}, "bad_receiver"),
        ({"group_id": "g_aaaaaaaaaaaa"}, "bad_receiver"),
        ({"recv_id": "ann"}, "cannot_send_to_self"),
        ({"recv_id": "nobody"}, "user_not_found"),
        ({"recv_id": None, "group_id": 5}, "bad_group_id"),
        ({"recv_id": None, "group_id": "odd"}, "group_not_found"),
        ({"recv_id": None, "group_id": "g_aaaaaaaaaaaa"}, "group_not_found"),
        ({"content": ...}, "missing_content"),
        ({"content": ""}, "missing_content"),
        ({"content": 5}, "bad_content"),
        ({"content": None}, "bad_content"),
        ({"content": {"a": 1}}, "bad_content"),
        ({"content": "x" * 4097}, "body_too_long"),
        ({"msg_type": 6, "content": "text"}, "bad_content"),
        ({"msg_type": 6, "content": {"a": "x" * 17_000}}, "body_too_long"),
        ({"msg_type": 2, "content": {}}, "missing_content"),
        ({"msg_type": "1"}, "bad_msg_type"),
        ({"msg_type": 8}, "bad_msg_type"),
        ({"msg_type": 10**30}, "bad_msg_type"),
        ({"mentions": "bob"}, "bad_mentions"),
        ({"mentions": ["bob", 5]}, "bad_mentions"),
        ({"mentions": ["@all"]}, "no_permission"),
        ({"msg_type": 7}, "missing_reply_to"),
        ({"reply_to": 5}, "bad_reply_to"),
        ({"reply_to": "five"}, "bad_reply_to"),
        ({"reply_to": "12345"}, "message_not_found"),
        ({"extra": {"a": 10**30}}, "bad_extra"),
        ({"sender_id": "bob"}, "identity_mismatch"),
        ({"send_id": "bob"}, "identity_mismatch"),
        ({"from": "bob"}, "identity_mismatch"),
        ({"nonsense": 1}, "bad_request"),
    ],
)
async def test_a_message_that_cannot_be_sent_is_refused_by_name(url: str, fields: dict[str, Any], error: str) -> None:
    good = {"client_msg_id": "1", "recv_id": "bob", "content": "x"}
    wanted = {name: value for name, value in {**good, **fields}.items() if value is not ...}
    async with open_api(url, ["ann", "bob"]) as api:
        answer = await api.post("ann", "/msg/send", **wanted)
        assert (answer.error, answer.status) == (error, ERRORS[error].http_status)
        assert await look(api.core, "SELECT seq FROM messages") == []
        assert api.publisher.take() == []


async def test_who_may_not_speak_in_a_group_is_told_why(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        fields = {"client_msg_id": "1", "group_id": group_id, "content": "x"}
        assert (await api.post("dan", "/msg/send", **fields)).error == "not_group_member"
        await api.post("ann", "/group/mute", group_id=group_id, duration_s=-1)
        assert (await api.post("bob", "/msg/send", **fields)).error == "speak_muted"
        await api.post("cat", "/group/quit", group_id=group_id)
        assert (await api.post("cat", "/msg/send", **fields)).error == "member_not_active"
        await api.post("ann", "/group/dismiss", group_id=group_id)
        assert (await api.post("ann", "/msg/send", **fields)).error == "group_not_available"


# -- reading ---------------------------------------------------------------------------------------------


async def test_every_read_path_shows_a_message_in_the_same_shape(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        first = await send(api, "ann", "bob", {"url": "https://u", "size": 1}, msg_type=2, extra={"e": 1})
        reply = await send(api, "bob", "ann", "look", msg_type=7, reply_to=first["server_msg_id"], mentions=["ann"])
        name = "si_ann:bob"
        page = (await api.get("ann", "/msg/pull", conversation_id=name, begin_seq=1)).data
        assert set(page) == PAGE
        image, quote = page["messages"]
        assert set(image) == MESSAGE | {"recv_id"}
        assert image == {
            "server_msg_id": first["server_msg_id"], "client_msg_id": first["client_msg_id"], "conversation_id": name,
            "seq": 1, "sender_id": "ann", "recv_id": "bob", "msg_type": 2, "content": {"url": "https://u", "size": 1},
            "mentions": [], "reply_to": None, "extra": {"e": 1}, "status": 0, "send_at": first["send_at"],
        }  # fmt: skip
        assert set(quote) == MESSAGE | {"recv_id", "quote"}
        assert (quote["recv_id"], quote["reply_to"], quote["mentions"]) == ("ann", first["server_msg_id"], ["ann"])
        assert quote["quote"] == {
            "server_msg_id": first["server_msg_id"], "sender_id": "ann", "msg_type": 2, "text": "https://u",
        }  # fmt: skip
        assert (await api.get("ann", "/msg/history", conversation_id=name)).data["messages"] == [quote, image]
        assert (await api.get("ann", "/msg/pull", conversation_id=name, seqs="2,1")).data["messages"] == [image, quote]
        assert (await api.get("ann", "/msg/offline")).data["messages"] == [quote]
        assert (await api.get("ann", "/conversation/list")).data["conversations"][0]["last_message"] == quote
        camel = (await api.get("ann", "/single-chat/message/cursor", peerUserId="bob")).data
        assert set(camel) == {"messages", "headSeq", "nextSeq", "hasMore"}
        assert set(camel["messages"][1]) == CAMEL_MESSAGE | {"to"}
        assert camel["messages"][0] == {
            "serverMsgId": reply["server_msg_id"], "clientMsgId": reply["client_msg_id"], "conversationId": name,
            "msgSeq": 2, "from": "bob", "to": "ann", "msgType": 7, "body": "look", "mentions": ["ann"],
            "replyToServerMsgId": first["server_msg_id"], "extra": None, "status": 0, "important": True,
            "quote": {"serverMsgId": first["server_msg_id"], "from": "ann", "msgType": 2, "text": "https://u"},
            "ts": reply["send_at"],
        }  # fmt: skip


async def test_group_messages_name_the_group_and_events_have_no_client_msg_id(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        group = await make_group(api, "ann", "bob", "cat")
        await send(api, "ann", group["group_id"], "hi @all", mentions=["@all"])
        page = (await api.get("bob", "/msg/pull", conversation_id=group["conversation_id"], begin_seq=1)).data
        event, message = page["messages"]
        assert set(event) == set(message) == MESSAGE | {"group_id"}
        assert (event["msg_type"], event["client_msg_id"], event["group_id"]) == (101, None, group["group_id"])
        assert event["content"] == {"group_id": group["group_id"], "name": "team", "by": "ann"}
        newest = (await api.get("bob", "/group/message/cursor", groupId=group["group_id"], limit=1)).data
        assert set(newest["messages"][0]) == CAMEL_MESSAGE | {"groupId", "important"}
        own = (await api.get("ann", "/group/message/cursor", groupId=group["group_id"], limit=1)).data
        assert set(own["messages"][0]) == CAMEL_MESSAGE | {"groupId"}


async def test_content_is_given_back_as_it_was_stored(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        content = {"b": 1.5, "a": [True, None, "ä\u2028"], "big": 2**63}
        await send(api, "ann", "bob", content, msg_type=6)
        answer = await api.get("bob", "/msg/history", conversation_id="si_ann:bob")
        assert answer.data["messages"][0]["content"] == content


async def test_pages_are_limited_and_say_where_to_go_on(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"], limits__sends_per_s=0) as api:
        group = await make_group(api, "ann", "bob", "cat")
        for i in range(249):
            await send(api, "ann", group["group_id"], str(i))
        where = {"conversation_id": group["conversation_id"]}

        async def pull(**query: Any) -> tuple[list[int], Any]:
            page = (await api.get("bob", "/msg/pull", **where, **query)).data
            return [message["seq"] for message in page.pop("messages")], page

        assert await pull(begin_seq=1, limit=2) == ([1, 2], {"head_seq": 250, "next_seq": 3, "has_more": True})
        assert await pull(begin_seq=249) == ([249, 250], {"head_seq": 250, "next_seq": 251, "has_more": False})
        assert await pull(begin_seq=2, end_seq=3) == ([2, 3], {"head_seq": 250, "next_seq": 4, "has_more": False})
        assert await pull(seqs="7,3,999,3") == ([3, 7], {"head_seq": 250, "has_more": False})
        for limit in ({}, {"limit": 0}, {"limit": -5}, {"limit": 201}, {"limit": 10**30}):
            assert (await pull(begin_seq=1, **limit))[0] == list(range(1, 201))
        history = (await api.get("bob", "/msg/history", **where, before_seq=10, limit=3)).data
        assert [message["seq"] for message in history["messages"]] == [9, 8, 7]
        assert (history["head_seq"], history["next_seq"], history["has_more"]) == (250, 7, True)
        assert len((await api.get("bob", "/msg/history", **where)).data["messages"]) == 200

        async def seed(path: str, **query: Any) -> list[int]:
            page = (await api.get("bob", path, groupId=group["group_id"], **query)).data
            return [message["msgSeq"] for message in page["messages"]]

        assert await seed("/group/message/cursor") == list(range(250, 200, -1))
        assert await seed("/group/message/cursor", lastSeq=5, limit=2) == [4, 3]
        assert len(await seed("/group/message/cursor", limit=0)) == 200
        assert await seed("/group/message/since") == list(range(1, 51))
        assert await seed("/group/message/since", sinceSeq=248) == [249, 250]
        assert len(await seed("/group/message/since", limit=500)) == 200


async def test_offline_messages_are_paged_by_cursor_over_all_conversations(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        expected = []
        for i in range(6):
            sent = await send(api, "ann" if i % 2 else "cat", "bob", str(i))
            expected.append(sent["server_msg_id"])
        found: list[str] = []
        query: dict[str, Any] = {"limit": 4}
        while True:
            page = (await api.get("bob", "/msg/offline", **query)).data
            assert set(page) == {"messages", "next_cursor", "has_more"}
            found += [message["server_msg_id"] for message in page["messages"]]
            if not page["has_more"]:
                break
            query["cursor"] = page["next_cursor"]
        assert found == expected
        assert (await api.get("bob", "/msg/offline", cursor="nonsense")).error == "bad_cursor"


@pytest.mark.parametrize("path", ["/msg/pull", "/msg/history"])
async def test_what_one_may_not_read_is_refused(url: str, path: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        group = await make_group(api, "ann", "bob", "cat")
        more = {"begin_seq": 1} if path == "/msg/pull" else {}

        async def error(conversation_id: str) -> str:
            return (await api.get("dan", path, conversation_id=conversation_id, **more)).error

        assert await error(group["conversation_id"]) == "not_group_member"
        assert await error("sg_g_aaaaaaaaaaaa") == "group_not_found"
        assert await error("si_ann:bob") == "conversation_not_found"
        assert await error("odd") == "bad_conversation_id"
        assert (await api.get("dan", path)).error == "missing_conversation_id"
        assert (await api.get("dan", path, conversation_id="si_ann:dan", **more)).data["messages"] == []


async def test_what_to_pull_must_be_said_in_one_way(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        where = {"conversation_id": "si_ann:bob"}
        assert (await api.get("ann", "/msg/pull", **where)).error == "missing_seq"
        assert (await api.get("ann", "/msg/pull", **where, seqs="1", begin_seq=1)).error == "bad_request"
        assert (await api.get("ann", "/msg/pull", **where, seqs="1,x")).error == "bad_seq"
        many = ",".join(map(str, range(201)))
        assert (await api.get("ann", "/msg/pull", **where, seqs=many)).error == "bad_seq"
        for seq in ("x", "-1", "1.5", str(2**63), "1e3", "٣"):
            assert (await api.get("ann", "/msg/pull", **where, begin_seq=seq)).error == "bad_seq"
        assert (await api.get("ann", "/msg/pull", **where, begin_seq=1, limit="many")).error == "bad_limit"
        assert (await api.get("ann", "/msg/pull", **where, begin_seq=2**63 - 1)).data["messages"] == []


async def test_the_seed_routes_refuse_what_cannot_be_read(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        for path in ("/group/message/cursor", "/group/message/since"):
            assert (await api.get("dan", path, groupId=group_id)).error == "not_group_member"
            assert (await api.get("dan", path, groupId="g_aaaaaaaaaaaa")).error == "group_not_found"
            assert (await api.get("dan", path, groupId="odd")).error == "group_not_found"
            assert (await api.get("dan", path)).error == "missing_group_id"
            assert (await api.get("dan", path, group_id=group_id)).error == "bad_request"
        assert (await api.get("dan", "/group/message/cursor", groupId=group_id, lastSeq="x")).error == "bad_seq"
        single = "/single-chat/message/cursor"
        assert (await api.get("dan", single)).error == "missing_user_id"
        assert (await api.get("dan", single, peerUserId="d d")).error == "bad_user_id"
        assert (await api.get("dan", single, peerUserId="dan")).error == "bad_user_id"
        assert (await api.get("dan", single, peerUserId="ann", limit="x")).error == "bad_limit"
        empty = (await api.get("dan", single, peerUserId="ann")).data
        assert empty == {"messages": [], "headSeq": 0, "nextSeq": 1, "hasMore": False}


async def test_receipts_tell_who_has_read_and_who_has_it(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        group = await make_group(api, "ann", "bob", "cat", "dan")
        sent = await send(api, "ann", group["group_id"])
        await api.post("bob", "/conversation/read", conversation_id=group["conversation_id"], seq=2)
        answer = await api.get("ann", "/msg/receipts", server_msg_id=sent["server_msg_id"])
        assert set(answer.data) == RECEIPTS
        assert answer.data == {
            "read": ["bob"], "delivered": [], "pending": ["cat", "dan"], "read_count": 1, "delivered_count": 1,
        }  # fmt: skip
        assert (await api.get("ann", "/msg/receipts", server_msg_id="12345")).error == "message_not_found"
        assert (await api.get("ann", "/msg/receipts", server_msg_id="x")).error == "bad_server_msg_id"
        assert (await api.get("ann", "/msg/receipts")).error == "missing_server_msg_id"


async def test_recalling_blanks_the_message_and_gives_the_events_seq(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        sent = await send(api, "ann", "bob", "oops", extra={"a": 1})
        api.publisher.take()
        answer = await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        assert answer.data == {"server_msg_id": sent["server_msg_id"], "seq": 2}
        [(what, told)] = api.publisher.take()
        assert (what, told.seq) == ("recalled", 2)
        again = await api.post("ann", "/msg/recall", server_msg_id=sent["server_msg_id"])
        assert again.data == answer.data
        assert api.publisher.take() == []
        page = (await api.get("bob", "/msg/pull", conversation_id="si_ann:bob", begin_seq=1)).data
        message, event = page["messages"]
        assert set(message) == MESSAGE | {"recv_id", "recalled_at"}
        assert (message["status"], message["content"], message["extra"]) == (1, "", None)
        assert event["content"] == {"server_msg_id": sent["server_msg_id"], "seq": 1, "by": "ann"}
        camel = (await api.get("bob", "/single-chat/message/cursor", peerUserId="ann")).data["messages"][1]
        assert set(camel) == CAMEL_MESSAGE | {"to", "recalledAt"}
        stored = await look(api.core, "SELECT seq,status,content FROM messages ORDER BY seq")
        assert stored[0] == (1, 1, '""')
        assert len(stored) == 2


async def test_what_cannot_be_recalled_is_refused(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        single = await send(api, "ann", "bob")
        mine = {"server_msg_id": single["server_msg_id"]}
        assert (await api.post("bob", "/msg/recall", **mine)).error == "not_message_sender"
        assert (await api.post("cat", "/msg/recall", **mine)).error == "message_not_found"
        await run(api.core, "UPDATE messages SET send_at=send_at-200000")
        assert (await api.post("ann", "/msg/recall", **mine)).error == "recall_timeout"
        assert (await api.post("ann", "/msg/recall", server_msg_id=5)).error == "bad_server_msg_id"
        assert (await api.post("ann", "/msg/recall", server_msg_id="x")).error == "bad_server_msg_id"
        assert (await api.post("ann", "/msg/recall")).error == "missing_server_msg_id"
        group_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        in_group = {"server_msg_id": (await send(api, "bob", group_id))["server_msg_id"]}
        await api.post("bob", "/group/quit", group_id=group_id)
        assert (await api.post("bob", "/msg/recall", **in_group)).error == "member_not_active"
        await api.post("ann", "/group/dismiss", group_id=group_id)
        assert (await api.post("ann", "/msg/recall", **in_group)).error == "group_not_available"


# -- conversations ---------------------------------------------------------------------------------------


async def test_the_list_shows_single_chats_and_groups_each_with_its_own_fields(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        group = await make_group(api, "ann", "bob", "cat")
        sent = await send(api, "ann", "bob")
        data = (await api.get("bob", "/conversation/list")).data
        assert set(data) == {"conversations", "next_cursor", "has_more"}
        single, in_group = data["conversations"]
        assert set(single) == SINGLE
        assert single["last_message"]["server_msg_id"] == sent["server_msg_id"]
        assert (single["conversation_id"], single["conversation_type"], single["peer_user_id"]) == (
            "si_ann:bob", 1, "ann",
        )  # fmt: skip
        assert (single["unread"], single["head_seq"], single["read_seq"], single["peer_read_seq"]) == (1, 1, 0, 1)
        assert set(in_group) == CONVERSATION | {"group_id"}
        assert (in_group["conversation_type"], in_group["group_id"]) == (2, group["group_id"])
        first = (await api.get("bob", "/conversation/list", limit=1)).data
        assert (first["has_more"], first["conversations"]) == (True, [single])
        rest = (await api.get("bob", "/conversation/list", limit=1, cursor=first["next_cursor"])).data
        assert (rest["has_more"], rest["next_cursor"], rest["conversations"]) == (False, "", [in_group])
        assert (await api.get("cat", "/conversation/list", cursor="nonsense")).error == "bad_cursor"
        sync = (await api.get("bob", "/conversation/sync", limit=1)).data
        assert set(sync) == {"conversations", "next_cursor", "has_more"}
        assert set(sync["conversations"][0]) == HEAD
        assert (await api.get("bob", "/conversation/sync", cursor=sync["next_cursor"])).data["has_more"] is False
        assert (await api.get("bob", "/conversation/sync", cursor="nonsense")).error == "bad_cursor"


async def test_newest_seqs_come_for_all_or_for_those_named(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        await send(api, "ann", "bob")
        await send(api, "cat", "bob")
        every = (await api.get("bob", "/conversation/newest_seq")).data["conversations"]
        assert [set(one) for one in every] == [{"conversation_id", "head_seq", "min_seq", "read_seq", "unread"}] * 2
        some = await api.get("bob", "/conversation/newest_seq", conversation_ids="si_ann:bob,si_bob:zoe")
        assert some.data["conversations"] == [
            {"conversation_id": "si_ann:bob", "head_seq": 1, "min_seq": 1, "read_seq": 0, "unread": 1}
        ]
        for odd in ("odd", "", "si_ann:bob,"):
            answer = await api.get("bob", "/conversation/newest_seq", conversation_ids=odd)
            assert answer.error == "bad_conversation_id"
        many = ",".join(f"si_a{i}:bob" for i in range(1001))
        assert (await api.get("bob", "/conversation/newest_seq", conversation_ids=many)).error == "bad_conversation_id"


async def test_settings_of_a_conversation_are_changed_and_told(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        await send(api, "ann", "bob")
        api.publisher.take()
        where = {"conversation_id": "si_ann:bob"}
        answer = await api.put("bob", "/conversation/update", **where, pinned=True, recv_msg_opt=2)
        assert set(answer.data) == SINGLE
        assert (answer.data["pinned"], answer.data["recv_msg_opt"]) == (True, 2)
        assert [kind for kind, _ in api.publisher.take()] == ["audience_changed", "settings_changed"]
        assert (await api.put("bob", "/conversation/update", **where, hidden=True)).status == 200
        ((_, (user, (head,))),) = api.publisher.take()
        assert (user, head.hidden, head.pinned, head.recv_msg_opt) == ("bob", True, True, 2)
        assert (await api.get("bob", "/conversation/list")).data["conversations"] == []
        stored = await look(api.core, "SELECT pinned,recv_msg_opt,hidden_seq FROM members WHERE user_id=?", "bob")
        assert stored == [(1, 2, 1)]
        assert (await api.put("bob", "/conversation/update", **where, recv_msg_opt=3)).error == "bad_recv_msg_opt"
        assert (await api.put("bob", "/conversation/update", **where, recv_msg_opt="2")).error == "bad_recv_msg_opt"
        assert (await api.put("bob", "/conversation/update", **where, pinned=1)).error == "bad_request"
        assert (await api.put("bob", "/conversation/update")).error == "missing_conversation_id"
        group = await make_group(api, "ann", "bob", "cat")

        async def error(conversation_id: str) -> str:
            return (await api.put("dan", "/conversation/update", conversation_id=conversation_id, pinned=True)).error

        assert await error(group["conversation_id"]) == "not_group_member"
        assert await error("sg_g_aaaaaaaaaaaa") == "group_not_found"
        assert await error("si_ann:bob") == "conversation_not_found"
        assert await error("odd") == "bad_conversation_id"


async def test_reading_writes_through_and_is_told_to_the_other_devices(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        where = {"conversation_id": "si_ann:bob"}
        for _ in range(3):
            last = await send(api, "ann", "bob")
        api.publisher.take()
        answer = await api.post("bob", "/conversation/read", **where, seq=1)
        assert answer.data == {**where, "read_seq": 1, "unread": 2}
        [(what, moved)] = api.publisher.take()
        assert (what, moved.user_id, moved.conversation_id, moved.read_to) == ("cursor_moved", "bob", "si_ann:bob", 1)
        assert (await api.post("bob", "/conversation/read", **where, seq="2")).data["read_seq"] == 2
        read = await api.post("bob", "/conversation/read", **where, last_msg_id=last["server_msg_id"])
        assert read.data == {**where, "read_seq": 3, "unread": 0}
        assert await look(api.core, "SELECT read_seq FROM members WHERE user_id=?", "bob") == [(3,)]

        async def error(user_id: str = "bob", **fields: Any) -> str:
            return (await api.post(user_id, "/conversation/read", **{**where, **fields})).error

        assert await error() == "missing_seq"
        assert await error(seq=1, last_msg_id="1") == "missing_seq"
        assert await error(seq="two") == "bad_seq"
        assert await error(seq=-1) == "bad_seq"
        assert await error(seq=1.5) == "bad_seq"
        assert await error(seq=2**63) == "bad_seq"
        assert await error(last_msg_id="x") == "bad_server_msg_id"
        assert await error(last_msg_id="12345") == "message_not_found"
        assert await error("cat", seq=1) == "conversation_not_found"
        assert await error(conversation_id="odd", seq=1) == "bad_conversation_id"
        assert await error(conversation_id="sg_g_aaaaaaaaaaaa", seq=1) == "group_not_found"
        group = await make_group(api, "ann", "bob", "cat")
        assert await error("dan", conversation_id=group["conversation_id"], seq=1) == "not_group_member"
        early = await send(api, "ann", group["group_id"])
        await api.post("ann", "/group/invite", group_id=group["group_id"], user_ids=["dan"])
        unseen = {"conversation_id": group["conversation_id"], "last_msg_id": early["server_msg_id"]}
        assert await error("dan", **unseen) == "ack_not_allowed"


async def test_deleting_a_groups_conversation_dismisses_it_for_everybody(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        group = await make_group(api, "ann", "bob", "cat")
        api.publisher.take()

        async def delete(user_id: str, conversation_id: str) -> Answer:
            return await api.request(user_id, "DELETE", "/conversation", params={"conversation_id": conversation_id})

        assert (await delete("bob", group["conversation_id"])).error == "no_permission"
        assert (await delete("dan", group["conversation_id"])).error == "not_group_member"
        assert (await delete("ann", "si_ann:bob")).error == "conversation_private_cannot_delete"
        assert (await delete("ann", "odd")).error == "bad_conversation_id"
        assert (await delete("ann", "sg_g_aaaaaaaaaaaa")).error == "group_not_found"
        assert (await api.request("ann", "DELETE", "/conversation")).error == "missing_conversation_id"
        assert api.publisher.take() == []
        assert (await delete("ann", group["conversation_id"])).data == {}
        [(what, told)] = api.publisher.take()
        assert (what, told.event.msg_type) == ("group_changed", 108)
        assert (await api.get("bob", "/conversation/list")).data["conversations"] == []
        assert (await delete("ann", group["conversation_id"])).error == "group_not_available"
        assert await look(api.core, "SELECT status FROM conversations") == [(2,)]


# -- groups ----------------------------------------------------------------------------------------------


async def test_a_new_group_is_given_back_stored_and_told_to_its_members(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat"]) as api:
        answer = await api.post(
            "ann", "/group/create", name="team", member_ids=["bob", "cat", "bob", "ann"], avatar="https://a.png",
            introduction="we", join_policy="approval", extra={"k": 1},
        )  # fmt: skip
        group = answer.data
        assert set(group) == GROUP
        assert group["conversation_id"] == "sg_" + group["group_id"]
        assert (group["owner_id"], group["member_count"], group["status"], group["join_policy"]) == (
            "ann", 3, 0, "approval",
        )  # fmt: skip
        [(what, told)] = api.publisher.take()
        assert (what, told.event.msg_type, told.added) == ("group_changed", 101, ["ann", "bob", "cat"])
        assert (await api.get("cat", "/group/info", group_id=group["group_id"])).data == group
        assert (await api.get("cat", "/group/list")).data == {"groups": [group]}
        stored = await look(api.core, "SELECT user_id,role FROM members ORDER BY user_id")
        assert stored == [("ann", 2), ("bob", 0), ("cat", 0)]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"name": ...}, "missing_name"),
        ({"name": "  "}, "missing_name"),
        ({"name": "x" * 129}, "bad_name"),
        ({"name": 5}, "bad_name"),
        ({"member_ids": ...}, "missing_member_ids"),
        ({"member_ids": "bob"}, "bad_member_ids"),
        ({"member_ids": [1, 2]}, "bad_member_ids"),
        ({"member_ids": ["bob"]}, "group_members_too_few"),
        ({"member_ids": ["bob", "cat", "dan", "eve"]}, "group_full"),
        ({"avatar": "x" * 513}, "bad_avatar"),
        ({"introduction": "x" * 513}, "bad_introduction"),
        ({"join_policy": "closed"}, "bad_join_policy"),
        ({"extra": {"a": "\0"}}, "bad_extra"),
    ],
)
async def test_a_group_that_cannot_be_is_refused_by_name(url: str, fields: dict[str, Any], error: str) -> None:
    good = {"name": "team", "member_ids": ["bob", "cat"]}
    wanted = {name: value for name, value in {**good, **fields}.items() if value is not ...}
    async with open_api(url, ["ann", "bob", "cat"], group__max_members=4) as api:
        assert (await api.post("ann", "/group/create", **wanted)).error == error
        assert api.publisher.take() == []


async def test_unknown_users_are_named_when_a_group_is_created(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        answer = await api.post("ann", "/group/create", name="x", member_ids=["bob", "nobody", "noone"])
        assert (answer.status, answer.error) == (404, "user_not_found")
        assert answer.body["data"] == {"user_ids": ["nobody", "noone"]}
        odd = await api.post("ann", "/group/create", name="x", member_ids=["bob", "a b"])
        assert (odd.error, odd.body["data"]) == ("user_not_found", {"user_ids": ["a b"]})


async def test_joining_is_immediate_or_decided_by_others(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan", "eve"], group__max_members=4) as api:
        open_id = (await make_group(api, "ann", "bob", "cat"))["group_id"]
        api.publisher.take()
        assert (await api.post("dan", "/group/join", group_id=open_id)).data == {"status": "joined"}
        [(what, told)] = api.publisher.take()
        assert (what, told.event.msg_type, told.added) == ("group_changed", 102, ["dan"])
        assert (await api.post("dan", "/group/join", group_id=open_id)).data == {"status": "joined"}
        assert api.publisher.take() == []
        assert (await api.post("eve", "/group/join", group_id=open_id)).error == "group_full"
        assert (await api.post("eve", "/group/join", group_id="g_aaaaaaaaaaaa")).error == "group_not_found"
        assert (await api.post("eve", "/group/join")).error == "missing_group_id"
        assert (await api.post("eve", "/group/join", group_id=open_id, message="x" * 513)).error == "bad_message"

        asking = {"group_id": (await make_group(api, "ann", "bob", "cat", join_policy="approval"))["group_id"]}
        assert (await api.post("dan", "/group/join", **asking, message="please")).data == {"status": "pending"}
        found = (await api.get("ann", "/group/join_requests", **asking)).data["requests"]
        assert [set(one) for one in found] == [{"user_id", "message", "created_at"}]
        assert (found[0]["user_id"], found[0]["message"]) == ("dan", "please")
        assert (await api.get("bob", "/group/join_requests", **asking)).error == "no_permission"
        assert (await api.get("eve", "/group/join_requests", **asking)).error == "not_group_member"
        assert (await api.get("eve", "/group/join_requests", group_id="g_aaaaaaaaaaaa")).error == "group_not_found"

        async def decide(actor: str, user_id: str, accept: Any = True, **fields: Any) -> Answer:
            return await api.post(
                actor, "/group/join_decide", **{**asking, "user_id": user_id, "accept": accept, **fields}
            )

        assert (await decide("bob", "dan")).error == "no_permission"
        assert (await decide("eve", "dan")).error == "not_group_member"
        assert (await decide("ann", "eve")).error == "join_request_not_found"
        assert (await decide("ann", "e e")).error == "bad_user_id"
        assert (await decide("ann", "dan", "yes")).error == "bad_request"
        assert (await decide("ann", "dan", group_id="g_aaaaaaaaaaaa")).error == "group_not_found"
        await api.post("eve", "/group/join", **asking)
        api.publisher.take()
        assert (await decide("ann", "dan")).data == {}
        assert [what for what, _ in api.publisher.take()] == ["group_changed"]
        assert (await decide("ann", "eve")).error == "group_full"
        assert (await decide("ann", "eve", False)).data == {}
        assert api.publisher.take() == []

        closed = {"group_id": (await make_group(api, "ann", "bob", "cat", join_policy="invite"))["group_id"]}
        assert (await api.post("dan", "/group/join", **closed)).error == "no_permission"
        await api.post("ann", "/group/dismiss", **closed)
        assert (await api.post("dan", "/group/join", **closed)).error == "group_not_available"
        await api.post("ann", "/group/dismiss", **asking)
        assert (await decide("ann", "eve")).error == "group_not_available"


async def test_inviting_reports_who_was_added_and_who_skipped_and_why(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan", "eve"], group__max_members=4) as api:
        where = {"group_id": (await make_group(api, "ann", "bob", "cat"))["group_id"]}
        api.publisher.take()
        answer = await api.post("bob", "/group/invite", **where, user_ids=["dan", "cat", "nobody", "o d d"])
        assert answer.data["added"] == ["dan"]
        assert {one["user_id"]: one["reason"] for one in answer.data["skipped"]} == {
            "cat": "already_member", "nobody": "user_not_found", "o d d": "user_not_found",
        }  # fmt: skip
        assert set(answer.data["skipped"][0]) == {"user_id", "reason"}
        [(_, told)] = api.publisher.take()
        assert told.added == ["dan"]
        assert (await api.post("bob", "/group/invite", **where, user_ids=["dan"])).data["added"] == []
        assert api.publisher.take() == []

        async def error(user_id: str, user_ids: Any, **fields: Any) -> str:
            return (await api.post(user_id, "/group/invite", **{**where, **fields, "user_ids": user_ids})).error

        assert await error("bob", []) == "missing_member_ids"
        only_odd = await api.post("bob", "/group/invite", **where, user_ids=["o d d"])
        assert only_odd.data == {"added": [], "skipped": [{"user_id": "o d d", "reason": "user_not_found"}]}
        assert await error("eve", ["o d d"]) == "not_group_member"
        assert await error("bob", "eve") == "bad_member_ids"
        assert await error("bob", [f"u{i}" for i in range(501)]) == "bad_member_ids"
        assert await error("bob", ["eve"]) == "group_full"
        assert await error("eve", ["eve"]) == "not_group_member"
        assert await error("bob", ["eve"], group_id="g_aaaaaaaaaaaa") == "group_not_found"
        await api.put("ann", "/group/update", **where, join_policy="invite")
        assert await error("bob", ["eve"]) == "no_permission"
        await api.post("ann", "/group/dismiss", **where)
        assert await error("ann", ["eve"]) == "group_not_available"


async def test_members_leave_and_are_removed(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        where = {"group_id": (await make_group(api, "ann", "bob", "cat", "dan"))["group_id"]}
        api.publisher.take()
        assert (await api.post("bob", "/group/remove_member", **where, user_id="cat")).error == "no_permission"
        removed = await api.post("ann", "/group/remove_member", **where, user_id="cat")
        assert removed.data == {"added": [], "skipped": []}
        assert (await api.post("dan", "/group/quit", **where)).data == {}
        assert [told.event.msg_type for _, told in api.publisher.take()] == [104, 103]
        assert (await api.post("ann", "/group/quit", **where)).error == "owner_cannot_leave"
        assert (await api.post("cat", "/group/quit", **where)).error == "not_group_member"
        assert (await api.post("cat", "/group/quit", group_id="g_aaaaaaaaaaaa")).error == "group_not_found"
        assert (await api.post("ann", "/group/remove_member", **where, user_id="cat")).error == "not_group_member"
        assert (await api.post("ann", "/group/remove_member", **where, user_id="c c")).error == "bad_user_id"
        unknown = {"group_id": "g_aaaaaaaaaaaa", "user_id": "cat"}
        assert (await api.post("ann", "/group/remove_member", **unknown)).error == "group_not_found"
        stored = await look(api.core, "SELECT user_id,status FROM members ORDER BY user_id")
        assert stored == [("ann", 0), ("bob", 0), ("cat", 2), ("dan", 1)]
        await api.post("ann", "/group/dismiss", **where)
        assert (await api.post("bob", "/group/quit", **where)).error == "group_not_available"
        assert (await api.post("ann", "/group/remove_member", **where, user_id="bob")).error == "group_not_available"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/group/transfer_owner", {"user_id": "bob"}),
        ("/group/set_member_role", {"user_id": "bob", "role": "admin"}),
        ("/group/mute", {"user_id": "bob", "duration_s": 60}),
        ("/group/dismiss", {}),
    ],
)
async def test_managing_a_group_is_for_those_who_may(url: str, path: str, fields: dict[str, Any]) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        where = {"group_id": (await make_group(api, "ann", "bob", "cat"))["group_id"]}
        api.publisher.take()
        assert (await api.post("cat", path, **where, **fields)).error == "no_permission"
        assert (await api.post("dan", path, **where, **fields)).error == "not_group_member"
        assert (await api.post("ann", path, group_id="g_aaaaaaaaaaaa", **fields)).error == "group_not_found"
        assert (await api.post("ann", path, **fields)).error == "missing_group_id"
        assert api.publisher.take() == []
        assert (await api.post("ann", path, **where, **fields)).data == {}
        assert [what for what, _ in api.publisher.take()] == ["group_changed"]
        owner = "bob" if path == "/group/transfer_owner" else "ann"
        await api.post(owner, "/group/dismiss", **where)
        assert (await api.post("ann", path, **where, **fields)).error == "group_not_available"


async def test_roles_owners_and_mutes_show_in_the_member_list(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        where = {"group_id": (await make_group(api, "ann", "bob", "cat"))["group_id"]}
        await api.post("ann", "/group/set_member_role", **where, user_id="bob", role="admin")
        await api.post("bob", "/group/mute", **where, user_id="cat", duration_s=-1)
        data = (await api.get("cat", "/group/members", **where)).data
        assert set(data) == {"members", "next_cursor", "has_more"}
        assert [set(one) for one in data["members"]] == [
            {
                "user_id", "role", "nickname", "joined_at", "muted_until", "group_nickname", "group_avatar",
                "inviter_id", "extra",
            }
        ] * 3  # fmt: skip
        assert [(one["user_id"], one["role"], one["nickname"], one["muted_until"]) for one in data["members"]] == [
            ("ann", "owner", "Ann", 0), ("bob", "admin", "Bob", 0), ("cat", "member", "Cat", -1),
        ]  # fmt: skip
        page = (await api.get("cat", "/group/members", **where, limit=2)).data
        assert (len(page["members"]), page["has_more"]) == (2, True)
        rest = (await api.get("cat", "/group/members", **where, limit=2, cursor=page["next_cursor"])).data
        assert ([one["user_id"] for one in rest["members"]], rest["has_more"]) == (["cat"], False)
        await api.post("ann", "/group/mute", **where, user_id="cat", duration_s=0)
        await api.post("ann", "/group/transfer_owner", **where, user_id="cat")
        roles = (await api.get("cat", "/group/members", **where)).data["members"]
        assert [(one["role"], one["muted_until"]) for one in roles] == [("member", 0), ("admin", 0), ("owner", 0)]
        assert (await api.get("ann", "/group/info", **where)).data["owner_id"] == "cat"
        assert (await api.get("dan", "/group/members", **where)).error == "not_group_member"
        assert (await api.get("dan", "/group/members", group_id="g_aaaaaaaaaaaa")).error == "group_not_found"
        assert (await api.get("cat", "/group/members", **where, cursor="nonsense")).error == "bad_cursor"
        assert (await api.get("cat", "/group/info", group_id="g_aaaaaaaaaaaa")).error == "group_not_found"
        assert (await api.get("cat", "/group/info")).error == "missing_group_id"
        bad_role = {"user_id": "bob", "role": "owner"}
        assert (await api.post("cat", "/group/set_member_role", **where, **bad_role)).error == "bad_role"
        assert (await api.post("cat", "/group/mute", **where, duration_s=-2)).error == "bad_duration"
        assert (await api.post("cat", "/group/mute", **where, duration_s="1")).error == "bad_duration"
        assert (await api.post("cat", "/group/mute", **where)).error == "missing_duration"
        assert (await api.post("cat", "/group/mute", **where, user_id=None, duration_s=60)).data == {}
        assert (await api.get("cat", "/group/info", **where)).data["mute_until"] > now_ms()


async def test_what_a_group_says_of_itself_is_changed_and_told(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan"]) as api:
        where = {"group_id": (await make_group(api, "ann", "bob", "cat"))["group_id"]}
        api.publisher.take()
        fields = {
            "name": "new",
            "avatar": "https://b.png",
            "introduction": "i",
            "announcement": "a",
            "join_policy": "invite",
        }
        answer = await api.put("ann", "/group/update", **where, **fields)
        assert set(answer.data) == GROUP
        assert {name: answer.data[name] for name in fields} == fields
        [(what, told)] = api.publisher.take()
        assert (what, told.event.msg_type) == ("group_changed", 107)

        async def error(user_id: str = "ann", **changes: Any) -> str:
            return (await api.put(user_id, "/group/update", **{**where, **changes})).error

        assert await error() == "bad_request"
        assert await error(name=" ") == "missing_name"
        assert await error(name=None) == "bad_name"
        assert await error(announcement="x" * 4097) == "bad_announcement"
        assert await error(join_policy="x") == "bad_join_policy"
        assert await error(owner_id="bob") == "bad_request"
        assert await error("bob", name="x") == "no_permission"
        assert await error("dan", name="x") == "not_group_member"
        assert await error(group_id="g_aaaaaaaaaaaa", name="x") == "group_not_found"
        await api.post("ann", "/group/dismiss", **where)
        assert await error(name="x") == "group_not_available"
        assert (await api.get("ann", "/group/info", **where)).data["status"] == 1
        assert (await api.get("ann", "/group/list")).data == {"groups": []}


# -- limits ----------------------------------------------------------------------------------------------


def check_refused(api: Api, answer: Answer, limit: str) -> None:
    assert (answer.status, answer.error) == (429, "too_many_requests")
    assert answer.body["retry_after_ms"] > 0
    assert int(answer.headers["retry-after"]) >= answer.body["retry_after_ms"] / 1000
    assert api.limits.refusals()[limit] == 1


async def test_passwords_cannot_be_tried_without_end(url: str) -> None:
    async with open_api(url, ["ann", "bob"]) as api:
        for _ in range(5):
            assert (await api.post(None, "/auth/login", user_id="ann", password="wrong")).error == (
                "invalid_credentials"
            )
        check_refused(api, await api.post(None, "/auth/login", user_id="ann", password=PASSWORD), "logins")
        assert (await api.post(None, "/auth/login", user_id="bob", password=PASSWORD)).status == 200
        answer = await api.post("ann", "/auth/password", old_password=PASSWORD, new_password="battery staple")
        assert answer.error == "too_many_requests"


async def test_registering_creating_groups_and_sending_are_limited(url: str) -> None:
    async with open_api(
        url, ["ann", "bob", "cat"], limits__registers_per_min=1, limits__group_creates_per_min=1,
        limits__sends_per_s=1, limits__sends_burst=1,
    ) as api:  # fmt: skip
        assert (await api.post(None, "/user/register", password=PASSWORD)).status == 200
        check_refused(api, await api.post(None, "/user/register", password=PASSWORD), "registers")
        await make_group(api, "ann", "bob", "cat")
        again = await api.post("ann", "/group/create", name="x", member_ids=["bob", "cat"])
        check_refused(api, again, "group_creates")
        await make_group(api, "bob", "ann", "cat")
        await send(api, "ann", "bob")
        refused = await api.post("ann", "/msg/send", client_msg_id="again", recv_id="bob", content="x")
        check_refused(api, refused, "sends")
        assert refused.body["client_msg_id"] == "again"
        await send(api, "bob", "ann")


async def test_only_administrators_see_the_live_numbers(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        refused = await api.get("ann", "/admin/stats")
        assert (refused.status, refused.error) == (403, "no_permission")
        await api.accounts.set_admin("ann", True)
        assert set((await api.get("ann", "/admin/stats")).data) == {"state", "reason", "slow", "canary_ms", "live"}


async def test_a_disabled_user_cannot_log_in(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        await api.backend.accounts.disable("ann", "", "command line")
        refused = await api.post(None, "/auth/login", user_id="ann", password=PASSWORD)
        assert (refused.status, refused.error) == (403, "user_disabled")


async def test_a_password_is_reset_by_a_code_once(core_url: str) -> None:
    async with open_api(core_url, ["ann", "bob"], limits__logins_per_min=0) as api:
        key = await make_key(api, "moderate")
        issued = (await api.post(key, "/server/users/ann/password_reset")).data
        assert 3_500_000 < issued["expires_at"] - now_ms() <= 3_600_000
        code = issued["code"]
        short = await api.post(None, "/auth/reset", code=code, new_password="x")
        assert short.error == "bad_password"
        for wrong in ("", "x", code[:-4] + "AAAA", f"Ym9i{code}", code + ".x", "€" * 5, "a" * 300, "=.="):
            refused = await api.post(None, "/auth/reset", code=wrong, new_password="new password")
            assert refused.error == "code_invalid", wrong
        assert (await api.get("ann", "/user/info")).status == 200
        assert (await api.post(None, "/auth/reset", code=code, new_password="new password")).data == {}
        assert (await api.get("ann", "/user/info")).error == "session_invalid"
        again = await api.post(None, "/auth/reset", code=code, new_password="another password")
        assert again.error == "code_invalid"
        assert (await api.post(None, "/auth/login", user_id="ann", password="new password")).status == 200
        other = (await api.post(key, "/server/users/bob/password_reset")).data["code"]
        await api.accounts.set_password("bob", "set meanwhile")
        late = await api.post(None, "/auth/reset", code=other, new_password="new password")
        assert late.error == "code_invalid", "the password has changed since"
        other = (await api.post(key, "/server/users/bob/password_reset")).data["code"]
        await api.backend.accounts.disable("bob", "", "user:boss")
        refused = await api.post(None, "/auth/reset", code=other, new_password="new password")
        assert refused.error == "user_disabled"
        assert (await api.get(key, "/server/audit", target="ann")).data["entries"][0]["act"] == "user.password_reset"


async def test_a_code_to_reset_a_password_expires_and_cannot_be_guessed(core_url: str) -> None:
    async with open_api(core_url, ["ann"], limits__logins_per_min=3) as api:
        resets = api.backend.resets
        soon = PasswordResets(resets._store, api.accounts, SECRET, -1)
        expired = (await soon.issue("ann", "user:boss")).code
        refused = await api.post(None, "/auth/reset", code=expired, new_password="new password")
        assert (refused.error, "expired" in refused.body["detail"]) == ("code_invalid", True)
        foreign = PasswordResets(resets._store, api.accounts, "another secret, of another server", 60)
        code = (await foreign.issue("ann", "user:boss")).code
        answers = [await api.post(None, "/auth/reset", code=code, new_password="new password") for _ in range(3)]
        assert [answer.error for answer in answers] == ["code_invalid", "code_invalid", "too_many_requests"]


async def test_passwords_can_be_switched_off(core_url: str) -> None:
    async with open_api(core_url, auth__passwords=False) as api:
        key = await make_key(api, "shop", "users", "tokens")
        await api.put(key, "/server/users", users=[{"user_id": "ann"}])
        token = (await api.post(key, "/server/tokens", user_id="ann")).data["access_token"]
        assert (await api.get(token, "/user/info")).data["user_id"] == "ann"
        for caller, path, fields in (
            (None, "/user/register", {"password": PASSWORD}),
            (None, "/auth/login", {"user_id": "ann", "password": PASSWORD}),
            (token, "/auth/password", {"old_password": PASSWORD, "new_password": PASSWORD}),
            (None, "/auth/reset", {"code": "x", "new_password": PASSWORD}),
        ):
            answer = await api.post(caller, path, **fields)
            assert (answer.status, answer.error) == (403, "passwords_off"), path


async def test_a_password_is_reset_by_a_code_that_works_once(url: str) -> None:
    async with open_api(url, ["ann", "boss"]) as api:
        await api.accounts.set_admin("boss", True)
        code = (await api.post("boss", "/server/users/ann/password_reset")).data["code"]
        reset = {"code": code, "new_password": "battery staple"}
        assert (
            await api.post(None, "/auth/reset", code="wrong", new_password="battery staple")
        ).error == "code_invalid"
        assert (await api.post(None, "/auth/reset", **reset)).status == 200
        assert (await api.post(None, "/auth/reset", **reset)).error == "code_invalid"
        again = (await api.post("boss", "/server/users/ann/password_reset")).data["code"]
        await api.backend.accounts.disable("ann", "", "command line")
        refused = await api.post(None, "/auth/reset", code=again, new_password="battery staple")
        assert refused.error == "user_disabled"


async def test_without_passwords_what_needs_one_is_refused(url: str) -> None:
    async with open_api(url, ["ann"]) as api:
        token = api.tokens["ann"]
    async with open_api(url, auth__passwords=False) as api:
        api.tokens["ann"] = token
        for caller, path, fields in (
            (None, "/user/register", {"password": PASSWORD}),
            (None, "/auth/login", {"user_id": "ann", "password": PASSWORD}),
            ("ann", "/auth/password", {"old_password": PASSWORD, "new_password": "battery staple"}),
            (None, "/auth/reset", {"code": "x", "new_password": "battery staple"}),
        ):
            assert (await api.post(caller, path, **fields)).error == "passwords_off", path


# The last test of this file: what all of them together have met.
async def test_a_group_with_a_user_who_blocked_its_creator_is_refused(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cy"]) as api:
        await api.post("cy", "/user/block", user_id="ann")
        refused = await api.post("ann", "/group/create", name="trap", member_ids=["bob", "cy"])
        assert (refused.status, refused.error) == (403, "blocked")


async def test_users_who_are_not_in_a_group_see_little_of_it(url: str) -> None:
    async with open_api(url, ["ann", "bob", "cat", "dan", "eve"]) as api:
        group = await make_group(
            api, "ann", "bob", "cat", "dan", introduction="i", avatar="https://a/b.png", extra={"x": 1}
        )
        where = {"group_id": group["group_id"]}
        await api.put("ann", "/group/update", **where, announcement="for members")
        await api.post("ann", "/group/remove_member", **where, user_id="cat")
        written = await send(api, "dan", group["group_id"])
        await api.post("dan", "/group/quit", **where)
        asked = {"server_msg_id": written["server_msg_id"]}
        assert (await api.get("dan", "/msg/receipts", **asked)).error == "member_not_active"
        assert (await api.get("bob", "/msg/receipts", **asked)).status == 200
        assert (await api.get("bob", "/group/info", **where)).data["announcement"] == "for members"
        little = {**where, "join_policy": "open", "name": "team", "avatar": "https://a/b.png", "member_count": 2}
        for user_id in ("cat", "dan", "eve"):
            assert (await api.get(user_id, "/group/info", **where)).data == little
        await api.put("ann", "/group/update", **where, join_policy="invite")
        assert (await api.get("eve", "/group/info", **where)).data == {**where, "join_policy": "invite"}
        assert (await api.get("cat", "/group/info", **where)).data == {**little, "join_policy": "invite"}
        await api.post("ann", "/group/dismiss", **where)
        assert set((await api.get("bob", "/group/info", **where)).data) == GROUP
        assert (await api.get("eve", "/group/info", **where)).data == {**where, "join_policy": "invite"}


async def test_registering_may_need_a_code(url: str) -> None:
    async with open_api(url, auth__registration="invite") as api:
        fields = {"user_id": "ann", "password": PASSWORD}
        assert (await api.post(None, "/user/register", **fields)).error == "registration_closed"
        code = (await api.accounts.new_code(1, 60_000)).code
        assert (await api.post(None, "/user/register", **fields, code=code)).data["user_id"] == "ann"


async def test_files_that_are_not_there_are_refused_wherever_they_are_named(url: str) -> None:
    async with open_api(url, ["ann", "ben", "cy"]) as api:
        group = await make_group(api, "ann", "ben", "cy")
        file_id = "f_" + "A" * 22
        avatar = f"/files/{file_id}"
        answers = [
            await api.post(None, "/user/register", password=PASSWORD, avatar=avatar),
            await api.put("ann", "/user/update", avatar=avatar),
            await api.post("ann", "/group/create", name="g", member_ids=["ben", "cy"], avatar=avatar),
            await api.put("ann", "/group/update", group_id=group["group_id"], avatar=avatar),
        ]
        fields = {"client_msg_id": "c", "recv_id": "ben", "msg_type": 5}
        answers.append(await api.post("ann", "/msg/send", **fields, content={"file_id": file_id}))
        assert [answer.error for answer in answers] == ["file_not_found"] * 5
        assert (await api.post("ann", "/msg/send", **fields, content={"file_id": 7})).error == "bad_file_id"
        assert (await api.post("ann", "/msg/send", **fields, content={"url": avatar})).error == "bad_url"


def test_every_route_was_called_and_every_error_it_documents_was_met(request: pytest.FixtureRequest) -> None:
    need_whole_file(request)
    # files: test_files.py, test_tus.py; the other modules: test_documented_errors.py
    apart = {module.__name__ for module in (people, message_changes, search, calls, push)}
    rows = [row for row in ROUTES if not row.scopes and row.stream is None and row.handler.__module__ not in apart]
    wanted = {(row.method, row.path, outcome) for row in rows for outcome in ("ok", *row.errors)}
    elsewhere = {("GET", "/healthz", "ok"), ("GET", "/readyz", "ok"), ("POST", "/auth/reset", "user_deleted")}
    elsewhere |= {
        ("POST", "/auth/login", "user_deleted"),
        ("POST", "/msg/send", "not_contact"),
        ("POST", "/group/join", "link_expired"),
    }
    time_to_live = ("group_not_available", "member_not_active", "no_permission", "blocked")
    elsewhere |= {("PUT", "/conversation/update", error) for error in time_to_live}
    with_own_tests = {"/msg/delete", "/msg/deleted", "/conversation/clear", "/conversation/at"}
    assert sorted(entry for entry in wanted - MET - elsewhere if entry[1] not in with_own_tests) == []

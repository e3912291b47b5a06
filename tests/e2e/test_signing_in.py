"""Who one is on a socket: AUTH in its forms, REAUTH, and sessions that end while a socket is open."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import jwt
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from harness.chat import PASSWORD, Refused, Tokens, meet, world
from harness.server_process import ServerProcess
from harness.waiting import time_passes

DO_NOT_RECONNECT = range(4000, 4500)
RECONNECT = range(4500, 5000)


def forged(tokens: Tokens, secret: str, **changes: object) -> str:
    claims = jwt.decode(tokens.access, options={"verify_signature": False})
    return jwt.encode(claims | changes, secret, "HS256")


async def test_a_token_in_the_authorization_header_signs_in_without_auth(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        tokens = await ann.log_in(platform_id=2, device_id="phone")
        client = await ann.open(headers={"Authorization": f"Bearer {tokens.access}"})
        assert (await client.signed_in())["userId"] == ann.user_id
        (online,) = (await ann.get("/user/online", user_ids=ann.user_id))["users"]
        assert (online["online"], online["platforms"]) == (True, [2])


async def test_what_is_sent_before_the_header_was_judged_is_done_after_it(server: ServerProcess) -> None:
    async with meet(server, "ben") as (ben,):
        ann = await ben.me.world.person("ann")
        client = await ann.open(headers={"Authorization": f"Bearer {ann.tokens.access}"})
        await client.send(frame := client.message(ben, "in a hurry"))
        await client.expect("ACK", ackType="saved", clientMsgId=frame["clientMsgId"])
        assert [seen["type"] for seen in client.frames[:2]] == ["AUTH_OK", "SYNC"]
        await client.signed_in()


@pytest.mark.parametrize("header", ["Bearer nonsense", "bearer x.y.z"])
async def test_a_bad_token_in_the_header_is_http_401_with_the_error(server: ServerProcess, header: str) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        with pytest.raises(InvalidStatus) as refused:
            await ann.open(headers={"Authorization": header})
        response = refused.value.response
        assert response.status_code == 401
        assert b'"err_msg":"unauthorized"' in response.body


async def test_an_ended_session_in_the_header_is_http_401(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        tokens = await ann.log_in()
        await ann.call("POST", "/auth/logout", tokens=tokens)
        with pytest.raises(InvalidStatus) as refused:
            await ann.open(headers={"Authorization": f"Bearer {tokens.access}"})
        assert b'"err_msg":"session_invalid"' in refused.value.response.body


async def test_an_authorization_of_another_kind_is_left_to_auth(server: ServerProcess) -> None:
    """A proxy may ask for a password of its own."""
    async with world(server) as here:
        ann = await here.person("ann")
        client = await ann.open(headers={"Authorization": "Basic YTpi"})
        await client.sign_in()


async def test_wrong_and_forged_tokens_are_unauthorized(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben = await here.people("ann", "ben")
        for token in ("x", "a.b.c", forged(ann.tokens, "another secret, and a long one at that"), ann.tokens.refresh):
            client = await ann.open()
            await client.send({"type": "AUTH", "token": token})
            await client.expect("AUTH_FAIL", reason="unauthorized")
            assert await client.expect_close() in DO_NOT_RECONNECT
        client = await ann.open()
        # genuine, but it names a session of somebody else
        mixed = forged(ann.tokens, server.secret, user_id=ben.user_id)
        await client.send({"type": "AUTH", "token": mixed})
        await client.expect("AUTH_FAIL", reason="session_invalid")
        assert await client.expect_close() in DO_NOT_RECONNECT


async def test_an_expired_token_says_so_and_the_client_may_come_back(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        client = await ann.open()
        old = forged(ann.tokens, server.secret, exp=int(time.time()) - 1)
        await client.send({"type": "AUTH", "token": old})
        await client.expect("AUTH_FAIL", reason="token_expired")
        assert await client.expect_close() in RECONNECT


async def test_a_revoked_session_does_not_sign_in(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        tokens = await ann.log_in()
        await ann.call("POST", "/auth/logout", tokens=tokens)
        client = await ann.open()
        await client.send({"type": "AUTH", "token": tokens.access})
        await client.expect("AUTH_FAIL", reason="session_invalid")
        assert await client.expect_close() in DO_NOT_RECONNECT


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ({"type": "AUTH"}, "missing_token"),
        ({"type": "AUTH", "token": ""}, "missing_token"),
        ({"type": "AUTH", "token": 5}, "bad_token"),
        ({"type": "AUTH", "token": "TOKEN", "deviceId": "x" * 129}, "bad_device_id"),
        ({"type": "AUTH", "token": "TOKEN", "deviceId": 5}, "bad_device_id"),
        ({"type": "AUTH", "token": "TOKEN", "baselines": [1]}, "bad_baselines"),
        ({"type": "AUTH", "token": "TOKEN", "baselines": {f"si_a:b{i}": 1 for i in range(2001)}}, "bad_baselines"),
        ({"type": "AUTH", "token": "TOKEN", "baselines": {"si_a:b": "x"}}, "bad_seq"),
    ],
)
async def test_an_auth_of_the_wrong_shape_fails_by_name(
    server: ServerProcess, frame: dict[str, object], reason: str
) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        client = await ann.open()
        await client.send({name: ann.tokens.access if value == "TOKEN" else value for name, value in frame.items()})
        await client.expect("AUTH_FAIL", reason=reason)
        await client.expect_close()


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "SINGLE_CHAT", "clientMsgId": "c", "to": "x", "body": "y"},
        {"type": "SINGLE_CHAT"},
        {"type": "GROUP_CHAT", "groupId": 5},
        {"type": "ACK", "ackType": "read", "serverMsgId": "1"},
        {"type": "ACK", "ackType": "nonsense", "msgSeq": "x"},
        {"type": "PULL", "conversationId": "si_a:b"},
        {"type": "SYNC"},
        {"type": "RESEND", "baselines": []},
        {"type": "TYPING", "to": "x"},
        {"type": "PRESENCE", "subscribe": ["x"]},
        {"type": "MESSAGE_REVOKE", "serverMsgId": "1"},
        {"type": "REAUTH", "token": "x"},
        {"type": "REAUTH"},
        {"type": "CALL_INVITE"},
    ],
    ids=lambda frame: "-".join(map(str, frame.values())),
)
async def test_anything_else_before_auth_is_unauthorized_and_closes(
    server: ServerProcess, frame: dict[str, object]
) -> None:
    async with world(server) as here:
        client = await (await here.person("ann")).open()
        await client.send(frame)
        await client.expect_error("unauthorized")
        assert await client.expect_close() in DO_NOT_RECONNECT


async def test_who_says_nothing_for_three_seconds_is_closed_with_auth_timeout(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        silent, pinging = await ann.open(), await ann.open()
        started = time.monotonic()
        while pinging.close_code is None:
            with contextlib.suppress(AssertionError, ConnectionClosed):  # closed meanwhile
                await pinging.ask({"type": "PING"}, "PONG")
            await time_passes(0.3)
        for client in (silent, pinging):
            await client.expect_error("auth_timeout")
            assert await client.expect_close() in RECONNECT
        assert 2.5 < time.monotonic() - started < 15


async def test_frames_sent_behind_auth_wait_for_its_outcome_and_are_done_in_order(server: ServerProcess) -> None:
    async with meet(server, "ben") as (ben,):
        ann = await ben.me.world.person("ann")
        client = await ann.open()
        messages = [client.message(ben, f"{i}") for i in range(20)]
        await client.send_at_once({"type": "AUTH", "token": ann.tokens.access}, *messages, {"type": "PING"})
        await client.signed_in()
        await client.expect("PONG")
        acks = [await client.expect("ACK", ackType="saved") for _ in messages]
        assert [ack["clientMsgId"] for ack in acks] == [frame["clientMsgId"] for frame in messages]
        assert [ack["msgSeq"] for ack in acks] == list(range(1, 21))
        kinds = [frame["type"] for frame in client.frames]
        assert kinds[:2] == ["AUTH_OK", "SYNC"]


async def test_frames_sent_behind_a_failing_auth_are_not_done(server: ServerProcess) -> None:
    async with meet(server, "ben") as (ben,):
        client = await (await ben.me.world.person("ann")).open()
        await client.send_at_once({"type": "AUTH", "token": "nonsense"}, client.message(ben, "nor this"))
        await client.expect("AUTH_FAIL")
        await client.expect_close()
        assert client.seen("ACK") == []
        await ben.expect_nothing("SINGLE_CHAT")


async def test_a_second_auth_is_refused_and_reauth_recommended(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        await ann.send({"type": "AUTH", "token": ann.me.tokens.access})
        assert "REAUTH" in (await ann.expect_error("bad_request"))["detail"]


async def test_two_auths_at_once_sign_in_once(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        client = await ann.open()
        auth = {"type": "AUTH", "token": ann.tokens.access}
        await client.send_at_once(auth, auth)
        await client.signed_in()
        await client.expect_error("bad_request")


async def test_another_users_token_in_reauth_closes_the_socket(server: ServerProcess) -> None:
    async with meet(server, "ann", "ben") as (ann, ben):
        await ann.send({"type": "REAUTH", "token": ben.me.tokens.access})
        await ann.expect_error("reauth_uid_mismatch")
        assert await ann.expect_close() in DO_NOT_RECONNECT


async def test_an_expired_token_in_reauth_fails_and_closes(server: ServerProcess) -> None:
    async with meet(server, "ann") as (ann,):
        old = forged(ann.me.tokens, server.secret, exp=int(time.time()) - 1)
        await ann.send({"type": "REAUTH", "token": old})
        await ann.expect("AUTH_FAIL", reason="token_expired")
        assert await ann.expect_close() in RECONNECT


async def test_logout_closes_the_sockets_of_that_session_and_no_others(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        leaving, staying = await ann.log_in(), await ann.log_in()
        going = [await ann.connect(leaving), await ann.connect(leaving)]
        stays = await ann.connect(staying)
        await ann.call("POST", "/auth/logout", tokens=leaving)
        for client in going:
            await client.expect_error("session_invalid")
            assert await client.expect_close() in DO_NOT_RECONNECT
        await stays.settle()


async def test_a_change_of_password_closes_the_sockets_of_all_other_sessions(server: ServerProcess) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        other = await ann.connect(await ann.log_in())
        own = await ann.connect()
        changed = await ann.post("/auth/password", old_password=PASSWORD, new_password="another password")
        await other.expect_error("session_invalid")
        assert await other.expect_close() in DO_NOT_RECONNECT
        await own.settle()
        ann.tokens = Tokens(changed)
        await own.ask({"type": "REAUTH", "token": ann.tokens.access}, "AUTH_OK")
        with pytest.raises(Refused, match="invalid_credentials"):
            await ann.log_in()


async def test_a_reused_refresh_token_ends_the_session_and_its_sockets() -> None:
    with ServerProcess(auth__refresh_grace_s=0) as server:
        async with world(server) as here:
            ann = await here.person("ann")
            tokens = await ann.log_in()
            client = await ann.connect(tokens)
            await here.call("POST", "/auth/refresh", json={"refresh_token": tokens.refresh})
            with pytest.raises(Refused, match="session_invalid"):
                await here.call("POST", "/auth/refresh", json={"refresh_token": tokens.refresh})
            await client.expect_error("session_invalid")
            assert await client.expect_close() in DO_NOT_RECONNECT


async def test_a_password_set_by_command_ends_tokens_and_sockets_within_a_second() -> None:
    """Neither the heartbeat nor the cache of sessions ends within the time of this test."""
    with ServerProcess(gateway__heartbeat_s=600, gateway__idle_s=1200, auth__session_cache_s=30) as server:
        async with world(server) as here:
            ann = await here.person("ann")
            tokens = await ann.log_in()
            client = await ann.connect(tokens)
            await here.call("GET", "/user/info", headers={"Authorization": f"Bearer {tokens.access}"})
            done = server.run("user", "passwd", ann.user_id, "--password-stdin", text="yet another password\n")
            assert done.returncode == 0, done.stderr
            set_at = time.monotonic()
            await client.expect_error("session_invalid")
            assert await client.expect_close() in DO_NOT_RECONNECT
            with pytest.raises(Refused, match="session_invalid"):
                await here.call("GET", "/user/info", headers={"Authorization": f"Bearer {tokens.access}"})
            assert time.monotonic() - set_at < 1.5


@pytest.fixture(scope="module")
def short_server() -> Iterator[ServerProcess]:
    """Access tokens live for four seconds."""
    with ServerProcess(auth__access_ttl_s=4, auth__refresh_ttl_s=100) as running:
        yield running


async def test_a_socket_whose_token_expires_is_told_and_closed(short_server: ServerProcess) -> None:
    async with world(short_server) as here:
        ann = await here.person("ann")
        tokens = await ann.log_in()
        client = await ann.connect(tokens)
        await client.expect_error("token_expired")
        assert await client.expect_close() in RECONNECT
        assert time.time() * 1000 >= tokens.expires_at - 50


async def test_reauth_in_time_keeps_the_socket_open(short_server: ServerProcess) -> None:
    async with world(short_server, check_pushes=False) as here:
        ann = await here.person("ann")
        tokens = await ann.log_in()
        client = await ann.connect(tokens)
        for _ in range(5):
            refreshed = Tokens(await here.call("POST", "/auth/refresh", json={"refresh_token": tokens.refresh}))
            await client.ask({"type": "REAUTH", "token": refreshed.access}, "AUTH_OK")
            tokens = refreshed
            await time_passes(1)
        await client.ask({"type": "PING"}, "PONG")
        assert client.seen("ERROR") == []


@pytest.mark.parametrize("path", ["/", "/ws/", "/ws/other", "/chat"])
async def test_there_are_no_websockets_on_other_paths(server: ServerProcess, path: str) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        with pytest.raises(InvalidStatus) as refused:
            await ann.open(uri=f"ws://127.0.0.1:{server.port}{path}")
        assert refused.value.response.status_code == 404
        assert b'"err_msg":"not_found"' in refused.value.response.body


async def test_an_unknown_subprotocol_is_refused_and_a_known_one_among_several_is_chosen(
    server: ServerProcess,
) -> None:
    async with world(server) as here:
        ann = await here.person("ann")
        with pytest.raises(InvalidStatus) as refused:
            await ann.open(subprotocols=["chat.v9"])
        assert refused.value.response.status_code == 400
        client = await ann.open(subprotocols=["chat.v9", "nexo.envelope.v1"])
        assert client.socket.subprotocol == "nexo.envelope.v1"
        plain = await ann.open(subprotocols=None)
        assert plain.socket.subprotocol is None
        await plain.sign_in()

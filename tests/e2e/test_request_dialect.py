"""The request dialect by itself: how it is chosen, its handshake, tokens in requests, base64, what is echoed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from harness.chat import PATIENCE_S, Person, fresh_id, world
from harness.dialects import RequestSpeaker, Said
from harness.server_process import ServerProcess
from harness.waiting import time_passes
from nexo.errors import ERRORS
from nexo.wire.registry import DIALECTS

Frame = dict[str, Any]


def query_of(person: Person, **changes: Any) -> dict[str, Any]:
    fields = {
        "token": person.tokens.access,
        "send_id": person.user_id,
        "platform_id": 5,
        "operation_id": "op",
        "sdk_type": "python",
    }
    return {name: value for name, value in (fields | changes).items() if value is not None}


def packed(fields: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def open_at(server: ServerProcess, path: str, **options: Any) -> connect:
    return connect(server.ws_address + path, proxy=None, **options)


async def receive(socket: ClientConnection) -> Frame:
    frame: Frame = json.loads(await asyncio.wait_for(socket.recv(), PATIENCE_S))
    return frame


async def ask(socket: ClientConnection, number: Any, data: Any = None, **fields: Any) -> Frame:
    frame = {"req_identifier": number, "msg_incr": "1", "operation_id": "op", "data": data, **fields}
    await socket.send(json.dumps({name: value for name, value in frame.items() if value is not ...}))
    return await receive(socket)


async def close_code(socket: ClientConnection) -> int:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(socket.recv(), PATIENCE_S)
    assert socket.close_code is not None
    return socket.close_code


# -- which dialect -------------------------------------------------------------------------------------------


async def test_the_dialect_is_chosen_by_subprotocol_then_by_path_and_query(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        query = "?" + urlencode(query_of(ann))
        bearer = {"additional_headers": {"Authorization": f"Bearer {ann.tokens.access}"}}
        cases: list[tuple[str, dict[str, Any], str]] = [
            ("", {"subprotocols": ["nexo.request.v1"], **bearer}, "request"),
            ("/cmd", {"subprotocols": ["nexo.request.v1"], **bearer}, "request"),
            (query, {}, "request"),
            ("?v=" + packed(query_of(ann)), {}, "request"),
            ("", {"subprotocols": ["nexo.command.v1"]}, "command"),
            (query, {"subprotocols": ["nexo.command.v1"]}, "command"),
            ("/cmd", {}, "command"),
            ("/cmd" + query, {}, "command"),
            ("", {"subprotocols": ["chat", "nexo.envelope.v1"]}, "envelope"),
            (query, {"subprotocols": ["nexo.envelope.v1"]}, "envelope"),
            ("", {}, "envelope"),
        ]
        for path, options, dialect in cases:
            async with open_at(server, path, **options) as socket:
                offered = options.get("subprotocols")
                assert socket.subprotocol == (offered[-1] if offered else None)
                await socket.send(
                    json.dumps({"type": "PING", "cmd": "heartbeat", "req_identifier": 1001, "request_id": 1})
                )
                frame = await receive(socket)
                while frame.get("type") in ("AUTH_OK", "SYNC", "RESEND_DONE"):
                    frame = await receive(socket)
                assert {"envelope": "type", "request": "req_identifier", "command": "cmd"}[dialect] in frame


async def test_a_connection_keeps_its_dialect(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            await socket.send(json.dumps({"cmd": "heartbeat", "request_id": "1"}))
            assert (await receive(socket))["err_msg"] == "missing_type"
            assert (await ask(socket, 1001))["err_code"] == 0


async def test_unknown_subprotocols_and_paths_are_refused_with_what_there_is(server: ServerProcess) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await open_at(server, "", subprotocols=["chat.v9", "soap"])
    assert refused.value.response.status_code == 400
    body = json.loads(refused.value.response.body)
    assert (body["err_code"], body["err_msg"]) == (ERRORS["bad_request"].number, "bad_request")
    for name in ("chat.v9", *DIALECTS):
        assert name in body["detail"]
    with pytest.raises(InvalidStatus) as refused:
        await open_at(server, "/elsewhere")
    assert refused.value.response.status_code == 404


# -- the handshake -------------------------------------------------------------------------------------------


async def test_the_first_frame_tells_that_it_worked_if_asked(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        for asked in ("true", "1", True):
            for form in (urlencode(query_of(ann, is_msg_resp=asked)), "v=" + packed(query_of(ann, is_msg_resp=asked))):
                async with open_at(server, "?" + form) as socket:
                    assert await receive(socket) == {"err_code": 0, "err_msg": ""}
        for silent in ({}, {"is_msg_resp": "false"}):
            async with open_at(server, "?" + urlencode(query_of(ann, **silent))) as socket:
                assert (await ask(socket, 1001))["req_identifier"] == 1001


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"token": None}, "missing_token"),
        ({"token": "x"}, "unauthorized"),
        ({"send_id": "somebody"}, "identity_mismatch"),
        ({"platform_id": 1}, "bad_platform_id"),
        ({"platform_id": "web"}, "bad_platform_id"),
    ],
)
async def test_a_failed_handshake_is_a_401_or_the_first_frame(
    server: ServerProcess, changes: Frame, error: str
) -> None:
    row = ERRORS[error]
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        for form in (urlencode, lambda fields: "v=" + packed(fields)):
            with pytest.raises(InvalidStatus) as refused:
                await open_at(server, "?" + form(query_of(ann, **changes)))
            assert refused.value.response.status_code == 401
            body = json.loads(refused.value.response.body)
            assert (body["err_code"], body["err_msg"]) == (row.number, error)
            async with open_at(server, "?" + form(query_of(ann, **changes, is_msg_resp="true"))) as socket:
                assert await receive(socket) == body
                assert await close_code(socket) == row.close_code


async def test_a_v_that_cannot_be_read_is_a_401(server: ServerProcess) -> None:
    for v in ("***", base64.b64encode(b"[1]").decode(), base64.b64encode(b"{").decode()):
        with pytest.raises(InvalidStatus) as refused:
            await open_at(server, "?v=" + v)
        assert refused.value.response.status_code == 401
        async with open_at(server, f"?is_msg_resp=true&v={v}") as socket:
            assert (await receive(socket))["err_msg"] == "bad_request"
            assert await close_code(socket) == ERRORS["bad_request"].close_code


async def test_query_tokens_never_reach_a_log() -> None:
    with ServerProcess(log_level="debug") as server:
        async with world(server, check_pushes=False) as here:
            (ann,) = await here.people("ann")
            good, bad = query_of(ann, is_msg_resp="true"), query_of(ann, token="abc.secret.def", is_msg_resp="true")
            for query in (urlencode(good), urlencode(bad), "v=" + packed(good), "v=" + packed(bad)):
                async with open_at(server, "?" + query) as socket:
                    await receive(socket)
            for query in (urlencode(query_of(ann, send_id="x")), "v=" + packed(query_of(ann, token="abc.secret.def"))):
                with pytest.raises(InvalidStatus):
                    await open_at(server, "?" + query)
            assert "signed_in" in server.output
            for secret in (ann.tokens.access, "abc.secret.def", packed(good), packed(bad)):
                assert secret not in server.output


# -- tokens and identities in requests -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def short_server() -> Iterator[ServerProcess]:
    """Access tokens last eight seconds."""
    with ServerProcess(auth__access_ttl_s=8) as running:
        yield running


async def test_a_newer_token_in_a_request_extends_the_connection(short_server: ServerProcess) -> None:
    async with world(short_server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        async with open_at(short_server, "?" + urlencode(query_of(ann))) as socket:
            first = ann.tokens
            over_at = time.monotonic() + 8.1
            assert (await ask(socket, 1001, token=first.access))["err_code"] == 0
            await time_passes(4)
            newer = (await ann.log_in()).access
            assert (await ask(socket, 1001, token=newer))["err_code"] == 0
            await time_passes(over_at - time.monotonic())
            assert (await ask(socket, 1001, token=newer))["err_code"] == 0, "the first token is over"
            push = await receive(socket)
            assert (push["req_identifier"], push["data"]["reason"]) == (2010, "token_expired")
            assert await close_code(socket) == ERRORS["token_expired"].close_code


async def test_what_is_sent_behind_a_newer_token_keeps_its_order(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        newer = (await ann.log_in()).access
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            for i in range(20):
                data = {"client_msg_id": fresh_id(), "recv_id": ben.user_id, "content": str(i)}
                token = {"token": newer} if i >= 5 else {}
                await socket.send(json.dumps({"req_identifier": 1003, "msg_incr": i, "data": data, **token}))
            answers = [await receive(socket) for _ in range(20)]
        assert [(answer["msg_incr"], answer["data"]["seq"]) for answer in answers] == [(i, i + 1) for i in range(20)]


@pytest.mark.parametrize(("token", "error"), [("another", "reauth_uid_mismatch"), ("garbage", "unauthorized")])
async def test_a_token_that_is_not_ones_own_ends_the_connection(server: ServerProcess, token: str, error: str) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            shown = ben.tokens.access if token == "another" else "garbage"
            answer = await ask(socket, 1001, token=shown)
            assert (answer["req_identifier"], answer["msg_incr"], answer["err_msg"]) == (1001, "1", error)
            assert await close_code(socket) == ERRORS[error].close_code


async def test_a_send_id_that_is_not_ones_own_is_refused(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            message = {"client_msg_id": "c1", "recv_id": ben.user_id, "content": "hi"}
            answer = await ask(socket, 1003, message, send_id=ben.user_id)
            assert (answer["err_msg"], answer["data"]["client_msg_id"]) == ("identity_mismatch", "c1")
            for field in ("send_id", "sender_id", "from"):
                answer = await ask(socket, 1003, {**message, field: ben.user_id})
                assert answer["err_msg"] == "identity_mismatch"
            assert (await ask(socket, 1003, message, send_id=ann.user_id))["err_code"] == 0


# -- base64 --------------------------------------------------------------------------------------------------


def wrapped(data: Any) -> str:
    return base64.b64encode(json.dumps(data).encode()).decode()


def unwrapped(frame: Frame) -> Any:
    return json.loads(base64.b64decode(frame["data"], validate=True))


async def test_base64_is_answered_and_pushed_in_kind_from_then_on(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben = await here.people("ann", "ben")
        plain = await RequestSpeaker.connect(ann)
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            assert (await ask(socket, 1001))["data"] == {"conversations": []}
            message = {"client_msg_id": "c1", "recv_id": ben.user_id, "content": "hä?>"}
            saved = unwrapped(await ask(socket, 1003, wrapped(message)))
            assert (saved["client_msg_id"], saved["seq"]) == ("c1", 1)
            assert unwrapped(await ask(socket, 1001, {}))["conversations"][0]["max_seq"] == 1, "asked in plain"
            refused = await ask(socket, 1002, wrapped({"seqs": [1]}))
            assert refused["err_msg"] == "missing_conversation_id"
            assert "conversation_id" in unwrapped(refused)["detail"]
            await ben.send(ann, "to both of your connections")
            push = await receive(socket)
            assert (push["req_identifier"], unwrapped(push)["content"]) == (2001, "to both of your connections")
        await plain.expect(Said, content="to both of your connections")  # never asked for base64
        await plain.close()


async def test_a_connection_in_base64_is_counted_with_those_of_its_dialect(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            assert unwrapped(await ask(socket, 1001, wrapped({}))) == {"conversations": []}
            async with httpx.AsyncClient(trust_env=False) as http:
                # of the instance this connection is on
                metrics = await http.get(f"http://127.0.0.1:{socket.remote_address[1]}/metrics")
    lines = [line for line in metrics.text.splitlines() if line.startswith('nexo_connections{dialect="request"')]
    (counted,) = [float(line.split()[-1]) for line in lines if 'state="signed_in"' in line]
    assert counted >= 1


async def test_other_base64_is_refused_and_changes_nothing(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            for data in ("no base64!", "\u00e4", 5, [], True):
                answer = await ask(socket, 1001, data)
                assert (answer["err_msg"], answer["msg_incr"]) == ("bad_request", "1")
                assert isinstance(answer["data"], dict)
            text = base64.urlsafe_b64encode(b'{"conversation_ids":["??>>"]}').decode().rstrip("=")
            assert unwrapped(await ask(socket, 1001, text)) == {"conversations": []}


# -- what is echoed, what is a violation ---------------------------------------------------------------------


async def test_the_requests_identifiers_are_echoed_whatever_is_wrong(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            wrong: list[tuple[Any, Any, str]] = [
                (1003, {"client_msg_id": "c9"}, "missing_receiver"),
                (1003, {"client_msg_id": "c9", "recv_id": 7}, "bad_receiver"),
                (1003, {"recv_id": "ben"}, "missing_client_msg_id"),
                (1002, {"conversation_id": "si_a:b", "seqs": "1"}, "bad_seq"),
                (1004, {"conversation_id": "si_a:b"}, "missing_seq"),
                (1004, {"conversation_id": "si_a:b", "seq": -1}, "bad_seq"),
                (1005, {"conversation_id": "nonsense"}, "bad_conversation_id"),
                (1009, {"server_msg_id": []}, "bad_server_msg_id"),
                (1011, {"user_ids": ["no such id!"]}, "bad_user_id"),
            ]
            for number, data, error in wrong:
                answer = await ask(socket, number, data, msg_incr="17", operation_id="op-17")
                assert (answer["req_identifier"], answer["msg_incr"], answer["operation_id"]) == (number, "17", "op-17")
                assert (answer["err_code"], answer["err_msg"]) == (ERRORS[error].number, error)
                if data.get("client_msg_id"):
                    assert answer["data"]["client_msg_id"] == "c9"
            answer = await ask(socket, ..., {}, msg_incr=17)
            assert (answer["req_identifier"], answer["msg_incr"], answer["err_msg"]) == (0, 17, "missing_type")


async def test_the_fourth_violation_within_ten_seconds_closes(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        (ann,) = await here.people("ann")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            await socket.send("no json")
            push = await receive(socket)
            assert (push["req_identifier"], push["data"]["reason"]) == (2010, "bad_json")
            await socket.send(b"binary")
            assert (await receive(socket))["data"]["reason"] == "bad_json"
            assert (await ask(socket, "1001"))["err_msg"] == "missing_type"
            assert (await ask(socket, 4711))["err_msg"] == "unknown_type"
            assert await close_code(socket) == ERRORS["unknown_type"].close_code


async def test_the_last_messages_of_conversations(server: ServerProcess) -> None:
    async with world(server, check_pushes=False) as here:
        ann, ben, cy = await here.people("ann", "ben", "cy")
        group_id = await ann.found_group(ben, cy)
        await ben.send(ann, "first")
        await ben.send(ann, "last")
        async with open_at(server, "?" + urlencode(query_of(ann))) as socket:
            single = f"si_{ann.user_id}:{ben.user_id}"
            names = [f"sg_{group_id}", "si_x:y", single, single, "nonsense"]
            found = (await ask(socket, 1007, {"conversation_ids": names}))["data"]
            assert [message["conversation_id"] for message in found["messages"]] == [f"sg_{group_id}", single]
            assert [message["msg_type"] for message in found["messages"]] == [101, 1]
            assert (found["messages"][1]["content"], found["has_more"]) == ("last", False)

"""A product's own tokens on sockets: every form of the handshake, REAUTH, expiry."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from websockets.asyncio.client import connect

from harness.chat import Tokens, world
from harness.server_process import DidNotStart, ServerProcess

ISSUER, AUDIENCE = "https://shop.example", "chat"
SECRET = "the shared secret of a product, 44 letters.."
EXTERNAL = {
    "auth__external__issuer": ISSUER,
    "auth__external__audience": AUDIENCE,
    "auth__external__secret": SECRET,
    "auth__external__create_users": "true",
}


@pytest.fixture(scope="module")
def product_server() -> Iterator[ServerProcess]:
    with ServerProcess(**EXTERNAL) as running:
        yield running


def token_of(user_id: str, lives_s: float = 60, **claims: Any) -> Tokens:
    now = time.time()
    made = {"iss": ISSUER, "aud": AUDIENCE, "sub": user_id, "iat": now - 1, "exp": now + lives_s, **claims}
    access = jwt.encode(made, SECRET, "HS256")
    return Tokens({"access_token": access, "refresh_token": "", "expires_at": int(made["exp"] * 1000)})


async def test_a_products_token_signs_in_by_every_form_of_the_handshake(product_server: ServerProcess) -> None:
    async with world(product_server) as here:
        ann = await here.person("ann")
        token = token_of(ann.user_id, device_id="phone", platform_id=2)
        framed = await ann.connect(token)
        in_header = await ann.open(headers={"Authorization": f"Bearer {token.access}"})
        assert (await in_header.signed_in())["userId"] == ann.user_id
        online = await ann.get("/user/online", user_ids=ann.user_id)
        assert online["users"][0]["platforms"] == [2]
        query = urlencode({"token": token.access, "send_id": ann.user_id, "platform_id": 2, "is_msg_resp": "true"})
        async with connect(f"{product_server.ws_address}?{query}", proxy=None) as socket:
            assert json.loads(await socket.recv())["err_code"] == 0
        async with connect(f"{product_server.ws_address}/cmd", proxy=None) as socket:
            await socket.send(
                json.dumps({"cmd": "auth.token", "request_id": "1", "data": {"token": token_of("new").access}})
            )
            answer = json.loads(await socket.recv())
            assert (answer["code"], answer["data"]["user_id"]) == (0, "new"), "a new user is created"
        await framed.ask({"type": "PING"}, "PONG")


async def test_a_products_token_extends_a_socket_and_ends_it_when_it_expires(product_server: ServerProcess) -> None:
    async with world(product_server, check_pushes=False) as here:
        ann = await here.person("ann")
        client = await ann.connect(token_of(ann.user_id, 2))
        last = token_of(ann.user_id, 4)
        await client.ask({"type": "REAUTH", "token": last.access}, "AUTH_OK")
        await client.expect_error("token_expired")
        assert time.time() * 1000 >= last.expires_at - 50
        assert await client.expect_close() in range(4500, 5000)
        other = await ann.connect(token_of(ann.user_id))
        await other.send({"type": "REAUTH", "token": token_of("ben").access})
        await other.expect_error("reauth_uid_mismatch")


async def test_a_session_of_a_products_token_that_ends_closes_its_socket(product_server: ServerProcess) -> None:
    async with world(product_server) as here:
        ann = await here.person("ann")
        old = token_of(ann.user_id, device_id="phone")
        client = await ann.connect(old)
        done = product_server.run("user", "revoke", ann.user_id, "--device", "phone")
        assert done.returncode == 0, done.stderr
        await client.expect_error("session_invalid")
        refused = await ann.open()
        await refused.send({"type": "AUTH", "token": old.access})
        await refused.expect("AUTH_FAIL", reason="session_invalid")
        again = await ann.connect(token_of(ann.user_id, device_id="phone", iat=time.time() + 0.01))
        await again.ask({"type": "PING"}, "PONG")


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"auth__external__issuer": ""}, "auth.external.issuer"),
        ({"auth__external__audience": ""}, "auth.external.audience"),
        ({"auth__external__secret": ""}, "auth.external.issuer"),
        ({"auth__external__secret": "short"}, "auth.external.secret"),
        ({"auth__external__public_key": "no key"}, "auth.external.public_key"),
        ({"auth__external__jwks_file": "/nowhere/keys.json"}, "auth.external.jwks_file"),
        ({"auth__external__jwks_url": "ftp://keys.example"}, "auth.external.jwks_url"),
        ({"auth__external__algorithms": "none"}, "auth.external.algorithms"),
    ],
)
def test_a_server_does_not_start_with_half_a_configuration(changes: dict[str, object], setting: str) -> None:
    with pytest.raises(DidNotStart) as refused, ServerProcess(**EXTERNAL | changes):
        pass
    assert setting in str(refused.value)

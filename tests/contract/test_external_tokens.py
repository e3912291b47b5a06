"""A product's own tokens: accepted wherever an access token is, by keys made with other tools."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jwcrypto import jwk, jwt

from harness.api import Api, make_key, open_api, serve
from harness.migrated import migrated_database
from nexo.api.asgi import ASGIApp, Receive, Scope, Send

ISSUER, AUDIENCE = "https://shop.example", "chat"
SECRET = "the shared secret of a product, 44 letters.."
KINDS = {
    "RS256": ("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    "ES256": ("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "EdDSA": ("genpkey", "-algorithm", "ED25519"),
}


@pytest.fixture
def sqlite_url(tmp_path: Path) -> Iterator[str]:
    """For what does not depend on the database."""
    with migrated_database("sqlite", tmp_path) as url:
        yield url


def openssl(*args: str, given: bytes | None = None) -> bytes:
    return subprocess.run(["openssl", *args], input=given, capture_output=True, check=True).stdout


@cache
def _private_key(algorithm: str, number: int) -> bytes:
    return openssl(*KINDS[algorithm])


def private_key(algorithm: str, number: int = 0) -> bytes:
    """Returns a private key in PEM, made by openssl."""
    return _private_key(algorithm, number)


def public_key(algorithm: str, number: int = 0) -> str:
    return openssl("pkey", "-pubout", given=private_key(algorithm, number)).decode()


def key_set(*keys: jwk.JWK) -> str:
    found = jwk.JWKSet()
    for key in keys:
        found.add(key)
    return str(found.export(private_keys=False))


def named_key(algorithm: str, kid: str, number: int = 0) -> jwk.JWK:
    bare = json.loads(jwk.JWK.from_pem(private_key(algorithm, number)).export())
    return jwk.JWK(**{**bare, "kid": kid})


def claims_of(user_id: str = "ann", **changes: Any) -> dict[str, Any]:
    now = time.time()
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user_id, "iat": now - 1, "exp": now + 60, **changes}
    return {name: value for name, value in claims.items() if value is not None}


def sign(algorithm: str = "HS256", key: jwk.JWK | None = None, /, *, head: Any = None, **claims: Any) -> str:
    """Returns a token, signed by another library than the server uses."""
    if key is None and algorithm == "HS256":
        key = jwk.JWK(kty="oct", k=base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="))
    elif key is None:
        key = jwk.JWK.from_pem(private_key(algorithm))
    kid = {"kid": key["kid"]} if key.get("kid") else {}
    token = jwt.JWT(header={"alg": algorithm, **kid, **(head or {})}, claims=claims_of(**claims))
    token.make_signed_token(key)
    return str(token.serialize())


def settings(**more: Any) -> dict[str, Any]:
    given = {"issuer": ISSUER, "audience": AUDIENCE, "secret": SECRET, **more}
    return {f"auth__external__{name}": value for name, value in given.items() if value is not None}


async def user_of(api: Api, token: str) -> str:
    answer = await api.get(token, "/user/info")
    return str(answer.data["user_id"]) if answer.status == 200 else answer.error


@pytest.mark.parametrize("algorithm", KINDS)
@pytest.mark.parametrize("form", ["text", "file", "jwks"])
async def test_a_token_by_a_public_key_is_accepted(sqlite_url: str, tmp_path: Path, algorithm: str, form: str) -> None:
    pem = public_key(algorithm)
    path = tmp_path / "key"
    given = {"public_key": pem}
    if form == "file":
        path.write_text(pem)
        given = {"public_key": str(path)}
    elif form == "jwks":
        path.write_text(key_set(jwk.JWK.from_pem(pem.encode())))
        given = {"jwks_file": str(path)}
    async with open_api(sqlite_url, ["ann"], **settings(secret=None, **given)) as api:
        assert await user_of(api, sign(algorithm)) == "ann"
        foreign = jwk.JWK.from_pem(private_key(algorithm, 1))
        assert await user_of(api, sign(algorithm, foreign)) == "unauthorized"


async def test_a_token_by_a_shared_secret_is_accepted_and_own_tokens_still_are(core_url: str) -> None:
    async with open_api(core_url, ["ann"], **settings()) as api:
        assert await user_of(api, sign()) == "ann"
        assert await user_of(api, "ann") == "ann"
        sent = await api.get(sign(device_id="phone", platform_id=2), "/user/info")
        assert sent.data["user_id"] == "ann"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"iss": "https://evil.example"}, "unauthorized"),
    "no issuer": ({"iss": None}, "unauthorized"),
    "another audience": ({"aud": "mail"}, "unauthorized"),
    "no audience": ({"aud": None}, "unauthorized"),
    "no exp": ({"exp": None}, "unauthorized"),
    "no iat": ({"iat": None}, "unauthorized"),
    "an iat of the future": ({"iat": time.time() + 3600, "exp": time.time() + 7200}, "unauthorized"),
    "a start in the future": ({"nbf": time.time() + 3600}, "unauthorized"),
    "an end in the past": ({"iat": 1, "exp": time.time() - 1}, "token_expired"),
    "a great age": ({"iat": time.time() - 31 * 86_400}, "token_expired"),
    "text for a time": ({"iat": "now"}, "unauthorized"),
    "no user": ({"sub": None}, "bad_user_id"),
    "a number for a user": ({"sub": 12}, "bad_user_id"),
    "a bad user id": ({"sub": "a b"}, "bad_user_id"),
    "a reserved user id": ({"sub": "nexo.canary"}, "bad_user_id"),
    "an unknown user": ({"sub": "nemo"}, "user_not_found"),
    "a bad platform": ({"platform_id": 11}, "unauthorized"),
    "a bad device": ({"device_id": "x" * 129}, "unauthorized"),
}


async def test_a_token_with_a_wrong_claim_is_refused(sqlite_url: str) -> None:
    async with open_api(sqlite_url, ["ann"], **settings()) as api:
        for case, (claims, error) in WRONG.items():
            assert await user_of(api, sign(**claims)) == error, case
        assert await user_of(api, sign(aud=["mail", AUDIENCE], nbf=time.time())) == "ann"
        assert await user_of(api, plain({"alg": "HS256"}, SECRET.encode())) == "ann"
        critical = plain({"alg": "HS256", "crit": ["x"], "x": 1}, SECRET.encode())
        assert await user_of(api, critical) == "unauthorized"
        assert await user_of(api, plain({"alg": "HS256", "kid": 1}, SECRET.encode())) == "unauthorized"


def plain(head: dict[str, Any], key: bytes | None = None, **claims: Any) -> str:
    """Returns a token put together by hand."""
    parts = [json.dumps(part).encode() for part in (head, claims_of(**claims))]
    text = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    mark = b"" if key is None else hmac.digest(key, text.encode(), hashlib.sha256)
    return f"{text}.{base64.urlsafe_b64encode(mark).decode().rstrip('=')}"


async def test_algorithms_are_bound_to_the_kind_of_key(sqlite_url: str) -> None:
    pem = public_key("RS256")
    async with open_api(sqlite_url, ["ann"], **settings(public_key=pem, secret=None)) as api:
        assert await user_of(api, sign("RS256")) == "ann"
        for case, token in {
            "none": plain({"alg": "none"}),
            "None": plain({"alg": "None"}, b""),
            "the public key as a secret": plain({"alg": "HS256"}, pem.encode()),
            "the bare public key as a secret": plain({"alg": "HS256"}, pem.strip().encode()),
            "an empty secret": plain({"alg": "HS256"}, b""),
            "no algorithm": plain({}),
            "an algorithm that is a list": plain({"alg": ["RS256"]}),
            "a key in the head": sign("RS256", jwk.JWK.from_pem(private_key("RS256", 1)), head={"jwk": {"kty": "oct"}}),
        }.items():
            assert await user_of(api, token) == "unauthorized", case
    chosen = settings(public_key=pem, algorithms=["RS256"])
    async with open_api(sqlite_url, ["dan"], **chosen) as api:
        assert await user_of(api, sign("RS256", sub="dan")) == "dan"
        assert await user_of(api, sign(sub="dan")) == "unauthorized", "only the algorithms that are listed"


async def test_unusable_keys_of_a_set_are_left_out(sqlite_url: str, tmp_path: Path) -> None:
    shared = jwk.JWK(kty="oct", k=base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="), kid="shared")
    good = json.loads(key_set(named_key("ES256", "good")))["keys"]
    others = [
        json.loads(shared.export()),
        {**good[0], "kid": "encryption", "use": "enc"},
        {**good[0], "kid": "other", "alg": "RS256"},
        {"kty": "EC"},
        {"kty": "unheard of"},
        "text",
    ]
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [*others, *good]}))
    async with open_api(sqlite_url, ["ann"], **settings(secret=None, jwks_file=str(path))) as api:
        assert await user_of(api, sign("ES256", named_key("ES256", "good"))) == "ann"
        assert await user_of(api, sign("HS256", shared)) == "unauthorized"
        for kid in ("encryption", "other"):
            assert await user_of(api, sign("ES256", named_key("ES256", kid))) == "unauthorized", kid


async def test_users_are_created_only_where_that_is_configured(core_url: str) -> None:
    async with open_api(core_url, **settings(create_users=True)) as api:
        token = sign(sub="new")
        answers = await asyncio.gather(*(user_of(api, sign(sub="new", device_id=f"d{n}")) for n in range(5)))
        assert answers == ["new"] * 5
        assert await user_of(api, token) == "new"
        page = await api.core.store.journal.page(await api.core.store.journal.place_of("begin"), 99, {"user.created"})
        assert [entry.user_id for entry in page.entries] == ["new"]


async def test_an_ended_session_is_opened_only_by_a_newer_token(core_url: str) -> None:
    async with open_api(core_url, ["ann"], **settings()) as api:
        key = await make_key(api, "shop", "tokens", "users")
        old, phone, desk = sign(), sign(device_id="phone"), sign(device_id="desk")
        for token in (old, phone, desk):
            assert await user_of(api, token) == "ann"
        assert (await api.post(phone, "/auth/logout")).status == 200
        assert await user_of(api, phone) == "session_invalid"
        assert await user_of(api, desk) == "ann"
        await api.post(key, "/server/sessions/revoke", user_id="ann", device_id="desk")
        assert await user_of(api, sign(device_id="desk", iat=time.time() + 0.01)) == "ann"
        assert await user_of(api, desk) == "session_invalid", "it was accepted before, and never after"
        await api.post(key, "/server/sessions/revoke", user_id="ann")
        for token in (old, phone, desk):
            assert await user_of(api, token) == "session_invalid"
        newer = sign(iat=time.time() + 0.01)
        assert await user_of(api, newer) == "ann"
        assert await user_of(api, old) == "session_invalid", "a newer token does not make an older one valid"
        api.accounts.forget_all()
        assert await user_of(api, old) == "session_invalid"
        assert await user_of(api, newer) == "ann"
        await api.accounts.login("ann", "correct horse")  # deletes ended sessions, but not the memory of these
        assert await user_of(api, phone) == "session_invalid"
        await api.post(key, "/server/users/ann/disable", reason="spam")
        assert await user_of(api, newer) == "user_disabled"
        assert await user_of(api, sign(iat=time.time() + 0.01)) == "user_disabled"
        await api.post(key, "/server/users/ann/enable")
        assert await user_of(api, newer) == "session_invalid"
        assert await user_of(api, sign(iat=time.time() + 0.01)) == "ann"


async def test_neither_external_tokens_nor_those_of_a_key_have_administrators_rights(core_url: str) -> None:
    async with open_api(core_url, ["boss"], **settings()) as api:
        await api.accounts.set_admin("boss", True)
        key = await make_key(api, "tokens")
        issued = (await api.post(key, "/server/tokens", user_id="boss", refresh=True)).data
        renewed = (await api.post(None, "/auth/refresh", refresh_token=issued["refresh_token"])).data
        assert (await api.get("boss", "/server/audit")).status == 200
        assert (await api.get("boss", "/admin/stats")).status == 200
        for token in (sign(sub="boss"), issued["access_token"], renewed["access_token"]):
            assert await user_of(api, token) == "boss"
            assert (await api.get(token, "/server/audit")).error == "scope_missing"
            assert (await api.get(token, "/admin/stats")).error == "no_permission"


class KeyServer:
    """Answers with a set of keys, or not at all."""

    def __init__(self) -> None:
        self.keys: list[jwk.JWK] = []
        self.calls = 0
        self.status = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.calls += 1
        body = key_set(*self.keys).encode()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def api_with_keys(url: str, server: KeyServer) -> AsyncIterator[Api]:
    app: ASGIApp = server
    async with (
        serve(app) as address,
        open_api(url, ["ann"], **settings(secret=None, jwks_url=f"{address}/keys")) as api,
    ):
        yield api


async def test_keys_of_an_address_are_fetched_once_and_again_for_a_new_key(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = KeyServer()
    first, second = named_key("RS256", "first"), named_key("EdDSA", "second")
    server.keys = [first]
    async with api_with_keys(sqlite_url, server) as api:
        found = await asyncio.gather(*(user_of(api, sign("RS256", first, device_id=f"d{n}")) for n in range(5)))
        assert found == ["ann"] * 5
        assert server.calls == 1
        server.keys = [first, second]
        assert await user_of(api, sign("EdDSA", second)) == "unauthorized", "asked a short time ago"
        assert server.calls == 1
        monkeypatch.setattr("nexo.service.external_keys.REFRESH_S", 0.0)
        assert await user_of(api, sign("EdDSA", second)) == "ann"
        assert server.calls == 2
        server.status = 500
        assert await user_of(api, sign("ES256", named_key("ES256", "third"))) == "unauthorized"
        assert server.calls == 3
        assert await user_of(api, sign("RS256", first)) == "ann", "known keys outlive their server"
        assert server.calls == 3


async def test_a_set_of_keys_that_was_never_read_is_no_reason_to_sign_out(sqlite_url: str) -> None:
    server = KeyServer()
    server.status = 500
    async with api_with_keys(sqlite_url, server) as api:
        assert await user_of(api, sign("RS256", named_key("RS256", "first"))) == "server_busy"

"""Access tokens: whatever is not ours is refused, and in no other way."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.service.tokens import AccessTokens, TokenSession, hash_refresh_token, new_refresh_token

SECRET = "a secret of the tests, which nobody else uses, long enough for HS512"
NOW_MS = 1_800_000_000_500
SESSION = Session("sid", "ann", 5, "tab", 3)
CLAIMS: dict[str, Any] = {
    "user_id": "ann",
    "platform_id": 5,
    "device_id": "tab",
    "sid": "sid",
    "sv": 3,
    "exp": NOW_MS // 1000 + 60,
    "iat": NOW_MS // 1000,
}


def tokens_at(clock_ms: int = NOW_MS) -> AccessTokens:
    return AccessTokens(SECRET, 60, lambda: clock_ms)


def refusal(token: str, clock_ms: int = NOW_MS) -> str:
    with pytest.raises(NexoError) as caught:
        tokens_at(clock_ms).read(token)
    return caught.value.name


def test_what_was_signed_is_read_back_until_it_expires() -> None:
    token, expires_at = tokens_at().sign(SESSION, NOW_MS)
    assert jwt.get_unverified_header(token) == {"alg": "HS256", "typ": "JWT"}
    claims = tokens_at(expires_at - 1).read(token)
    assert (claims.user_id, claims.sid, claims.sv, claims.exp * 1000) == ("ann", "sid", 3, expires_at)
    assert refusal(token, expires_at) == "token_expired"


def test_a_token_from_an_instance_whose_clock_is_ahead_is_read() -> None:
    token, _ = tokens_at().sign(SESSION, NOW_MS)
    assert tokens_at(NOW_MS - 5000).read(token).sid == "sid"


def test_other_algorithms_and_secrets_are_refused() -> None:
    assert refusal(jwt.encode(CLAIMS, None, "none")) == "unauthorized"
    assert refusal(jwt.encode(CLAIMS, SECRET, "HS512")) == "unauthorized"
    assert refusal(jwt.encode(CLAIMS, SECRET + "x", "HS256")) == "unauthorized"


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("value", [None, [], 1.5, {}])
def test_claims_of_another_form_are_refused(claim: str, value: object) -> None:
    assert refusal(jwt.encode(CLAIMS | {claim: value}, SECRET)) == "unauthorized"
    assert refusal(jwt.encode({name: CLAIMS[name] for name in CLAIMS if name != claim}, SECRET)) == "unauthorized"


def segment(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "token",
    [
        segment("[" * 1500) + ".e30.x",
        segment('{"alg":"HS256"}') + "." + segment("[" * 1500) + ".x",
        segment('{"alg":"HS256","crit":["b64"],"b64":false}') + ".e30.x",
        segment('{"alg":["HS256"]}') + ".e30.x",
        segment("{}") + ".e30.x",
        segment("null") + ".e30.x",
        segment('{"alg":"HS256","kid":1}') + ".e30.x",
        "x" * 5000,
        "\ud800.\ud800.\ud800",
        "é",
    ],
)
def test_odd_tokens_are_refused(token: str) -> None:
    assert refusal(token) == "unauthorized"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@given(st.text() | st.tuples(st.text(), st.text(), st.text()).map(".".join))
def test_any_text_is_refused(token: str) -> None:
    assert refusal(token) == "unauthorized"


@given(st.dictionaries(st.sampled_from(["alg", "typ", "kid", "crit", "b64", "jwk", "zip"]), json_values))
def test_any_head_is_refused(head: dict[str, Any]) -> None:
    assert refusal(f"{segment(json.dumps(head))}.{segment(json.dumps(CLAIMS))}.{segment('x' * 32)}") == "unauthorized"


@given(st.dictionaries(st.sampled_from([*CLAIMS, "sub", "jti", "aud", "nbf", "iss"]), json_values))
def test_any_claims_of_ours_are_read_or_refused(claims: dict[str, Any]) -> None:
    body = f"{segment(json.dumps({'alg': 'HS256', 'typ': 'JWT'}))}.{segment(json.dumps(CLAIMS | claims))}"
    signature = jwt.get_algorithm_by_name("HS256").sign(body.encode(), SECRET.encode())
    token = f"{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    with contextlib.suppress(NexoError):
        tokens_at().read(token)


def test_refresh_tokens_are_random_and_hashed() -> None:
    tokens = {new_refresh_token() for _ in range(100)}
    assert len(tokens) == 100
    families, rests = zip(*(token.split(".") for token in tokens), strict=True)
    assert all(len(base64.urlsafe_b64decode(family + "==")) == 16 for family in families)
    assert all(len(base64.urlsafe_b64decode(rest + "=")) == 32 for rest in rests)
    assert len({hash_refresh_token(token).token for token in tokens}) == 100
    assert len({hash_refresh_token(token).family for token in tokens}) == 100


def test_a_refresh_token_is_of_the_family_of_its_predecessor() -> None:
    first = new_refresh_token()
    second = new_refresh_token(first)
    assert hash_refresh_token(first).family == hash_refresh_token(second).family != ""
    assert hash_refresh_token(first).token != hash_refresh_token(second).token
    assert hash_refresh_token("a-token-without-a-family").family == ""
    assert hash_refresh_token(new_refresh_token("a-token-without-a-family")).family != ""


def test_the_printed_form_of_a_login_shows_no_token() -> None:
    signed_in = TokenSession("ann", "access", "refresh", 1, 5, "tab")
    assert repr(signed_in) == str(signed_in) == "SignedIn(user_id='ann', platform_id=5, expires_at=1)"

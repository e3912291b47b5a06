"""Credentials of TURN servers, compared with what the scheme of coturn computes from the same values."""

from __future__ import annotations

import base64
import hashlib
import hmac

from nexo.calls.turn_credentials import ice_servers, sign
from nexo.config.tree_calls import CallsConfig


def test_the_name_is_the_end_and_the_user_and_the_password_its_signature() -> None:
    username, credential = sign("north", "alice", 1_800_000_000)
    assert username == "1800000000:alice"
    expected = hmac.new(b"north", b"1800000000:alice", hashlib.sha1).digest()
    assert base64.b64decode(credential) == expected


def test_stun_needs_no_credentials_and_turn_gets_its_own() -> None:
    config = CallsConfig(stun=["stun:a:3478"], turn=["turn:b:3478"], turn_secret="s", turn_ttl_s=60)
    found = ice_servers(config, "bob", 1_000_500)
    assert found.expires_at == 1_060_000
    stun, turn = found.servers
    assert (stun.urls, stun.username, stun.credential) == (("stun:a:3478",), None, None)
    assert (turn.username, turn.credential) == sign("s", "bob", 1060)


def test_without_servers_there_are_none() -> None:
    assert ice_servers(CallsConfig(), "bob", 0).servers == []

"""Signatures as the library of Standard Webhooks checks them."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook

from harness.core import refused
from nexo.core.webhook_signature import decode_secret, new_secret, signed_headers


def test_the_library_accepts_each_of_two_secrets() -> None:
    secrets = [new_secret(), new_secret()]
    body = '{"a":"你"}'.encode()
    headers = dict(signed_headers(map(decode_secret, secrets), "msg_1", int(time.time()), body))
    for secret in secrets:
        assert Webhook(secret).verify(body, headers) == {"a": "你"}
    assert len(headers["webhook-signature"].split(" ")) == 2


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_AAAA", "AAAA", "whsec_!" + "A" * 40, "whsec_" + "A" * 100])
def test_what_is_no_secret_is_refused(text: str) -> None:
    with refused("bad_token"):
        decode_secret(text)

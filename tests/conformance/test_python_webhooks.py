"""The Python SDK decides about webhooks as `webhooks.json` has it; clients/js/test/backend.test.js does the same."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import pytest

from nexo_client import ClientError, verify_webhook

FILE = json.loads((Path(__file__).parent / "webhooks.json").read_text())
KEYS = {"a": b"the first key of the hook", "b": b"the next key of the hook"}


def secret(name: str) -> str:
    return "whsec_" + base64.b64encode(KEYS[name]).decode()


def sign(name: str, webhook_id: str, timestamp: str, body: str) -> str:
    signed = f"{webhook_id}.{timestamp}.{body}".encode()
    return "v1," + base64.b64encode(hmac.new(KEYS[name], signed, hashlib.sha256).digest()).decode()


def request(case: dict[str, Any]) -> tuple[dict[str, str], str]:
    timestamp, body = str(int(time.time()) - case.get("age_s", 0)), FILE["body"]
    signatures = ["v1a,of-another-kind", *(sign(name, "msg_1", timestamp, body) for name in case["signed_by"])]
    headers = {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": timestamp,
        "Webhook-Signature": " ".join(signatures),
    }
    match case.get("change"):
        case "body":
            body = body.replace("saved", "recalled")
        case "webhook-id":
            headers["Webhook-Id"] = "msg_2"
        case "webhook-timestamp":
            headers["Webhook-Timestamp"] = str(int(time.time()))
        case "no timestamp":
            del headers["Webhook-Timestamp"]
    return headers, body


@pytest.mark.parametrize("case", FILE["cases"], ids=lambda case: case["name"])
def test_a_request_is_taken_only_as_the_server_signed_it(case: dict[str, Any]) -> None:
    headers, body = request(case)
    secrets = [secret(name) for name in case["secrets"]]
    if case["outcome"] == "ok":
        assert verify_webhook(secrets, headers, body.encode(), FILE["tolerance_s"]) == json.loads(body)
        return
    with pytest.raises(ClientError) as refused:
        verify_webhook(secrets, headers, body, FILE["tolerance_s"])
    assert refused.value.reason == case["outcome"]


def test_a_known_signature_is_accepted() -> None:
    known = FILE["known"]
    headers = {"webhook-id": known["webhook_id"], "webhook-timestamp": known["timestamp"]}
    body = verify_webhook(
        known["secret"], headers | {"webhook-signature": known["signature"]}, known["body"], tolerance_s=1e12
    )
    assert body == json.loads(known["body"])


def test_a_secret_that_is_none_is_named() -> None:
    headers, body = request(FILE["cases"][0])
    with pytest.raises(ClientError) as refused:
        verify_webhook("whsec_ not base64", headers, body)
    assert refused.value.reason == "bad_secret"

"""Checks that a webhook was sent by the Nexo server: signatures of the Standard Webhooks specification."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexo_client.errors import ClientError

TOLERANCE_S = 300
_PREFIX = "whsec_"
_VERSION = "v1"


def verify_webhook(
    secrets: str | Sequence[str], headers: Mapping[str, str], body: bytes | str, tolerance_s: float = TOLERANCE_S
) -> Any:
    """Returns the decoded body, `{"events": […]}`, of a request that the server signed with one of the secrets.

    `body` is the body as it was received, not decoded and encoded again. Raises `bad_signature`, or `webhook_expired`
    when the request was signed more than `tolerance_s` ago (or ahead): it may be a recorded one that is sent again.
    """
    found = {name.lower(): value for name, value in headers.items()}
    webhook_id, timestamp = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if not webhook_id or not (timestamp.isascii() and timestamp.isdigit()):
        raise ClientError("bad_signature", "The headers webhook-id and webhook-timestamp are missing or wrong.")
    raw = body.encode() if isinstance(body, str) else body
    signed = f"{webhook_id}.{timestamp}.".encode() + raw
    given = [
        signature.encode()
        for version, _, signature in (one.partition(",") for one in found.get("webhook-signature", "").split(" "))
        if version == _VERSION
    ]
    due = [_signature(secret, signed) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    # All pairs are compared, each in constant time: the time taken depends on no secret.
    matches = [hmac.compare_digest(one, other) for one in due for other in given]
    if not any(matches):
        raise ClientError("bad_signature", "No signature of the request fits a secret.")
    if abs(time.time() - int(timestamp)) > tolerance_s:
        raise ClientError("webhook_expired", f"The request was signed at {timestamp}, more than {tolerance_s:g} s off.")
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ClientError("bad_answer", str(error)) from None


def _signature(secret: str, signed: bytes) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ClientError("bad_secret", "A secret is `whsec_` and a key in base64.")
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())

"""Signatures as the Standard Webhooks specification has them: HMAC-SHA256 over id, time and body. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable

from nexo.errors import NexoError

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def decode_secret(text: str) -> bytes:
    """Returns the key of a secret. Raises `bad_token`: the text is not `whsec_` and base64 of 24 to 64 bytes."""
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise NexoError("bad_token", f"A secret is {PREFIX} and 24 to 64 bytes in base64")
    return key


def sign(key: bytes, message_id: str, timestamp_s: int, body: bytes) -> str:
    content = f"{message_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def signed_headers(keys: Iterable[bytes], message_id: str, timestamp_s: int, body: bytes) -> list[tuple[str, str]]:
    """Returns the three headers, with one signature per key; without a key only the first two."""
    headers = [("webhook-id", message_id), ("webhook-timestamp", str(timestamp_s))]
    if signatures := " ".join(sign(key, message_id, timestamp_s, body) for key in keys):
        headers.append(("webhook-signature", signatures))
    return headers

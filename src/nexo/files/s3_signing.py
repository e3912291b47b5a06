"""Signatures of requests to S3 (AWS Signature Version 4). Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-._~"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def encoded(text: str, *, keeps_slashes: bool = False) -> str:
    return quote(text, safe=_UNRESERVED + ("/" if keeps_slashes else ""))


def query_text(query: Mapping[str, str]) -> str:
    """Returns a query in the form that is signed; to be sent as it is."""
    return "&".join(f"{encoded(name)}={encoded(value)}" for name, value in sorted(query.items()))


def signed_headers(
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    payload_sha256: str,
    now: datetime,
    *,
    region: str,
    key: str,
    secret: str,
    headers: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Returns the headers of a request: the given ones and those of the signature. `path` is encoded already."""
    at = now.strftime("%Y%m%dT%H%M%SZ")
    signed = {"host": host, "x-amz-content-sha256": payload_sha256, "x-amz-date": at}
    signed |= {name.lower(): value.strip() for name, value in (headers or {}).items()}
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = "\n".join((method, path, query_text(query), lines, names, payload_sha256))
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    text = "\n".join((_ALGORITHM, at, scope, hashlib.sha256(request.encode()).hexdigest()))
    sub_key = f"AWS4{secret}".encode()
    for part in (at[:8], region, "s3", "aws4_request"):
        sub_key = hmac.digest(sub_key, part.encode(), hashlib.sha256)
    signature = hmac.new(sub_key, text.encode(), hashlib.sha256).hexdigest()
    authorization = f"{_ALGORITHM} Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**signed, "authorization": authorization}

"""Apple's push service: HTTP/2, with a token that is signed by the operator's key."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from nexo.config.tree_push import ApnsConfig
from nexo.core.push import PushTarget
from nexo.errors import StartupError
from nexo.ids import now_ms
from nexo.outgoing.http2_client import Http2Client
from nexo.push.answers import answer_of, judge
from nexo.push.key_files import read_key_file
from nexo.push.ports import Delivered, PushRequest
from nexo.push.web_crypto import read_private, sign_es256

AGENT = "Nexo-Push"
TOKEN_S = 40 * 60  # Apple refuses tokens that are older than an hour, and new ones more often than every 20 minutes
GONE = frozenset(("BadDeviceToken", "Unregistered", "ExpiredToken"))
WRONG_TOKEN = frozenset(("ExpiredProviderToken", "InvalidProviderToken", "MissingProviderToken"))
TOKEN_AGAIN_S = 60.0

_encode = msgspec.json.Encoder().encode


class Apns:
    kind = "apns"

    def __init__(self, settings: ApnsConfig, timeout_s: float) -> None:
        for name in ("key_id", "team_id", "topic"):
            if not getattr(settings, name):
                raise StartupError(f"push.apns.{name} must be set, because push.apns.key_file is")
        try:
            self._key = read_private(read_key_file("push.apns.key_file", settings.key_file))
        except ValueError as error:
            raise StartupError(f"push.apns.key_file is not a signing key of Apple: {error}") from error
        self._settings = settings
        self._timeout_s = timeout_s
        self._client = Http2Client(settings.url, allow_private=True, agent=AGENT)
        self._token = ""
        self._token_at = float("-inf")

    def lane_of(self, target: PushTarget) -> str:
        return self._settings.url

    async def send(self, request: PushRequest) -> Delivered:
        headers = (
            ("authorization", f"bearer {self._signed()}"),
            ("content-type", "application/json"),
            ("apns-topic", self._settings.topic),
            ("apns-push-type", "alert"),
            ("apns-collapse-id", str(request.payload["tag"])),
            ("apns-priority", "10" if request.is_urgent else "5"),
            ("apns-expiration", str(now_ms() // 1000 + request.ttl_s)),
        )
        body = _encode(apns_payload(request.payload, request.is_urgent))
        path = f"/3/device/{request.target.address}"
        answer = await answer_of(self._client.post(path, headers, body, self._timeout_s))
        if isinstance(answer, Delivered):
            return answer
        reason = _reason(answer.body)
        found = judge(answer, reason)
        if reason in GONE:
            return found._replace(is_gone=True)
        if reason in WRONG_TOKEN:
            self._token_at = float("-inf") if reason == "ExpiredProviderToken" else self._token_at
            return found._replace(retry_s=0.0 if reason == "ExpiredProviderToken" else TOKEN_AGAIN_S)
        # 404 is a wrong path, and no answer about the device
        return found._replace(is_gone=answer.status == 410)

    def _signed(self) -> str:
        if time.monotonic() - self._token_at >= TOKEN_S:
            claims = {"iss": self._settings.team_id, "iat": now_ms() // 1000}
            self._token = sign_es256(self._key, claims, {"kid": self._settings.key_id})
            self._token_at = time.monotonic()
        return self._token

    def close(self) -> None:
        self._client.close()


def apns_payload(payload: dict[str, Any], is_urgent: bool) -> dict[str, Any]:
    """Returns the notification as Apple has it, with the payload of Nexo beside."""
    aps: dict[str, Any] = {}
    if "badge" in payload:
        aps["badge"] = payload["badge"]
    if payload["title"]:
        aps["alert"] = {"title": payload["title"], "body": payload["body"]}
        aps["thread-id"] = payload["tag"]
        aps["mutable-content"] = 1
        if is_urgent:
            aps["sound"] = "default"
        if payload["kind"] == "call":
            aps["interruption-level"] = "time-sensitive"
    else:
        aps["content-available"] = 1  # the app removes what it shows under the tag
    return {"aps": aps, "nexo": payload}


def _reason(body: bytes) -> str:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    return str(found.get("reason", "")) if isinstance(found, dict) else ""

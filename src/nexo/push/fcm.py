"""Firebase Cloud Messaging (v1): JSON over HTTPS, with an access token that a service account gets."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import urlencode

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec import Struct

from nexo.config.tree_push import FcmConfig
from nexo.core.push import PushTarget, payload_texts
from nexo.errors import StartupError
from nexo.ids import now_ms
from nexo.outgoing.http_client import HttpClient
from nexo.push.answers import answer_of, judge
from nexo.push.key_files import read_key_file
from nexo.push.ports import Delivered, PushRequest

AGENT = "Nexo-Push"
SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_S = 3600
TOKEN_LEFT_S = 300  # a token with less time left is made anew
CHANNEL = "messages"

_encode = msgspec.json.Encoder().encode


class ServiceAccount(Struct, frozen=True):
    project_id: str
    client_email: str
    private_key: str
    token_uri: str
    private_key_id: str = ""


class _Granted(Struct, frozen=True):
    access_token: str
    expires_in: int = ASSERTION_S


class Fcm:
    kind = "fcm"

    def __init__(self, settings: FcmConfig, timeout_s: float) -> None:
        text = read_key_file("push.fcm.service_account_file", settings.service_account_file)
        try:
            self._account = msgspec.json.decode(text, type=ServiceAccount)
            key = load_pem_private_key(self._account.private_key.encode(), None)
        except (msgspec.MsgspecError, ValueError, TypeError, UnsupportedAlgorithm):
            raise StartupError("push.fcm.service_account_file is not the key of a service account") from None
        if not isinstance(key, RSAPrivateKey):
            raise StartupError("push.fcm.service_account_file has no RSA key")
        self._key = key
        self._timeout_s = timeout_s
        path = f"/v1/projects/{self._account.project_id}/messages:send"
        self._client = HttpClient(f"{settings.url.rstrip('/')}{path}", allow_private=True, agent=AGENT)
        self._tokens = HttpClient(
            self._account.token_uri,
            allow_private=True,
            agent=AGENT,
            content_type="application/x-www-form-urlencoded",
        )
        self._token = ""
        self._token_until = float("-inf")  # by `time.monotonic`
        self._asking = asyncio.Lock()

    def lane_of(self, target: PushTarget) -> str:
        return self._client.target.host

    async def send(self, request: PushRequest) -> Delivered:
        token = await self._access_token()
        if isinstance(token, Delivered):
            return token
        body = _encode({"message": fcm_message(request)})
        headers = (("authorization", f"Bearer {token}"),)
        answer = await answer_of(self._client.post(body, headers, self._timeout_s))
        if isinstance(answer, Delivered):
            return answer
        reason = _reason(answer.body)
        found = judge(answer, reason)
        if reason == "UNREGISTERED":
            return found._replace(is_gone=True)
        if answer.status == 401:
            self._token_until = float("-inf")
            return found._replace(retry_s=0.0)
        return found

    async def _access_token(self) -> str | Delivered:
        async with self._asking:
            if time.monotonic() < self._token_until:
                return self._token
            now_s = now_ms() // 1000
            account = self._account
            claims = {
                "iss": account.client_email,
                "scope": SCOPE,
                "aud": account.token_uri,
                "iat": now_s,
                "exp": now_s + ASSERTION_S,
            }
            headers = {"kid": account.private_key_id} if account.private_key_id else None
            assertion = jwt.encode(claims, self._key, algorithm="RS256", headers=headers)
            body = urlencode({"grant_type": GRANT, "assertion": assertion}).encode()
            answer = await answer_of(self._tokens.post(body, (), self._timeout_s))
            if isinstance(answer, Delivered):
                return answer._replace(detail=f"access token: {answer.detail}")
            if answer.status != 200:
                found = judge(answer)
                return Delivered(False, f"access token: {found.detail}", retry_s=found.retry_s or 0.0)
            try:
                granted = msgspec.json.decode(answer.body, type=_Granted)
            except msgspec.MsgspecError:
                return Delivered(False, "access token: not readable", retry_s=0.0)
            self._token = granted.access_token
            self._token_until = time.monotonic() + granted.expires_in - TOKEN_LEFT_S
            return self._token

    def close(self) -> None:
        self._client.close()
        self._tokens.close()


def fcm_message(request: PushRequest) -> dict[str, Any]:
    payload = request.payload
    tag = str(payload["tag"])
    android: dict[str, Any] = {
        "collapse_key": tag,
        "priority": "HIGH" if request.is_urgent else "NORMAL",
        "ttl": f"{request.ttl_s}s",
    }
    message: dict[str, Any] = {
        "token": request.target.address,
        "data": payload_texts(payload),
        "android": android,
    }
    if payload["kind"] == "message":  # a call and `read` are for the app itself
        message["notification"] = {"title": payload["title"], "body": payload["body"]}
        android["notification"] = {"tag": tag, "channel_id": CHANNEL, "notification_count": payload["unread"]}
    return message


def _reason(body: bytes) -> str:
    """Returns the error code of FCM, else the status of the error."""
    try:
        error = msgspec.json.decode(body)["error"]
        for detail in error.get("details", ()):
            if "errorCode" in detail:
                return str(detail["errorCode"])
        return str(error.get("status", ""))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return ""

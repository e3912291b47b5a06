"""FCM v1: the access token of a service account, every field of a message, and the error answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from harness.push_services import PushServiceStub, ServiceAnswer, ServiceRequest, push_service
from nexo.config.tree_push import FcmConfig
from nexo.core.push import PushTarget
from nexo.errors import StartupError
from nexo.push.fcm import Fcm
from nexo.push.ports import Delivered, PushRequest

KEY = rsa.generate_private_key(65537, 2048)
PAYLOAD = {"kind": "message", "tag": "n-1", "title": "Ann", "body": "hi", "unread": 2, "badge": 7, "mention": True}


def make_fcm(folder: Path, stub: PushServiceStub) -> Fcm:
    pkcs8, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    account = {
        "type": "service_account",
        "project_id": "chat-42",
        "private_key_id": "k1",
        "private_key": KEY.private_bytes(serialization.Encoding.PEM, pkcs8, none).decode(),
        "client_email": "push@chat-42.example.com",
        "token_uri": f"{stub.url}/token",
    }
    file = folder / "account.json"
    file.write_text(json.dumps(account))
    return Fcm(FcmConfig(service_account_file=str(file), url=stub.url), 5.0)


def request_for(**payload: Any) -> PushRequest:
    return PushRequest(PushTarget(1, "bob", "fcm", "device:token", "d", "en"), {**PAYLOAD, **payload}, 3600, True)


def granting(answer: ServiceAnswer) -> Any:
    """Answers questions for a token with one, and all else with `answer`."""

    def decide(request: ServiceRequest) -> ServiceAnswer:
        if request.path == "/token":
            return ServiceAnswer(200, b'{"access_token": "ya29.granted", "expires_in": 3599, "token_type": "Bearer"}')
        return answer

    return decide


def error(status: int, word: str, code: str = "", **headers: str) -> ServiceAnswer:
    kind = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
    details = [{"@type": kind, "errorCode": code}] if code else []
    body = {"error": {"code": status, "message": "no device:token", "status": word, "details": details}}
    return ServiceAnswer(status, json.dumps(body).encode(), tuple(headers.items()))


async def test_the_token_and_every_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with push_service(monkeypatch) as stub:
        stub.decide = granting(ServiceAnswer(200, b'{"name": "projects/chat-42/messages/1"}'))
        fcm = make_fcm(tmp_path, stub)
        assert await fcm.send(request_for()) == Delivered(True, "200")
        assert await fcm.send(request_for(kind="read", title="", body="")) == Delivered(True, "200")
        asked, first, second = stub.requests
        form = parse_qs(asked.body.decode())
        assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        claims = jwt.decode(form["assertion"][0], KEY.public_key(), algorithms=["RS256"], audience=f"{stub.url}/token")
        assert claims["iss"] == "push@chat-42.example.com"
        assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
        assert claims["exp"] - claims["iat"] == 3600
        assert jwt.get_unverified_header(form["assertion"][0])["kid"] == "k1"
        assert first.path == "/v1/projects/chat-42/messages:send"
        assert first.headers["authorization"] == "Bearer ya29.granted"
        assert first.headers["content-type"] == "application/json"
        texts = {
            "kind": "message",
            "tag": "n-1",
            "title": "Ann",
            "body": "hi",
            "unread": "2",
            "badge": "7",
            "mention": "true",
        }
        assert json.loads(first.body) == {
            "message": {
                "token": "device:token",
                "data": texts,
                "notification": {"title": "Ann", "body": "hi"},
                "android": {
                    "collapse_key": "n-1",
                    "priority": "HIGH",
                    "ttl": "3600s",
                    "notification": {"tag": "n-1", "channel_id": "messages", "notification_count": 2},
                },
            }
        }
        assert "notification" not in json.loads(second.body)["message"]
        fcm.close()


async def test_the_error_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with push_service(monkeypatch) as stub:
        fcm = make_fcm(tmp_path, stub)

        async def after(answer: ServiceAnswer) -> Delivered:
            stub.decide = granting(answer)
            return await fcm.send(request_for())

        gone = Delivered(False, "404 UNREGISTERED", is_gone=True)
        assert await after(error(404, "NOT_FOUND", "UNREGISTERED")) == gone
        assert await after(error(400, "INVALID_ARGUMENT")) == Delivered(False, "400 INVALID_ARGUMENT")
        busy = await after(error(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", **{"retry-after": "30"}))
        assert busy == Delivered(False, "429 QUOTA_EXCEEDED", retry_s=30.0)
        assert (await after(error(503, "UNAVAILABLE", "UNAVAILABLE"))).retry_s == 0.0
        assert [one.path for one in stub.requests].count("/token") == 1
        assert (await after(error(401, "UNAUTHENTICATED"))).retry_s == 0.0
        assert (await after(ServiceAnswer(200))).is_taken
        assert [one.path for one in stub.requests].count("/token") == 2
        fcm.close()


async def test_without_an_access_token_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with push_service(monkeypatch) as stub:
        stub.decide = lambda request: ServiceAnswer(403, b'{"error": "access_denied"}')
        fcm = make_fcm(tmp_path, stub)
        found = await fcm.send(request_for())
        assert (found.is_taken, found.is_gone, found.retry_s) == (False, False, 0.0)
        assert [request.path for request in stub.requests] == ["/token"]
        fcm.close()


def test_a_file_that_is_no_account_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(StartupError, match=r"push\.fcm\.service_account_file"):
        Fcm(FcmConfig(service_account_file=str(tmp_path / "x.json")), 5.0)

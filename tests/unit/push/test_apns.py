"""APNs: every header, the token and the body as Apple wants them, over HTTP/2; its error answers."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from harness.push_services import PushServiceStub, ServiceAnswer, push_service
from nexo.config.tree_push import ApnsConfig
from nexo.core.push import PushTarget
from nexo.errors import StartupError
from nexo.ids import now_ms
from nexo.push.apns import Apns
from nexo.push.key_files import read_key_file
from nexo.push.ports import Delivered, PushRequest
from nexo.push.web_crypto import new_key, read_private

TOKEN = "ab" * 32
PAYLOAD = {"kind": "message", "tag": "n-1", "title": "Ann", "body": "hi", "unread": 2, "badge": 7}


def settings(folder: Path, url: str = "https://localhost:1") -> ApnsConfig:
    file = folder / "key.p8"
    if not file.exists():
        file.write_text(new_key())
    return ApnsConfig(key_file=str(file), key_id="KEY1234567", team_id="TEAM123456", topic="com.example.chat", url=url)


def request_for(*, is_urgent: bool = True, **payload: Any) -> PushRequest:
    return PushRequest(PushTarget(1, "bob", "apns", TOKEN, "d", "en"), {**PAYLOAD, **payload}, 3600, is_urgent)


async def answered(stub: PushServiceStub, apns: Apns, status: int, reason: str, **headers: str) -> Delivered:
    body = json.dumps({"reason": reason}).encode()
    stub.decide = lambda request: ServiceAnswer(status, body, tuple(headers.items()))
    return await apns.send(request_for())


async def test_headers_token_and_body(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with push_service(monkeypatch, is_h2=True) as stub:
        stub.decide = lambda request: ServiceAnswer(200)
        chosen = settings(tmp_path, stub.url)
        apns = Apns(chosen, 5.0)
        assert await apns.send(request_for()) == Delivered(True, "200")
        (request,) = stub.requests
        assert (request.method, request.path) == ("POST", f"/3/device/{TOKEN}")
        headers = request.headers
        assert headers["apns-topic"] == "com.example.chat"
        assert headers["apns-push-type"] == "alert"
        assert headers["apns-collapse-id"] == "n-1"
        assert headers["apns-priority"] == "10"
        assert abs(int(headers["apns-expiration"]) - now_ms() // 1000 - 3600) < 60
        scheme, _, token = headers["authorization"].partition(" ")
        public = read_private(read_key_file("", chosen.key_file)).public_key()
        assert scheme == "bearer"
        assert jwt.get_unverified_header(token) == {"alg": "ES256", "kid": "KEY1234567", "typ": "JWT"}
        claims = jwt.decode(token, public, algorithms=["ES256"])
        assert claims["iss"] == "TEAM123456"
        assert abs(claims["iat"] - time.time()) < 60
        assert json.loads(request.body) == {
            "aps": {
                "alert": {"title": "Ann", "body": "hi"},
                "badge": 7,
                "sound": "default",
                "thread-id": "n-1",
                "mutable-content": 1,
            },
            "nexo": PAYLOAD,
        }
        apns.close()


async def test_what_was_read_is_a_quiet_notification_with_the_badge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with push_service(monkeypatch, is_h2=True) as stub:
        apns = Apns(settings(tmp_path, stub.url), 5.0)
        await apns.send(request_for(is_urgent=False, kind="read", title="", body="", badge=0))
        (request,) = stub.requests
        assert request.headers["apns-priority"] == "5"
        assert json.loads(request.body)["aps"] == {"badge": 0, "content-available": 1}
        apns.close()


async def test_many_requests_share_a_connection_and_a_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with push_service(monkeypatch, is_h2=True) as stub:
        apns = Apns(settings(tmp_path, stub.url), 20.0)
        found = await asyncio.gather(*(apns.send(request_for(tag=f"n-{number}")) for number in range(150)))
        assert all(one.is_taken for one in found)
        assert {request.headers["apns-collapse-id"] for request in stub.requests} == {f"n-{n}" for n in range(150)}
        assert len({request.headers["authorization"] for request in stub.requests}) == 1
        apns.close()


async def test_the_error_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async with push_service(monkeypatch, is_h2=True) as stub:
        apns = Apns(settings(tmp_path, stub.url), 5.0)
        gone = Delivered(False, "410 Unregistered", is_gone=True)
        assert await answered(stub, apns, 410, "Unregistered") == gone
        assert await answered(stub, apns, 400, "BadDeviceToken") == Delivered(False, "400 BadDeviceToken", is_gone=True)
        assert await answered(stub, apns, 400, "BadTopic") == Delivered(False, "400 BadTopic")
        assert await answered(stub, apns, 404, "BadPath") == Delivered(False, "404 BadPath")
        busy = await answered(stub, apns, 429, "TooManyRequests", **{"retry-after": "9"})
        assert busy == Delivered(False, "429 TooManyRequests", retry_s=9.0)
        assert (await answered(stub, apns, 503, "ServiceUnavailable")).retry_s == 0.0
        assert (await answered(stub, apns, 403, "InvalidProviderToken")).retry_s == 60.0
        before = stub.requests[-1].headers["authorization"]
        expired = await answered(stub, apns, 403, "ExpiredProviderToken")
        assert expired == Delivered(False, "403 ExpiredProviderToken", retry_s=0.0)
        await answered(stub, apns, 200, "")
        assert stub.requests[-1].headers["authorization"] != before
        apns.close()


async def test_a_service_that_is_away_is_tried_again_later(tmp_path: Path) -> None:
    apns = Apns(settings(tmp_path, "https://localhost:9"), 5.0)
    found = await apns.send(request_for())
    assert (found.is_taken, found.is_gone, found.retry_s) == (False, False, 0.0)
    assert TOKEN not in found.detail


def test_settings_that_lack_something_are_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"push\.apns\.key_id"):
        Apns(ApnsConfig(key_file="x.p8"), 5.0)
    (tmp_path / "key.p8").write_text("no key")
    with pytest.raises(StartupError, match=r"push\.apns\.key_file is not a signing key"):
        Apns(settings(tmp_path), 5.0)

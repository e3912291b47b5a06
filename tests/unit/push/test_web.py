"""Web Push: what a browser gets is decrypted by an independent implementation; the answers of services."""

from __future__ import annotations

import base64
import json
import os
from typing import Any

import http_ece
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness.push_services import PushServiceStub, ServiceAnswer, push_service
from nexo.core.push import PushTarget
from nexo.errors import NexoError
from nexo.push.ports import Delivered, PushRequest
from nexo.push.web import WebPush, check_subscription
from nexo.push.web_crypto import encrypt, new_key, read_private

PAYLOAD = {"kind": "message", "tag": "n-0123456789abcdef", "title": "Ann", "body": "你好 👋"}


class Browser:
    """The keys that a browser makes for a subscription."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)

    @property
    def point(self) -> bytes:
        return self.key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )

    def subscription(self, endpoint: str) -> dict[str, Any]:
        keys = {"p256dh": encoded(self.point), "auth": encoded(self.auth)}
        return {"endpoint": endpoint, "expirationTime": None, "keys": keys}

    def decrypt(self, body: bytes) -> bytes:
        return bytes(http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth, version="aes128gcm"))


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def make_web(*, allow_private: bool = True) -> WebPush:
    return WebPush(read_private(new_key()), "mailto:op@example.com", 5.0, allow_private=allow_private)


def request_for(subscription: dict[str, Any], **payload: Any) -> PushRequest:
    address = check_subscription(subscription, allow_private=True)
    return PushRequest(PushTarget(1, "bob", "web", address, "d", "en"), {**PAYLOAD, **payload}, 3600, True)


async def sent(web: WebPush, stub: PushServiceStub, browser: Browser, path: str = "/wpush/v2/abc") -> Delivered:
    return await web.send(request_for(browser.subscription(stub.url + path)))


async def test_a_browser_reads_what_was_encrypted_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with push_service(monkeypatch) as stub:
        web, browser = make_web(), Browser()
        assert await sent(web, stub, browser) == Delivered(True, "201")
        (request,) = stub.requests
        assert json.loads(browser.decrypt(request.body)) == PAYLOAD
        assert (request.path, request.headers["content-encoding"]) == ("/wpush/v2/abc", "aes128gcm")
        assert request.headers["content-type"] == "application/octet-stream"
        assert (request.headers["ttl"], request.headers["urgency"]) == ("3600", "high")
        assert request.headers["topic"] == PAYLOAD["tag"]
        scheme, _, rest = request.headers["authorization"].partition(" ")
        parts = dict(part.strip().split("=", 1) for part in rest.split(","))
        assert (scheme, parts["k"]) == ("vapid", web.public_key)
        point = base64.urlsafe_b64decode(parts["k"] + "=")
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        claims = jwt.decode(parts["t"], public, algorithms=["ES256"], audience=stub.url)
        assert claims["sub"] == "mailto:op@example.com"
        web.close()


def test_two_messages_of_one_text_have_different_keys_and_no_telling_length() -> None:
    browser = Browser()
    bodies = [encrypt(text, browser.point, browser.auth) for text in (b"yes", b"yes", b"no, thank you")]
    assert len({body[:86] for body in bodies}) == 3
    assert len({len(body) for body in bodies}) == 1
    assert [browser.decrypt(body) for body in bodies] == [b"yes", b"yes", b"no, thank you"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ServiceAnswer(404), Delivered(False, "404", is_gone=True)),
        (ServiceAnswer(410), Delivered(False, "410", is_gone=True)),
        (ServiceAnswer(429, headers=(("Retry-After", "17"),)), Delivered(False, "429", retry_s=17.0)),
        (ServiceAnswer(503), Delivered(False, "503", retry_s=0.0)),
        (ServiceAnswer(400, b"the endpoint https://x/secret"), Delivered(False, "400")),
        (ServiceAnswer(413), Delivered(False, "413")),
    ],
)
async def test_an_answer_decides(monkeypatch: pytest.MonkeyPatch, answer: ServiceAnswer, expected: Delivered) -> None:
    async with push_service(monkeypatch) as stub:
        stub.decide = lambda request: answer
        web = make_web()
        assert await sent(web, stub, Browser()) == expected
        web.close()


async def test_a_private_address_is_refused_when_it_is_used_although_it_was_taken_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with push_service(monkeypatch) as stub:
        web = make_web(allow_private=False)
        assert await sent(web, stub, Browser()) == Delivered(False, "bad_url")
        assert stub.requests == []
        web.close()


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://push.example.com/x"},
        {"endpoint": "https://127.0.0.1/x"},
        {"endpoint": "https://user@push.example.com/x"},
        {"endpoint": 5},
        {"keys": {"p256dh": "AAAA", "auth": encoded(b"x" * 16)}},
        {"keys": {"p256dh": encoded(b"\x04" + b"x" * 64), "auth": encoded(b"x" * 16)}},
        {"keys": {"p256dh": encoded(Browser().point), "auth": encoded(b"x" * 15)}},
        {"keys": {"p256dh": encoded(Browser().point)}},
    ],
)
def test_what_is_no_subscription_is_refused(change: dict[str, Any]) -> None:
    subscription = {**Browser().subscription("https://push.example.com/x"), **change}
    with pytest.raises(NexoError, match="bad_subscription"):
        check_subscription(subscription, allow_private=False)

"""Web Push (RFC 8030): encrypted for one browser, signed by the server's key, sent to the address that it names."""

from __future__ import annotations

import time
from collections import OrderedDict

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from msgspec import Struct

from nexo.core.push import PushTarget
from nexo.errors import NexoError
from nexo.outgoing.addresses import HttpTarget, check_target, parse_target
from nexo.outgoing.http_client import HttpClient
from nexo.outgoing.lookups import USERS
from nexo.push.answers import answer_of, judge
from nexo.push.ports import Delivered, PushRequest
from nexo.push.web_crypto import decode_base64url, encrypt, public_of, read_public, sign_es256

AGENT = "Nexo-Push"
ORIGINS_MAX = 256  # push services whose connections and tokens are kept
TOKEN_S = 12 * 3600
TOKEN_LEFT_S = 3600  # a token with less time left is made anew

_encode = msgspec.json.Encoder().encode


class SubscriptionKeys(Struct, frozen=True):
    p256dh: str
    auth: str


class Subscription(Struct, frozen=True):
    endpoint: str
    keys: SubscriptionKeys


_decode = msgspec.json.Decoder(Subscription).decode


def check_subscription(subscription: object, *, allow_private: bool) -> str:
    """Returns the JSON of a subscription as it is kept. Raises `bad_subscription`."""
    try:
        found = msgspec.convert(subscription, Subscription)
        read_public(decode_base64url(found.keys.p256dh))
        if len(decode_base64url(found.keys.auth)) != 16:
            raise ValueError("auth has 16 bytes")
        target = check_target(found.endpoint, allow_private=allow_private)
    except (msgspec.ValidationError, ValueError) as error:
        raise NexoError("bad_subscription", f"This is not a subscription of Web Push: {error}") from None
    except NexoError as error:
        raise NexoError("bad_subscription", f"The endpoint cannot be used: {error.detail}") from None
    if not target.is_tls:
        raise NexoError("bad_subscription", "The endpoint begins with https://")
    return _encode(found).decode()


class _Origin(Struct):
    """A push service: its connections, and the token that is valid for it."""

    client: HttpClient
    token: str
    until: float  # by `time.time`


class WebPush:
    kind = "web"

    def __init__(self, key: EllipticCurvePrivateKey, subject: str, timeout_s: float, *, allow_private: bool) -> None:
        self._key = key
        self.public_key = public_of(key)
        self._subject = subject
        self._timeout_s = timeout_s
        self._allow_private = allow_private
        self._origins: OrderedDict[str, _Origin] = OrderedDict()

    def lane_of(self, target: PushTarget) -> str:
        try:
            return _origin_of(parse_target(_decode(target.address).endpoint))
        except (msgspec.DecodeError, NexoError):
            return ""

    async def send(self, request: PushRequest) -> Delivered:
        try:
            subscription = _decode(request.target.address)
            target = parse_target(subscription.endpoint)
            keys = decode_base64url(subscription.keys.p256dh), decode_base64url(subscription.keys.auth)
            body = encrypt(_encode(request.payload), *keys)
        except (msgspec.DecodeError, ValueError, NexoError):
            return Delivered(False, "bad subscription", is_gone=True)
        if not target.is_tls:
            return Delivered(False, "not https", is_gone=True)
        origin = self._origin(target)
        headers = (
            ("authorization", f"vapid t={origin.token}, k={self.public_key}"),
            ("content-encoding", "aes128gcm"),
            ("ttl", str(request.ttl_s)),
            ("urgency", "high" if request.is_urgent else "normal"),
            ("topic", str(request.payload["tag"])),
        )
        answer = await answer_of(origin.client.post(body, headers, self._timeout_s, target.path))
        return answer if isinstance(answer, Delivered) else judge(answer)

    def _origin(self, target: HttpTarget) -> _Origin:
        name = _origin_of(target)
        found = self._origins.get(name)
        if found is None:
            client = HttpClient(
                f"{name}/",
                allow_private=self._allow_private,
                agent=AGENT,
                content_type="application/octet-stream",
                lookups=USERS,
            )
            found = self._origins[name] = _Origin(client, "", 0.0)
            while len(self._origins) > ORIGINS_MAX:
                self._origins.popitem(last=False)[1].client.close()
        self._origins.move_to_end(name)
        now = time.time()
        if found.until - now < TOKEN_LEFT_S:
            found.until = now + TOKEN_S
            claims = {"aud": name, "exp": int(found.until), "sub": self._subject}
            found.token = sign_es256(self._key, claims)
        return found

    def close(self) -> None:
        while self._origins:
            self._origins.popitem()[1].client.close()


def _origin_of(target: HttpTarget) -> str:
    return f"{'https' if target.is_tls else 'http'}://{target.host_header}"

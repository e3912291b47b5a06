"""The operator's own webhook, for services that Nexo does not know: it gets notifications with the device's token."""

from __future__ import annotations

import hashlib

import msgspec

from nexo.config.tree_push import PushHookConfig
from nexo.core.push import PushTarget
from nexo.core.webhook_signature import decode_secret, signed_headers
from nexo.errors import NexoError, StartupError
from nexo.ids import now_ms
from nexo.outgoing.http_client import HttpClient
from nexo.push.answers import answer_of, judge
from nexo.push.ports import Delivered, PushRequest

AGENT = "Nexo-Push"

_encode = msgspec.json.Encoder().encode


class PushHook:
    kind = "hook"

    def __init__(self, settings: PushHookConfig, timeout_s: float) -> None:
        try:
            self._client = HttpClient(settings.url, allow_private=True, agent=AGENT)
        except NexoError as error:
            raise StartupError(f"push.hook.url cannot be used: {error.detail}") from error
        try:
            self._keys = (decode_secret(settings.secret),) if settings.secret else ()
        except NexoError as error:
            raise StartupError(f"push.hook.secret cannot be used: {error.detail}") from error
        self._timeout_s = timeout_s

    def lane_of(self, target: PushTarget) -> str:
        return self._client.target.host

    async def send(self, request: PushRequest) -> Delivered:
        target = request.target
        body = _encode(
            {
                **request.payload,
                "user_id": target.user_id,
                "device_id": target.device_id,
                "token": target.address,
                "ttl_s": request.ttl_s,
                "urgent": request.is_urgent,
            }
        )
        headers = signed_headers(self._keys, _message_id(request), now_ms() // 1000, body) if self._keys else ()
        answer = await answer_of(self._client.post(body, headers, self._timeout_s))
        return answer if isinstance(answer, Delivered) else judge(answer)

    def close(self) -> None:
        self._client.close()


def _message_id(request: PushRequest) -> str:
    """Returns the `webhook-id`: the same when a notification is repeated."""
    payload = request.payload
    parts: list[object] = [request.target.push_id, request.before]
    parts += [payload.get(name) for name in ("kind", "tag", "server_msg_id", "unread", "quiet", "ended")]
    text = "\n".join(map(str, parts))
    return f"push_{hashlib.blake2b(text.encode(), digest_size=15).hexdigest()}"

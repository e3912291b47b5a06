"""One request to a webhook: the body, the signature, and what the answer means."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from nexo import __version__
from nexo.config.tree_hooks import HooksConfig
from nexo.core.hooks import Hook
from nexo.core.webhook_signature import signed_headers
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.outgoing.addresses import check_target
from nexo.outgoing.http_client import HttpClient, HttpFailure
from nexo.service.hooks import HookTrial

AGENT = f"Nexo/{__version__}"
SHOWN_MAX_CHARS = 200  # of an answer, in logs and commands


class PostResult(NamedTuple):
    is_taken: bool
    status: int  # 0: no answer
    detail: str


class HookClient:
    """Connections to the receiver of one webhook."""

    def __init__(self, hook: Hook, settings: HooksConfig) -> None:
        self._hook = hook
        self._timeout_s = settings.timeout_s
        self._http = HttpClient(hook.url, allow_private=settings.allow_private, agent=AGENT)

    async def post(self, event_ids: Iterable[str], texts: Sequence[bytes]) -> PostResult:
        """Send events in one request. An answer of 2xx means that they are taken."""
        body = b'{"events":[' + b",".join(texts) + b"]}"
        at_ms = now_ms()
        headers = signed_headers(self._hook.keys(at_ms), message_id(self._hook.hook_id, event_ids), at_ms // 1000, body)
        try:
            answer = await self._http.post(body, headers, self._timeout_s)
        except HttpFailure as error:
            return PostResult(False, 0, str(error))
        except NexoError as error:
            return PostResult(False, 0, error.detail)
        if 200 <= answer.status < 300:
            return PostResult(True, answer.status, "")
        shown = answer.body[:SHOWN_MAX_CHARS].decode("utf-8", "replace")
        return PostResult(False, answer.status, f"answered {answer.status}: {shown}")

    def close(self) -> None:
        self._http.close()


def message_id(hook_id: str, event_ids: Iterable[str]) -> str:
    """Returns the `webhook-id`: the same for the same events, from any instance."""
    text = "\n".join((hook_id, *event_ids))
    return f"msg_{hashlib.blake2b(text.encode(), digest_size=15).hexdigest()}"


class HookTesting:
    """Implements `service.hooks.HookTester`."""

    def __init__(self, settings: HooksConfig) -> None:
        self._settings = settings

    def check_url(self, url: str) -> None:
        check_target(url, allow_private=self._settings.allow_private)

    async def test(self, hook: Hook) -> HookTrial:
        event_id = f"test-{now_ms()}"
        event = {"event_id": event_id, "type": "hook.test", "at": now_ms(), "data": {"hook_id": hook.hook_id}}
        client = HookClient(hook, self._settings)
        started = time.monotonic()
        try:
            result = await client.post((event_id,), (msgspec.json.encode(event),))
        finally:
            client.close()
        ms = round((time.monotonic() - started) * 1000)
        return HookTrial(result.is_taken, result.status, result.detail or "taken", ms)

"""The HTTP API: calls with a token that is kept fresh."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

import httpx
import msgspec

from nexo.client.failures import ClientError

T = TypeVar("T")


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes a while: once for all clients of a process."""
    return ssl.create_default_context()


class Http:
    def __init__(self, url: str, timeout_s: float) -> None:
        verify = _tls() if url.startswith("https:") else False
        self._client = httpx.AsyncClient(base_url=url, timeout=timeout_s, verify=verify)

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self, method: str, path: str, params: dict[str, Any] | None = None, *, token: str | None = None
    ) -> Any:
        """What is in `data`. `params` go into the query of a GET or DELETE and into the body otherwise."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        chosen = {name: value for name, value in (params or {}).items() if value is not None}
        in_query = method in ("GET", "DELETE")
        try:
            answer = await self._client.request(
                method, path, params=chosen if in_query else None, json=None if in_query else chosen, headers=headers
            )
        except httpx.TimeoutException as error:
            raise ClientError("timeout", str(error)) from None
        except (httpx.TransportError, OSError) as error:
            raise ClientError("network", str(error)) from None
        return _open(answer)


def _open(answer: httpx.Response) -> Any:
    try:
        body = msgspec.json.decode(answer.content)
        code = body["err_code"]
    except (msgspec.DecodeError, KeyError, TypeError):
        reason = "server_busy" if answer.status_code >= 500 else "bad_answer"  # a proxy in between, probably
        raise ClientError(reason, f"HTTP {answer.status_code}", status=answer.status_code) from None
    if code:
        hint = body.get("retry_after_ms")
        if hint is None and isinstance(body.get("data"), dict):
            hint = body["data"].get("retry_after_ms")
        raise ClientError(
            body.get("err_msg", ""), body.get("detail", ""), status=answer.status_code, retry_after_ms=hint
        )
    return body.get("data")


def read(data: Any, form: type[T]) -> T:
    try:
        return msgspec.convert(data, form)
    except msgspec.ValidationError as error:
        raise ClientError("bad_answer", str(error)) from None


Call = Callable[..., Awaitable[Any]]  # (method, path, params) → data, signed in

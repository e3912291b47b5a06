"""Calls of the HTTP API."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import httpx
import msgspec

from nexo_client.errors import ClientError

T = TypeVar("T")

Headers = httpx.Headers
RAW_TIMEOUT_S = 60.0  # the end of an upload is answered when the server has examined the file

DOWNLOAD_TIMEOUT_S = 600.0
NULL: Any = object()  # a parameter that is sent as null; None is left out

Call = Callable[..., Awaitable[Any]]  # (method, path, params) → data, signed in


@cache
def _tls_context() -> ssl.SSLContext:
    """Returns one context for all clients of the process: loading the certificates is slow."""
    return ssl.create_default_context()


class Http:
    def __init__(self, url: str, timeout_s: float) -> None:
        verify = _tls_context() if url.startswith("https:") else False
        self._url = url
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(base_url=url, timeout=timeout_s, verify=verify)

    async def close(self) -> None:
        await self._client.aclose()

    async def call(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        *,
        token: str | None = None,
        user_id: str | None = None,
        wait_s: float = 0.0,
    ) -> Any:
        """Returns `data` of the answer. `params` are the query of a GET or DELETE and the body otherwise; None values
        are left out. `user_id` is the user for whom a backend acts; `wait_s` is how long the server may take longer
        than usual."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if user_id is not None:
            headers["Nexo-User"] = user_id
        chosen = {name: value for name, value in (params or {}).items() if value is not None}
        # a password is no part of an address
        in_query = method in ("GET", "DELETE") and (method, path) != ("DELETE", "/user")
        if not in_query:
            chosen = {name: None if value is NULL else value for name, value in chosen.items()}
        try:
            answer = await self._client.request(
                method,
                path,
                params=_query(chosen) if in_query else None,
                json=None if in_query else chosen,
                headers=headers,
                timeout=self._timeout_s + wait_s,
            )
        except httpx.TimeoutException as error:
            raise ClientError("timeout", str(error)) from None
        except (httpx.TransportError, OSError) as error:
            raise ClientError("network", str(error)) from None
        return _data_of(answer)

    async def download(self, path: str, token: str) -> bytes:
        """Returns the content of an answer that is not JSON."""
        headers = {"Authorization": f"Bearer {token}"}
        try:
            answer = await self._client.get(path, headers=headers, timeout=DOWNLOAD_TIMEOUT_S)
        except httpx.TimeoutException as error:
            raise ClientError("timeout", str(error)) from None
        except (httpx.TransportError, OSError) as error:
            raise ClientError("network", str(error)) from None
        if answer.status_code >= 400:
            _data_of(answer)
        return answer.content

    async def send_raw(self, method: str, path: str, token: str, headers: Mapping[str, str], content: bytes) -> Headers:
        """Returns the headers of the answer to a request that is not JSON."""
        try:
            answer = await self._client.request(
                method,
                path,
                content=content,
                headers={"Authorization": f"Bearer {token}"} | dict(headers),
                timeout=max(self._timeout_s, RAW_TIMEOUT_S),
            )
        except httpx.TimeoutException as error:
            raise ClientError("timeout", str(error)) from None
        except (httpx.TransportError, OSError) as error:
            raise ClientError("network", str(error)) from None
        if answer.status_code >= 400:
            _data_of(answer)
            raise ClientError("bad_answer", f"HTTP {answer.status_code}", status=answer.status_code)
        return answer.headers

    @property
    def url(self) -> str:
        return self._url


def _query(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in params.items()}


def _data_of(answer: httpx.Response) -> Any:
    try:
        body = msgspec.json.decode(answer.content)
        code = body["err_code"]
    except (msgspec.DecodeError, KeyError, TypeError):
        reason = "server_busy" if answer.status_code >= 500 else "bad_answer"  # probably of a proxy
        raise ClientError(reason, f"HTTP {answer.status_code}", status=answer.status_code) from None
    if code:
        hint = body.get("retry_after_ms")
        if hint is None and isinstance(body.get("data"), dict):
            hint = body["data"].get("retry_after_ms")
        raise ClientError(
            body.get("err_msg", ""), body.get("detail", ""), status=answer.status_code, retry_after_ms=hint
        )
    return body.get("data")


def decode(data: Any, form: type[T]) -> T:
    """Converts `data` of an answer into a type. Raises the error `bad_answer` when it does not fit."""
    try:
        return msgspec.convert(data, form)
    except msgspec.ValidationError as error:
        raise ClientError("bad_answer", str(error)) from None

"""The one layer around every HTTP request: its id and log line, its address, sizes, headers, and failures."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nexo.api.replies import Headers, Reply, error_reply, send_reply
from nexo.config import Config
from nexo.core.addresses import client_address, parse_networks
from nexo.errors import NexoError
from nexo.metrics.http import HttpMeter

# 16 KiB of content and as much of extra may be written in JSON escapes, six bytes for one.
BODY_MAX_BYTES = 128 * 1024
CONTEXT = "nexo"  # where a scope keeps the Context

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_PATH_LOGGED_MAX = 200
_SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_CSP = b"content-security-policy"
_NOTHING_ALLOWED = (_CSP, b"default-src 'none'; frame-ancestors 'none'")
_CORS_ANSWERED = (b"access-control-expose-headers", b"x-request-id, retry-after")
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type, x-request-id"),
    (b"access-control-max-age", b"600"),
    (b"content-length", b"0"),
]


class Context:
    """What is known of a request on its way; whoever learns more adds it."""

    __slots__ = ("address", "client_msg_id", "headers", "request_id", "route", "status", "user_id")

    def __init__(self, request_id: str, address: str, headers: dict[bytes, bytes]) -> None:
        self.request_id = request_id
        self.address = address
        self.headers = headers
        self.user_id = ""
        self.client_msg_id: str | None = None
        self.route = ""  # of the table; others have none
        self.status = 0


class Edge:
    def __init__(self, app: ASGIApp, config: Config, meter: HttpMeter) -> None:
        self._app = app
        self._meter = meter
        self._trusted = parse_networks(config.http.trusted_proxies)
        self._origins = frozenset(origin.encode() for origin in config.http.cors_origins)
        # Bound once: a logger that is not costs more than everything else here.
        self._log = structlog.get_logger().bind()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError("this application answers HTTP only")
        started = time.perf_counter()
        headers = dict(scope["headers"])
        context = Context(_request_id(headers), self._address(scope, headers), headers)
        scope[CONTEXT] = context
        added = self._headers(context, headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                context.status = message["status"]
                own = message["headers"]
                message["headers"] = [*own, *added] if _has_csp(own) else [*own, _NOTHING_ALLOWED, *added]
            await send(message)

        try:
            if scope["method"] == "OPTIONS" and self._is_preflight(headers):
                await send_reply(send_with_headers, Reply(204, _PREFLIGHT, b""))
                return
            await self._app(scope, _limited(receive, headers), send_with_headers)
        except NexoError as error:
            await self._fail(context, error, send_with_headers)
        except Exception:
            self._log.exception("request_failed", request_id=context.request_id, **_what(scope))
            await self._fail(context, NexoError("internal_error"), send_with_headers)
        finally:
            taken_s = time.perf_counter() - started
            self._meter.observe(context.route, context.status, taken_s)
            tell = self._log.debug if context.status < 400 else self._log.info
            tell(
                "request",
                request_id=context.request_id,
                **_what(scope),
                status=context.status,
                ms=round(taken_s * 1000, 2),
                user_id=context.user_id,
                address=context.address,
            )

    async def _fail(self, context: Context, error: NexoError, send: Send) -> None:
        if context.status:  # half an answer is out already; the server cuts the connection
            return
        self._meter.errors.add(error.name)
        told_id = context.request_id if error.name == "internal_error" else None
        await send_reply(send, error_reply(error, client_msg_id=context.client_msg_id, request_id=told_id))

    def _address(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        remote: str = scope["client"][0] if scope["client"] else ""
        if not self._trusted or b"x-forwarded-for" not in headers:
            return remote
        # a proxy may add a line of its own instead of adding to the one that came
        lines = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return client_address(remote, b",".join(lines).decode("latin-1"), self._trusted)

    def _headers(self, context: Context, headers: dict[bytes, bytes]) -> Headers:
        added = [*_SECURITY, (b"x-request-id", context.request_id.encode())]
        if self._origins:
            added.append((b"vary", b"origin"))
            origin = headers.get(b"origin")
            if origin is not None and (origin in self._origins or b"*" in self._origins):
                # tokens travel in a header of their own, so no page needs cookies or other credentials
                added += [(b"access-control-allow-origin", origin), _CORS_ANSWERED]
        return added

    def _is_preflight(self, headers: dict[bytes, bytes]) -> bool:
        return bool(self._origins) and b"origin" in headers and b"access-control-request-method" in headers


def _request_id(headers: dict[bytes, bytes]) -> str:
    """The caller's own, if it is fit for a log."""
    given = headers.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode()
    return f"{random.getrandbits(64):016x}"


def _has_csp(headers: Headers) -> bool:
    for name, _ in headers:  # noqa: SIM110 - three times as fast as any()
        if name == _CSP:
            return True
    return False


def _limited(receive: Receive, headers: dict[bytes, bytes]) -> Receive:
    """Bodies over the limit are refused: by what they announce, else by what has come."""
    announced = headers.get(b"content-length")
    if announced is not None:
        if len(announced) > 15 or int(announced) > BODY_MAX_BYTES:
            raise _too_long()
        return receive
    total = 0

    async def receive_within() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > BODY_MAX_BYTES:
            raise _too_long()
        return message

    return receive_within


def _too_long() -> NexoError:
    return NexoError("body_too_long", f"A request has at most {BODY_MAX_BYTES} bytes")


def _what(scope: Scope) -> dict[str, Any]:
    """Never the query: there may be a token in it."""
    return {"method": scope["method"], "path": scope["path"][:_PATH_LOGGED_MAX]}

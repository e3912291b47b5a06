"""The one layer around every HTTP request: request id, log line, address, size limits, headers and errors."""

from __future__ import annotations

import random
import re
import time
from typing import Any

import structlog

from nexo.api.asgi import ASGIApp, Message, Receive, Scope, Send
from nexo.api.replies import Headers, Reply, error_reply, send_reply
from nexo.config import Config
from nexo.core.addresses import client_address, parse_networks
from nexo.errors import NexoError
from nexo.logs import request_fields
from nexo.metrics.http import HttpMeter

# 16 KiB of content and as much of extra may be written in JSON escapes, six bytes for one.
BODY_MAX_BYTES = 128 * 1024
# Lists for which a backend needs more; its key is checked before the body is read.
LONG_BODIES = {"/server/users": 4 * 1024 * 1024}
# Bodies that no handler holds in memory; the routes of files bound them, after they have asked who calls.
STREAMED = ("/files", "/openim/object/upload/")
# Under it any page may call: clients of another product, whose tokens travel in a header of their own.
OPEN_TO_ALL = "/openim/"
CONTEXT = "nexo"  # where a scope keeps the Context

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_PATH_LOGGED_MAX = 200
_SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_CSP = b"content-security-policy"
_NOTHING_ALLOWED = (_CSP, b"default-src 'none'; frame-ancestors 'none'")
_CORS_ANSWERED = (
    b"access-control-expose-headers",
    b"x-request-id, retry-after, location, etag, content-disposition, content-range, "
    b"tus-resumable, tus-version, tus-extension, tus-max-size, upload-offset, upload-length, upload-expires",
)
_PREFLIGHT: Headers = [
    (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, content-disposition, range, if-none-match, nexo-user, x-request-id, "
        b"tus-resumable, upload-length, upload-offset, upload-metadata, upload-checksum, "
        b"token, operationid, reqfuncname",
    ),
    (b"access-control-max-age", b"600"),
    (b"content-length", b"0"),
]


class Context:
    """State of one request; dispatch and authentication add route, user and client_msg_id."""

    __slots__ = (
        "added", "address", "client_msg_id", "headers", "open_path", "path_id", "request_id", "route", "status",
        "user_id",
    )  # fmt: skip

    def __init__(self, request_id: str, address: str, headers: dict[bytes, bytes]) -> None:
        self.request_id = request_id
        self.address = address
        self.headers = headers
        self.added: Headers = []  # headers that every answer to this request gets
        self.user_id = ""
        self.client_msg_id: str | None = None
        self.route = ""  # of the table; others have none
        self.open_path = ""  # of a route that leaves a part of its path open, with that part in `path_id`
        self.path_id = ""
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
        request_fields.set({"request_id": context.request_id})  # each request is a task of its own
        added = context.added = self._headers(context, headers, scope["path"])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                context.status = message["status"]
                own = message["headers"]
                message["headers"] = [*own, *added] if _has_csp(own) else [*own, _NOTHING_ALLOWED, *added]
            await send(message)

        try:
            is_open = scope["path"].startswith(OPEN_TO_ALL)
            if scope["method"] == "OPTIONS" and (is_open or self._is_preflight(headers)):
                await send_reply(send_with_headers, Reply(204, _PREFLIGHT, b""))
                return
            if len(headers) < len(scope["headers"]):
                _check_single(scope["headers"])
            path: str = scope["path"]
            if not path.startswith(STREAMED):
                receive = _limited(receive, headers, LONG_BODIES.get(path, BODY_MAX_BYTES))
            await self._app(scope, receive, send_with_headers)
        except NexoError as error:
            await self._fail(context, error, send_with_headers)
        except Exception:
            self._log.exception("request_failed", request_id=context.request_id, **_what(scope))
            await self._fail(context, NexoError("internal_error"), send_with_headers)
        finally:
            taken_s = time.perf_counter() - started
            self._meter.observe(context.route, context.status, taken_s)
            write_line = self._log.debug if context.status < 400 else self._log.info
            write_line(
                "request",
                request_id=context.request_id,
                **_what(scope),
                status=context.status,
                ms=round(taken_s * 1000, 2),
                user_id=context.user_id,
                address=context.address,
                **({} if context.client_msg_id is None else {"client_msg_id": context.client_msg_id}),
            )

    async def _fail(self, context: Context, error: NexoError, send: Send) -> None:
        if context.status:  # part of the answer is sent already; the server closes the connection
            return
        self._meter.errors.add(error.name)
        shown_id = context.request_id if error.name == "internal_error" else None
        await send_reply(send, error_reply(error, client_msg_id=context.client_msg_id, request_id=shown_id))

    def _address(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        remote: str = scope["client"][0] if scope["client"] else ""
        if not self._trusted or b"x-forwarded-for" not in headers:
            return remote
        # a proxy may add a header line of its own instead of extending the one it received
        lines = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
        return client_address(remote, b",".join(lines).decode("latin-1"), self._trusted)

    def _headers(self, context: Context, headers: dict[bytes, bytes], path: str) -> Headers:
        added = [*_SECURITY, (b"x-request-id", context.request_id.encode())]
        if path.startswith(OPEN_TO_ALL):
            return [*added, (b"access-control-allow-origin", b"*"), _CORS_ANSWERED]
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
    """Returns the caller's request id if it is safe to log, otherwise a new one."""
    given = headers.get(b"x-request-id")
    if given is not None and _REQUEST_ID.fullmatch(given):
        return given.decode()
    return f"{random.getrandbits(64):016x}"


def _check_single(headers: Headers) -> None:
    """Refuses a second header that names the caller: a proxy may have checked the other one."""
    for name in (b"authorization", b"nexo-user"):
        if sum(one == name for one, _ in headers) > 1:
            raise NexoError("bad_request", f"The header {name.decode()} is there twice")


def _has_csp(headers: Headers) -> bool:
    for name, _ in headers:  # noqa: SIM110 - three times as fast as any()
        if name == _CSP:
            return True
    return False


def _limited(receive: Receive, headers: dict[bytes, bytes], max_bytes: int) -> Receive:
    """Refuses bodies over the limit: by their content-length, or by the bytes received if there is none."""
    announced = headers.get(b"content-length")
    if announced is not None:
        if len(announced) > 15 or int(announced) > max_bytes:
            raise _too_long(max_bytes)
        return receive
    total = 0

    async def receive_within() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > max_bytes:
            raise _too_long(max_bytes)
        return message

    return receive_within


def _too_long(max_bytes: int) -> NexoError:
    return NexoError("body_too_long", f"A request has at most {max_bytes} bytes")


def _what(scope: Scope) -> dict[str, Any]:
    """Returns what is logged of a request; never the query, which may contain a token."""
    return {"method": scope["method"], "path": scope["path"][:_PATH_LOGGED_MAX]}

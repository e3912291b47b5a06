"""OpenIM's HTTP API as an ASGI application: always POST, answered with 200 and a code in the body."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import structlog

from nexo.api.asgi import Receive, Scope, Send
from nexo.api.authentication import Authentication
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Reply, send_reply
from nexo.api.route import NO_SESSION
from nexo.core.addresses import address_of
from nexo.core.keys import is_key
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.openim import backends, conversations, groups, messages, objects, users
from nexo.openim.request import Call, Facade, Handler
from nexo.wire.openim.errors import encode_outcome

log = structlog.get_logger()

PREFIX = "/openim"
BODY_TIMEOUT_S = 30.0
OPERATION_MAX_CHARS = 128
PROTOBUF = b"application/x-protobuf"
_ROUTES: dict[str, Handler] = {
    **users.ROUTES,
    **groups.ROUTES,
    **conversations.ROUTES,
    **messages.ROUTES,
    **objects.ROUTES,
}
_JSON = (b"content-type", b"application/json; charset=utf-8")
_NOT_KEPT = (b"cache-control", b"no-store")

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


class OpenimApi:
    def __init__(self, facade: Facade, authentication: Authentication) -> None:
        self._facade = facade
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context: Context = scope[CONTEXT]
        path = scope["path"][len(PREFIX) :]
        if path.startswith(objects.UPLOADS):  # other HTTP statuses than 200 are understood here
            session = await self._session(context, _token(context))
            await objects.receive_part(self._facade, session, scope, receive, send)
            return
        handler = _ROUTES.get(path) or backends.ROUTES.get(path)
        if handler is not None:
            context.route = f"POST {PREFIX}{path}"
        try:
            if handler is None:
                raise NexoError("not_found", f"There is no call {path[:100]}")
            body = await _read_body(receive)
            call = await self._call(context, path, body)
            data = await handler(call)
        except NexoError as error:
            reply = encode_outcome(error)
        except Exception:
            log.exception("openim_request_failed", path=path[:200])
            reply = encode_outcome(NexoError("internal_error"))
        else:
            reply = b'{"errCode":0,"errMsg":"","errDlt":"","data":' + _encode(data) + b"}"
        await send_reply(send, Reply(200, [_JSON, _NOT_KEPT, (b"content-length", b"%d" % len(reply))], reply))

    async def _call(self, context: Context, path: str, body: bytes) -> Call:
        headers = context.headers
        token = _token(context)
        operation_id = headers.get(b"operationid", b"").decode("latin-1")[:OPERATION_MAX_CHARS]
        found: dict[str, Any] = {}
        if body and not headers.get(b"content-type", b"").startswith(PROTOBUF):
            try:
                found = _decode(body)
            except (msgspec.DecodeError, ValueError, RecursionError):
                raise NexoError("bad_json", "The body is a JSON object") from None
        base_url = address_of({name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()})
        session = NO_SESSION
        if path in backends.ROUTES:
            self._facade.actions.limits.request_from(context.address)
        else:
            session = await self._session(context, token)
            context.user_id = session.user_id
        return Call(self._facade, session, found, body, operation_id, base_url, context.address, token)

    async def _session(self, context: Context, token: str) -> Session:
        limits = self._facade.actions.limits
        try:
            if not token:
                raise NexoError("missing_token", "The header token is missing")
            if is_key(token):
                raise NexoError("no_permission", "This call is for users: a key opens the calls for backends")
            session = await self._authentication.session_of(b"Bearer " + token.encode("latin-1"))
        except NexoError:
            limits.request_from(context.address)
            raise
        limits.request_of(session.user_id)
        return session


def _token(context: Context) -> str:
    """Returns the token of a request: OpenIM's clients have a header of their own for it."""
    token = context.headers.get(b"token", b"").decode("latin-1").strip()
    if not token:
        scheme, _, bearer = context.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = bearer.strip() if scheme.lower() == "bearer" else ""
    return token


async def _read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise NexoError("bad_request", "The connection was closed before the body had arrived")
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise NexoError("bad_request", f"The body did not arrive within {BODY_TIMEOUT_S:g} s") from None

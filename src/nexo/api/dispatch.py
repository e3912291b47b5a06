"""From a path to its handler, by two look-ups: authenticate, decode, call, encode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from nexo.api.authentication import Authentication
from nexo.api.call import NOBODY, Caller, Route, Services
from nexo.api.decoding import Decode, body_decoder, find_client_msg_id, query_decoder
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Reply, data_reply, error_reply, send_reply
from nexo.errors import NexoError

BODY_TIMEOUT_S = 30.0

Page = Callable[[Mapping[bytes, bytes]], Reply]  # given the headers of the request
Answer = Callable[[Scope, Receive], Awaitable[Reply]]


class Dispatch:
    """The table as an ASGI application. `pages` are answered to GET without signing in; what is neither in
    the table nor a page is left to `site`, if there is one."""

    def __init__(
        self, services: Services, routes: Iterable[Route], pages: Mapping[str, Page], site: ASGIApp | None = None
    ) -> None:
        self._services = services
        self.authentication = Authentication(services.accounts)
        self._site = site
        self._answers: dict[str, dict[str, Answer]] = {}
        for row in routes:
            self._answers.setdefault(row.path, {})[row.method] = self._answer(row)
        for path, page in pages.items():
            self._answers[path] = {"GET": _answer_page(page)}
        for methods in self._answers.values():
            if "GET" in methods:  # the server leaves the body away
                methods["HEAD"] = methods["GET"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        methods = self._answers.get(scope["path"])
        if methods is None:
            if self._site is None:
                raise NexoError("not_found")
            await self._site(scope, receive, send)
            return
        answer = methods.get(scope["method"])
        context: Context = scope[CONTEXT]
        if answer is not None:
            context.route = f"{scope['method']} {scope['path']}"
        if answer is None:
            allow = ", ".join(sorted(methods)).encode()
            reply = error_reply(NexoError("method_not_allowed"), headers=((b"allow", allow),))
        else:
            reply = await answer(scope, receive)
        await send_reply(send, reply)

    def _answer(self, row: Route) -> Answer:
        services, handler = self._services, row.handler
        session_of = self.authentication.session_of
        decode: Decode = body_decoder(row.request) if row.has_body else query_decoder(row.request)
        echoes = "client_msg_id" in row.request.__struct_fields__

        async def answer(scope: Scope, receive: Receive) -> Reply:
            context: Context = scope[CONTEXT]
            payload = await _read_body(receive) if row.has_body else scope["query_string"]
            try:
                session = NOBODY
                if row.signed_in:
                    session = await session_of(context.headers.get(b"authorization"))
                    context.user_id = session.user_id
                request = decode(payload)
                return data_reply(await handler(services, Caller(session, context.address), request))
            except Exception:
                if echoes:
                    context.client_msg_id = find_client_msg_id(payload)
                raise

        return answer


def _answer_page(page: Page) -> Answer:
    async def answer(scope: Scope, receive: Receive) -> Reply:
        context: Context = scope[CONTEXT]
        return page(context.headers)

    return answer


async def _read_body(receive: Receive) -> bytes:
    """The size is limited by the layer around. The time only from the second piece on: most bodies come with
    their head, and a timer for each would cost more than to wait for the few that send nothing at all."""
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts = [body]
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                while message.get("more_body"):
                    message = await receive()
                    parts.append(message.get("body", b""))
        except TimeoutError:
            raise NexoError("bad_request", f"The body did not arrive within {BODY_TIMEOUT_S:g} s") from None
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise NexoError("bad_request", "The connection was closed before the body had arrived")
    return body

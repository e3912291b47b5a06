"""Finds the handler of a path by two look-ups: authenticate, decode, call, encode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from msgspec import Struct

from nexo.api.asgi import ASGIApp, Receive, Scope, Send
from nexo.api.authentication import Authentication
from nexo.api.callers import Callers
from nexo.api.decoding import Decode, body_decoder, find_client_msg_id, query_decoder
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Reply, data_reply, error_reply, send_reply
from nexo.api.route import NO_SESSION, OPEN_PART, Caller, Route, Services
from nexo.api.streams import StreamCall, StreamHandler
from nexo.errors import NexoError

BODY_TIMEOUT_S = 30.0

Page = Callable[[Mapping[bytes, bytes]], Reply]  # given the headers of the request
Answer = Callable[[Scope, Receive, Send], Awaitable[Reply | None]]  # None: the answer has been sent


class Dispatch:
    """The table as an ASGI application. `pages` are answered to GET without signing in; a path that is
    neither in the table nor a page goes to `site`, if there is one."""

    def __init__(
        self, services: Services, routes: Iterable[Route], pages: Mapping[str, Page], site: ASGIApp | None = None
    ) -> None:
        self._services = services
        self.authentication = Authentication(services.accounts)
        self._callers = Callers(self.authentication, services)
        self._site = site
        self._mounted: tuple[str, ASGIApp] | None = None
        self._answers: dict[str, dict[str, Answer]] = {}
        self._open_paths: dict[tuple[str, str], dict[str, Answer]] = {}
        for row in routes:
            beginning, is_open, end = row.path.partition(OPEN_PART)
            table = self._open_paths.setdefault((beginning, end), {}) if is_open else None
            (self._answers.setdefault(row.path, {}) if table is None else table)[row.method] = (
                self._answer(row) if row.stream is None else self._stream(row, row.stream)
            )
        for path, page in pages.items():
            self._answers[path] = {"GET": _answer_page(page)}
        for methods in (*self._answers.values(), *self._open_paths.values()):
            if "GET" in methods:  # the HTTP server omits the body
                methods["HEAD"] = methods["GET"]

    def mount(self, prefix: str, app: ASGIApp) -> None:
        """Let another application answer all paths with this prefix."""
        self._mounted = (prefix, app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._mounted is not None and scope["path"].startswith(self._mounted[0]):
            await self._mounted[1](scope, receive, send)
            return
        methods = self._answers.get(scope["path"]) or self._match(scope)
        if methods is None:
            if self._site is None:
                raise NexoError("not_found")
            await self._site(scope, receive, send)
            return
        answer = methods.get(scope["method"])
        context: Context = scope[CONTEXT]
        if answer is not None:
            context.route = f"{scope['method']} {context.open_path or scope['path']}"
        if answer is None:
            allow = ", ".join(sorted(methods)).encode()
            reply = error_reply(NexoError("method_not_allowed"), headers=((b"allow", allow),))
        else:
            found = await answer(scope, receive, send)
            if found is None:
                return
            reply = found
        await send_reply(send, reply)

    def _match(self, scope: Scope) -> dict[str, Answer] | None:
        """Returns the methods of a path with one part that the route leaves open."""
        path: str = scope["path"]
        for (beginning, end), methods in self._open_paths.items():
            if path.startswith(beginning) and path.endswith(end) and len(path) > len(beginning) + len(end):
                part = path[len(beginning) : len(path) - len(end)]
                if "/" not in part and "\0" not in part:
                    context: Context = scope[CONTEXT]
                    context.open_path, context.path_id = f"{beginning}{OPEN_PART}{end}", part
                    return methods
        return None

    def _answer(self, row: Route) -> Answer:
        services, handler = self._services, row.handler
        caller_of = self._callers.caller_of
        decode: Decode = body_decoder(row.request) if row.has_body else query_decoder(row.request)
        echoes = "client_msg_id" in row.request.__struct_fields__

        async def answer(scope: Scope, receive: Receive, send: Send) -> Reply:
            context: Context = scope[CONTEXT]
            payload = b""
            if row.has_body and not row.scopes:
                payload = await _read_body(receive)
            try:
                if row.signed_in:
                    caller = await caller_of(row, context)
                else:
                    if row.limited:
                        services.limits.request_from(context.address)
                    caller = Caller(NO_SESSION, context.address)
                if not row.has_body:
                    payload = scope["query_string"]
                elif row.scopes:  # the bodies of backends may be long: the key is checked before
                    payload = await _read_body(receive)
                request = decode(payload)
                work = handler(services, caller, request)
                return data_reply(await (_while_connected(work, receive) if row.waits else work))
            except Exception:
                if echoes:
                    context.client_msg_id = find_client_msg_id(payload)
                raise

        return answer

    def _stream(self, row: Route, handler: StreamHandler) -> Answer:
        """Returns the answer of a route that reads its body itself. The caller is authenticated first."""
        services, callers = self._services, self._callers

        async def answer(scope: Scope, receive: Receive, send: Send) -> Reply | None:
            context: Context = scope[CONTEXT]
            return await handler(StreamCall(services, scope, receive, send, lambda: callers.caller_of(row, context)))

        return answer


async def _while_connected(work: Awaitable[Struct], receive: Receive) -> Struct:
    """Returns the result of `work`, which is cancelled when the client hangs up."""
    working = asyncio.ensure_future(work)
    hanging_up = asyncio.ensure_future(_hung_up(receive))
    try:
        await asyncio.wait({working, hanging_up}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise NexoError("bad_request", "The client has closed the connection")
    finally:
        hanging_up.cancel()
        working.cancel()
        await asyncio.gather(working, hanging_up, return_exceptions=True)


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer_page(page: Page) -> Answer:
    async def answer(scope: Scope, receive: Receive, send: Send) -> Reply:
        context: Context = scope[CONTEXT]
        return page(context.headers)

    return answer


async def _read_body(receive: Receive) -> bytes:
    """Returns the body. Its size is limited by the middleware, its time only from the second part on: most bodies
    arrive with their head, and a timer for each would cost more than waiting for the few that send nothing."""
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

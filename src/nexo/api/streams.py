"""Requests whose body or answer is not held in memory: what their handlers get, and reading the body in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from msgspec import Struct

from nexo.api.asgi import Receive, Scope, Send
from nexo.api.middleware import CONTEXT, Context
from nexo.api.replies import Reply
from nexo.api.route import Caller, Services
from nexo.errors import NexoError
from nexo.files.arriving import Body, BodyCut, DirectBody, PiecesBody

QUERY_FIELDS_MAX = 16
DIRECT = "nexo.direct"  # the extension of the server's own connections


class StreamCall(Struct, frozen=True):
    """One request. `caller` authenticates it; no body is read before that."""

    services: Services
    scope: Scope
    receive: Receive
    send: Send
    caller: Callable[[], Awaitable[Caller]]

    @property
    def context(self) -> Context:
        context: Context = self.scope[CONTEXT]
        return context

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        return self.context.headers

    def header(self, name: str) -> str:
        return self.headers.get(name.encode(), b"").decode("latin-1")

    def length(self) -> int | None:
        """Returns the announced size of the body; None where it is not known."""
        text = self.header("content-length")
        return int(text[:19]) if text.isascii() and text.isdigit() else None

    def query(self) -> dict[str, str]:
        text = self.scope["query_string"].decode("latin-1")
        try:
            return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX))
        except ValueError:
            raise NexoError("bad_request", "The query has too many fields") from None

    def whole_body(self) -> Body:
        """Returns the body, taken from its socket by a thread where that can be done."""
        take = self.scope.get("extensions", {}).get(DIRECT)
        source = take() if take is not None else None
        return PiecesBody(self.body()) if source is None else DirectBody(source)

    async def body(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives: the connection is read no faster. Raises BodyCut when the client leaves."""
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise BodyCut
            if data := message.get("body"):
                yield data
            if not message.get("more_body"):
                return


StreamHandler = Callable[[StreamCall], Awaitable[Reply | None]]  # None: it has sent its answer itself

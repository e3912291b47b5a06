"""The HTTP application of a process without clients: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

from nexo.api.asgi import ASGIApp, Receive, Scope, Send
from nexo.api.health import Health
from nexo.api.middleware import CONTEXT, Context, Edge
from nexo.api.replies import Reply, data_reply, page_reply, send_reply
from nexo.api.status import Alive, Ready
from nexo.config import Config
from nexo.errors import NexoError
from nexo.metrics.http import HttpMeter


def make_status_app(config: Config, health: Health, meter: HttpMeter) -> ASGIApp:
    meter.add(health.samples)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        context: Context = scope[CONTEXT]
        if scope["method"] not in ("GET", "HEAD"):
            raise NexoError("method_not_allowed")
        reply: Reply
        match scope["path"]:
            case "/healthz":
                reply = data_reply(Alive())
            case "/readyz":
                await health.check_ready()
                reply = data_reply(Ready())
            case "/metrics":
                reply = page_reply(*health.metrics(context.headers.get(b"accept", b"").decode("latin-1")))
            case _:
                raise NexoError("not_found")
        context.route = f"GET {scope['path']}"
        await send_reply(send, reply)

    return Edge(answer, config, meter)

"""The port of a process without clients: HTTP for health and metrics, without WebSocket."""

from __future__ import annotations

import asyncio
import socket

import structlog
import uvicorn

from nexo.config import Config
from nexo.transport.connection_counts import ConnectionCounts
from nexo.transport.http_connection import make_http_protocol
from nexo.transport.http_watch import HttpBounds, HttpWatch
from nexo.transport.server import QuietUvicorn

log = structlog.get_logger()

STOP_S = 1.0


class StatusServer:
    """Serves an ASGI application between `start` and `stop`."""

    def __init__(self, app: object, listener: socket.socket, config: Config) -> None:
        self._listener = listener
        watch = HttpWatch(ConnectionCounts(config, lambda limit: None), HttpBounds.of(config))
        self._uvicorn = QuietUvicorn(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                http=make_http_protocol(watch),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=30,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()[:2]
        return host, port

    async def start(self) -> None:
        self._serving = asyncio.create_task(self._uvicorn.serve(sockets=[self._listener]))
        listening = asyncio.create_task(self._uvicorn.listening.wait())
        await asyncio.wait({self._serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            listening.cancel()
            self._serving.result()
        self._serving.add_done_callback(_report_failure)

    async def stop(self) -> None:
        self._uvicorn.should_exit = True
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=STOP_S)
        self._listener.close()


def _report_failure(serving: asyncio.Task[None]) -> None:
    error = None if serving.cancelled() else serving.exception()
    if error is not None:
        log.error("status_server_failed", exc_info=error)

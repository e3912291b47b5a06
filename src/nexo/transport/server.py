"""The server port: uvicorn for HTTP, with its own protocol class for WebSocket upgrades."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol

import structlog
import uvicorn

from nexo.config import Config
from nexo.errors import StartupError
from nexo.transport.connection_counts import ConnectionCounts
from nexo.transport.http_connection import make_http_protocol
from nexo.transport.http_watch import HttpBounds, HttpWatch
from nexo.transport.implementations import make_protocol
from nexo.transport.websocket import Gate, SocketLimits

log = structlog.get_logger()

BACKLOG = 4096
# Otherwise the kernel buffers megabytes per stalled socket, and the water marks have no effect.
SEND_BUFFER_BYTES = 128 * 1024
CUT_OFF_MARGIN_S = 0.3
EXIT_CUT_OFF = 1


class ServedGateway(Gate, Protocol):
    def start(self) -> None: ...

    async def say_goodbye(self, timeout_s: float) -> None:
        """Stop accepting, make clients reconnect, finish what is under way."""


class QuietUvicorn(uvicorn.Server):
    """uvicorn without its handling of signals; `listening` is set once it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `Server.on_signals`: a graceful stop includes parts that uvicorn does not know."""
        yield


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Returns the listening socket. With `shared` several processes can listen on one port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise StartupError(f"cannot listen on {host}:{port}: {error.strerror}; {_what_to_do(error)}") from error
    return listener


def _what_to_do(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "stop the server that uses this port (`ss -ltnp` names it), or choose another with --port, "
            "NEXO_SERVER__PORT or `make run PORT=…`"
        )
    if error.errno == errno.EACCES:
        return "ports below 1024 need a right: choose another with --port and put a proxy in front"
    return "--host must be an address of this machine: 0.0.0.0 listens on all"


def reserve(host: str, port: int) -> socket.socket:
    """Reserve a port for processes that will share it (`listen(shared=True)`), without accepting connections. Raises
    StartupError when another program listens there, which sharing alone would not detect."""
    listen(host, port).close()
    holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind((host, port))
    return holder


class Server:
    def __init__(
        self, config: Config, app: object, gateway: ServedGateway, count_refusal: Callable[[str], None]
    ) -> None:
        """`count_refusal` gets the name of the limit at which a connection was refused."""
        self.watch = HttpWatch(ConnectionCounts(config, count_refusal), HttpBounds.of(config))
        self._config = config
        self._gateway = gateway
        water = config.backpressure
        protocol = make_protocol(
            config.gateway.websocket,
            gateway,
            SocketLimits(high_water_bytes=water.high_water_bytes, low_water_bytes=water.low_water_bytes),
        )
        self._uvicorn = QuietUvicorn(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                http=make_http_protocol(self.watch),
                ws=protocol,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=config.server.shutdown_s,
                timeout_keep_alive=self.watch.bounds.keep_alive_s,
            )
        )
        self._stop = asyncio.Event()
        self.before_stop: list[Callable[[], None]] = []  # what ends requests that wait

    async def serve(self, listener: socket.socket, ready: Callable[[], Awaitable[None]]) -> None:
        """Serve until a signal or `stop`, then end gracefully: first the clients, then requests under way."""
        serving = asyncio.create_task(self._uvicorn.serve(sockets=[listener]))
        self._gateway.start()
        stopping = asyncio.create_task(self._stop.wait())
        listening = asyncio.create_task(self._uvicorn.listening.wait())
        await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
        await ready()
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        _end_by(self._config.server.shutdown_s)
        for server in self._uvicorn.servers:
            server.close()
        for end_requests in self.before_stop:
            end_requests()
        await self._gateway.say_goodbye(self._config.server.shutdown_s / 2)
        self._uvicorn.should_exit = True
        await serving

    def stop(self) -> None:
        self._stop.set()

    def on_signals(self, *reloads: Callable[[], None]) -> None:
        """The first signal ends gracefully, the second at once; SIGHUP reloads what can be."""
        loop = asyncio.get_running_loop()

        def handle(number: signal.Signals) -> None:
            if self._stop.is_set():
                log.warning("stopped_at_once", signal=number.name)
                # default action and the same signal again: the exit code names the signal
                loop.remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)  # Python's own for SIGINT would wait for what is under way
                signal.raise_signal(number)
                return
            log.info("stopping", signal=number.name)
            self.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, handle, number)

        def reload() -> None:
            for part in reloads:
                part()

        loop.add_signal_handler(signal.SIGHUP, reload)


def _end_by(timeout_s: float) -> None:
    """End the process by then, even if a client, the database or a thread hangs. What was acknowledged is on the disk
    already."""

    def cut_off() -> None:
        log.warning("stop_cut_off", timeout_s=timeout_s)
        os._exit(EXIT_CUT_OFF)

    timer = threading.Timer(max(timeout_s - CUT_OFF_MARGIN_S, timeout_s / 2), cut_off)
    timer.daemon = True
    timer.start()


def allow_many_connections() -> None:
    """Raise the limit of file descriptors: each connection needs one, and the default is often a thousand."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

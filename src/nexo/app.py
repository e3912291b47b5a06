"""The two programs, from start to stop: `serve` (a server) and `work` (a two-phase worker). `assembly` builds the
parts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from nexo.assembly.core import open_core
from nexo.assembly.files import report_storage
from nexo.assembly.listening import make_health, start_listening
from nexo.assembly.live_settings import LiveSettings, Reread
from nexo.assembly.messaging import Troubles, make_bus, make_messaging, make_pushing
from nexo.assembly.server import Sibling, make_server
from nexo.assembly.two_phase import make_two_phase
from nexo.assembly.worker import make_status_server
from nexo.background import Background
from nexo.collector import Collector, calm
from nexo.config import Config, StoreUrl, resolve_data_dir, resolve_redis_url, resolve_store_url
from nexo.errors import ERRORS, StartupError
from nexo.logs import set_up_logs
from nexo.metrics.exposition import Metrics
from nexo.metrics.file_watch import FileWatch
from nexo.metrics.siblings import Siblings
from nexo.service.secret import load_secret
from nexo.store.data_folder import locked_folder
from nexo.transport.server import allow_many_connections, listen
from nexo.transport.starting import StartingServer, answering

Ready = Callable[[str], Awaitable[None]]


@contextlib.contextmanager
def _alone(config: Config, url: StoreUrl) -> Iterator[None]:
    """Lock the data folder of the embedded database, which belongs to one process."""
    if url.is_embedded:
        with locked_folder(resolve_data_dir(config)):
            yield
    else:
        yield


async def serve(
    config: Config, ready: Ready | None = None, sibling: Sibling | None = None, reread: Reread | None = None
) -> None:
    """Run the server until a signal. `ready` gets its address once it listens; without it, the address is printed.
    `reread` returns the configuration as it is when SIGHUP arrives."""
    set_up_logs(config.log.level, process=None if sibling is None else sibling.number)
    live = LiveSettings(config, reread)
    allow_many_connections()
    secret = load_secret(config)
    listener = listen(config.server.host, config.server.port, shared=sibling is not None)
    metrics = Metrics()
    background = Background()
    siblings = None if sibling is None else Siblings(sibling.folder, sibling.number, metrics.samples)
    starting = StartingServer(ERRORS["server_busy"].number)
    with _alone(config, resolve_store_url(config)):
        async with answering(starting, listener), open_core(config, background, awaits=starting.awaits) as core:
            await core.store.claim_canary()
            bus = make_bus(config, background)
            above = background.branch()  # uses the store and the bus: stopped before them
            messaging = make_messaging(core, bus, above, _instance())
            pushing = await make_pushing(messaging)
            made = make_server(messaging, pushing, secret, metrics, _instance(), siblings)
            health = make_health(messaging, _instance(), is_worker=False)
            if health is not None:
                metrics.add(health.samples)
                made.troubles.parts.append(lambda: health.reason)
                health.drain, health.take_clients = made.gateway.drain, made.gateway.take_clients
                await health.join(secret)
            background.serve("file_watch", FileWatch().run)
            made.server.on_signals(core.words.reload, live.reload)
            live.start(above)
            if sibling is not None:
                sibling.link.on_lost(made.server.stop)
            calm()
            background.serve("collector", Collector().run)
            above.start("file_storage_check", report_storage(messaging.files))
            two_phase = make_two_phase(messaging, metrics, flush=made.gateway.flush, saves=config.two_phase.workers)
            if two_phase is not None:
                made.troubles.parts.append(lambda: two_phase.trouble)
                live.follow_two_phase(two_phase.switch)
            try:
                if bus.is_shared:
                    starting.awaits("The server starts, and waits for Redis")
                await start_listening(messaging, health, made.sessions, made.policy)
                made.sessions.start(background)
                messaging.journal.start()
                messaging.hooks.start()
                messaging.search.start()
                pushing.push.start()
                core.reaction_events.start(above)
                if two_phase is not None:
                    two_phase.start()
                address = address_of(config.server.host, listener.getsockname()[1])
                await starting.stop()
                await made.server.serve(listener, lambda: ready(address) if ready else _print_address(config, address))
            finally:
                if two_phase is not None:
                    await two_phase.stop()
                if siblings is not None:
                    siblings.stop()
                if health is not None:
                    await health.stop()
                await pushing.push.stop()
                await messaging.search.stop()
                await messaging.hooks.stop()
                await messaging.journal.stop()
                await above.stop()
                await messaging.files.close()
                await bus.stop()
                made.accounts.close()


async def work(config: Config, reread: Reread | None = None) -> None:
    """Save what servers have accepted, until a signal. This process has no clients."""
    set_up_logs(config.log.level)
    live = LiveSettings(config, reread)
    if resolve_redis_url(config) is None:
        raise StartupError("nexo worker saves what was accepted into Redis: set redis.url, as the servers have it")
    metrics = Metrics()
    background = Background()
    with _alone(config, resolve_store_url(config)):
        async with open_core(config, background, awaits=lambda reason: None) as core:
            bus = make_bus(config, background)
            above = background.branch()  # uses the store and the bus: stopped before them
            messaging = make_messaging(core, bus, above, _instance())
            health = make_health(messaging, _instance(), is_worker=True)
            if health is not None:
                await health.join(load_secret(config))
            two_phase = make_two_phase(messaging, metrics, saves=True)
            assert two_phase is not None
            troubles = Troubles()
            troubles.parts.append(lambda: two_phase.trouble)
            live.follow_two_phase(two_phase.switch)
            if health is not None:
                metrics.add(health.samples)
                troubles.parts.append(lambda: health.reason)
            status = make_status_server(messaging, metrics, troubles)
            stopped = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, stopped.set)
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, live.reload)
            live.start(above)
            try:
                await start_listening(messaging, health)
                two_phase.start()
                if status is not None:
                    await status.start()
                    sys.stdout.write(f"Health and metrics: {address_of(*status.address)}/metrics\n")
                sys.stdout.write(f"Nexo saves what was accepted, into {resolve_store_url(config).redacted()}\n")
                sys.stdout.flush()
                await stopped.wait()
            finally:
                await two_phase.stop()
                if status is not None:
                    await status.stop()
                if health is not None:
                    await health.stop()
                await above.stop()
                await bus.stop()


def _instance() -> str:
    """Returns the name of this process in logs."""
    return f"{socket.gethostname()}:{os.getpid()}"


def address_of(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _print_address(config: Config, address: str) -> None:
    announce(config, address)


def announce(config: Config, address: str) -> None:
    """Print where the server listens and what to do first."""
    sys.stdout.write(
        f"Nexo runs at {address} (the API: {address}/docs)\n"
        f"Messages are kept in {resolve_store_url(config).redacted()}\n"
        f"Add a user:  {_add_user(config)}\n"
    )
    sys.stdout.flush()


def _add_user(config: Config) -> str:
    """Returns the command to type, here and now: `nexo` may not be on the path, and the data in another folder."""
    program = Path(sys.argv[0])
    found = shutil.which(program.name)
    is_on_path = found is not None and Path(found).resolve() == program.resolve()
    command = [sys.executable, "-m", "nexo"] if program.name == "__main__.py" else [str(program)]
    words = [program.name] if is_on_path else command
    other_data = ["--data", config.data.dir] if config.data.dir != Config().data.dir else []
    return shlex.join([*words, "user", "add", "NAME", *other_data])

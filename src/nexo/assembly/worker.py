"""The status port of `nexo worker`: health and metrics of a process without clients."""

from __future__ import annotations

import structlog

from nexo import __version__
from nexo.api.health import Health
from nexo.api.status_app import make_status_app
from nexo.assembly.messaging import Messaging, Troubles
from nexo.errors import StartupError
from nexo.metrics.exposition import Metrics
from nexo.metrics.http import HttpMeter
from nexo.metrics.process import ProcessMeter
from nexo.transport.server import listen
from nexo.transport.status_server import StatusServer

log = structlog.get_logger()


def make_status_server(messaging: Messaging, metrics: Metrics, troubles: Troubles) -> StatusServer | None:
    """Returns the server of `worker.host` and `worker.port`; None where it is off, or another process has the port:
    saving must not depend on it."""
    core = messaging.core
    config, store = core.config, core.store
    http = HttpMeter()
    process = ProcessMeter(__version__, store.url.engine, "")
    for measured in (store, messaging.delivery, messaging.bus, messaging.background, http, process):
        metrics.add(measured.samples)
    process.start()
    # what a worker does needs a database that takes writes; Redis is watched by the cluster's health
    health = Health(store.beat, metrics.expose, messaging.background, troubles)
    app = make_status_app(config, health, http)
    messaging.background.serve("readiness", health.watch)
    if not config.worker.port:
        return None
    try:
        return StatusServer(app, listen(config.worker.host, config.worker.port), config)
    except StartupError as error:
        log.warning("worker_port_unavailable", host=config.worker.host, port=config.worker.port, reason=str(error))
        return None

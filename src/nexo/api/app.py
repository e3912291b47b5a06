"""Assembles the HTTP application: the route table, the pages, and the layer around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nexo.api import documentation
from nexo.api.asgi import ASGIApp
from nexo.api.authentication import Authentication
from nexo.api.dispatch import Dispatch, Page
from nexo.api.health import Canary, Expose, Health, Troubles
from nexo.api.middleware import Edge
from nexo.api.replies import Reply, page_reply
from nexo.api.route import Online, Services
from nexo.api.routes import ROUTES
from nexo.background import Background
from nexo.calls.calls import Calls
from nexo.config import Config
from nexo.files.files import Files
from nexo.metrics.http import HttpMeter
from nexo.metrics.live import LiveStats
from nexo.service.actions import Actions
from nexo.service.backend import Backend
from nexo.service.push import PushDevices
from nexo.service.search import MessageSearch, SearchQuestions


def make_api(
    *,
    config: Config,
    actions: Actions,
    online: Online,
    canary: Canary,
    expose: Expose,
    backend: Backend,
    search: MessageSearch,
    files: Files,
    calls: Calls,
    push: PushDevices,
    background: Background | None = None,
    troubles: Troubles = tuple,
    meter: HttpMeter | None = None,
    live: LiveStats | None = None,
    site: ASGIApp | None = None,
    openim: Callable[[Authentication], ASGIApp] | None = None,
) -> ASGIApp:
    """Returns the ASGI application. `canary` sends a message through the real path and returns when it arrived;
    `site` answers every path that is neither the API's nor a page of it (the web client); `openim` makes the API of
    OpenIM's clients. Logging has to be set up
    before."""
    health = Health(canary, expose, background, troubles)
    live = live or LiveStats(lambda: {"": ()})
    services = Services(
        actions,
        actions.accounts,
        actions.acknowledging,
        actions.conversations,
        actions.groups,
        online,
        actions.limits,
        health,
        live,
        backend,
        SearchQuestions(search),
        actions.people,
        files,
        calls,
        push,
    )
    pages: dict[str, Page] = {**documentation.pages(), "/metrics": _metrics(health)}
    if site is None:
        pages["/"] = documentation.front_page
    dispatch = Dispatch(services, ROUTES, pages, site)
    if openim is not None:
        dispatch.mount("/openim/", openim(dispatch.authentication))
    meter = meter or HttpMeter()
    meter.add(dispatch.authentication.samples)
    meter.add(health.samples)
    meter.add(backend.keys.samples)
    meter.add(services.search.samples)
    if background is not None:
        background.serve("readiness", health.watch)
    return Edge(dispatch, config, meter)


def _metrics(health: Health) -> Page:
    def answer(headers: Mapping[bytes, bytes]) -> Reply:
        body, content_type = health.metrics(headers.get(b"accept", b"").decode("latin-1"))
        return page_reply(body, content_type)

    return answer

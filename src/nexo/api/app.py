"""The HTTP side put together: the table, the pages, and the layer around them."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp

from nexo.api import documentation
from nexo.api.call import Services
from nexo.api.dispatch import Dispatch, Page
from nexo.api.health import Canary, Expose, Health
from nexo.api.middleware import Edge
from nexo.api.replies import Reply, page_reply
from nexo.api.routes import ROUTES
from nexo.config import Config
from nexo.metrics.http import HttpMeter
from nexo.metrics.live import LiveStats
from nexo.ports import Online, Publisher
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.receipts import Acknowledging
from nexo.service.send import Sending
from nexo.service.telling import Telling


def make_api(
    *,
    config: Config,
    accounts: Accounts,
    sending: Sending,
    acknowledging: Acknowledging,
    conversations: Conversations,
    groups: Groups,
    publisher: Publisher,
    online: Online,
    limits: Limits,
    canary: Canary,
    expose: Expose,
    meter: HttpMeter | None = None,
    live: LiveStats | None = None,
    site: ASGIApp | None = None,
) -> ASGIApp:
    """The application for the server. `limits` is the same object that the gateway uses; `canary` sends
    something through the real path and returns when it arrived; `site` answers every path that is neither
    the API's nor a page of it (the web client). Logging has to be set up before."""
    health = Health(canary, expose)
    telling = Telling(groups, conversations, acknowledging, limits, publisher)
    live = live or LiveStats(lambda: {"": ()})
    services = Services(
        accounts, sending, acknowledging, conversations, groups, telling, publisher, online, limits, health, live
    )
    pages: dict[str, Page] = {**documentation.pages(), "/metrics": _metrics(health)}
    if site is None:
        pages["/"] = documentation.front_page
    dispatch = Dispatch(services, ROUTES, pages, site)
    meter = meter or HttpMeter()
    meter.add(dispatch.authentication.samples)
    meter.add(health.samples)
    return Edge(dispatch, config, meter)


def _metrics(health: Health) -> Page:
    def answer(headers: Mapping[bytes, bytes]) -> Reply:
        body, content_type = health.metrics(headers.get(b"accept", b"").decode("latin-1"))
        return page_reply(body, content_type)

    return answer

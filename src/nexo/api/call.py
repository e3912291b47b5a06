"""What a handler is given, and what a row of the route table is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from nexo.api.health import Health
from nexo.api.requests import Request
from nexo.core.model import Session
from nexo.metrics.live import LiveStats
from nexo.ports import Online, Publisher
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.receipts import Acknowledging
from nexo.service.send import Sending
from nexo.service.telling import Telling


class Services(Struct, frozen=True):
    accounts: Accounts
    sending: Sending
    acknowledging: Acknowledging
    conversations: Conversations
    groups: Groups
    telling: Telling
    publisher: Publisher
    online: Online
    limits: Limits
    health: Health
    live: LiveStats


class Caller(NamedTuple):
    """Who calls. On routes that anybody may use the session is `NOBODY`."""

    session: Session
    address: str

    @property
    def user_id(self) -> str:
        return self.session.user_id


NOBODY = Session("", "", 0, "", 0)

R = TypeVar("R", bound=Request)
D = TypeVar("D", bound=Struct)

Handler = Callable[[Services, Caller, Any], Awaitable[Struct]]


class Route(Struct, frozen=True):
    method: str
    path: str
    handler: Handler
    request: type[Request]  # the body of POST and PUT, the query of GET and DELETE
    reply: type[Struct]  # what `data` holds
    summary: str
    errors: tuple[str, ...]  # besides those of the shape, of signing in and of the server itself
    signed_in: bool

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")


def route(
    method: str,
    path: str,
    handler: Callable[[Services, Caller, R], Awaitable[D]],
    request: type[R],
    reply: type[D],
    summary: str,
    *errors: str,
    signed_in: bool = True,
) -> Route:
    """The type checker sees to it that the handler takes and gives what the table says."""
    return Route(method, path, handler, request, reply, summary, errors, signed_in)

"""`Route`, a row of the table in `routes.py`; and what its handler gets: the services and the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from nexo.api.health import Health
from nexo.api.requests import ApiRequest
from nexo.calls.calls import Calls
from nexo.core.keys import ApiKey
from nexo.core.model import Session
from nexo.core.moderation import Moderator
from nexo.files.files import Files
from nexo.ids import MODERATOR_ID
from nexo.metrics.live import LiveStats
from nexo.service.accounts import Accounts
from nexo.service.actions import Actions
from nexo.service.backend import Backend
from nexo.service.conversations import Conversations
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.people import People
from nexo.service.push import PushDevices
from nexo.service.receipts import Acknowledging
from nexo.service.search import SearchQuestions


class Online(Protocol):
    async def online(self, viewer_id: str, user_ids: Sequence[str]) -> list[tuple[str, bool, Sequence[int]]]:
        """Returns for each user, in order, whether it is connected and on which platforms. Users who have blocked the
        viewer appear as not connected."""


class Services(Struct, frozen=True):
    actions: Actions
    accounts: Accounts
    acknowledging: Acknowledging
    conversations: Conversations
    groups: Groups
    online: Online
    limits: Limits
    health: Health
    live: LiveStats
    backend: Backend
    search: SearchQuestions
    people: People
    files: Files
    calls: Calls
    push: PushDevices


class Caller(NamedTuple):
    """The caller of a route. On routes without sign-in, and on those for backends, the session is `NO_SESSION`."""

    session: Session
    address: str
    key: ApiKey | None = None  # of a backend, which may act for the user of the session
    path_id: str = ""  # the part of the path that the route leaves open

    @property
    def user_id(self) -> str:
        return self.session.user_id

    @property
    def actor(self) -> str:
        """Returns the name for the audit log."""
        return f"key:{self.key.name}" if self.key is not None else f"user:{self.user_id}"

    @property
    def moderator(self) -> Moderator:
        by = self.user_id if self.key is None else self.key.user_id or MODERATOR_ID
        return Moderator(self.actor, by)


OPEN_PART = "{id}"  # of a path: any text without a slash
NO_SESSION = Session("", "", 0, "", 0)

R = TypeVar("R", bound=ApiRequest)
D = TypeVar("D", bound=Struct)

Handler = Callable[[Services, Caller, Any], Awaitable[Struct]]


class Route(Struct, frozen=True):
    method: str
    path: str
    handler: Handler
    request: type[ApiRequest]  # the body of POST and PUT, the query of GET and DELETE
    reply: type[Struct]  # what `data` holds
    summary: str
    errors: tuple[str, ...]  # besides those of the shape, of signing in and of the server itself
    signed_in: bool
    scopes: tuple[str, ...] = ()  # for a key of a backend with one of these; `moderate`: also for administrators
    by_key: bool = True  # a key may call it for a user
    limited: bool = True  # counts against `limits.requests_per_s`
    waits: bool = False  # for events: ended when the client hangs up
    stream: Callable[[Any], Awaitable[Any]] | None = None  # for bodies and answers that are not held in memory
    own_scope: str = ""  # a key with it may call for itself, for no user
    answers: Mapping[int, str] = {}  # of a stream: statuses besides those of errors, and what they mean
    takes_body: bool = False  # also by DELETE

    @property
    def has_body(self) -> bool:
        return self.takes_body or (self.method in ("POST", "PUT") and self.stream is None)


def route(
    method: str,
    path: str,
    handler: Callable[[Services, Caller, R], Awaitable[D]],
    request: type[R],
    reply: type[D],
    summary: str,
    *errors: str,
    signed_in: bool = True,
    scopes: tuple[str, ...] = (),
    by_key: bool = True,
    limited: bool = True,
    waits: bool = False,
    takes_body: bool = False,
) -> Route:
    """Returns a row of the table; the type checker compares the handler with the request and reply of its row."""
    return Route(
        method,
        path,
        handler,
        request,
        reply,
        summary,
        errors,
        signed_in,
        scopes,
        by_key,
        limited,
        waits,
        takes_body=takes_body,
    )


async def _no_handler(services: Services, caller: Caller, request: Any) -> Struct:
    raise AssertionError("this route has a stream")


def route_of_stream(
    method: str,
    path: str,
    stream: Callable[[Any], Awaitable[Any]],
    request: type[R],
    reply: type[D],
    summary: str,
    *errors: str,
    signed_in: bool = True,
    own_scope: str = "",
    answers: Mapping[int, str] | None = None,
) -> Route:
    """Returns a row whose handler reads the body, or sends the answer, in pieces: see `streams.StreamCall`."""
    return Route(
        method,
        path,
        _no_handler,
        request,
        reply,
        summary,
        errors,
        signed_in,
        stream=stream,
        own_scope=own_scope,
        answers=answers or {},
    )

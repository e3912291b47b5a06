"""Handler of `GET /server/events`: a product's backend asks what was committed."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from nexo.api.requests import ApiRequest, form
from nexo.api.route import Caller, Services
from nexo.core.entry_shapes import EventShape, event_shape
from nexo.core.journal import check_types
from nexo.errors import NexoError

LIMIT_DEFAULT = 100
LIMIT_MAX = 256
WAIT_MAX_S = 60


class EventsRequest(ApiRequest, frozen=True):
    cursor: (
        Annotated[str, Meta(description="`next_cursor` of the last page; absent: from now on; `begin`: the oldest.")]
        | UnsetType
    ) = UNSET
    types: Annotated[list[str], Meta(description="Only events of these types.")] | UnsetType = UNSET
    limit: (
        Annotated[int, form(minimum=1, maximum=LIMIT_MAX, description=f"About this many; {LIMIT_DEFAULT} if absent.")]
        | UnsetType
    ) = UNSET
    wait_s: Annotated[
        int, form(minimum=0, maximum=WAIT_MAX_S, description="How long to wait while there is no event.")
    ] = 0

    error_names = {"wait_s": "duration"}  # noqa: RUF012


class EventsReply(Struct):
    events: list[EventShape]
    next_cursor: Annotated[str, Meta(description="For the next call; kept as long as the journal is.")]


async def events(services: Services, caller: Caller, request: EventsRequest) -> EventsReply:
    limit = request.limit if request.limit is not UNSET else LIMIT_DEFAULT
    if not 1 <= limit <= LIMIT_MAX:
        raise NexoError("bad_limit", f"limit is a number from 1 to {LIMIT_MAX}")
    if not 0 <= request.wait_s <= WAIT_MAX_S:
        raise NexoError("bad_duration", f"wait_s is a number from 0 to {WAIT_MAX_S}")
    types = check_types(request.types) if request.types is not UNSET else None
    cursor = request.cursor if request.cursor is not UNSET else None
    page = await services.backend.events.poll(cursor, types, limit, request.wait_s)
    return EventsReply([event_shape(entry) for entry in page.entries], page.next_cursor)

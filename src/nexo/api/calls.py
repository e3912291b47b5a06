"""Handlers: the calls of a user, and servers for their media."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from nexo.api.requests import Nothing, Paging, given
from nexo.api.route import Caller, Route, Services, route
from nexo.api.shapes import NextCursor
from nexo.core.calls import CallShape, call_shape


class CallList(Struct):
    """Newest first."""

    calls: list[CallShape]
    next_cursor: NextCursor
    has_more: bool


class IceServerShape(Struct):
    """As `RTCConfiguration.iceServers` takes it."""

    urls: list[str]
    username: str | UnsetType = UNSET
    credential: str | UnsetType = UNSET


class IceServerList(Struct):
    """`expires_at`: until when the credentials are valid."""

    ice_servers: list[IceServerShape]
    expires_at: int


async def call_list(services: Services, caller: Caller, request: Paging) -> CallList:
    found, next_cursor, has_more = await services.calls.of_user(
        caller.user_id, given(request.cursor), given(request.limit)
    )
    return CallList([call_shape(call) for call in found], next_cursor, has_more)


async def ice(services: Services, caller: Caller, request: Nothing) -> IceServerList:
    found = services.calls.ice_servers(caller.user_id)
    servers = [IceServerShape(list(one.urls), one.username or UNSET, one.credential or UNSET) for one in found.servers]
    return IceServerList(servers, found.expires_at)


CALL_ROUTES: tuple[Route, ...] = (
    route("GET", "/call/list", call_list, Paging, CallList, "Your calls, newest first", "not_implemented"),
    route(
        "GET", "/call/ice", ice, Nothing, IceServerList,
        "STUN and TURN servers for the media of a call, with credentials that expire", "not_implemented",
    ),
)  # fmt: skip

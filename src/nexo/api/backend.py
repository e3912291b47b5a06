"""Handlers under `/server`: what a product's backend does by its key."""

from __future__ import annotations

from msgspec import UNSET, Struct
from msgspec.structs import asdict

from nexo.api import backend_requests as requests
from nexo.api.requests import Nothing, given
from nexo.api.route import Caller, Services
from nexo.api.shapes import Empty, Users
from nexo.core.audit import AuditEntry
from nexo.core.profile_shapes import UserShape, user_shape
from nexo.errors import NexoError
from nexo.service.tokens import TokenSession

AUDIT_PAGE = 100


class ServerUser(UserShape, kw_only=True):
    """A user as a backend sees it."""

    disabled: bool
    disabled_reason: str


class InviteCode(Struct):
    """A code that allows to register, shown once."""

    code: str
    expires_at: int
    uses: int


class SessionsRevoked(Struct):
    revoked: int


class AuditPage(Struct):
    entries: list[AuditEntry]
    next_before: int | None
    has_more: bool


async def put_users(services: Services, caller: Caller, request: requests.PutUsersRequest) -> Users:
    done = await services.backend.accounts.put_users(
        [(user.user_id, user.nickname, user.avatar, user.extra) for user in request.users]
    )
    return Users([user_shape(user) for user in done])


async def user(services: Services, caller: Caller, request: Nothing) -> ServerUser:
    state = await services.backend.accounts.state(caller.path_id)
    found = await services.accounts.info(caller.path_id)
    return ServerUser(
        **asdict(user_shape(found)), disabled=bool(state.disabled_at), disabled_reason=state.disabled_reason
    )


async def disable_user(services: Services, caller: Caller, request: requests.DisableRequest) -> Empty:
    await services.backend.accounts.disable(caller.path_id, request.reason, caller.actor)
    return Empty()


async def enable_user(services: Services, caller: Caller, request: Nothing) -> Empty:
    await services.backend.accounts.enable(caller.path_id, caller.actor)
    return Empty()


async def issue_tokens(services: Services, caller: Caller, request: requests.TokensRequest) -> TokenSession:
    return await services.backend.accounts.issue_tokens(
        request.user_id, request.platform_id, request.device_id, request.ttl_s, refresh=request.refresh
    )


async def revoke_sessions(
    services: Services, caller: Caller, request: requests.RevokeSessionsRequest
) -> SessionsRevoked:
    ended = await services.backend.accounts.revoke_sessions(request.user_id, given(request.device_id), caller.actor)
    return SessionsRevoked(ended)


async def invite(services: Services, caller: Caller, request: requests.InvitesRequest) -> InviteCode:
    made = await services.backend.accounts.new_code(request.uses, request.days, caller.actor)
    return InviteCode(made.code, made.expires_at, made.uses)


async def audit(services: Services, caller: Caller, request: requests.AuditRequest) -> AuditPage:
    limit = request.limit if request.limit is not UNSET else AUDIT_PAGE
    if not 1 <= limit <= AUDIT_PAGE:
        raise NexoError("bad_limit", f"limit is a number from 1 to {AUDIT_PAGE}")
    found = await services.backend.audit.read(given(request.before) or 0, limit + 1, request.target)
    shown = found[:limit]
    has_more = len(found) > limit
    return AuditPage(shown, shown[-1].id if has_more else None, has_more)

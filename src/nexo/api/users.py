"""Handlers: accounts, sessions, and profiles of other users."""

from __future__ import annotations

from msgspec import UNSET

from nexo.api import requests
from nexo.api.route import Caller, Services
from nexo.api.shapes import Empty, UserIds, UserOnline, Users, UsersOnline
from nexo.core.people import LAST_SEEN_NAMES
from nexo.core.profile_shapes import PrivacyShape, UserShape, user_shape
from nexo.errors import NexoError
from nexo.ids import check_user_id, now_ms
from nexo.service.tokens import TokenSession

ONLINE_MAX = 200


async def register(services: Services, caller: Caller, request: requests.RegisterRequest) -> UserShape:
    await services.limits.register(caller.address)
    user = await services.accounts.sign_up(
        request.password,
        request.user_id,
        request.nickname,
        request.avatar,
        request.extra,
        code=request.code,
        address=caller.address,
    )
    return user_shape(user)


async def login(services: Services, caller: Caller, request: requests.LoginRequest) -> TokenSession:
    async with services.limits.try_password(caller.address, request.user_id):
        return await services.accounts.login(
            request.user_id, request.password, request.platform_id, request.device_id, caller.address
        )


async def refresh(services: Services, caller: Caller, request: requests.RefreshRequest) -> TokenSession:
    await services.limits.refresh(request.refresh_token)
    return await services.accounts.refresh(request.refresh_token)


async def logout(services: Services, caller: Caller, request: requests.Nothing) -> Empty:
    await services.accounts.logout(caller.session)
    return Empty()


async def change_password(services: Services, caller: Caller, request: requests.ChangePasswordRequest) -> TokenSession:
    async with services.limits.try_password(caller.address, caller.user_id):
        return await services.accounts.change_password(
            caller.session, request.old_password, request.new_password, caller.address
        )


async def reset_password(services: Services, caller: Caller, request: requests.ResetPasswordRequest) -> Empty:
    async with services.limits.try_password(caller.address, ""):
        await services.backend.resets.use(request.code, request.new_password, caller.address)
    return Empty()


async def info(services: Services, caller: Caller, request: requests.WhichUser) -> UserShape:
    user_id = request.user_id or caller.user_id
    shape = user_shape(await services.accounts.info(user_id))
    if user_id == caller.user_id:
        await _add_own(services, shape)
        return shape
    seen = await _last_seen(services, caller, [user_id])
    if user_id in seen:
        shape.last_seen_at = seen[user_id]
    return shape


async def _add_own(services: Services, shape: UserShape) -> None:
    chosen = await services.people.last_seen.privacy(shape.user_id)
    shape.privacy = PrivacyShape(LAST_SEEN_NAMES[chosen])


async def _last_seen(services: Services, caller: Caller, user_ids: list[str]) -> dict[str, int]:
    """Returns when users were connected last, for those that the caller may see; of connected ones, now."""
    found = await services.people.last_seen.of(caller.user_id, user_ids)
    for user_id, is_online, _ in await services.online.online(caller.user_id, user_ids):
        if is_online:
            found[user_id] = now_ms()
    return found


async def search(services: Services, caller: Caller, request: requests.SearchRequest) -> Users:
    return Users([user_shape(user) for user in await services.accounts.search(request.q)])


async def update(services: Services, caller: Caller, request: requests.UpdateUserRequest) -> UserShape:
    if request.privacy is not UNSET:
        await services.people.last_seen.set_privacy(caller.user_id, request.privacy.last_seen)
    shape = user_shape(await services.accounts.update(caller.user_id, request.nickname, request.avatar, request.extra))
    await _add_own(services, shape)
    return shape


async def online(services: Services, caller: Caller, request: requests.WhichUsers) -> UsersOnline:
    wanted = list(dict.fromkeys(request.user_ids))
    if len(wanted) > ONLINE_MAX:
        raise NexoError("bad_user_id", f"At most {ONLINE_MAX} users can be asked for at once")
    for user_id in wanted:
        check_user_id(user_id)
    found = await services.online.online(caller.user_id, wanted)
    seen = await services.people.last_seen.of(caller.user_id, wanted)
    users: list[UserOnline] = []
    for user_id, is_online, platforms in found:
        last_seen_at = now_ms() if is_online else seen.get(user_id, UNSET)
        users.append(UserOnline(user_id, is_online, list(platforms), last_seen_at))
    return UsersOnline(users)


async def block(services: Services, caller: Caller, request: requests.OtherUser) -> UserIds:
    return UserIds(await services.actions.block(caller.user_id, request.user_id))


async def unblock(services: Services, caller: Caller, request: requests.OtherUser) -> UserIds:
    return UserIds(await services.actions.unblock(caller.user_id, request.user_id))


async def blocks(services: Services, caller: Caller, request: requests.Nothing) -> UserIds:
    return UserIds(await services.accounts.blocks(caller.user_id))

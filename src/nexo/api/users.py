"""Handlers: accounts, sessions, and who others are."""

from __future__ import annotations

from nexo.api import requests
from nexo.api.call import Caller, Services
from nexo.api.shapes import Empty, UserIds, UserOnline, Users, UserShape, UsersOnline, user_shape
from nexo.errors import NexoError
from nexo.ids import check_user_id, single_conversation_id
from nexo.service.tokens import SignedIn

ONLINE_MAX = 200


async def register(services: Services, caller: Caller, request: requests.Register) -> UserShape:
    await services.limits.register(caller.address)
    user = await services.accounts.register(
        request.password, request.user_id, request.nickname, request.avatar, request.extra
    )
    return user_shape(user)


async def login(services: Services, caller: Caller, request: requests.Login) -> SignedIn:
    await services.limits.try_password(caller.address, request.user_id)
    return await services.accounts.login(request.user_id, request.password, request.platform_id, request.device_id)


async def refresh(services: Services, caller: Caller, request: requests.Refresh) -> SignedIn:
    return await services.accounts.refresh(request.refresh_token)


async def logout(services: Services, caller: Caller, request: requests.Nothing) -> Empty:
    await services.accounts.logout(caller.session)
    return Empty()


async def change_password(services: Services, caller: Caller, request: requests.ChangePassword) -> SignedIn:
    await services.limits.try_password(caller.address, caller.user_id)
    return await services.accounts.change_password(caller.session, request.old_password, request.new_password)


async def info(services: Services, caller: Caller, request: requests.WhichUser) -> UserShape:
    return user_shape(await services.accounts.info(request.user_id or caller.user_id))


async def search(services: Services, caller: Caller, request: requests.Search) -> Users:
    return Users([user_shape(user) for user in await services.accounts.search(request.q)])


async def update(services: Services, caller: Caller, request: requests.UpdateUser) -> UserShape:
    user = await services.accounts.update(caller.user_id, request.nickname, request.avatar, request.extra)
    return user_shape(user)


async def online(services: Services, caller: Caller, request: requests.WhichUsers) -> UsersOnline:
    wanted = list(dict.fromkeys(request.user_ids))
    if len(wanted) > ONLINE_MAX:
        raise NexoError("bad_user_id", f"At most {ONLINE_MAX} users can be asked for at once")
    for user_id in wanted:
        check_user_id(user_id)
    found = await services.online.online(wanted)
    return UsersOnline([UserOnline(user_id, is_online, list(platforms)) for user_id, is_online, platforms in found])


async def block(services: Services, caller: Caller, request: requests.OtherUser) -> UserIds:
    blocked = await services.accounts.block(caller.user_id, request.user_id)
    services.publisher.audience_changed(single_conversation_id(caller.user_id, request.user_id))
    return UserIds(blocked)


async def unblock(services: Services, caller: Caller, request: requests.OtherUser) -> UserIds:
    blocked = await services.accounts.unblock(caller.user_id, request.user_id)
    services.publisher.audience_changed(single_conversation_id(caller.user_id, request.user_id))
    return UserIds(blocked)


async def blocks(services: Services, caller: Caller, request: requests.Nothing) -> UserIds:
    return UserIds(await services.accounts.blocks(caller.user_id))

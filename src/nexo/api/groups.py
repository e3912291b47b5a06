"""Handlers: groups."""

from __future__ import annotations

from nexo.api import requests
from nexo.api.call import Caller, Services
from nexo.api.requests import given
from nexo.api.shapes import (
    Empty,
    GroupList,
    GroupShape,
    Invited,
    Joined,
    JoinRequests,
    MemberList,
    group_shape,
    invited_shape,
    member_shape,
)


async def create(services: Services, caller: Caller, request: requests.CreateGroup) -> GroupShape:
    group = await services.telling.create_group(
        caller.user_id,
        name=request.name,
        member_ids=request.member_ids,
        avatar=request.avatar,
        introduction=request.introduction,
        join_policy=request.join_policy,
        extra=request.extra,
    )
    return group_shape(group)


async def join(services: Services, caller: Caller, request: requests.JoinGroup) -> Joined:
    return Joined(await services.telling.join_group(caller.user_id, request.group_id, request.message))


async def decide_join(services: Services, caller: Caller, request: requests.DecideJoin) -> Empty:
    await services.telling.decide_join(caller.user_id, request.group_id, request.user_id, request.accept)
    return Empty()


async def quit_group(services: Services, caller: Caller, request: requests.WhichGroup) -> Empty:
    await services.telling.leave_group(caller.user_id, request.group_id)
    return Empty()


async def dismiss(services: Services, caller: Caller, request: requests.WhichGroup) -> Empty:
    await services.telling.dismiss_group(caller.user_id, request.group_id)
    return Empty()


async def invite(services: Services, caller: Caller, request: requests.Invite) -> Invited:
    return invited_shape(await services.telling.invite(caller.user_id, request.group_id, request.user_ids))


async def remove_member(services: Services, caller: Caller, request: requests.WhichMember) -> Invited:
    return invited_shape(await services.telling.remove_member(caller.user_id, request.group_id, request.user_id))


async def transfer_owner(services: Services, caller: Caller, request: requests.WhichMember) -> Empty:
    await services.telling.transfer_owner(caller.user_id, request.group_id, request.user_id)
    return Empty()


async def set_member_role(services: Services, caller: Caller, request: requests.SetRole) -> Empty:
    await services.telling.set_member_role(caller.user_id, request.group_id, request.user_id, request.role)
    return Empty()


async def mute(services: Services, caller: Caller, request: requests.Mute) -> Empty:
    await services.telling.mute(caller.user_id, request.group_id, request.user_id, request.duration_s)
    return Empty()


async def update(services: Services, caller: Caller, request: requests.UpdateGroup) -> GroupShape:
    group = await services.telling.update_group(
        caller.user_id,
        request.group_id,
        name=given(request.name),
        avatar=given(request.avatar),
        introduction=given(request.introduction),
        announcement=given(request.announcement),
        join_policy=given(request.join_policy),
    )
    return group_shape(group)


async def info(services: Services, caller: Caller, request: requests.WhichGroup) -> GroupShape:
    return group_shape(await services.groups.info(request.group_id))


async def mine(services: Services, caller: Caller, request: requests.Nothing) -> GroupList:
    return GroupList([group_shape(group) for group in await services.groups.mine(caller.user_id)])


async def members(services: Services, caller: Caller, request: requests.Members) -> MemberList:
    found, next_cursor, has_more = await services.groups.members(
        caller.user_id, request.group_id, given(request.cursor), given(request.limit)
    )
    return MemberList([member_shape(member) for member in found], next_cursor, has_more)


async def join_requests(services: Services, caller: Caller, request: requests.WhichGroup) -> JoinRequests:
    return JoinRequests(await services.groups.join_requests(caller.user_id, request.group_id))

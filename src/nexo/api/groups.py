"""Handlers: groups."""

from __future__ import annotations

from nexo.api import requests
from nexo.api.requests import given
from nexo.api.route import Caller, Services
from nexo.api.shapes import (
    Empty,
    GroupInfo,
    GroupList,
    InvitedReply,
    JoinedReply,
    JoinRequests,
    MemberList,
    group_info,
    invited_shape,
)
from nexo.core.profile_shapes import GroupShape, group_shape, member_shape
from nexo.errors import NexoError


async def create(services: Services, caller: Caller, request: requests.CreateGroupRequest) -> GroupShape:
    group = await services.actions.create_group(
        caller.user_id,
        name=request.name,
        member_ids=request.member_ids,
        avatar=request.avatar,
        introduction=request.introduction,
        join_policy=request.join_policy,
        extra=request.extra,
        group_type=request.group_type,
    )
    return group_shape(group)


async def join(services: Services, caller: Caller, request: requests.JoinGroupRequest) -> JoinedReply:
    if request.code is not None:
        if request.group_id is not None:
            raise NexoError("bad_request", "Name a group_id or a code, not both")
        if request.message:
            raise NexoError("bad_request", "Joining by a link takes no message")
        return JoinedReply("joined", await services.actions.join_by_link(caller.user_id, request.code))
    if request.group_id is None:
        raise NexoError("missing_group_id", "Name a group_id, or the code of a link")
    return JoinedReply(await services.actions.join_group(caller.user_id, request.group_id, request.message))


async def decide_join(services: Services, caller: Caller, request: requests.DecideJoinRequest) -> Empty:
    await services.actions.decide_join(caller.user_id, request.group_id, request.user_id, request.accept)
    return Empty()


async def quit_group(services: Services, caller: Caller, request: requests.WhichGroup) -> Empty:
    await services.actions.leave_group(caller.user_id, request.group_id)
    return Empty()


async def dismiss(services: Services, caller: Caller, request: requests.WhichGroup) -> Empty:
    await services.actions.dismiss_group(caller.user_id, request.group_id)
    return Empty()


async def invite(services: Services, caller: Caller, request: requests.InviteRequest) -> InvitedReply:
    return invited_shape(await services.actions.invite(caller.user_id, request.group_id, request.user_ids))


async def remove_member(services: Services, caller: Caller, request: requests.WhichMember) -> InvitedReply:
    return invited_shape(await services.actions.remove_member(caller.user_id, request.group_id, request.user_id))


async def transfer_owner(services: Services, caller: Caller, request: requests.WhichMember) -> Empty:
    await services.actions.transfer_owner(caller.user_id, request.group_id, request.user_id)
    return Empty()


async def set_member_role(services: Services, caller: Caller, request: requests.SetRoleRequest) -> Empty:
    await services.actions.set_member_role(caller.user_id, request.group_id, request.user_id, request.role)
    return Empty()


async def mute(services: Services, caller: Caller, request: requests.MuteRequest) -> Empty:
    await services.actions.mute(caller.user_id, request.group_id, request.user_id, request.duration_s)
    return Empty()


async def update(services: Services, caller: Caller, request: requests.UpdateGroupRequest) -> GroupShape:
    group = await services.actions.update_group(
        caller.user_id,
        request.group_id,
        name=given(request.name),
        avatar=given(request.avatar),
        introduction=given(request.introduction),
        announcement=given(request.announcement),
        join_policy=given(request.join_policy),
        group_type=given(request.group_type),
        extra=request.extra,
    )
    return group_shape(group)


async def info(services: Services, caller: Caller, request: requests.WhichGroup) -> GroupInfo:
    return group_info(await services.groups.view(caller.user_id, request.group_id))


async def mine(services: Services, caller: Caller, request: requests.Nothing) -> GroupList:
    return GroupList([group_shape(group) for group in await services.groups.mine(caller.user_id)])


async def members(services: Services, caller: Caller, request: requests.Members) -> MemberList:
    found, next_cursor, has_more = await services.groups.members(
        caller.user_id, request.group_id, given(request.cursor), given(request.limit)
    )
    return MemberList([member_shape(member) for member in found], next_cursor, has_more)


async def join_requests(services: Services, caller: Caller, request: requests.WhichGroup) -> JoinRequests:
    return JoinRequests(await services.groups.join_requests(caller.user_id, request.group_id))

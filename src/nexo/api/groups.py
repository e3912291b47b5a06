"""Handlers: groups. Whoever is concerned by a change is told of it once it is committed."""

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
from nexo.errors import NexoError
from nexo.ids import is_user_id
from nexo.ports import GroupChange


async def create(services: Services, caller: Caller, request: requests.CreateGroup) -> GroupShape:
    services.limits.create_group(caller.user_id)
    group, event = await services.groups.create(
        caller.user_id,
        name=request.name,
        member_ids=request.member_ids,
        avatar=request.avatar,
        introduction=request.introduction,
        join_policy=request.join_policy,
        extra=request.extra,
    )
    founders = list(dict.fromkeys((caller.user_id, *request.member_ids)))
    # epoch 0: a member list of any age will do, since there was none before
    _tell(services, GroupChange(event, founders, [], 0))
    return group_shape(group)


async def join(services: Services, caller: Caller, request: requests.JoinGroup) -> Joined:
    status, change = await services.groups.join(caller.user_id, request.group_id, request.message)
    _tell(services, change)
    return Joined(status)


async def decide_join(services: Services, caller: Caller, request: requests.DecideJoin) -> Empty:
    change = await services.groups.decide_join(caller.user_id, request.group_id, request.user_id, request.accept)
    return _done(services, change)


async def quit_group(services: Services, caller: Caller, request: requests.WhichGroup) -> Empty:
    return _done(services, await services.groups.leave(caller.user_id, request.group_id))


async def dismiss(services: Services, caller: Caller, request: requests.WhichGroup) -> Empty:
    return _done(services, await services.groups.dismiss(caller.user_id, request.group_id))


async def invite(services: Services, caller: Caller, request: requests.Invite) -> Invited:
    """Ids that nobody can have are skipped like those that nobody has."""
    wanted = [user_id for user_id in request.user_ids if is_user_id(user_id)]
    if request.user_ids and not wanted:
        raise NexoError("bad_member_ids", "None of these can be a user's id")
    change = await services.groups.invite(caller.user_id, request.group_id, wanted)
    _tell(services, change)
    odd = dict.fromkeys(user_id for user_id in request.user_ids if not is_user_id(user_id))
    return invited_shape(change._replace(skipped=change.skipped + [(user_id, "user_not_found") for user_id in odd]))


async def remove_member(services: Services, caller: Caller, request: requests.WhichMember) -> Invited:
    change = await services.groups.remove(caller.user_id, request.group_id, request.user_id)
    _tell(services, change)
    return invited_shape(change)


async def transfer_owner(services: Services, caller: Caller, request: requests.WhichMember) -> Empty:
    return _done(services, await services.groups.transfer(caller.user_id, request.group_id, request.user_id))


async def set_member_role(services: Services, caller: Caller, request: requests.SetRole) -> Empty:
    change = await services.groups.set_role(caller.user_id, request.group_id, request.user_id, request.role)
    return _done(services, change)


async def mute(services: Services, caller: Caller, request: requests.Mute) -> Empty:
    change = await services.groups.mute(caller.user_id, request.group_id, request.user_id, request.duration_s)
    return _done(services, change)


async def update(services: Services, caller: Caller, request: requests.UpdateGroup) -> GroupShape:
    group, change = await services.groups.update(
        caller.user_id,
        request.group_id,
        name=given(request.name),
        avatar=given(request.avatar),
        introduction=given(request.introduction),
        announcement=given(request.announcement),
        join_policy=given(request.join_policy),
    )
    if change is not None:
        _tell(services, change)
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


def _done(services: Services, change: GroupChange) -> Empty:
    _tell(services, change)
    return Empty()


def _tell(services: Services, change: GroupChange) -> None:
    if change.event is not None:
        services.publisher.group_changed(change)

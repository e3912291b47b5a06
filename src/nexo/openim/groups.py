"""Groups: reading with versions, and administration."""

from __future__ import annotations

from typing import Any

from nexo.core.model import Group, GroupGlimpse, JoinRequest, User
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.openim import shapes, tips
from nexo.openim.lists import GROUPS, ListedMember, changed_shape
from nexo.openim.request import Call, Handler, plain
from nexo.openim.users import own_address

GROUPS_AT_ONCE = 500
_ROLES = {shapes.ADMIN: "admin", shapes.MEMBER: "member"}


async def _own_groups(call: Call) -> dict[str, Group]:
    return {group.group_id: group for group in await call.facade.lists.groups(call.user_id)}


async def get_incremental_join_groups(call: Call) -> Any:
    call.check_self("userID")
    entries = {
        group_id: shapes.group_info(group, call.base_url) for group_id, group in (await _own_groups(call)).items()
    }
    changes = await call.facade.lists.follow(
        call.user_id, GROUPS, _stable(entries), call.number("version"), call.text("versionID")
    )
    return {**changed_shape(changes, entries), "sortVersion": 0}


def _stable(entries: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns groups without what depends on the address of the request."""
    return {name: {**entry, "faceURL": ""} for name, entry in entries.items()}


async def get_full_join_group_ids(call: Call) -> Any:
    call.check_self("userID")
    groups = await _own_groups(call)
    entries = {group_id: shapes.group_info(group) for group_id, group in groups.items()}
    changes = await call.facade.lists.follow(call.user_id, GROUPS, _stable(entries))
    names = list(groups)
    return {
        "version": changes.version,
        "versionID": changes.version_id,
        "equal": bool(names) and call.body.get("idHash") == shapes.id_hash(names),
        "groupIDs": names or None,
    }


async def get_joined_group_list(call: Call) -> Any:
    call.check_self("fromUserID")
    groups = list((await _own_groups(call)).values())
    start, count = call.page()
    shown = [shapes.group_info(group, call.base_url) for group in groups[start : start + count]]
    return {"total": len(groups), "groups": shown or None}


async def get_incremental_group_members_batch(call: Call) -> Any:
    call.check_self("userID")
    asked = call.body.get("reqList")
    asked = asked if isinstance(asked, list) else []
    made: dict[str, Any] = {}
    for one in asked[:GROUPS_AT_ONCE]:
        if not isinstance(one, dict) or not isinstance(one.get("groupID"), str):
            raise NexoError("bad_request", "An entry of reqList has a groupID")
        try:
            made[one["groupID"]] = await _member_changes(call, one)
        except NexoError as error:
            if error.row.retry:
                raise
    return {"respList": made}


async def _member_changes(call: Call, asked: dict[str, Any]) -> dict[str, Any]:
    group = await _visible(call, asked["groupID"])
    version = asked.get("version")
    version_id = asked.get("versionID")
    changes, entries = await call.facade.lists.follow_members(
        call.user_id,
        group,
        version if type(version) is int else 0,
        version_id if isinstance(version_id, str) else "",
        call.base_url,
    )
    shown = shapes.group_info(group, call.base_url)
    return {**changed_shape(changes, entries), "group": shown, "sortVersion": 0}


async def get_incremental_group_members(call: Call) -> Any:
    return await _member_changes(call, call.body | {"groupID": call.text("groupID")})


async def _visible(call: Call, group_id: str) -> Group:
    """Returns a group that the caller is in."""
    found = await call.facade.actions.groups.view(call.user_id, group_id)
    if not isinstance(found, Group):
        raise NexoError("not_group_member")
    return found


async def get_full_group_member_user_ids(call: Call) -> Any:
    group = await _visible(call, call.text("groupID"))
    changes, _ = await call.facade.lists.follow_members(call.user_id, group)
    names = [one.member.user_id for one in await call.facade.lists.members(call.user_id, group.group_id)]
    return {
        "version": changes.version,
        "versionID": changes.version_id,
        "equal": bool(names) and call.body.get("idHash") == shapes.id_hash(names),
        "userIDs": names or None,
    }


async def get_groups_info(call: Call) -> Any:
    shown = []
    for group_id in call.names("groupIDs")[:GROUPS_AT_ONCE]:
        try:
            found = await call.facade.actions.groups.view(call.user_id, group_id)
        except NexoError as error:
            if error.row.retry:
                raise
            continue
        shown.append(shapes.group_info(found if isinstance(found, Group) else _glimpsed(found), call.base_url))
    return {"groupInfos": shown or None}


def _glimpsed(glimpse: GroupGlimpse) -> Group:
    """Returns what a stranger may know of a group."""
    return Group(
        glimpse.group_id,
        glimpse.name or "",
        "",
        "",
        glimpse.avatar or "",
        0,
        "",
        "",
        glimpse.join_policy,
        None,
        0,
        glimpse.member_count or 0,
        0,
        0,
    )


async def get_group_members_info(call: Call) -> Any:
    wanted = set(call.names("userIDs"))
    listed = await call.facade.lists.members(call.user_id, call.text("groupID"), 100_000)
    found = [one for one in listed if one.member.user_id in wanted]
    return {"members": _members(call, found) or None}


async def get_group_member_list(call: Call) -> Any:
    listed = await call.facade.lists.members(call.user_id, call.text("groupID"), 100_000)
    keyword, wanted = call.text("keyword"), call.number("filter")
    shown = [
        one
        for one in _members(call, listed)
        if (not keyword or keyword in one["userID"] or keyword in one["nickname"])
        and (wanted not in _FILTERS or one["roleLevel"] in _FILTERS[wanted])
    ]
    start, count = call.page()
    return {"total": len(shown), "members": shown[start : start + count] or None}


_FILTERS = {
    1: (shapes.OWNER,),
    2: (shapes.ADMIN,),
    3: (shapes.MEMBER,),
    4: (shapes.ADMIN, shapes.MEMBER),
    5: (shapes.OWNER, shapes.ADMIN),
}


def _members(call: Call, listed: list[ListedMember]) -> list[dict[str, Any]]:
    return [shapes.member_info(call.text("groupID"), one.member, one.user, call.base_url) for one in listed]


# -- changes -----------------------------------------------------------------------------------------------


async def create_group(call: Call) -> Any:
    call.check_self("ownerUserID")
    info = call.part("groupInfo")
    members, admins = call.names("memberUserIDs"), call.names("adminUserIDs")
    verification = plain(info.get("needVerification"))
    ex = plain(info.get("ex"))
    actions = call.facade.actions
    group = await actions.create_group(
        call.user_id,
        name=_text(info, "groupName") or "Group",
        member_ids=[*members, *admins],
        avatar=own_address(_text(info, "faceURL"), call.base_url),
        introduction=_text(info, "introduction"),
        join_policy=shapes.POLICIES.get(verification, "open") if type(verification) is int else "open",
        extra={"openim": {"ex": ex}} if isinstance(ex, str) and ex else None,
        min_members=1,
    )
    for user_id in admins:
        await actions.set_member_role(call.user_id, group.group_id, user_id, "admin")
    if notification := _text(info, "notification"):
        group = await actions.update_group(call.user_id, group.group_id, announcement=notification)
    return {"groupInfo": shapes.group_info(group, call.base_url)}


def _text(found: dict[str, Any], name: str) -> str:
    value = plain(found.get(name))
    if value is not None and not isinstance(value, str):
        raise NexoError("bad_request", f"{name} is a text")
    return value or ""


async def set_group_info(call: Call) -> Any:
    info = call.part("groupInfoForSet") or call.body
    changes: dict[str, Any] = {}
    for theirs, own in (
        ("groupName", "name"),
        ("notification", "announcement"),
        ("introduction", "introduction"),
        ("faceURL", "avatar"),
    ):
        value = plain(info.get(theirs))
        if isinstance(value, str) and (value or isinstance(info.get(theirs), dict)):
            changes[own] = own_address(value, call.base_url) if own == "avatar" else value
    verification, ex = plain(info.get("needVerification")), plain(info.get("ex"))
    if type(verification) is int and verification in shapes.POLICIES:
        changes["join_policy"] = shapes.POLICIES[verification]
    group_id = plain(info.get("groupID"))
    group_id = group_id if isinstance(group_id, str) else ""
    if isinstance(ex, str):
        group = await _visible(call, group_id)
        changes["extra"] = shapes.with_ex(group.extra, ex=ex)
    if changes:
        await call.facade.actions.update_group(call.user_id, group_id, **changes)
    return {}


async def join_group(call: Call) -> Any:
    await call.facade.actions.join_group(call.user_id, call.text("groupID"), call.text("reqMessage"))
    return {}


async def quit_group(call: Call) -> Any:
    call.check_self("userID")
    await call.facade.actions.leave_group(call.user_id, call.text("groupID"))
    return {}


async def invite_user_to_group(call: Call) -> Any:
    change = await call.facade.actions.invite(call.user_id, call.text("groupID"), call.names("invitedUserIDs"))
    if not change.added:
        unknown = [user_id for user_id, reason in change.skipped if reason == "user_not_found"]
        if unknown:
            raise NexoError("user_not_found", f"There is no user {unknown[0]}")
    return {}


async def kick_group(call: Call) -> Any:
    for user_id in call.names("kickedUserIDs"):
        await call.facade.actions.remove_member(call.user_id, call.text("groupID"), user_id)
    return {}


async def transfer_group(call: Call) -> Any:
    await call.facade.actions.transfer_owner(call.user_id, call.text("groupID"), call.text("newOwnerUserID"))
    return {}


async def dismiss_group(call: Call) -> Any:
    await call.facade.actions.dismiss_group(call.user_id, call.text("groupID"))
    return {}


async def mute_group_member(call: Call) -> Any:
    seconds = max(0, call.number("mutedSeconds"))
    await call.facade.actions.mute(call.user_id, call.text("groupID"), call.text("userID"), seconds)
    return {}


async def cancel_mute_group_member(call: Call) -> Any:
    await call.facade.actions.mute(call.user_id, call.text("groupID"), call.text("userID"), 0)
    return {}


async def mute_group(call: Call) -> Any:
    await call.facade.actions.mute(call.user_id, call.text("groupID"), None, -1)
    return {}


async def cancel_mute_group(call: Call) -> Any:
    await call.facade.actions.mute(call.user_id, call.text("groupID"), None, 0)
    return {}


async def set_group_member_info(call: Call) -> Any:
    members = call.body.get("members")
    for one in members if isinstance(members, list) else [call.body]:
        if not isinstance(one, dict):
            raise NexoError("bad_request", "members is a list of objects")
        await _set_member(call, one)
    return {}


async def _set_member(call: Call, one: dict[str, Any]) -> None:
    group_id, user_id = _text(one, "groupID"), _text(one, "userID") or call.user_id
    role, nickname = plain(one.get("roleLevel")), plain(one.get("nickname"))
    avatar, ex = plain(one.get("faceURL")), plain(one.get("ex"))
    actions = call.facade.actions
    if type(role) is int and role in _ROLES:
        await actions.set_member_role(call.user_id, group_id, user_id, _ROLES[role])
    changes: dict[str, Any] = {}
    if isinstance(nickname, str):
        changes["group_nickname"] = nickname
    if isinstance(avatar, str):
        changes["group_avatar"] = own_address(avatar, call.base_url)
    if isinstance(ex, str):
        changes["extra"] = {"openim": {"ex": ex}}
    if not changes:
        return
    if user_id != call.user_id:
        raise NexoError("no_permission", "Name and picture in a group are the member's own")
    member = await actions.set_own_member(user_id, group_id, **changes)
    group = await _visible(call, group_id)
    shown = shapes.member_info(group_id, member, None, call.base_url)
    changed, _ = await call.facade.lists.follow_members(call.user_id, group)
    notified: dict[str, Any] = {"group": shapes.group_info(group, call.base_url), "changedUser": shown, "opUser": shown}
    notified |= {"operationTime": now_ms(), "groupMemberVersion": changed.version}
    call.facade.notices.tell(
        user_id, tips.MEMBER_SET, notified | {"groupMemberVersionID": changed.version_id}, call.operation_id
    )


# -- requests to join --------------------------------------------------------------------------------------


async def group_application_response(call: Call) -> Any:
    accept = call.number("handleResult") == 1
    group_id, user_id = call.text("groupID"), call.text("fromUserID")
    await call.facade.actions.decide_join(call.user_id, group_id, user_id, accept)
    group = await _visible(call, group_id)
    kind = tips.JOIN_ACCEPTED if accept else tips.JOIN_REJECTED
    notified: dict[str, Any] = {"group": shapes.group_info(group, call.base_url), "receiverAs": 0}
    notified["opUser"] = {"userID": call.user_id}
    users = await call.facade.directory.users([user_id])
    request = shapes.join_request(group, shapes.user_or_id(users, user_id), "", 0, 1 if accept else -1, call.base_url)
    notified |= {"handleMsg": call.text("handledMsg"), "request": request}
    call.facade.notices.tell(user_id, kind, notified)
    return {}


async def get_recv_group_applications(call: Call) -> Any:
    """Returns the requests to join groups that the caller manages."""
    asked = set(call.names("groupIDs"))
    shown = []
    for group in (await _own_groups(call)).values():
        if asked and group.group_id not in asked:
            continue
        try:
            requests = await call.facade.actions.groups.join_requests(call.user_id, group.group_id)
        except NexoError as error:
            if error.row.retry:
                raise
            continue
        users = await call.facade.directory.users(one.user_id for one in requests)
        shown += [_request_shape(call, group, one, users) for one in requests]
    start, count = call.page()
    return {"total": len(shown), "groupRequests": shown[start : start + count] or None}


def _request_shape(call: Call, group: Group, request: JoinRequest, users: dict[str, User]) -> dict[str, Any]:
    user = shapes.user_or_id(users, request.user_id)
    return shapes.join_request(group, user, request.message, request.created_at, base_url=call.base_url)


async def get_specified_requests(call: Call) -> Any:
    group_id, user_id = call.text("groupID"), call.text("userID") or call.user_id
    try:
        group = await _visible(call, group_id)
        requests = await call.facade.actions.groups.join_requests(call.user_id, group_id)
    except NexoError as error:
        if error.row.retry:
            raise
        return {"groupRequests": None}
    users = await call.facade.directory.users([user_id])
    found = [_request_shape(call, group, one, users) for one in requests if one.user_id == user_id]
    return {"groupRequests": found or None}


async def no_requests(call: Call) -> Any:
    """The requests that the caller has made: the owner and the admins have them until they are decided."""
    return {"total": 0, "groupRequests": None}


ROUTES: dict[str, Handler] = {
    "/group/get_incremental_join_groups": get_incremental_join_groups,
    "/group/get_full_join_group_ids": get_full_join_group_ids,
    "/group/get_joined_group_list": get_joined_group_list,
    "/group/get_incremental_group_members_batch": get_incremental_group_members_batch,
    "/group/get_incremental_group_members": get_incremental_group_members,
    "/group/get_full_group_member_user_ids": get_full_group_member_user_ids,
    "/group/get_groups_info": get_groups_info,
    "/group/get_group_members_info": get_group_members_info,
    "/group/get_group_member_list": get_group_member_list,
    "/group/create_group": create_group,
    "/group/set_group_info": set_group_info,
    "/group/set_group_info_ex": set_group_info,
    "/group/join_group": join_group,
    "/group/quit_group": quit_group,
    "/group/invite_user_to_group": invite_user_to_group,
    "/group/kick_group": kick_group,
    "/group/transfer_group": transfer_group,
    "/group/dismiss_group": dismiss_group,
    "/group/mute_group_member": mute_group_member,
    "/group/cancel_mute_group_member": cancel_mute_group_member,
    "/group/mute_group": mute_group,
    "/group/cancel_mute_group": cancel_mute_group,
    "/group/set_group_member_info": set_group_member_info,
    "/group/group_application_response": group_application_response,
    "/group/get_recv_group_applicationList": get_recv_group_applications,
    "/group/get_user_req_group_applicationList": no_requests,
    "/group/get_specified_user_group_request_info": get_specified_requests,
}

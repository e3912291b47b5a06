"""Users, friends and the blacklist: users, contacts and blocks of Nexo."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from nexo.core.model import User
from nexo.core.people import ContactRequest
from nexo.errors import NexoError
from nexo.ids import is_user_id, now_ms
from nexo.openim import shapes, tips
from nexo.openim.lists import FRIENDS, changed_shape
from nexo.openim.notices import friend_added
from nexo.openim.request import Call, Handler, plain
from nexo.wire.openim.content import file_in


async def get_users_info(call: Call) -> Any:
    names = call.names("userIDs")
    found = await call.facade.directory.users(names)
    return {"usersInfo": [shapes.user_info(found[name], call.base_url) for name in names if name in found]}


async def update_user_info(call: Call) -> Any:
    info = call.part("userInfo") or call.body
    if info.get("userID") not in (None, "", call.user_id):
        raise NexoError("no_permission", "userID is not the user of the token")
    nickname, avatar, ex = plain(info.get("nickname")), plain(info.get("faceURL")), plain(info.get("ex"))
    extra: Any = UNSET
    if isinstance(ex, str):
        user = await call.facade.actions.accounts.info(call.user_id)
        extra = shapes.with_ex(user.extra, ex=ex)
    changed = await call.facade.actions.accounts.update(
        call.user_id,
        UNSET if nickname is None else nickname,
        UNSET if avatar is None else own_address(avatar, call.base_url),
        extra,
    )
    call.facade.directory.note([changed])
    call.facade.notices.tell(call.user_id, tips.USER_UPDATED, {"userID": call.user_id}, call.operation_id)
    return {}


def own_address(url: str, base_url: str) -> str:
    """Returns the address of a picture, or the file_id of one on this server."""
    return file_in(url) if base_url and url.startswith(f"{base_url}/") else url


async def get_users_online_status(call: Call) -> Any:
    names = [name for name in call.names("userIDs") if is_user_id(name)][:100]
    found = await call.facade.delivery.online(call.user_id, names)
    return [
        {
            "userID": user_id,
            "status": int(online),
            "detailPlatformStatus": [{"platformID": platform} for platform in platforms],
        }
        for user_id, online, platforms in found
    ]


async def subscribe_users_status(call: Call) -> Any:
    """Answers with what is; changes are pushed to what a connection subscribes to (2005)."""
    names = [name for name in call.names("userIDs") if is_user_id(name)][:100]
    found = await call.facade.delivery.online(call.user_id, names)
    return {
        "statusList": [
            {"userID": user_id, "status": int(online), "platformIDs": list(platforms)}
            for user_id, online, platforms in found
        ]
    }


async def nothing(call: Call) -> Any:
    return {}


# -- friends -----------------------------------------------------------------------------------------------


async def get_incremental_friends(call: Call) -> Any:
    call.check_self("userID")
    entries = await call.facade.lists.friends(call.user_id, call.base_url)
    changes = await call.facade.lists.follow(
        call.user_id, FRIENDS, _without_faces(entries), call.number("version"), call.text("versionID")
    )
    return {**changed_shape(changes, entries), "sortVersion": 0}


async def get_full_friend_user_ids(call: Call) -> Any:
    call.check_self("userID")
    entries = await call.facade.lists.friends(call.user_id, call.base_url)
    changes = await call.facade.lists.follow(call.user_id, FRIENDS, _without_faces(entries))
    names = list(entries)
    return {
        "version": changes.version,
        "versionID": changes.version_id,
        "equal": bool(names) and call.body.get("idHash") == shapes.id_hash(names),
        "userIDs": names or None,
    }


def _without_faces(entries: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {**entry, "friendUser": {**entry["friendUser"], "faceURL": ""}} for name, entry in entries.items()}


async def get_friend_list(call: Call) -> Any:
    call.check_self("userID")
    entries = list((await call.facade.lists.friends(call.user_id, call.base_url)).values())
    start, count = call.page()
    return {"friendsInfo": entries[start : start + count] or None, "total": len(entries)}


async def get_designated_friends(call: Call) -> Any:
    call.check_self("ownerUserID")
    entries = await call.facade.lists.friends(call.user_id, call.base_url)
    return {"friendsInfo": [entries[name] for name in call.names("friendUserIDs") if name in entries] or None}


async def is_friend(call: Call) -> Any:
    first, second = call.text("userID1"), call.text("userID2")
    if call.user_id not in (first, second):
        raise NexoError("no_permission")
    other = second if first == call.user_id else first
    known = any(contact.user_id == other for contact in await call.facade.lists.contacts(call.user_id))
    return {"inUser1Friends": known, "inUser2Friends": known}


async def add_friend(call: Call) -> Any:
    call.check_self("fromUserID")
    change = await call.facade.actions.request_contact(call.user_id, call.text("toUserID"), call.text("reqMsg"))
    if change.status == "accepted":
        _tell_added(call, call.text("toUserID"))
    return {}


async def add_friend_response(call: Call) -> Any:
    call.check_self("toUserID")
    other = call.text("fromUserID")
    accept = call.number("handleResult") == 1
    await call.facade.actions.decide_contact(call.user_id, other, accept)
    if accept:
        _tell_added(call, other)
    return {}


def _tell_added(call: Call, friend_id: str) -> None:
    shown = friend_added(call.user_id, friend_id, now_ms())
    call.facade.notices.tell(call.user_id, tips.FRIEND_ADDED, shown, call.operation_id)


async def delete_friend(call: Call) -> Any:
    call.check_self("ownerUserID")
    friend_id = call.text("friendUserID")
    await call.facade.actions.remove_contact(call.user_id, friend_id)
    for owner, other in ((call.user_id, friend_id), (friend_id, call.user_id)):
        pair = {"fromUserID": owner, "toUserID": other}
        operation_id = call.operation_id if owner == call.user_id else ""
        call.facade.notices.tell(owner, tips.FRIEND_DELETED, {"fromToUserID": pair}, operation_id)
    return {}


async def update_friends(call: Call) -> Any:
    call.check_self("ownerUserID")
    remark = plain(call.body.get("remark"))
    names = call.names("friendUserIDs") or [call.text("friendUserID")]
    if isinstance(remark, str):
        for name in names:
            await call.facade.actions.people.contacts.set_remark(call.user_id, name, remark)
    pair = {"fromUserID": call.user_id, "toUserID": names[0]}
    call.facade.notices.tell(call.user_id, tips.FRIEND_REMARKED, {"fromToUserID": pair}, call.operation_id)
    return {}


async def get_friend_apply_list(call: Call) -> Any:
    call.check_self("userID")
    listed = await _requests(call, sent=False)
    return {"FriendRequests": listed or None, "total": len(listed)}


async def get_self_friend_apply_list(call: Call) -> Any:
    call.check_self("userID")
    listed = await _requests(call, sent=True)
    return {"friendRequests": listed or None, "total": len(listed)}


async def _requests(call: Call, *, sent: bool) -> list[dict[str, Any]]:
    start, count = call.page()
    found: list[ContactRequest] = []
    cursor: str | None = None
    while len(found) < start + count:
        page, cursor, has_more = await call.facade.actions.people.contacts.requests(call.user_id, sent, cursor, 200)
        found += page
        if not has_more:
            break
    users = await call.facade.directory.users([call.user_id, *(one.user_id for one in found)])
    return [_request_shape(call, users, one, sent=sent) for one in found[start : start + count]]


def _request_shape(call: Call, users: dict[str, User], request: ContactRequest, *, sent: bool) -> dict[str, Any]:
    pair = (call.user_id, request.user_id) if sent else (request.user_id, call.user_id)
    return shapes.friend_request(users, pair, 0, request.message, request.created_at, call.base_url)


async def get_designated_friend_apply(call: Call) -> Any:
    """Returns a request between two users. One that was decided is shown with its result."""
    sender, receiver = call.text("fromUserID"), call.text("toUserID")
    if call.user_id not in (sender, receiver):
        raise NexoError("no_permission")
    other = receiver if sender == call.user_id else sender
    users = await call.facade.directory.users([sender, receiver])
    for sent in (True, False):
        page, _, _ = await call.facade.actions.people.contacts.requests(call.user_id, sent, None, 200)
        for request in page:
            if request.user_id == other:
                return {"friendRequests": [_request_shape(call, users, request, sent=sent)]}
    known = any(contact.user_id == other for contact in await call.facade.lists.contacts(call.user_id))
    result = 1 if known else -1
    return {"friendRequests": [shapes.friend_request(users, (sender, receiver), result, "", 0, call.base_url)]}


# -- the blacklist -----------------------------------------------------------------------------------------


async def _blacks(call: Call) -> list[dict[str, Any]]:
    names = await call.facade.actions.accounts.blocks(call.user_id)
    users = await call.facade.directory.users(names)
    return [shapes.black_info(call.user_id, users[name], call.base_url) for name in names if name in users]


async def get_black_list(call: Call) -> Any:
    call.check_self("userID")
    found = await _blacks(call)
    start, count = call.page()
    return {"blacks": found[start : start + count] or None, "total": len(found)}


async def get_specified_blacks(call: Call) -> Any:
    call.check_self("ownerUserID")
    wanted = set(call.names("userIDList"))
    found = [one for one in await _blacks(call) if one["blackUserInfo"]["userID"] in wanted]
    return {"blacks": found or None, "total": len(found)}


async def add_black(call: Call) -> Any:
    call.check_self("ownerUserID")
    return await _change_black(call, tips.BLACK_ADDED)


async def remove_black(call: Call) -> Any:
    call.check_self("ownerUserID")
    return await _change_black(call, tips.BLACK_DELETED)


async def _change_black(call: Call, kind: int) -> Any:
    other = call.text("blackUserID")
    if kind == tips.BLACK_ADDED:
        await call.facade.actions.block(call.user_id, other)
    else:
        await call.facade.actions.unblock(call.user_id, other)
    pair = {"fromUserID": call.user_id, "toUserID": other}
    call.facade.notices.tell(call.user_id, kind, {"fromToUserID": pair}, call.operation_id)
    return {}


ROUTES: dict[str, Handler] = {
    "/user/get_users_info": get_users_info,
    "/user/update_user_info": update_user_info,
    "/user/update_user_info_ex": update_user_info,
    "/user/get_users_online_status": get_users_online_status,
    "/user/subscribe_users_status": subscribe_users_status,
    "/user/get_subscribe_users_status": subscribe_users_status,
    "/user/set_global_msg_recv_opt": nothing,
    "/user/process_user_command_get_all": nothing,
    "/friend/get_incremental_friends": get_incremental_friends,
    "/friend/get_full_friend_user_ids": get_full_friend_user_ids,
    "/friend/get_friend_list": get_friend_list,
    "/friend/get_designated_friends": get_designated_friends,
    "/friend/is_friend": is_friend,
    "/friend/add_friend": add_friend,
    "/friend/add_friend_response": add_friend_response,
    "/friend/delete_friend": delete_friend,
    "/friend/update_friends": update_friends,
    "/friend/set_friend_remark": update_friends,
    "/friend/get_friend_apply_list": get_friend_apply_list,
    "/friend/get_self_friend_apply_list": get_self_friend_apply_list,
    "/friend/get_designated_friend_apply": get_designated_friend_apply,
    "/friend/get_black_list": get_black_list,
    "/friend/get_specified_blacks": get_specified_blacks,
    "/friend/add_black": add_black,
    "/friend/remove_black": remove_black,
}

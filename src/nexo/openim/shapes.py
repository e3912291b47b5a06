"""Users, friends, groups, members and conversations as OpenIM's clients see them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from nexo.core.model import ConversationEntry, Group, GroupMember, Head, Role, User
from nexo.core.people import Contact
from nexo.ids import group_of, now_ms, peer_in
from nexo.wire.openim.names import name_of
from nexo.wire.openim.shown import CHAT, GROUP_CHAT, absolute

OWNER, ADMIN, MEMBER = 100, 60, 20
GROUP_TYPE = 2
NO_END_MS = 4_102_444_800_000  # the year 2100, for what has no end
_VERIFICATION = {"open": 2, "approval": 0, "invite": 1}
POLICIES = {number: policy for policy, number in _VERIFICATION.items()}
_ROLES = {int(Role.MEMBER): MEMBER, int(Role.ADMIN): ADMIN, int(Role.OWNER): OWNER}

_encode = msgspec.json.Encoder(order="deterministic").encode


def ex_of(extra: str | None) -> str:
    """Returns the text that an OpenIM client has kept in `extra`."""
    if not extra:
        return ""
    found = msgspec.json.decode(extra)
    own = found.get("openim") if isinstance(found, dict) else None
    ex = own.get("ex") if isinstance(own, dict) else None
    return ex if isinstance(ex, str) else ""


def with_ex(extra: str | None, **changes: Any) -> dict[str, Any]:
    """Returns `extra` with other values for OpenIM clients in it."""
    found = msgspec.json.decode(extra) if extra else {}
    own = found.get("openim")
    return {**found, "openim": {**(own if isinstance(own, dict) else {}), **changes}}


def user_info(user: User, base_url: str = "") -> dict[str, Any]:
    return {
        "userID": user.user_id,
        "nickname": user.nickname or user.user_id,
        "faceURL": absolute(user.avatar, base_url),
        "ex": ex_of(user.extra),
        "createTime": user.created_at,
        "appMangerLevel": 0,
        "globalRecvMsgOpt": 0,
    }


def public_user(user: User, base_url: str = "") -> dict[str, Any]:
    info = user_info(user, base_url)
    return {name: info[name] for name in ("userID", "nickname", "faceURL", "ex")}


def friend_info(owner_id: str, contact: Contact, user: User | None, base_url: str = "") -> dict[str, Any]:
    shown = User(contact.user_id, contact.nickname, contact.avatar, None, False, 0) if user is None else user
    return {
        "ownerUserID": owner_id,
        "remark": contact.remark,
        "createTime": contact.created_at,
        "friendUser": user_info(shown, base_url),
        "addSource": 0,
        "operatorUserID": owner_id,
        "ex": "",
        "isPinned": False,
    }


def friend_only(owner_id: str, contact: Contact) -> dict[str, Any]:
    return {
        "ownerUserID": owner_id,
        "friendUserID": contact.user_id,
        "remark": contact.remark,
        "createTime": contact.created_at,
    }


def user_or_id(users: Mapping[str, User], user_id: str) -> User:
    """Returns a user, or what is known of one that does not exist any more."""
    return users.get(user_id) or User(user_id, user_id, "", None, False, 0)


def friend_request(
    users: Mapping[str, User], pair: tuple[str, str], result: int, message: str, at: int, base_url: str = ""
) -> dict[str, Any]:
    """Returns a request of the first user to the second one; `result` is 0 while it is open, 1 or -1 afterwards."""
    shown: dict[str, Any] = {"handleResult": result, "reqMsg": message, "createTime": at, "ex": ""}
    shown |= {"handlerUserID": pair[1] if result else "", "handleMsg": "", "handleTime": 0}
    for side, user_id in zip(("from", "to"), pair, strict=True):
        info = user_info(user_or_id(users, user_id), base_url)
        shown |= {f"{side}UserID": user_id, f"{side}Nickname": info["nickname"], f"{side}FaceURL": info["faceURL"]}
    return shown


def join_request(
    group: Group, user: User, message: str, at: int, result: int = 0, base_url: str = ""
) -> dict[str, Any]:
    return {
        "userInfo": public_user(user, base_url),
        "groupInfo": group_info(group, base_url),
        "handleResult": result,
        "reqMsg": message,
        "handleMsg": "",
        "reqTime": at,
        "handleUserID": "",
        "handleTime": 0,
        "ex": "",
        "joinSource": 3,
        "inviterUserID": "",
    }


def black_info(owner_id: str, user: User, base_url: str = "") -> dict[str, Any]:
    return {
        "ownerUserID": owner_id,
        "createTime": 0,
        "blackUserInfo": public_user(user, base_url),
        "addSource": 0,
        "operatorUserID": owner_id,
        "ex": "",
    }


def group_info(group: Group, base_url: str = "") -> dict[str, Any]:
    if group.shown_status:
        status = 2 if group.shown_status == 1 else 1
    else:
        status = 3 if group.mute_until < 0 or group.mute_until > now_ms() else 0
    return {
        "groupID": group.group_id,
        "groupName": group.name,
        "notification": group.announcement,
        "introduction": group.introduction,
        "faceURL": absolute(group.avatar, base_url),
        "ownerUserID": group.owner_id,
        "createTime": group.created_at,
        "memberCount": group.member_count,
        "ex": ex_of(group.extra),
        "status": status,
        "creatorUserID": group.creator_id,
        "groupType": GROUP_TYPE,
        "needVerification": _VERIFICATION.get(group.join_policy, 0),
        "lookMemberInfo": 0,
        "applyMemberFriend": 0,
        "notificationUpdateTime": 0,
        "notificationUserID": "",
    }


def member_info(group_id: str, member: GroupMember, user: User | None, base_url: str = "") -> dict[str, Any]:
    nickname = member.group_nickname or member.nickname or member.user_id
    avatar = member.group_avatar or (user.avatar if user is not None else "")
    muted = NO_END_MS if member.muted_until < 0 else member.muted_until
    return {
        "groupID": group_id,
        "userID": member.user_id,
        "roleLevel": _ROLES.get(int(member.role), MEMBER),
        "joinTime": member.joined_at,
        "nickname": nickname,
        "faceURL": absolute(avatar, base_url),
        "appMangerLevel": 0,
        "joinSource": 2,
        "operatorUserID": member.inviter_id,
        "ex": ex_of(member.extra),
        "muteEndTime": muted,
        "inviterUserID": member.inviter_id,
    }


def stranger_info(group: Group, user: User, base_url: str = "") -> dict[str, Any]:
    """Returns a user as a member of a group that the user may have left."""
    role = Role.OWNER if group.owner_id == user.user_id else Role.MEMBER
    member = GroupMember(user.user_id, role, user.nickname, "", 0, 0)
    return member_info(group.group_id, member, user, base_url)


def conversation_info(
    owner_id: str, conversation_id: str, found: Head | ConversationEntry, first: int
) -> dict[str, Any] | None:
    """Returns a conversation with its settings; None for one without a name."""
    name = name_of(conversation_id)
    if not name:
        return None
    group_id = group_of(conversation_id)
    extra = found.extra if isinstance(found.extra, str) else bytes(found.extra).decode() if found.extra else None
    return {
        "ownerUserID": owner_id,
        "conversationID": name,
        "recvMsgOpt": found.recv_msg_opt or 0,
        "conversationType": CHAT if group_id is None else GROUP_CHAT,
        "userID": peer_in(conversation_id, owner_id) or "",
        "groupID": group_id or "",
        "isPinned": bool(found.pinned),
        "attachedInfo": "",
        "isPrivateChat": bool(found.message_ttl_s),
        "groupAtType": 0,
        "ex": ex_of(extra),
        "burnDuration": found.message_ttl_s or 0,
        "minSeq": first if first > 1 else 0,
        "maxSeq": 0,
        "msgDestructTime": 0,
        "latestMsgDestructTime": 0,
        "isMsgDestruct": False,
    }


def digest(shape: Any) -> str:
    """Returns what changes when the shape does."""
    return hashlib.blake2b(_encode(shape), digest_size=9).hexdigest()


def id_hash(names: list[str]) -> int:
    """Returns the number by which a client compares its ids with those of the server."""
    if not names:
        return 0
    text = hashlib.md5(_encode(sorted(names)), usedforsecurity=False).digest()
    return int.from_bytes(text[:8], "big")

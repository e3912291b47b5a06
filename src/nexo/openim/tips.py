"""Notifications about groups and messages: what each event of Nexo becomes, with all that clients read of it."""

from __future__ import annotations

from typing import Any

import msgspec

from nexo.core.model import Group, Message, MsgType
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.openim import shapes
from nexo.openim.directory import Directory
from nexo.openim.lists import Lists
from nexo.ports.openim import OpenimStore
from nexo.service.actions import Actions
from nexo.wire.openim.names import name_of
from nexo.wire.openim.shown import CHAT, GROUP_CHAT, NOTIFICATION_CHAT, PLATFORM_WEB, SYSTEM_MESSAGE, client_id_of

REVOKED, READ, DELETED, CLEARED, CONVERSATION_CHANGED = 2101, 2200, 2102, 1703, 1300
FRIEND_APPROVED, FRIEND_REJECTED, FRIEND_ASKED, FRIEND_ADDED, FRIEND_DELETED = 1201, 1202, 1203, 1204, 1205
FRIEND_REMARKED, BLACK_ADDED, BLACK_DELETED, USER_UPDATED = 1206, 1207, 1208, 1303
CREATED, INFO_SET, JOIN_ASKED, QUIT, JOIN_ACCEPTED, JOIN_REJECTED = 1501, 1502, 1503, 1504, 1505, 1506
TRANSFERRED, KICKED, INVITED, ENTERED, DISMISSED = 1507, 1508, 1509, 1510, 1511
MUTED, UNMUTED, ALL_MUTED, ALL_UNMUTED, MEMBER_SET = 1512, 1513, 1514, 1515, 1516
MADE_ADMIN, MADE_MEMBER, ANNOUNCED, NAMED = 1517, 1518, 1519, 1520
LISTED_MAX = 200

_encode = msgspec.json.Encoder().encode
_OPTIONS = dict.fromkeys(
    ("notNotification", "conversationUpdate", "senderConversationUpdate", "unreadCount", "offlinePush", "senderSync"),
    False,
)


def notification(
    kind: int,
    tips: dict[str, Any],
    *,
    sender_id: str,
    recv_id: str = "",
    group_id: str = "",
    seq: int = 0,
    at: int = 0,
    message_id: str = "",
) -> dict[str, Any]:
    """Returns a notification as a message. Without a seq it is shown once and not asked for again."""
    at = at or now_ms()
    return {
        "sendID": sender_id,
        "recvID": recv_id,
        "groupID": group_id,
        "clientMsgID": message_id or f"notice_{kind}_{at}_{sender_id}"[:64],
        "serverMsgID": message_id,
        "senderPlatformID": PLATFORM_WEB,
        "sessionType": GROUP_CHAT if group_id else NOTIFICATION_CHAT,
        "msgFrom": SYSTEM_MESSAGE,
        "contentType": kind,
        "content": _encode({"detail": _encode(tips).decode()}),
        "seq": seq,
        "sendTime": at,
        "createTime": at,
        "status": 2,
        "options": {**_OPTIONS, "history": bool(seq), "persistent": bool(seq)},
    }


class Tips:
    """Makes notifications of events. Reads what groups, members and messages are now."""

    def __init__(self, actions: Actions, store: OpenimStore, directory: Directory, lists: Lists) -> None:
        self._actions = actions
        self._store = store
        self._directory = directory
        self._lists = lists

    async def of_event(self, event: Message, base_url: str) -> dict[str, Any] | None:
        """Returns the notification of an event; None for one that clients have nothing to do with."""
        found = msgspec.json.decode(event.content)
        if event.msg_type == MsgType.RECALLED:
            kind, tips = REVOKED, await self._recalled(event, found)
        elif event.group_id is not None and MsgType.GROUP_CREATED <= event.msg_type <= MsgType.MUTED:
            made = await self._group_tips(event, found, base_url)
            if made is None:
                return None
            kind, tips = made
        else:
            return None
        if not tips:
            return None
        return notification(
            kind,
            tips,
            sender_id=event.sender_id,
            recv_id=event.recv_id or "",
            group_id=event.group_id or "",
            seq=event.seq,
            at=event.send_at,
            message_id=f"nexo_{event.server_msg_id}",
        )

    async def _recalled(self, event: Message, found: dict[str, Any]) -> dict[str, Any]:
        server_msg_id = int(found["server_msg_id"])
        target = (await self._store.numbered([server_msg_id])).get(server_msg_id)
        if target is None:
            return {}
        number, message = target
        return {
            "revokerUserID": found.get("by") or event.sender_id,
            "clientMsgID": client_id_of(message),
            "revokeTime": event.send_at,
            "sesstionType": CHAT if event.group_id is None else GROUP_CHAT,
            "seq": number,
            "conversationID": name_of(event.conversation_id),
            "isAdminRevoke": (found.get("by") or event.sender_id) != message.sender_id,
        }

    async def _group_tips(
        self, event: Message, found: dict[str, Any], base_url: str
    ) -> tuple[int, dict[str, Any]] | None:
        group = await self._actions.groups.info(event.group_id or "")
        named = _users_in(event, found)
        users = await self._directory.users([event.sender_id, group.owner_id, *named])
        tips: dict[str, Any] = {"group": shapes.group_info(group, base_url), "operationTime": event.send_at}
        members, version, version_id = await self._members(group, event.sender_id, base_url)
        tips |= {"groupMemberVersion": version, "groupMemberVersionID": version_id}

        def member(user_id: str) -> dict[str, Any]:
            known = members.get(user_id)
            if known is not None:
                return known
            return shapes.stranger_info(group, shapes.user_or_id(users, user_id), base_url)

        tips["opUser"] = member(event.sender_id)
        if event.msg_type == MsgType.GROUP_CREATED:
            tips["memberList"] = list(members.values())[:LISTED_MAX]
            tips["groupOwnerUser"] = member(group.owner_id)
            return CREATED, tips
        return _change_of(event, found, tips, member, named)

    async def join_asked(self, group_id: str, user_id: str, message: str, base_url: str) -> dict[str, Any]:
        """Returns the notification that a user asks to join a group."""
        group = await self._actions.groups.info(group_id)
        user = shapes.user_or_id(await self._directory.users([user_id]), user_id)
        applicant = shapes.public_user(user, base_url)
        shown = {"group": shapes.group_info(group, base_url), "applicant": applicant, "reqMsg": message}
        return {**shown, "request": shapes.join_request(group, user, message, now_ms(), base_url=base_url)}

    async def _members(self, group: Group, viewer_id: str, base_url: str) -> tuple[dict[str, dict[str, Any]], int, str]:
        """Returns the members of a group and their version. Who caused the event may have left: then the owner asks."""
        for user_id in dict.fromkeys((viewer_id, group.owner_id)):
            try:
                changes, members = await self._lists.follow_members(user_id, group, base_url=base_url)
            except NexoError as error:
                if error.row.retry:
                    raise
            else:
                return members, changes.version, changes.version_id
        return {}, 0, ""


def _users_in(event: Message, found: dict[str, Any]) -> list[str]:
    named = list(found.get("user_ids") or ())[:LISTED_MAX]
    named += [found[name] for name in ("user_id", "from", "to", "by") if isinstance(found.get(name), str)]
    return named


def _change_of(
    event: Message, found: dict[str, Any], tips: dict[str, Any], member: Any, named: list[str]
) -> tuple[int, dict[str, Any]] | None:
    listed = [user_id for user_id in named if user_id in (found.get("user_ids") or ())]
    match event.msg_type:
        case MsgType.JOINED:
            if listed == [found.get("by")] or listed == [event.sender_id]:
                return ENTERED, {**tips, "entrantUser": member(listed[0])}
            return INVITED, {**tips, "invitedUserList": [member(user_id) for user_id in listed]}
        case MsgType.LEFT:
            return QUIT, {**tips, "quitUser": member(found["user_id"])}
        case MsgType.REMOVED:
            return KICKED, {**tips, "kickedUserList": [member(user_id) for user_id in listed]}
        case MsgType.OWNER_TRANSFERRED:
            tips |= {"oldGroupOwner": found["from"], "oldGroupOwnerInfo": member(found["from"])}
            return TRANSFERRED, {**tips, "newGroupOwner": member(found["to"])}
        case MsgType.ROLE_CHANGED:
            kind = MADE_ADMIN if found.get("role") == "admin" else MADE_MEMBER
            return kind, {**tips, "changedUser": member(found["user_id"])}
        case MsgType.GROUP_UPDATED:
            changes = found.get("changes") or {}
            if set(changes) == {"name"}:
                return NAMED, tips
            return ANNOUNCED if set(changes) == {"announcement"} else INFO_SET, tips
        case MsgType.DISMISSED:
            return DISMISSED, tips
        case MsgType.MUTED:
            until = found.get("until") or 0
            if found.get("user_id") is None:
                return ALL_MUTED if until else ALL_UNMUTED, tips
            seconds = 0 if not until else max(1, (until - event.send_at) // 1000) if until > 0 else 0x7FFF_FFFF
            tips |= {"mutedUser": member(found["user_id"]), "mutedSeconds": seconds}
            return MUTED if until else UNMUTED, tips
    return None

"""Conversations: lists with versions, settings, reading; and the calls that only the JavaScript SDK makes."""

from __future__ import annotations

import base64
from typing import Any

from nexo.core.numbering import NumberHead
from nexo.errors import NexoError
from nexo.openim import shapes
from nexo.openim.lists import CONVERSATIONS, changed_shape
from nexo.openim.request import Call, Handler, plain
from nexo.wire.openim import tables
from nexo.wire.openim.names import name_of, read_name
from nexo.wire.openim.protobuf import decode, encode
from nexo.wire.openim.shown import msg_data

ACTIVE_MAX = 100


def conversation_of(call: Call, name: str) -> str:
    """Returns the conversation of the caller with this name."""
    found = read_name(name, call.user_id)
    if found is None or found[1]:
        raise NexoError("conversation_not_found", "There is no such conversation of this user")
    return found[0]


async def get_incremental_conversations(call: Call) -> Any:
    call.check_self("userID")
    entries = await call.facade.lists.conversations(call.user_id)
    changes = await call.facade.lists.follow(
        call.user_id, CONVERSATIONS, entries, call.number("version"), call.text("versionID")
    )
    return changed_shape(changes, entries)


async def get_owner_conversation(call: Call) -> Any:
    call.check_self("userID")
    entries = list((await call.facade.lists.conversations(call.user_id)).values())
    start, count = call.page()
    return {"total": len(entries), "conversations": entries[start : start + count] or None}


async def get_all_conversations(call: Call) -> Any:
    call.check_self("ownerUserID", "userID")
    return {"conversations": list((await call.facade.lists.conversations(call.user_id)).values()) or None}


async def get_full_conversation_ids(call: Call) -> Any:
    call.check_self("userID")
    entries = await call.facade.lists.conversations(call.user_id)
    changes = await call.facade.lists.follow(call.user_id, CONVERSATIONS, entries)
    names = list(entries)
    return {
        "version": changes.version,
        "versionID": changes.version_id,
        "equal": bool(names) and call.body.get("idHash") == shapes.id_hash(names),
        "conversationIDs": names or None,
    }


async def get_not_notify_conversation_ids(call: Call) -> Any:
    call.check_self("userID")
    entries = await call.facade.lists.conversations(call.user_id)
    return {"conversationIDs": [name for name, entry in entries.items() if entry["recvMsgOpt"]] or None}


async def get_pinned_conversation_ids(call: Call) -> Any:
    call.check_self("userID")
    entries = await call.facade.lists.conversations(call.user_id)
    return {"conversationIDs": [name for name, entry in entries.items() if entry["isPinned"]] or None}


async def get_conversations(call: Call) -> Any:
    call.check_self("ownerUserID")
    entries = await call.facade.lists.conversations(call.user_id)
    names = call.names("conversationIDs") or [call.text("conversationID")]
    found = [entries[name] for name in names if name in entries]
    return {"conversations": found or None, "conversation": found[0] if found else None}


async def get_sorted_conversation_list(call: Call) -> Any:
    call.check_self("userID")
    numbers = await call.facade.store.heads(call.user_id)
    named = [(name_of(number.conversation_id), number) for number in numbers]
    return {
        "conversationTotal": len(named),
        "unreadTotal": sum(number.unread for _, number in named),
        "conversationElems": [{"conversationID": name, "unreadCount": one.unread} for name, one in named if name],
    }


async def set_conversations(call: Call) -> Any:
    """Change settings of the caller. Those of other users in the list are theirs to change."""
    wanted = call.part("conversation")
    others = [name for name in call.names("userIDs") if name != call.user_id]
    if call.user_id not in call.names("userIDs") and others:
        raise NexoError("no_permission", "Settings of other users are theirs")
    conversation_id = conversation_of(call, _name_in(call, wanted))
    changes: dict[str, Any] = {}
    pinned, option, ex = plain(wanted.get("isPinned")), plain(wanted.get("recvMsgOpt")), plain(wanted.get("ex"))
    if isinstance(pinned, bool):
        changes["pinned"] = pinned
    if type(option) is int:
        changes["recv_msg_opt"] = option
    if isinstance(ex, str):
        changes["extra"] = {"openim": {"ex": ex}}
    private, burn = plain(wanted.get("isPrivateChat")), plain(wanted.get("burnDuration"))
    if isinstance(private, bool) or type(burn) is int:
        changes["message_ttl_s"] = max(5, burn if type(burn) is int and burn else 30) if private is not False else 0
    if changes:
        # noted as it was, so that the change is one for clients that have not asked since it began
        await call.facade.lists.follow(call.user_id, CONVERSATIONS, await call.facade.lists.conversations(call.user_id))
        await call.facade.actions.change_settings(call.user_id, conversation_id, **changes)
    return {}


def _name_in(call: Call, wanted: dict[str, Any]) -> str:
    name = wanted.get("conversationID")
    if isinstance(name, str) and name:
        return name
    raise NexoError("missing_conversation_id", "conversation.conversationID is missing")


# -- the JavaScript SDK ------------------------------------------------------------------------------------


async def get_active_conversations(call: Call) -> Any:
    asked = decode(tables.ACTIVE_REQUEST, call.raw)
    count = min(ACTIVE_MAX, asked["count"] if asked["count"] > 0 else ACTIVE_MAX)
    numbers = await call.facade.store.heads(call.user_id)
    return await _shown(call, numbers[:count], sum(number.unread for number in numbers))


async def get_named_conversations(call: Call) -> Any:
    names = decode(tables.OWNED_CONVERSATIONS, call.raw)["conversationIDs"][:ACTIVE_MAX]
    found = (read_name(name, call.user_id) for name in names)
    wanted = [one[0] for one in found if one is not None and not one[1]]
    numbers = await call.facade.store.heads(call.user_id, wanted) if wanted else []
    return await _shown(call, numbers, sum(number.unread for number in numbers))


async def _shown(call: Call, numbers: list[NumberHead], unread: int) -> str:
    """Returns conversations with their last messages, as base64 of protobuf."""
    facade, user_id = call.facade, call.user_id
    wanted = [number.conversation_id for number in numbers]
    heads = {head.conversation_id: head for head in await facade.actions.conversations.heads(user_id, wanted)}
    groups = {group.conversation_id: group for group in await facade.lists.groups(user_id)}
    contacts = {contact.user_id: contact for contact in await facade.lists.contacts(user_id)}
    infos = {
        number.conversation_id: shapes.conversation_info(
            user_id, number.conversation_id, heads[number.conversation_id], number.first
        )
        for number in numbers
        if number.conversation_id in heads
    }
    users = await facade.directory.users(info["userID"] for info in infos.values() if info and info["userID"])
    made = []
    for number in numbers:
        info = infos.get(number.conversation_id)
        if info is None:
            continue
        shown: dict[str, Any] = {"conversation": info, "maxSeq": number.head}
        shown["readSeq"] = max(0, number.head - number.unread)
        last = await facade.store.pull(user_id, number.conversation_id, 1, 1 << 62, 1)
        if last.messages:
            one = last.messages[0]
            shown["lastMsg"] = msg_data(one.message, one.number, call.base_url, facade.directory.name, one.is_read)
        if info["userID"] in users:
            shown["user"] = shapes.user_info(users[info["userID"]], call.base_url)
        if info["userID"] in contacts:
            shown["friend"] = shapes.friend_only(user_id, contacts[info["userID"]])
        group = groups.get(number.conversation_id)
        if group is not None:
            shown["group"] = shapes.group_info(group, call.base_url)
        made.append(shown)
    data = encode(tables.CONVERSATION_MSGS, {"unreadCount": unread, "conversations": made})
    return base64.b64encode(data).decode()


ROUTES: dict[str, Handler] = {
    "/conversation/get_incremental_conversations": get_incremental_conversations,
    "/conversation/get_owner_conversation": get_owner_conversation,
    "/conversation/get_all_conversations": get_all_conversations,
    "/conversation/get_full_conversation_ids": get_full_conversation_ids,
    "/conversation/get_not_notify_conversation_ids": get_not_notify_conversation_ids,
    "/conversation/get_pinned_conversation_ids": get_pinned_conversation_ids,
    "/conversation/get_conversations": get_conversations,
    "/conversation/get_conversation": get_conversations,
    "/conversation/get_sorted_conversation_list": get_sorted_conversation_list,
    "/conversation/set_conversations": set_conversations,
    "/conversation/set_conversation": set_conversations,
    "/jssdk/get_active_conversations": get_active_conversations,
    "/jssdk/get_conversations": get_named_conversations,
}

"""Messages: reading, recalling and deleting by number."""

from __future__ import annotations

from typing import Any

from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.openim.conversations import conversation_of
from nexo.openim.request import Call, Handler
from nexo.wire.openim.names import name_of, read_name


async def mark_conversation_as_read(call: Call) -> Any:
    call.check_self("userID")
    conversation_id = conversation_of(call, call.text("conversationID"))
    await _read(call, conversation_id, call.number("hasReadSeq") or max(call.numbers("seqs"), default=0))
    return {}


async def set_conversation_has_read_seq(call: Call) -> Any:
    call.check_self("userID")
    await _read(call, conversation_of(call, call.text("conversationID")), call.number("hasReadSeq"))
    return {}


async def mark_msgs_as_read(call: Call) -> Any:
    call.check_self("userID")
    await _read(call, conversation_of(call, call.text("conversationID")), max(call.numbers("seqs"), default=0))
    return {}


async def _read(call: Call, conversation_id: str, number: int) -> None:
    """Move the read cursor to a message. At the last one, events after it are read too."""
    if number <= 0:
        return
    heads = await call.facade.store.heads(call.user_id, [conversation_id])
    if not heads:
        return
    if number >= heads[0].head:
        await call.facade.actions.mark_read(call.user_id, conversation_id, seq=heads[0].head_seq)
        return
    places = await call.facade.store.places(call.user_id, conversation_id, [number])
    if number in places:
        await call.facade.actions.mark_read(call.user_id, conversation_id, seq=places[number][0])


async def revoke_msg(call: Call) -> Any:
    call.check_self("userID")
    conversation_id, number = conversation_of(call, call.text("conversationID")), call.number("seq")
    places = await call.facade.store.places(call.user_id, conversation_id, [number])
    if number not in places:
        raise NexoError("message_not_found")
    server_msg_id = places[number][1]
    call.facade.notices.expect(server_msg_id, call.operation_id)
    await call.facade.actions.recall(call.user_id, server_msg_id)
    return {}


async def delete_msgs(call: Call) -> Any:
    call.check_self("userID")
    conversation_id = conversation_of(call, call.text("conversationID"))
    places = await call.facade.store.places(call.user_id, conversation_id, call.numbers("seqs"))
    if places:
        await call.facade.actions.delete_messages(call.user_id, [place[1] for place in places.values()])
    return {}


async def clear_conversation_msg(call: Call) -> Any:
    call.check_self("userID")
    for name in call.names("conversationIDs") or [call.text("conversationID")]:
        found = read_name(name, call.user_id)
        if found is not None and not found[1]:
            await call.facade.actions.clear_conversation(call.user_id, found[0])
    return {}


async def user_clear_all_msg(call: Call) -> Any:
    call.check_self("userID")
    for head in await call.facade.store.heads(call.user_id):
        await call.facade.actions.clear_conversation(call.user_id, head.conversation_id)
    return {}


async def get_has_read_and_max_seq(call: Call) -> Any:
    call.check_self("userID")
    names = call.names("conversationIDs")
    wanted = None
    if names:
        found = (read_name(name, call.user_id) for name in names)
        wanted = [one[0] for one in found if one is not None and not one[1]]
    heads = await call.facade.store.heads(call.user_id, wanted)
    named = ((name_of(head.conversation_id), head) for head in heads)
    return {
        "seqs": {
            name: {"maxSeq": head.head, "hasReadSeq": max(0, head.head - head.unread), "maxSeqTime": head.last_at}
            for name, head in named
            if name
        }
    }


async def newest_seq(call: Call) -> Any:
    call.check_self("userID")
    heads = await call.facade.store.heads(call.user_id)
    named = [(name_of(head.conversation_id), head) for head in heads]
    return {
        "maxSeqs": {name: head.head for name, head in named if name},
        "minSeqs": {name: head.first for name, head in named if name},
    }


async def get_server_time(call: Call) -> Any:
    return {"serverTime": now_ms()}


ROUTES: dict[str, Handler] = {
    "/msg/mark_conversation_as_read": mark_conversation_as_read,
    "/msg/set_conversation_has_read_seq": set_conversation_has_read_seq,
    "/msg/mark_msgs_as_read": mark_msgs_as_read,
    "/msg/revoke_msg": revoke_msg,
    "/msg/delete_msgs": delete_msgs,
    "/msg/clear_conversation_msg": clear_conversation_msg,
    "/msg/user_clear_all_msg": user_clear_all_msg,
    "/msg/get_conversations_has_read_and_max_seq": get_has_read_and_max_seq,
    "/conversation/get_conversations_has_read_and_max_seq": get_has_read_and_max_seq,
    "/msg/newest_seq": newest_seq,
    "/msg/get_server_time": get_server_time,
}

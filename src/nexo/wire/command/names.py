"""How the command dialect names conversations: `p_{a}_{b}` for two people, the group's id for a group.

User ids may contain underscores, so `p_a_b_c` can be the chat of `a` with `b_c` and that of `a_b` with `c`: it
is for reading. Requests name a chat by `chat_type` and the peer's or group's id, and whatever is sent out
carries the ids themselves as well.
"""

from __future__ import annotations

from typing import Any

from nexo.core.model import Kind
from nexo.errors import NexoError
from nexo.ids import (
    check_user_id,
    group_conversation_id,
    is_group_id,
    is_user_id,
    single_conversation_id,
)


def shown_name(conversation_id: str) -> str:
    """`si_a:b` as `p_a_b`, `sg_g_…` as `g_…`."""
    if conversation_id.startswith("si_"):
        return "p_" + conversation_id[3:].replace(":", "_", 1)
    return conversation_id[3:]


def chat_type_of(conversation_id: str) -> int:
    return Kind.SINGLE if conversation_id.startswith("si_") else Kind.GROUP


def naming(conversation_id: str) -> dict[str, Any]:
    """How a push names its conversation: the same for every receiver, and unambiguous."""
    if conversation_id.startswith("si_"):
        low, _, high = conversation_id[3:].partition(":")
        return {"conversation_id": f"p_{low}_{high}", "chat_type": 1, "user_ids": (low, high)}
    group_id = conversation_id[3:]
    return {"conversation_id": group_id, "chat_type": 2, "group_id": group_id}


def target_of(chat_type: int, chat_id: str) -> tuple[str | None, str | None]:
    """The receiver or the group that is meant, one of the two."""
    if not chat_id:
        raise NexoError("missing_receiver", "Name the peer's user id or the group id")
    if chat_type == Kind.SINGLE:
        return chat_id, None
    if chat_type == Kind.GROUP:
        return None, chat_id
    raise NexoError("bad_request", "chat_type is 1 (private) or 2 (group)")


def conversation_of(user_id: str, chat_type: int, chat_id: str) -> str:
    peer_id, group_id = target_of(chat_type, chat_id)
    if group_id is not None:
        if not is_group_id(group_id):
            raise NexoError("group_not_found")
        return group_conversation_id(group_id)
    assert peer_id is not None
    check_user_id(peer_id, "receiver")
    if peer_id == user_id:
        raise NexoError("bad_receiver", "There is no chat with yourself")
    return single_conversation_id(user_id, peer_id)


def conversation_by_name(user_id: str, name: str) -> str:
    """The conversation that a user means by the name it was shown under. Between two readings that both
    fit (`a_z_a` reading `p_a_z_a_z_a`) nothing is guessed."""
    if is_group_id(name):
        return group_conversation_id(name)
    if not name.startswith("p_"):
        raise NexoError("bad_conversation_id", "A conversation_id is p_{user}_{user} or a group id")
    inner = name[2:]
    peers = set()
    if inner.startswith(f"{user_id}_"):
        peers.add(inner[len(user_id) + 1 :])
    if inner.endswith(f"_{user_id}"):
        peers.add(inner[: -len(user_id) - 1])
    fitting = {
        found
        for peer in peers
        if is_user_id(peer) and shown_name(found := single_conversation_id(user_id, peer)) == name and peer != user_id
    }
    if len(fitting) != 1:
        detail = "has two readings; name the chat by chat_type and chat_id" if fitting else "is no chat of yours"
        raise NexoError("bad_conversation_id", f"{name[:150]} {detail}")
    return fitting.pop()

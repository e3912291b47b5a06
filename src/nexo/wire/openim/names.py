"""Names of conversations: `si_<a>_<b>`, `sg_<group>` and their twins for notifications, `n_<a>_<b>` and `n_<group>`.

Ids of users may contain `_`, so a name can be read as more than one pair. A client's name is read as a chat of that
client's user. Where one user could read a name in two ways, only the pair with the shorter first id has a name; the
other one does not exist for OpenIM clients, so that two chats never meet.
"""

from __future__ import annotations

from functools import lru_cache

from nexo.ids import is_group_id, is_user_id, peers_of, single_conversation_id

SINGLE, GROUP, TWIN = "si_", "sg_", "n_"


@lru_cache(20_000)
def is_named(low: str, high: str) -> bool:
    """Returns whether the chat of these two users has a name of its own."""
    text = f"{low}_{high}"
    if "_" not in low and "_" not in high:
        return True
    if is_group_id(text):  # its twin would be that of the group
        return False
    at = text.find("_")
    while 0 <= at < len(low):
        first, second = text[:at], text[at + 1 :]
        is_pair = first < second and is_user_id(first) and is_user_id(second)
        if is_pair and {first, second} & {low, high}:
            return False
        at = text.find("_", at + 1)
    return True


def name_of(conversation_id: str) -> str:
    """Returns the name of a conversation; empty for a chat that has none."""
    if conversation_id.startswith(GROUP):
        return conversation_id
    low, _, high = conversation_id[3:].partition(":")
    return f"{SINGLE}{low}_{high}" if is_named(low, high) else ""


def twin_of(conversation_id: str) -> str:
    """Returns the name of a conversation's notifications."""
    if conversation_id.startswith(GROUP):
        return TWIN + conversation_id[3:]
    return f"{TWIN}{conversation_id[3:].replace(':', '_')}"


def twin_of_pair(a: str, b: str) -> str:
    return f"{TWIN}{min(a, b)}_{max(a, b)}"


def read_name(name: str, user_id: str) -> tuple[str, bool] | None:
    """Returns the conversation that this user means, and whether its notifications; None if there is no such."""
    if name.startswith(TWIN):
        rest = name[len(TWIN) :]
        if is_group_id(rest):
            return GROUP + rest, True
        conversation_id = _chat_of(rest, user_id)
        return None if conversation_id is None else (conversation_id, True)
    if name.startswith(GROUP):
        return (name, False) if is_group_id(name[3:]) else None
    if name.startswith(SINGLE):
        conversation_id = _chat_of(name[3:], user_id)
        return None if conversation_id is None else (conversation_id, False)
    return None


def _chat_of(pair: str, user_id: str) -> str | None:
    for peer in (pair.removeprefix(f"{user_id}_"), pair.removesuffix(f"_{user_id}")):
        if peer in (pair, user_id) or not is_user_id(peer):
            continue
        low, high = min(peer, user_id), max(peer, user_id)
        if f"{low}_{high}" == pair and is_named(low, high):
            return single_conversation_id(low, high)
    return None


def has_name(conversation_id: str) -> bool:
    peers = peers_of(conversation_id)
    return peers is None or is_named(*peers)

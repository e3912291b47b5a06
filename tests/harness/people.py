"""Rows as plain values, for tests that need no database."""

from __future__ import annotations

from typing import Any

from nexo.core.model import Conversation, Kind, Member


def a_member(**fields: Any) -> Member:
    known: dict[str, Any] = dict.fromkeys(Member.__struct_fields__, 0)
    known |= {"conv": 1, "user_id": "alice", "peer_id": "", "from_seq": 1}
    known |= {"to_seq": None, "to_countable": None, "to_at_all": None}
    return Member(**known | fields)


def a_conversation(**fields: Any) -> Conversation:
    known: dict[str, Any] = dict.fromkeys(Conversation.__struct_fields__, 0)
    known |= {"id": 1, "conversation_id": "sg_g_000000000000", "kind": Kind.GROUP}
    return Conversation(**known | fields)

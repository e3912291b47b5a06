"""A member changes its own row in one group: nickname, avatar and extra. Joining, leaving and roles: `groups.py`."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from nexo.core.model import GroupMember, MsgType
from nexo.store.engine import Script, do
from nexo.store.files.uses import set_avatar
from nexo.store.group_reading import read_one_member
from nexo.store.groups import Change, Changed


class OwnMember(NamedTuple):
    member: GroupMember
    changed: Changed


def member_subject(conv: int, user_id: str) -> str:
    """Returns the name under which the picture of a member is noted."""
    return f"m:{conv}:{user_id}"


def set_own(change: Change, changes: dict[str, str | None]) -> Script[OwnMember]:
    """Writes columns of the actor's own row, and the event by which other members learn of it."""
    if (yield from change.open()):
        changed = change.done_before()
        return OwnMember((yield from read_one_member(change.conversation.id, change.actor_id)), changed)
    member = yield from change.actor()
    if "group_avatar" in changes:
        subject = member_subject(member.conv, member.user_id)
        yield from set_avatar(change.sql, subject, member.user_id, changes["group_avatar"] or "")
    yield do(
        f"UPDATE members SET {','.join(f'{name}=?' for name in changes)} WHERE conv=? AND user_id=?",
        *changes.values(),
        member.conv,
        member.user_id,
    )
    shown: dict[str, Any] = {"user_id": member.user_id, **changes}
    if changes.get("extra") is not None:
        shown["extra"] = msgspec.json.decode(str(changes["extra"]))
    content = {"changes": {"member": shown}, "by": change.actor_id}
    changed = yield from change.finish(MsgType.GROUP_UPDATED, content)
    return OwnMember((yield from read_one_member(member.conv, member.user_id)), changed)

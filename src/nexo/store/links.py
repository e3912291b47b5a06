"""Invite links as scripts. Each takes the lock of the group's conversation, as joining does: uses are exact."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core import policy
from nexo.core.model import MemberStatus
from nexo.core.people import GroupLink, LinkView
from nexo.errors import NexoError
from nexo.store import rows
from nexo.store.conversations import lock_member, save_conversation
from nexo.store.engine import NOW, Script, do
from nexo.store.engine import rows as query
from nexo.store.group_reading import read_role
from nexo.store.groups import Change, Changed, let_in
from nexo.store.sql import Sql

LISTED_MAX = 500
_LINK = rows.columns(GroupLink.__struct_fields__)


def group_of_link(code: str) -> Script[str]:
    """Returns the group of a link that was made and not deleted; raises `link_expired`."""
    found = yield query("SELECT group_id FROM group_links WHERE code=?", code)
    if not found:
        raise NexoError("link_expired")
    return str(found[0][0])


def _lock_link(sql: Sql, code: str) -> Script[GroupLink]:
    found = yield query(f"SELECT {_LINK} FROM group_links WHERE code=?{sql.for_update}", code)
    if not found:
        raise NexoError("link_expired")
    return GroupLink(*found[0])


def add(change: Change, code: str, expires_s: int, uses: int, max_links: int) -> Script[GroupLink]:
    """Makes a link, by the owner or an admin. Ended links of the group are deleted on the way."""
    yield from change.open()
    policy.check_manager((yield from change.actor()))
    now_ms = change.now_ms
    yield do(
        "DELETE FROM group_links WHERE group_id=? AND (revoked_at>0 OR (expires_at>0 AND expires_at<=?) "
        "OR (uses>0 AND used>=uses))",
        change.group_id,
        now_ms,
    )
    ((count,),) = yield query("SELECT COUNT(*) FROM group_links WHERE group_id=? AND code<>?", change.group_id, code)
    if count >= max_links:
        raise NexoError("too_many_links", f"A group has at most {max_links} links")
    expires_at = now_ms + expires_s * 1000 if expires_s else 0
    link = GroupLink(code, change.group_id, change.actor_id, uses, 0, now_ms, expires_at)
    names = GroupLink.__struct_fields__
    insert = change.sql.insert_ignore("group_links", names, ("code",))
    yield do(insert, *(getattr(link, name) for name in names))
    yield from save_conversation(change.conversation)
    return link


class LinkJoin(NamedTuple):
    group_id: str
    changed: Changed


def join(change: Change, code: str, max_members: int) -> Script[LinkJoin]:
    """Takes one use of a link and lets the actor in, without approval. A member joins again without taking a use."""
    if (yield from change.open()):
        return LinkJoin(change.group_id, change.done_before())
    link = yield from _lock_link(change.sql, code)
    member = yield from lock_member(change.sql, change.conversation.id, change.actor_id)
    if member is not None and member.status == MemberStatus.NORMAL:
        return LinkJoin(change.group_id, Changed())
    if link.group_id != change.group_id or not link.is_open(change.now_ms):
        raise NexoError("link_expired")
    yield do("UPDATE group_links SET used=used+1 WHERE code=?", code)
    changed = yield from let_in(change, [change.actor_id], max_members, inviter=link.creator_id)
    if not changed.added:
        raise NexoError("user_not_found")
    return LinkJoin(change.group_id, changed)


def revoke(change: Change, code: str) -> Script[None]:
    """Ends a link, by its creator, the owner or an admin. Repeated: the same."""
    yield from change.open()
    actor = yield from change.actor()
    link = yield from _lock_link(change.sql, code)
    if link.creator_id != change.actor_id:
        policy.check_manager(actor)
    yield do("UPDATE group_links SET revoked_at=? WHERE code=? AND revoked_at=0", change.now_ms, code)
    yield from save_conversation(change.conversation)


def view(code: str, user_id: str) -> Script[LinkView]:
    """Returns the group that an open link leads to."""
    found = yield query(
        f"SELECT {rows.columns(GroupLink.__struct_fields__, 'l')},g.name,g.avatar,c.member_count,c.status,m.status "
        "FROM group_links l JOIN chat_groups g ON g.group_id=l.group_id JOIN conversations c ON c.id=g.conv "
        "LEFT JOIN members m ON m.conv=g.conv AND m.user_id=? WHERE l.code=?",
        user_id,
        code,
    )
    now_ms = yield NOW
    if not found:
        raise NexoError("link_expired")
    *link, name, avatar, member_count, status, membership = found[0]
    if not GroupLink(*link).is_open(now_ms):
        raise NexoError("link_expired")
    if status:
        raise NexoError("group_not_available")
    return LinkView(link[1], name, avatar, member_count, membership == MemberStatus.NORMAL)


def read_links(group_id: str, user_id: str) -> Script[list[GroupLink]]:
    """Returns the open links of a group, for its owner and admins."""
    policy.check_manager((yield from read_role(group_id, user_id)))
    now_ms = yield NOW
    found = yield query(
        f"SELECT {_LINK} FROM group_links WHERE group_id=? ORDER BY created_at,code LIMIT {LISTED_MAX}", group_id
    )
    return [link for link in (GroupLink(*row) for row in found) if link.is_open(now_ms)]

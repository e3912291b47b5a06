"""Contacts and contact requests as scripts.

Every change locks the chat of the two users, then their rows in the order of ids: requests that cross are decided one
after the other, and the numbers of contacts are exact. The mark that a sender needs where only contacts may write is in
the members of that chat, under the same lock: a send asks no other table.
"""

from __future__ import annotations

from typing import NamedTuple

from nexo.core.people import Contact, ContactChange, ContactRequest, LastSeenFor
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.store.accounts import blockers
from nexo.store.conversations import lock_conversation, save_conversation
from nexo.store.engine import NOW, Script, do, proof
from nexo.store.engine import rows as query
from nexo.store.journal import writing
from nexo.store.sql import Sql

CHUNK = 500


class ContactBounds(NamedTuple):
    contacts: int
    requests: int


class _Pair(NamedTuple):
    conv: int
    now_ms: int
    is_contact: bool


def _lock_pair(sql: Sql, user_id: str, other_id: str) -> Script[_Pair | None]:
    """Locks the chat of two users and their rows; None when that chat does not exist yet."""
    conversation = yield from lock_conversation(sql, single_conversation_id(user_id, other_id))
    if conversation is None:
        return None
    low, high = sorted((user_id, other_id))
    found = yield query(
        f"SELECT user_id,deleted_at FROM users WHERE user_id IN (?,?) ORDER BY user_id{sql.for_update}", low, high
    )
    if any(row[0] == user_id and row[1] for row in found):
        raise NexoError("user_deleted")
    if len(found) < 2 or any(row[1] for row in found):
        raise NexoError("user_not_found", f"There is no user {other_id}")
    # a change of the row, so that every database orders this transaction with others on the same conversation
    conversation.member_epoch += 1
    yield from save_conversation(conversation)
    known = yield query("SELECT 1 FROM contacts WHERE user_id=? AND contact_id=?", user_id, other_id)
    return _Pair(conversation.id, (yield NOW), bool(known))


def request(
    sql: Sql, user_id: str, other_id: str, message: str, request_id: int, bounds: ContactBounds
) -> Script[ContactChange | None]:
    """Stores a request; one that meets an open request of the other user makes the two contacts. Repeated, it is the
    same request. None: the chat of the two has to be created first."""
    pair = yield from _lock_pair(sql, user_id, other_id)
    if pair is None:
        return None
    if pair.is_contact:
        done = yield proof("SELECT 1 FROM contacts WHERE user_id=? AND contact_id=?", user_id, other_id)
        return ContactChange("accepted", request_id, pair.now_ms, is_new=done)
    if (yield from blockers(sql, user_id, [other_id])):
        raise NexoError("blocked")
    crossed = yield query("SELECT request_id FROM contact_requests WHERE to_id=? AND from_id=?", user_id, other_id)
    if crossed:
        yield from _connect(sql, pair, user_id, other_id, bounds)
        return ContactChange("accepted", request_id, pair.now_ms, message, crossed[0][0])
    known = yield query(
        "SELECT request_id,created_at FROM contact_requests WHERE to_id=? AND from_id=?", other_id, user_id
    )
    if known:
        return ContactChange("pending", known[0][0], known[0][1], message, is_new=known[0][0] == request_id)
    for column, owner in (("to_id", other_id), ("from_id", user_id)):
        ((count,),) = yield query(f"SELECT COUNT(*) FROM contact_requests WHERE {column}=?", owner)
        if count >= bounds.requests:
            raise NexoError("too_many_contacts", f"There are {bounds.requests} open requests of {owner} already")
    yield do(
        "INSERT INTO contact_requests (to_id,from_id,request_id,message,created_at) VALUES (?,?,?,?,?)",
        other_id,
        user_id,
        request_id,
        message,
        pair.now_ms,
    )
    yield from writing.note(pair.now_ms, writing.contact(user_id, other_id, "requested"))
    return ContactChange("pending", request_id, pair.now_ms, message)


def decide(
    sql: Sql, user_id: str, other_id: str, accept: bool, bounds: ContactBounds, memo: list[ContactChange]
) -> Script[ContactChange]:
    """Accepts or refuses the open request of another user. A refused request leaves no trace. `memo` has the result of
    an earlier attempt, which may be committed."""
    pair = yield from _lock_pair(sql, user_id, other_id)
    found = yield query("SELECT request_id FROM contact_requests WHERE to_id=? AND from_id=?", user_id, other_id)
    if pair is None or not found:
        if memo:
            return memo[0]
        raise NexoError("contact_request_not_found")
    request_id = found[0][0]
    if accept:
        yield from _connect(sql, pair, user_id, other_id, bounds)
    else:
        yield do("DELETE FROM contact_requests WHERE to_id=? AND from_id=?", user_id, other_id)
    memo[:] = [ContactChange("accepted" if accept else "refused", request_id, pair.now_ms)]
    return memo[0]


def _connect(sql: Sql, pair: _Pair, user_id: str, other_id: str, bounds: ContactBounds) -> Script[None]:
    for owner in (user_id, other_id):
        ((count,),) = yield query("SELECT COUNT(*) FROM contacts WHERE user_id=?", owner)
        if count >= bounds.contacts:
            raise NexoError("too_many_contacts", f"{owner} has {bounds.contacts} contacts already")
    low, high = sorted((user_id, other_id))
    insert = sql.insert_ignore("contacts", ("user_id", "contact_id", "created_at"), ("user_id", "contact_id"), 2)
    yield do(insert, low, high, pair.now_ms, high, low, pair.now_ms)
    for to_id, from_id in ((low, high), (high, low)):
        yield do("DELETE FROM contact_requests WHERE to_id=? AND from_id=?", to_id, from_id)
    yield do("UPDATE members SET contact=1 WHERE conv=?", pair.conv)
    yield from writing.note(pair.now_ms, writing.contact(user_id, other_id, "accepted"))


def remove(sql: Sql, user_id: str, other_id: str, memo: list[bool]) -> Script[None]:
    """Ends the contact of two users, for both. `memo` is not empty after an attempt that may be committed."""
    pair = yield from _lock_pair(sql, user_id, other_id)
    if pair is None or not pair.is_contact:
        if memo:
            return
        raise NexoError("not_contact", f"{other_id} is not a contact of yours")
    for owner, contact in sorted(((user_id, other_id), (other_id, user_id))):
        yield do("DELETE FROM contacts WHERE user_id=? AND contact_id=?", owner, contact)
    yield do("UPDATE members SET contact=0 WHERE conv=?", pair.conv)
    yield from writing.note(pair.now_ms, writing.contact(user_id, other_id, "removed"))
    memo[:] = [True]


_CONTACT = (
    "SELECT c.contact_id,u.nickname,u.avatar,c.remark,c.created_at FROM contacts c "
    "JOIN users u ON u.user_id=c.contact_id AND u.deleted_at=0 WHERE c.user_id=?"
)


def set_remark(user_id: str, other_id: str, remark: str) -> Script[Contact]:
    yield do("UPDATE contacts SET remark=? WHERE user_id=? AND contact_id=?", remark, user_id, other_id)
    found = yield query(f"{_CONTACT} AND c.contact_id=?", user_id, other_id)
    if not found:
        raise NexoError("not_contact", f"{other_id} is not a contact of yours")
    return Contact(*found[0])


def read_contacts(user_id: str, after: str, limit: int) -> Script[list[Contact]]:
    """Returns contacts in the order of their ids."""
    found = yield query(
        f"{_CONTACT} AND c.contact_id>? ORDER BY c.contact_id LIMIT {int(limit)}",
        user_id,
        after,
    )
    return [Contact(*row) for row in found]


def read_requests(user_id: str, sent: bool, after: str, limit: int) -> Script[list[ContactRequest]]:
    """Returns open requests that a user has received, or sent, in the order of the other users' ids."""
    own, other = ("from_id", "to_id") if sent else ("to_id", "from_id")
    found = yield query(
        f"SELECT r.request_id,r.{other},r.message,r.created_at FROM contact_requests r WHERE r.{own}=? "
        f"AND r.{other}>? ORDER BY r.{other} LIMIT {int(limit)}",
        user_id,
        after,
    )
    return [ContactRequest(*row) for row in found]


def hidden_from(sql: Sql, viewer_id: str, user_ids: list[str]) -> Script[set[str]]:
    """Returns the users among these whose presence another user may not see: they have blocked the viewer, or show it
    to contacts only, or not at all."""
    hidden = yield from blockers(sql, viewer_id, user_ids)
    careful: list[str] = []  # who show it to contacts
    for start in range(0, len(user_ids), CHUNK):
        chosen = sql.one_of("user_id", user_ids[start : start + CHUNK])
        found = yield query(
            f"SELECT user_id,last_seen_for FROM users WHERE {chosen.sql} AND last_seen_for>0", *chosen.params
        )
        hidden.update(row[0] for row in found if row[1] == LastSeenFor.NONE)
        careful += [row[0] for row in found if row[1] == LastSeenFor.CONTACTS]
    hidden.update(careful)
    for start in range(0, len(careful), CHUNK):
        chosen = sql.one_of("user_id", careful[start : start + CHUNK])
        found = yield query(
            f"SELECT user_id FROM contacts WHERE contact_id=? AND {chosen.sql}", viewer_id, *chosen.params
        )
        hidden.difference_update(row[0] for row in found)
    return hidden - {viewer_id}

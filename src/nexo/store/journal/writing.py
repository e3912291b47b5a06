"""Rows of the journal: each transaction with a change writes one, with references to the changed rows.

The row is inserted while the transaction holds the lock of what it changed (a conversation, a user, a member), so the
numbers of rows ascend in the order of commits for each of them. A reference is a short list whose first element is
its kind; the rows are looked up when the journal is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from nexo.core.journal import CALL, CHANGED, CONTACT, EXPIRED, FILE, GROUP, READ, USER
from nexo.core.model import Conversation
from nexo.store.engine import Script, do

INSERT = "INSERT INTO journal (at,entries) VALUES "
EMPTY = "[]"

_encode = msgspec.json.Encoder().encode


def note(now_ms: int, entries: str) -> Script[None]:
    yield do(f"{INSERT}(?,?)", now_ms, entries)


def changed(first_seqs: Mapping[int, int], conversations: Mapping[int, Conversation]) -> str:
    """Return the references to what was added to conversations, from the first new seq of each to its head."""
    # for every batch of sends: the fastest way there is
    return _encode([(CHANGED, conv, seq, conversations[conv].head_seq) for conv, seq in first_seqs.items()]).decode()


def user(user_id: str, change: str) -> str:
    return _encode([[USER, user_id, change]]).decode()


def users(changes: Iterable[tuple[str, str]]) -> str:
    return _encode([[USER, user_id, change] for user_id, change in changes]).decode()


def group(conv: int, change: str) -> str:
    """Return the reference to a group that was changed without an event in its conversation."""
    return _encode([[GROUP, conv, change]]).decode()


def expired(conv: int, seqs: Iterable[int]) -> str:
    """Return the references to messages whose content was erased at their time."""
    return _encode([[EXPIRED, conv, seq] for seq in seqs]).decode()


def contact(user_id: str, other_id: str, change: str) -> str:
    """Return the reference to a change between two users; the first of them has made it."""
    return _encode([[CONTACT, user_id, f"{change}:{other_id}"]]).decode()


def call(call_id: int, change: str) -> str:
    """Return the reference to a call that has started or ended."""
    return _encode([[CALL, call_id, change]]).decode()


def file(file_id: str, change: str, owner_id: str) -> str:
    """Return the reference to a file; with its owner, because a deleted one has no row."""
    return _encode([[FILE, file_id, f"{change}:{owner_id}"]]).decode()


def reads(members: Iterable[tuple[int, str]]) -> str:
    """Return the references to read cursors that moved: conversation and user of each."""
    return _encode([[READ, conv, user_id] for conv, user_id in members]).decode()

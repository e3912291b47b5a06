"""Versions of lists (friends, groups, conversations, members of a group), for clients that ask what has changed.

A row holds the list as it was when a client last asked: the version at which each entry was added or changed, a digest
of it, and which entries are gone. It is derived from what the list is now, whenever a client asks: no way of changing a
list has to know of it, and a lost row only makes clients fetch the whole list.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct

from nexo.store.engine import Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql

GONE_MAX = 2000  # entries that are remembered after they have left a list


class ListState(Struct, array_like=True):
    """A list at one version. An entry is its digest, the version that added it and the version of its last change."""

    entries: dict[str, tuple[str, int, int]] = {}
    gone: dict[str, int] = {}
    since: int = 0  # what left the list before this version is forgotten


class Changes(NamedTuple):
    """What has changed since a client's version; `full`: unknown, so that it needs the whole list."""

    version: int
    version_id: str
    full: bool
    inserted: list[str]
    updated: list[str]
    deleted: list[str]


_decode = msgspec.json.Decoder(ListState).decode
_encode = msgspec.json.Encoder().encode


def follow(
    sql: Sql, owner: str, kind: str, digests: Mapping[str, str], version: int, version_id: str
) -> Script[Changes]:
    """Bring the row of a list up to date with its present entries. Returns the changes since the client's version."""
    yield do(
        sql.insert_ignore("openim_versions", ("owner", "kind", "version", "version_id", "state"), ("owner", "kind")),
        owner,
        kind,
        0,
        secrets.token_hex(12),
        "[{},{},0]",
    )
    ((current, own_id, text),) = yield query(
        f"SELECT version,version_id,state FROM openim_versions WHERE owner=? AND kind=?{sql.for_update}", owner, kind
    )
    state = _decode(text)
    if _update(state, digests, current + 1) or not current:
        current += 1
        yield do(
            "UPDATE openim_versions SET version=?,state=? WHERE owner=? AND kind=?",
            current,
            _encode(state).decode(),
            owner,
            kind,
        )
    if version_id != own_id or not state.since <= version <= current:
        return Changes(current, own_id, True, [], [], [])
    inserted = [name for name, entry in state.entries.items() if entry[1] > version]
    # what was added and changed since then is both: a client may know a conversation by its messages
    changed = [(name, entry) for name, entry in state.entries.items() if version < entry[2]]
    updated = [name for name, entry in changed if entry[1] <= version or entry[1] < entry[2]]
    return Changes(current, own_id, False, inserted, updated, [name for name, at in state.gone.items() if at > version])


def _update(state: ListState, digests: Mapping[str, str], version: int) -> bool:
    """Note what differs from the present entries at this version. Returns whether anything does."""
    is_changed = False
    for name, digest in digests.items():
        entry = state.entries.get(name)
        if entry is None:
            state.entries[name] = (digest, version, version)
            state.gone.pop(name, None)
        elif entry[0] != digest:
            state.entries[name] = (digest, entry[1], version)
        else:
            continue
        is_changed = True
    for name in [name for name in state.entries if name not in digests]:
        del state.entries[name]
        state.gone[name] = version
        is_changed = True
    while len(state.gone) > GONE_MAX:
        oldest = min(state.gone, key=state.gone.__getitem__)
        state.since = max(state.since, state.gone.pop(oldest))
    return is_changed

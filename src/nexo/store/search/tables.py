"""The index of search in tables of the database: one row for each term of a message.

The key begins with the block of the conversation, so that a question reads only rows of the asker's conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nexo.core.journal import Place
from nexo.core.search_index import (
    NEWEST,
    Candidate,
    IndexQuery,
    IndexState,
    IndexStep,
    IndexUnit,
    SearchEntry,
    joined_terms,
    newest_ids,
)
from nexo.core.search_query import Lookup
from nexo.core.search_text import MediaKind
from nexo.store.engine import Script, do
from nexo.store.engine import rows as query
from nexo.store.sql import Sql, insert_rows

FORMAT = 1
ROWS_AT_ONCE = 500
FORGOTTEN_AT_ONCE = 5000
AFTER_ALL = "\U0010ffff"  # behind every character that a term has
_STATE = "SELECT format,version,position,part,below,last_id,entries FROM search_state WHERE id=1"
_KINDS = ",".join(str(int(kind)) for kind in MediaKind)
_DOC = ("server_msg_id", "conv", "seq", "sender_id", "msg_type", "kind", "send_at", "terms")
_MEDIA = ("conv", "kind", "seq")
_UNIT = ("conv", "block", "last_id")
_TERM = ("conv", "block", "term", "server_msg_id")


def state(sql: Sql, *, locked: bool = False) -> Script[IndexState]:
    """Returns the state; with `locked` no other transaction changes it until this one ends."""
    found = yield query(_STATE + (sql.for_update if locked else ""))
    if not found and not locked:
        return IndexState(0, None, 0, 0, 0)
    if not found:
        insert = sql.insert_ignore("search_state", ("id", "format", "position"), ("id",))
        yield do(insert, 1, FORMAT, -1)
        found = yield query(_STATE + sql.for_update)
    form, version, position, part, below, last_id, entries = found[0]
    place = None if position < 0 or form != FORMAT else Place(position, part)
    return IndexState(version, place, below, last_id, entries)


def forget(sql: Sql) -> Script[bool]:
    """Deletes some rows. Returns False when the index is empty. Until it is built again, it has no place."""
    before = yield from state(sql, locked=True)
    yield do("UPDATE search_state SET version=?,position=-1 WHERE id=1", before.version + 1)
    found = yield query("SELECT conv,block FROM search_units ORDER BY conv,block LIMIT 1")
    if not found:
        return False
    ((conv, block),) = found
    if (yield from _forget_some("search_terms", "term", "conv=? AND block=?", (conv, block))):
        return True
    others = yield query("SELECT 1 FROM search_units WHERE conv=? AND block<>? LIMIT 1", conv, block)
    if not others and (yield from _forget_some("search_docs", "server_msg_id", "conv=?", (conv,))):
        return True
    if not others and (yield from _forget_some("search_media", "seq", "conv=?", (conv,))):
        return True
    yield do("DELETE FROM search_units WHERE conv=? AND block=?", conv, block)
    return True


def _forget_some(table: str, column: str, where: str, params: tuple[int, ...]) -> Script[bool]:
    """Returns whether rows are left: a step must not take long."""
    found = yield query(
        f"SELECT {column} FROM {table} WHERE {where} ORDER BY {column} LIMIT 1 OFFSET {FORGOTTEN_AT_ONCE}", *params
    )
    if found:
        yield do(f"DELETE FROM {table} WHERE {where} AND {column}<=?", *params, found[0][0])
        return True
    yield do(f"DELETE FROM {table} WHERE {where}", *params)
    return False


def begin(sql: Sql, place: Place) -> Script[IndexState]:
    before = yield from state(sql, locked=True)
    yield do(
        "UPDATE search_state SET format=?,version=?,position=?,part=?,below=?,last_id=0,entries=0 WHERE id=1",
        FORMAT,
        before.version + 1,
        *place,
        NEWEST,
    )
    return (yield from state(sql))


def apply(sql: Sql, version: int, step: IndexStep) -> Script[IndexState | None]:
    """Writes a step. Returns the new state; None, and writes nothing, if the index has another version."""
    before = yield from state(sql, locked=True)
    if before.version != version:
        return None
    known = yield from _known(sql, [(entry.conv, entry.server_msg_id) for entry in step.entries])
    gone = yield from _known(sql, [(conv, server_msg_id) for server_msg_id, conv, _ in step.removed])
    entries: list[SearchEntry] = []
    for entry in step.entries:
        earlier = known.get(entry.server_msg_id)
        if earlier is None:
            entries.append(entry)
        elif (terms := joined_terms(earlier.terms, entry.terms)) != earlier.terms:
            entries.append(entry._replace(terms=terms))
            gone[entry.server_msg_id] = earlier
    yield from _remove(sql, list(gone.values()))
    yield from _add(sql, entries)
    last_id = max((entry.server_msg_id for entry in entries), default=0)
    yield do(
        f"UPDATE search_state SET version=?,position=?,part=?,below=?,last_id={sql.greatest}(last_id,?),"
        "entries=entries+? WHERE id=1",
        version + 1,
        *step.place,
        step.below,
        last_id,
        len(entries) - len(gone),
    )
    return (yield from state(sql))


def _known(sql: Sql, keys: list[tuple[int, int]]) -> Script[dict[int, SearchEntry]]:
    columns = ",".join(f"t.{name}" for name in _DOC)
    found: dict[int, SearchEntry] = {}
    for start in range(0, len(keys), ROWS_AT_ONCE):
        part = keys[start : start + ROWS_AT_ONCE]
        chosen = sql.by_pairs(columns, "search_docs", ("conv", "server_msg_id"), "bigint", part, "")
        for row in (yield query(chosen.sql, *chosen.params)):
            found[row[0]] = SearchEntry(*row)
    return found


def _remove(sql: Sql, entries: list[SearchEntry]) -> Script[None]:
    for entry in entries:
        for start in range(0, len(terms := entry.terms.split()), ROWS_AT_ONCE):
            chosen = sql.one_of("term", terms[start : start + ROWS_AT_ONCE])
            yield do(
                f"DELETE FROM search_terms WHERE conv=? AND block=? AND {chosen.sql} AND server_msg_id=?",
                entry.conv,
                entry.block,
                *chosen.params,
                entry.server_msg_id,
            )
        yield do("DELETE FROM search_docs WHERE conv=? AND server_msg_id=?", entry.conv, entry.server_msg_id)
        if entry.kind:
            yield do(f"DELETE FROM search_media WHERE conv=? AND kind IN ({_KINDS}) AND seq=?", entry.conv, entry.seq)


def _add(sql: Sql, entries: list[SearchEntry]) -> Script[None]:
    if not entries:
        return
    yield from _insert("search_docs", _DOC, [tuple(entry) for entry in entries])
    terms = sorted(
        (entry.conv, entry.block, term, entry.server_msg_id) for entry in entries for term in entry.terms.split()
    )
    yield from _insert("search_terms", _TERM, terms)
    kinds = sorted((entry.conv, entry.kind, entry.seq) for entry in entries if entry.kind)
    if kinds:
        add_media = sql.insert_ignore("search_media", _MEDIA, _MEDIA, len(kinds))
        yield do(add_media, *(value for row in kinds for value in row))
    newest = sorted((*key, last_id) for key, last_id in newest_ids(entries).items())
    raised = sql.insert_or_raise("search_units", _UNIT, _UNIT[:2], len(newest))
    yield do(raised, *(value for row in newest for value in row))


def _insert(table: str, columns: Sequence[str], values: Sequence[Sequence[Any]]) -> Script[None]:
    for start in range(0, len(values), ROWS_AT_ONCE):
        part = values[start : start + ROWS_AT_ONCE]
        yield do(insert_rows(table, columns, len(part)), *(value for row in part for value in row))


def units(sql: Sql, convs: Sequence[int]) -> Script[list[IndexUnit]]:
    found: list[IndexUnit] = []
    for start in range(0, len(convs), ROWS_AT_ONCE):
        chosen = sql.one_of("conv", convs[start : start + ROWS_AT_ONCE], "bigint")
        rows = yield query(f"SELECT conv,block,last_id FROM search_units WHERE {chosen.sql}", *chosen.params)
        found += [IndexUnit(*row) for row in rows]
    return found


def candidates(sql: Sql, asked: IndexQuery) -> Script[list[Candidate]]:
    """Returns the newest messages of these blocks that have all the terms: one statement for each block."""
    found: list[Candidate] = []
    exact_first = sorted(asked.lookups, key=_breadth)
    for unit in asked.units:
        found += yield from _in_unit(sql, asked, unit, exact_first)
    found.sort(reverse=True)
    return found[: asked.limit]


def _breadth(lookup: Lookup) -> tuple[bool, int]:
    return lookup.is_prefix, -len(lookup.term)


def _in_unit(sql: Sql, asked: IndexQuery, unit: IndexUnit, lookups: list[Lookup]) -> Script[list[Candidate]]:
    conditions, params = _conditions(asked)
    tests, values = "", []
    for lookup in lookups[1:]:
        chosen, bounds = _chosen("x", lookup)
        tests += (
            f" AND EXISTS (SELECT 1 FROM search_terms x WHERE x.conv=? AND x.block=? AND {chosen} "
            "AND x.server_msg_id=t.server_msg_id)"
        )
        values += [unit.conv, unit.block, *bounds]
    chosen, bounds = _chosen("t", lookups[0])
    rows = yield query(
        "SELECT DISTINCT t.server_msg_id,d.conv,d.seq FROM search_terms t "
        "JOIN search_docs d ON d.conv=t.conv AND d.server_msg_id=t.server_msg_id "
        f"WHERE t.conv=? AND t.block=? AND {chosen} AND t.server_msg_id<?{tests}{conditions} "
        "ORDER BY t.server_msg_id DESC LIMIT ?",
        unit.conv,
        unit.block,
        *bounds,
        asked.below,
        *values,
        *params,
        asked.limit,
    )
    return [Candidate(*row) for row in rows]


def _chosen(table: str, lookup: Lookup) -> tuple[str, list[str]]:
    if not lookup.is_prefix:
        return f"{table}.term=?", [lookup.term]
    return f"{table}.term>=? AND {table}.term<?", [lookup.term, lookup.term + AFTER_ALL]


def _conditions(asked: IndexQuery) -> tuple[str, list[Any]]:
    wanted = asked.wanted
    named = (
        ("sender_id=", wanted.sender_id),
        ("msg_type=", wanted.msg_type),
        ("send_at>=", wanted.after),
        ("send_at<", wanted.before),
    )
    given = [(column, value) for column, value in named if value is not None]
    return "".join(f" AND d.{column}?" for column, _ in given), [value for _, value in given]


def media(conv: int, kind: int, before_seq: int, limit: int) -> Script[list[int]]:
    found = yield query(
        "SELECT seq FROM search_media WHERE conv=? AND kind=? AND seq<? ORDER BY seq DESC LIMIT ?",
        conv,
        kind,
        before_seq,
        limit,
    )
    return [row[0] for row in found]

"""The index of search in a file of its own: statements on FTS5.

FTS5 gets terms that were made before, each with its block in front (`conversation.block:term`). So a question reads
only the terms of the asker's conversations, a prefix is a short range of them, and the newest come first because the
row is the message's id. A whole batch goes through one statement: between the rows of several statements a thread of
Python would have to wait for the interpreter each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from nexo.core.journal import Place
from nexo.core.search_index import (
    BLOCK_BITS,
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
from nexo.store.engine import Script, do, many
from nexo.store.engine import rows as query

SAMPLED_UNITS = 2
MERGED_PAGES = 256  # about a megabyte
FORMAT = 1  # another one is built anew
_TABLES = ("state", "docs", "media", "units", "words")
_SCHEMA = (
    "CREATE TABLE state (id INTEGER PRIMARY KEY, format INTEGER, version INTEGER, position INTEGER, part INTEGER, "
    "below INTEGER, last_id INTEGER, entries INTEGER)",
    "CREATE TABLE docs (id INTEGER PRIMARY KEY, conv INTEGER, seq INTEGER, sender TEXT, type INTEGER, kind INTEGER, "
    "at INTEGER, terms TEXT)",
    "CREATE TABLE media (conv INTEGER, kind INTEGER, seq INTEGER, PRIMARY KEY (conv,kind,seq)) WITHOUT ROWID",
    "CREATE TABLE units (conv INTEGER, block INTEGER, last_id INTEGER, PRIMARY KEY (conv,block)) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE words USING fts5(t, content='', columnsize=0, detail=none, "
    "tokenize=\"ascii tokenchars '.:'\")",
    "INSERT INTO words(words,rank) VALUES('automerge',8)",  # while it is filled; the rest is merged in quiet times
    "INSERT INTO words(words,rank) VALUES('usermerge',2)",
)
_STATE = "SELECT version,position,part,below,last_id,entries FROM state WHERE id=1"
_UNIT = f"printf('%x.%x:',conv,seq>>{BLOCK_BITS})"
_WORDS = f"{_UNIT}||replace(terms,' ',' '||{_UNIT})"
_CHOSEN = "id IN (SELECT value FROM json_each(?))"
_KINDS = ",".join(str(int(kind)) for kind in MediaKind)

_encode = msgspec.json.Encoder().encode


def make_schema() -> Script[None]:
    """Makes the tables, unless they are there in the present format."""
    found = {row[0] for row in (yield query("SELECT name FROM sqlite_master WHERE type='table'"))}
    if found.issuperset(_TABLES) and (yield query("SELECT 1 FROM state WHERE format=?", FORMAT)):
        return
    yield from _make(0, found)


def _make(version: int, found: set[str]) -> Script[None]:
    for name in _TABLES:
        if name in found:
            yield do(f"DROP TABLE {name}")
    for statement in _SCHEMA:
        yield do(statement)
    yield do("INSERT INTO state VALUES (1,?,?,-1,0,0,0,0)", FORMAT, version)


def state() -> Script[IndexState]:
    ((version, position, part, below, last_id, entries),) = yield query(_STATE)
    return IndexState(version, None if position < 0 else Place(position, part), below, last_id, entries)


def begin(place: Place) -> Script[IndexState]:
    """Empties the index: messages are indexed from the newest on, and from this place of the journal on."""
    before = yield from state()
    yield from _make(before.version + 1, set(_TABLES))
    yield do("UPDATE state SET position=?,part=?,below=? WHERE id=1", *place, NEWEST)
    return (yield from state())


def apply(version: int, step: IndexStep) -> Script[IndexState | None]:
    """Writes a step. Returns the new state; None, and writes nothing, if the index has another version."""
    before = yield from state()
    if before.version != version:
        return None
    entries, replaced = yield from _merged(step.entries)
    removed = yield from _remove([*(item[0] for item in step.removed), *replaced])
    if entries:
        yield from _add(entries)
    yield do(
        "UPDATE state SET version=?,position=?,part=?,below=?,last_id=max(last_id,?),entries=entries+?-? WHERE id=1",
        version + 1,
        *step.place,
        step.below,
        max((entry.server_msg_id for entry in entries), default=0),
        len(entries),
        removed,
    )
    return (yield from state())


def _merged(entries: Sequence[SearchEntry]) -> Script[tuple[list[SearchEntry], list[int]]]:
    """Returns the entries that are new or have more terms than before, and the ids of the latter."""
    if not entries:
        return [], []
    ids = _encode([entry.server_msg_id for entry in entries]).decode()
    found = {row[0]: row[1] for row in (yield query(f"SELECT id,terms FROM docs WHERE {_CHOSEN}", ids))}
    if not found:
        return list(entries), []
    made: list[SearchEntry] = []
    for entry in entries:
        known = found.get(entry.server_msg_id)
        if known is None:
            made.append(entry)
            continue
        terms = joined_terms(known, entry.terms)
        if terms == known:
            del found[entry.server_msg_id]
        else:
            made.append(entry._replace(terms=terms))
    return made, list(found)


def _remove(ids: Sequence[int]) -> Script[int]:
    """Returns how many there were."""
    if not ids:
        return 0
    chosen = _encode(ids).decode()
    found = yield query(f"SELECT conv,seq FROM docs WHERE {_CHOSEN}", chosen)
    if found:
        yield do(
            f"INSERT INTO words(words,rowid,t) SELECT 'delete',id,{_WORDS} FROM docs "
            f"WHERE {_CHOSEN} AND terms<>'' ORDER BY id",
            chosen,
        )
        yield do(f"DELETE FROM docs WHERE {_CHOSEN}", chosen)
        yield many(f"DELETE FROM media WHERE conv=? AND kind IN ({_KINDS}) AND seq=?", found)
    return len(found)


def _add(entries: list[SearchEntry]) -> Script[None]:
    rows = _encode([tuple(entry) for entry in entries]).decode()
    fields = ",".join(f"json_extract(value,'$[{i}]')" for i in range(len(SearchEntry._fields)))
    yield do(f"INSERT INTO docs(id,conv,seq,sender,type,kind,at,terms) SELECT {fields} FROM json_each(?)", rows)
    ids = _encode([entry.server_msg_id for entry in entries]).decode()
    yield do(
        # ascending: FTS5 writes a part of its own whenever an id is lower than the one before it
        f"INSERT INTO words(rowid,t) SELECT id,{_WORDS} FROM docs WHERE {_CHOSEN} AND terms<>'' ORDER BY id",
        ids,
    )
    kinds = [(entry.conv, entry.kind, entry.seq) for entry in entries if entry.kind]
    if kinds:
        yield many("INSERT OR IGNORE INTO media VALUES (?,?,?)", kinds)
    newest = _encode([(*key, last_id) for key, last_id in newest_ids(entries).items()]).decode()
    yield do(
        "INSERT INTO units SELECT json_extract(value,'$[0]'),json_extract(value,'$[1]'),json_extract(value,'$[2]') "
        "FROM json_each(?) WHERE true ON CONFLICT DO UPDATE SET last_id=max(last_id,excluded.last_id)",
        newest,
    )


def tend() -> Script[bool]:
    """Merges some pages of parts of the index: a question looks into each part. Returns whether there is more to do."""
    ((before,),) = yield query("SELECT total_changes()")
    yield do(f"INSERT INTO words(words,rank) VALUES('merge',{MERGED_PAGES})")
    ((after,),) = yield query("SELECT total_changes()")
    return bool(after - before >= 2)


def units(convs: Sequence[int]) -> Script[list[IndexUnit]]:
    found = yield query(
        "SELECT conv,block,last_id FROM units WHERE conv IN (SELECT value FROM json_each(?))", _encode(convs).decode()
    )
    return [IndexUnit(*row) for row in found]


def candidates(asked: IndexQuery) -> Script[list[Candidate]]:
    """Returns the newest messages of these blocks that have all the terms.

    FTS5 collects everything that begins with a prefix before it returns a row. So it is given one prefix at most, the
    rarest; whether a row has the remaining ones is seen by its terms."""
    given, seen = yield from _divided(asked)
    expression = " OR ".join(f"({_all_in(unit, given)})" for unit in asked.units)
    conditions, params = _conditions(asked)
    for lookup in seen:
        conditions += " AND instr(' '||docs.terms,?)>0"
        params.append(f" {lookup.term}")
    found = yield query(
        "SELECT words.rowid,docs.conv,docs.seq FROM words CROSS JOIN docs ON docs.id=words.rowid "
        f"WHERE words MATCH ? AND words.rowid<?{conditions} ORDER BY words.rowid DESC LIMIT ?",
        expression,
        asked.below,
        *params,
        asked.limit,
    )
    return [Candidate(*row) for row in found]


def _divided(asked: IndexQuery) -> Script[tuple[list[Lookup], list[Lookup]]]:
    """Returns the lookups for FTS5, and those that are compared with the terms of a row."""
    prefixes = [lookup for lookup in asked.lookups if lookup.is_prefix]
    exact = [lookup for lookup in asked.lookups if not lookup.is_prefix]
    if not prefixes or len(asked.lookups) == 1:
        return list(asked.lookups), []
    counts: dict[Lookup, int] = {}
    for lookup in asked.lookups:
        expression = " OR ".join(_all_in(unit, [lookup]) for unit in asked.units[:SAMPLED_UNITS])
        ((counts[lookup],),) = yield query("SELECT count(*) FROM words WHERE words MATCH ?", expression)
    rarest = min(asked.lookups, key=lambda lookup: counts[lookup])
    given = [*exact, rarest] if rarest.is_prefix else exact
    return given, [lookup for lookup in prefixes if lookup is not rarest]


def _all_in(unit: IndexUnit, lookups: Sequence[Lookup]) -> str:
    # terms hold letters and digits only: there is nothing to escape
    return " AND ".join(
        f'"{unit.conv:x}.{unit.block:x}:{lookup.term}"{" *" if lookup.is_prefix else ""}' for lookup in lookups
    )


def _conditions(asked: IndexQuery) -> tuple[str, list[Any]]:
    wanted = asked.wanted
    conditions, params = "", []
    for column, value in (("sender=", wanted.sender_id), ("type=", wanted.msg_type), ("at>=", wanted.after)):
        if value is not None:
            conditions += f" AND docs.{column}?"
            params.append(value)
    if wanted.before is not None:
        conditions += " AND docs.at<?"
        params.append(wanted.before)
    return conditions, params


def media(conv: int, kind: int, before_seq: int, limit: int) -> Script[list[int]]:
    found = yield query(
        "SELECT seq FROM media WHERE conv=? AND kind=? AND seq<? ORDER BY seq DESC LIMIT ?",
        conv,
        kind,
        before_seq,
        limit,
    )
    return [row[0] for row in found]

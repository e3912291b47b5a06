"""The rows of every table before and after, to see how many a change touched."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness.core import look
from nexo.assembly.core import Core
from nexo.store.schema import metadata

Snapshot = dict[str, dict[tuple[Any, ...], tuple[Any, ...]]]


async def snapshot(core: Core) -> Snapshot:
    """Every row of every table by its primary key; leases are renewed on their own and left out."""
    found: Snapshot = {}
    for name, table in metadata.tables.items():
        if name == "node_leases":
            continue
        columns = list(table.columns.keys())
        keys = [columns.index(column.name) for column in table.primary_key.columns]
        rows = await look(core, f"SELECT {','.join(columns)} FROM {name}")
        found[name] = {tuple(row[key] for key in keys): row for row in rows}
    return found


def changed_rows(before: Snapshot, after: Snapshot) -> dict[str, int]:
    """How many rows of each table are new, gone or different."""
    changed: Counter[str] = Counter()
    for name in before:
        keys = before[name].keys() | after[name].keys()
        changed[name] = sum(before[name].get(key) != after[name].get(key) for key in keys)
    return {name: count for name, count in changed.items() if count}

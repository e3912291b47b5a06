"""Connections of copies and imports."""

from __future__ import annotations

import sys
from pathlib import Path

from nexo.config import parse_store_url
from nexo.store.transfer.connections import open_target, transaction


async def test_a_statement_that_follows_itself_at_once_is_not_disturbed_by_the_end_of_the_first(tmp_path: Path) -> None:
    """Each runs in a thread, and they share one prepared statement."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        async with open_target(parse_store_url(f"sqlite:///{tmp_path}/new.db")) as connection:
            await connection.do("CREATE TABLE numbers (number INTEGER)")
            async with transaction(connection):
                for start in range(0, 20_000, 20):
                    await connection.insert("numbers", ["number"], [(number,) for number in range(start, start + 20)])
            assert await connection.read("SELECT count(*),min(number),max(number) FROM numbers") == [
                (20_000, 0, 19_999)
            ]
    finally:
        sys.setswitchinterval(before)

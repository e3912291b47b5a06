"""Links of copies and imports."""

from __future__ import annotations

import sys
from pathlib import Path

from nexo.config import parse_store_url
from nexo.store.transfer.links import target_link, transaction


async def test_a_statement_that_follows_itself_at_once_is_not_disturbed_by_the_end_of_the_first(tmp_path: Path) -> None:
    """Each runs in a thread, and they share one prepared statement."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        async with target_link(parse_store_url(f"sqlite:///{tmp_path}/new.db")) as link:
            await link.do("CREATE TABLE numbers (number INTEGER)")
            async with transaction(link):
                for start in range(0, 20_000, 20):
                    await link.insert("numbers", ["number"], [(number,) for number in range(start, start + 20)])
            assert await link.read("SELECT count(*),min(number),max(number) FROM numbers") == [(20_000, 0, 19_999)]
    finally:
        sys.setswitchinterval(before)

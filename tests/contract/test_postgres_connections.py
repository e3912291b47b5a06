"""Connections to PostgreSQL: kept at hand, given to whoever waits, and prepared before anything is locked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from harness.waiting import loop_turns, until
from nexo.config import parse_store_url
from nexo.store.engine import Mode, Stmt
from nexo.store.engines.hosts import Hosts
from nexo.store.engines.postgres.driver import PostgresDriver, _is_usable
from nexo.store.engines.server_kind import connect_options

KEPT = 2

ASKS = Stmt("SELECT relname FROM pg_class WHERE relname=?", ("pg_class",), Mode.ROWS)
PREPARED = Stmt("SELECT statement FROM pg_prepared_statements", (), Mode.ROWS)


@pytest.fixture(params=[pytest.param("postgresql", marks=pytest.mark.servers)])
def engine_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def opened(store_url: str, pool_size: int = 4) -> AsyncIterator[PostgresDriver]:
    url = parse_store_url(store_url)
    driver = PostgresDriver(
        connect_options(url), Hosts(url.hosts), pool_size=pool_size, lock_timeout_ms=3000, needs_primary=True
    )
    await driver.open()
    try:
        async with asyncio.timeout(60):
            yield driver
    finally:
        await driver.close()


async def test_what_one_transaction_ran_is_prepared_elsewhere_before_a_transaction_begins(store_url: str) -> None:
    async with opened(store_url) as driver:
        one = await driver.acquire(True)
        other = await driver.acquire(True)  # there before anybody ran it
        await driver.command(one, "BEGIN")
        await driver.run(one, ASKS)
        await driver.command(one, "COMMIT")
        await driver.release(other, True)
        other = await driver.acquire(True)
        third = await driver.acquire(True)
        for connection in (other, third):
            known = [row[0] for row in await driver.run(connection, PREPARED)]
            assert any("relname=$1" in statement for statement in known)
        for connection in (one, other, third):
            await driver.release(connection, True)


@pytest.mark.parametrize("for_writing", [False, True])
async def test_whoever_waits_gets_the_next_one(store_url: str, for_writing: bool) -> None:
    async with opened(store_url, pool_size=KEPT) as driver:
        held = [await driver.acquire(for_writing) for _ in range(KEPT)]
        waiting = [asyncio.create_task(driver.acquire(for_writing)) for _ in range(2 * KEPT)]
        await loop_turns()
        for connection in held:
            await driver.release(connection, for_writing)
        for task in waiting:
            await driver.release(await task, for_writing)
        assert len(await asyncio.gather(*(driver.acquire(for_writing) for _ in range(KEPT)))) == KEPT


async def test_one_that_was_lost_while_it_was_kept_is_replaced(store_url: str) -> None:
    async with opened(store_url, pool_size=1) as driver:
        kept = await driver.acquire(True)
        number = kept.get_server_pid()
        await driver.release(kept, True)
        reader = await driver.acquire(False)
        await driver.run(reader, Stmt("SELECT pg_terminate_backend(?)", (number,), Mode.ROWS))
        await until(lambda: not _is_usable(kept))
        again = await driver.acquire(True)  # there is room for one only
        assert again.get_server_pid() != number
        await driver.run(again, ASKS)
        for connection, for_writing in ((again, True), (reader, False)):
            await driver.release(connection, for_writing)


async def test_one_that_is_in_a_transaction_is_not_kept(store_url: str) -> None:
    async with opened(store_url, pool_size=1) as driver:
        one = await driver.acquire(True)
        await driver.command(one, "BEGIN")
        with contextlib.suppress(Exception):
            await driver.run(one, Stmt("SELECT 1/0", (), Mode.ROWS))
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the driver complains
        await driver.release(one, True)
        again = await driver.acquire(True)
        assert not again.is_in_transaction()
        await driver.release(again, True)

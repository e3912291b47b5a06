"""What an attempt becomes when its server refuses, at COMMIT too."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest
from asyncmy import errors as my

from nexo.store.engine import CommitUnknown, Script, Stmt, StoreError, Transient, do
from nexo.store.engines.mysql.driver import MysqlDriver
from nexo.store.engines.postgres.driver import PostgresDriver
from nexo.store.engines.server import LostConnection, NotWritable, RolledBack, ServerEngine


class ScriptedDriver:
    """A driver whose server refuses one word."""

    name = "scripted"

    def __init__(self, refused: str, error: Exception, translate: Any) -> None:
        self._refused, self._error = refused, error
        self.translate = translate
        self.aborted = self.dropped = 0

    async def acquire(self, for_writing: bool) -> object:
        return self

    async def release(self, connection: object, for_writing: bool) -> None:
        pass

    def abort(self, connection: object) -> None:
        self.aborted += 1

    def drop_idle(self) -> None:
        self.dropped += 1

    async def run(self, connection: object, statement: Stmt) -> None:
        await self.command(connection, statement.sql)

    async def command(self, connection: object, word: str) -> None:
        if word == self._refused:
            raise self._error


def script() -> Script[None]:
    yield do("WRITE")


async def attempt(driver: ScriptedDriver) -> Exception:
    engine = ServerEngine(driver, 100)  # type: ignore[arg-type]
    with pytest.raises(StoreError) as caught:
        await engine.write_once(script)
    return caught.value


POSTGRES_READ_ONLY = asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction")
POSTGRES_SERIALIZATION = asyncpg.SerializationError("could not serialize access")


@pytest.mark.parametrize("word", ["WRITE", "COMMIT"])
@pytest.mark.parametrize(
    ("error", "translate"),
    [(my.OperationalError(code, "refused"), MysqlDriver.translate) for code in (1047, 1290, 1792, 1836)]
    + [(POSTGRES_READ_ONLY, PostgresDriver.translate)],
)
async def test_a_server_that_takes_no_writes_is_left_and_nothing_was_committed(
    word: str, error: Exception, translate: Any
) -> None:
    driver = ScriptedDriver(word, error, translate)
    raised = await attempt(driver)
    assert isinstance(raised, NotWritable)
    assert isinstance(raised, Transient)
    assert driver.aborted == driver.dropped == 1


@pytest.mark.parametrize("word", ["WRITE", "COMMIT"])
@pytest.mark.parametrize(
    ("error", "translate"),
    [
        (my.OperationalError(1213, "deadlock"), MysqlDriver.translate),
        (POSTGRES_SERIALIZATION, PostgresDriver.translate),
    ],
)
async def test_a_failed_certification_is_a_certain_rollback_and_the_connection_stays(
    word: str, error: Exception, translate: Any
) -> None:
    driver = ScriptedDriver(word, error, translate)
    assert isinstance(await attempt(driver), RolledBack)
    assert driver.aborted == driver.dropped == 0


async def test_a_connection_lost_in_commit_leaves_the_outcome_unknown_and_drops_its_siblings() -> None:
    driver = ScriptedDriver("COMMIT", ConnectionResetError("reset"), PostgresDriver.translate)
    raised = await attempt(driver)
    assert isinstance(raised, CommitUnknown)
    assert isinstance(driver.translate(ConnectionResetError("reset")), LostConnection)
    assert driver.dropped == 1

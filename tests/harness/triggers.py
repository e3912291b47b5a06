"""A database that refuses, now and then, to make a conversation: as after a deadlock, nothing is written."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness import sql
from harness.scripts import intercepted
from nexo.assembly.core import Core
from nexo.store.engine import MARK, Stmt, Transient

_POSTGRES = (
    "CREATE FUNCTION refuse_create() RETURNS trigger AS $$ BEGIN IF random() < {share} THEN "
    "RAISE EXCEPTION 'could not serialize' USING ERRCODE = '40001'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql",
    "CREATE TRIGGER refuse_create BEFORE INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION refuse_create()",
)
_MARIADB = (
    "CREATE TRIGGER refuse_create BEFORE INSERT ON conversations FOR EACH ROW BEGIN IF RAND() < {share} THEN "
    "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'a deadlock'; END IF; END",
)


@asynccontextmanager
async def create_fails(core: Core, url: str, share: float) -> AsyncIterator[None]:
    """Inside the block this share of all attempts to make a conversation fails, and the next one may work."""
    if url.startswith("sqlite:"):
        # Its triggers can only refuse for good. One thread writes, so only between two attempts at a batch can
        # something else come between: batches fail, too.

        def fail(name: str, statement: Stmt) -> None:
            creates = name == "create_singles" and statement.sql.startswith("INSERT INTO conversations")
            begins = name == "script" and statement is MARK
            if (creates and random.random() < share) or (begins and random.random() < share / 2):
                raise Transient("the database is locked")

        with intercepted(core, fail):
            yield
        return
    is_postgres = url.startswith("postgresql:")
    async with sql.connected(url) as run:
        for statement in _POSTGRES if is_postgres else _MARIADB:
            await run(statement.format(share=share))
        try:
            yield
        finally:
            await run("DROP TRIGGER refuse_create ON conversations" if is_postgres else "DROP TRIGGER refuse_create")
            if is_postgres:
                await run("DROP FUNCTION refuse_create")

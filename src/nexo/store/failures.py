"""What opening or migrating a database may raise, of whatever engine; for those who only report it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from asyncmy.errors import MySQLError

from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.engine import StoreError

FAILURES: tuple[type[Exception], ...] = (
    StoreError,
    MySQLError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that was lost in the middle of COPY
    sqlite3.Error,
    OSError,
)


def failure_text(error: Exception) -> str:
    return str(error) or type(error).__name__


@contextmanager
def telling_failures(url: StoreUrl) -> Iterator[None]:
    """What a database or its driver complains of, as a line for whoever starts Nexo."""
    try:
        yield
    except FAILURES as error:
        raise StartupError(f"the database {url.redacted()} cannot be used: {failure_text(error)}") from error

"""What opening or migrating a database may raise, of whatever engine; for those who only report it."""

from __future__ import annotations

import sqlite3

import asyncpg
from asyncmy.errors import MySQLError
from sqlalchemy.exc import SQLAlchemyError

from nexo.store.engine import StoreError

FAILURES: tuple[type[Exception], ...] = (
    StoreError,
    SQLAlchemyError,
    MySQLError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    sqlite3.Error,
    OSError,
)


def failure_text(error: Exception) -> str:
    """The driver's own words: SQLAlchemy's are followed by the statement and its values."""
    return str(getattr(error, "orig", None) or error) or type(error).__name__

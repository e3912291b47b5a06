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


_UNREACHABLE = "is it running, and are host and port in store.url right?"
_DENIED = "the user or the password in store.url is wrong"
_NO_DATABASE = "create the database first (docs/operate.md), then run `nexo migrate`"
_NO_RIGHT = "its user needs all rights on the database: GRANT them"
_TOO_MANY = "raise its limit of connections, or lower store.pool_size on every instance"
_DISK_FULL = "make room on its disk"
_ADVICE_MYSQL = {
    2003: _UNREACHABLE,
    1045: _DENIED,
    1698: _DENIED,
    1049: _NO_DATABASE,
    1044: _NO_RIGHT,
    1142: _NO_RIGHT,
    1040: _TOO_MANY,
    1203: _TOO_MANY,
    1021: _DISK_FULL,
    1114: _DISK_FULL,
}
_ADVICE_POSTGRES = {
    "28P01": _DENIED,
    "28000": _DENIED,
    "3D000": _NO_DATABASE,
    "42501": _NO_RIGHT,
    "53300": _TOO_MANY,
    "53100": _DISK_FULL,
}
_ADVICE_SQLITE = {
    "SQLITE_NOTADB": "this file is something else: is store.url right?",
    "SQLITE_CORRUPT": "the file is damaged: bring it back from a backup (docs/operate.md)",
    "SQLITE_FULL": _DISK_FULL,
    "SQLITE_IOERR": "its disk fails: look at the system's log",
    "SQLITE_READONLY": "may the user that Nexo runs as write there?",
    "SQLITE_CANTOPEN": "may the user that Nexo runs as write there?",
    "SQLITE_BUSY": "another program holds it: end that first",
}


def what_to_do(error: BaseException, url: StoreUrl) -> str:
    """One who starts a server at night is told the next step; empty where nothing better than the error is known."""
    causes: list[BaseException] = []
    while error not in causes:
        causes.append(error)
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__ or error
    for cause in causes:
        if isinstance(cause, MySQLError) and cause.args and cause.args[0] in _ADVICE_MYSQL:
            return _ADVICE_MYSQL[cause.args[0]]
        if isinstance(cause, asyncpg.PostgresError) and cause.sqlstate in _ADVICE_POSTGRES:
            return _ADVICE_POSTGRES[cause.sqlstate]
        name = getattr(cause, "sqlite_errorname", "") or str(cause)
        for word, advice in _ADVICE_SQLITE.items():
            if url.engine == "sqlite" and name.startswith(word):
                return advice
    if any(isinstance(cause, OSError) for cause in causes):
        return _ADVICE_SQLITE["SQLITE_CANTOPEN"] if url.engine == "sqlite" else _UNREACHABLE
    return ""


@contextmanager
def telling_failures(url: StoreUrl) -> Iterator[None]:
    """What a database or its driver complains of, as a line for whoever starts Nexo."""
    try:
        yield
    except FAILURES as error:
        text = f"the database {url.redacted()} cannot be used: {failure_text(error)}"
        advice = what_to_do(error, url)
        raise StartupError(f"{text}; {advice}" if advice else text) from error

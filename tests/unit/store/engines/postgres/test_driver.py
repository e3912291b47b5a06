"""What is made of the errors of the driver."""

from __future__ import annotations

import asyncpg
import pytest

from nexo.store.engine import StoreError, Transient
from nexo.store.engines.postgres.driver import PostgresDriver


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
            Transient,
            "the connection was lost in the middle of a statement",
        ),
        (
            asyncpg.CannotConnectNowError("the database system is starting up\nDETAIL:  Not yet.\n"),
            Transient,
            "CannotConnectNowError: the database system is starting up; DETAIL:  Not yet.",
        ),
        (asyncpg.UndefinedTableError("no such table"), StoreError, "UndefinedTableError: no such table"),
    ],
    ids=["a state of the driver", "several lines", "a fault of ours"],
)
def test_an_error_is_told_in_one_line_and_in_the_words_of_the_database(
    error: Exception, kind: type[StoreError], words: str
) -> None:
    translated = PostgresDriver.translate(error)
    assert isinstance(translated, kind)
    assert str(translated) == words

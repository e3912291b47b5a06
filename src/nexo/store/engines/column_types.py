"""Column types of the schema, as each engine has them.

Identifiers compare byte-wise in every engine: SQLite does so by itself, PostgreSQL gets collation "C",
MySQL and MariaDB a binary collation without padding for whole tables (`binary_collation` in `engines/mysql/sql.py`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, LargeBinary, String, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine


def text_key(length: int) -> TypeEngine[str]:
    """Text that is compared, sorted or looked up."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def big_key() -> TypeEngine[int]:
    # SQLite takes a column of exactly this type for the number of the row, and numbers new rows by itself
    return BigInteger().with_variant(Integer(), "sqlite")


def long_text() -> TypeEngine[str]:
    return Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def short_bytes(length: int) -> TypeEngine[bytes]:
    return LargeBinary(length).with_variant(mysql.VARBINARY(length), "mysql", "mariadb")

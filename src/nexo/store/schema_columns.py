"""The metadata of all tables, and columns that many of them have."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, MetaData, SmallInteger

metadata = MetaData()


def number(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=str(default))


def flag(name: str, default: int = 0) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=str(default))


def number_key(name: str) -> Column[int]:
    return Column(name, BigInteger, primary_key=True, autoincrement=False)

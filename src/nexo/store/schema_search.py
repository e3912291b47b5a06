"""The tables of the index of search in a server database; see search/tables.py. The embedded database has a file."""

from __future__ import annotations

from sqlalchemy import Column, Integer, SmallInteger, Table

from nexo.store.engines.column_types import long_text, text_key
from nexo.store.schema_columns import flag, metadata, number, number_key

search_state = Table(  # the index of search in a server database; see search/tables.py
    "search_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    *map(number, ("format", "version", "position", "part", "below", "last_id", "entries")),
)

search_docs = Table(
    "search_docs",
    metadata,
    *map(number_key, ("conv", "server_msg_id")),
    number("seq"),
    Column("sender_id", text_key(64), nullable=False),
    Column("msg_type", SmallInteger, nullable=False),
    flag("kind"),
    number("send_at"),
    Column("terms", long_text(), nullable=False),
)

search_terms = Table(
    "search_terms",
    metadata,
    *map(number_key, ("conv", "block")),
    Column("term", text_key(64), primary_key=True),
    number_key("server_msg_id"),
)

search_units = Table("search_units", metadata, number_key("conv"), number_key("block"), number("last_id"))

search_media = Table(
    "search_media",
    metadata,
    number_key("conv"),
    Column("kind", SmallInteger, primary_key=True, autoincrement=False),
    number_key("seq"),
)

"""The table of versions of lists, for OpenIM clients; see openim/versions.py."""

from __future__ import annotations

from sqlalchemy import Column, Table

from nexo.store.engines.column_types import long_text, text_key
from nexo.store.schema_columns import metadata, number

openim_versions = Table(
    "openim_versions",
    metadata,
    Column("owner", text_key(80), primary_key=True),
    Column("kind", text_key(16), primary_key=True),
    number("version"),
    Column("version_id", text_key(32), nullable=False),
    Column("state", long_text(), nullable=False),
)

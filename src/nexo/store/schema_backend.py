"""Tables of keys and webhooks of a product's backend; part of `schema.py`."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, UniqueConstraint

from nexo.store.engines.column_types import long_text, text_key
from nexo.store.schema_columns import flag, metadata, number

api_keys = Table(  # keys of backends, by the hash of their text; see keys.py
    "api_keys",
    metadata,
    Column("key_id", text_key(16), primary_key=True),
    Column("name", text_key(64), nullable=False),
    Column("key_hash", text_key(64), nullable=False),
    Column("scopes", String(128), nullable=False),
    Column("user_id", text_key(64)),
    number("created_at"),
    number("expires_at"),
    number("revoked_at"),
    number("last_used_at"),
    UniqueConstraint("name", name="api_keys_by_name"),
    UniqueConstraint("key_hash", name="api_keys_by_hash"),
)

hooks = Table(  # webhooks; their places in the journal are rows of journal_consumers
    "hooks",
    metadata,
    Column("hook_id", text_key(16), primary_key=True),
    Column("name", text_key(64), nullable=False),
    Column("url", String(2048), nullable=False),
    Column("types", long_text(), nullable=False),
    Column("conversations", long_text(), nullable=False),
    Column("secrets", long_text(), nullable=False),
    flag("status"),
    Column("reason", String(512), nullable=False, server_default=""),
    number("failing_since"),
    number("revision"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("name", name="hooks_by_name"),
)

BACKEND_TABLES = (api_keys, hooks)

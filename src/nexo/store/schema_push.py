"""Tables of push notifications; part of `schema.py`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, String, Table, UniqueConstraint

from nexo.store.engines.column_types import big_key, long_text, text_key
from nexo.store.schema_columns import flag, metadata, number

push_targets = Table(  # devices that are registered for push; see push/targets.py
    "push_targets",
    metadata,
    Column("push_id", big_key(), primary_key=True, autoincrement=True),
    Column("user_id", text_key(64), nullable=False),
    Column("sid", text_key(64), nullable=False),
    Column("kind", text_key(8), nullable=False),
    Column("address_hash", text_key(64), nullable=False),  # of kind and address
    Column("address", long_text(), nullable=False),  # the token, or the subscription as JSON
    Column("device_id", text_key(128), nullable=False, server_default=""),
    Column("lang", String(16), nullable=False, server_default=""),
    number("created_at"),
    UniqueConstraint("address_hash", name="push_targets_by_address"),
    Index("push_targets_by_user", "user_id"),
    Index("push_targets_by_session", "sid"),
)

push_notes = Table(  # what a device shows of a conversation, and what it should; see push/notes.py
    "push_notes",
    metadata,
    Column("push_id", BigInteger, primary_key=True, autoincrement=False),
    Column("conv", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", text_key(8), nullable=False),
    flag("state"),  # `core.push.NoteState`
    flag("again"),  # changed while it was being sent
    number("due_at"),
    number("made_at"),  # when the oldest that is wanted and not sent was noted
    number("tries"),
    number("sent_seq"),
    number("sent_at"),
    number("shown_seq"),  # of the message that is shown; 0: nothing is
    Column("result", String(64), nullable=False, server_default=""),
    number("want_seq"),
    Index("push_notes_by_state", "kind", "state", "due_at"),
    Index("push_notes_by_conv", "conv", "shown_seq"),
)

push_keys = Table(  # keys that all instances share
    "push_keys",
    metadata,
    Column("name", text_key(32), primary_key=True),
    Column("value", String(512), nullable=False),
)

PUSH_TABLES = (push_targets, push_notes, push_keys)

"""The tables of what happens to messages after they were sent: versions, reactions, pins. Part of `schema.py`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from nexo.store.engines.column_types import big_key, long_text, text_key
from nexo.store.schema_columns import flag, metadata, number

message_versions = Table(  # what recalled and edited messages were, for moderators
    "message_versions",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("content", long_text(), nullable=False),
    Column("mentions", long_text()),
    Column("reply_to", BigInteger),
    Column("extra", long_text()),
    number("replaced_at"),
    Column("replaced_by", text_key(160), nullable=False),
    flag("cause"),
    Column("seq", BigInteger),  # the event of the edit: who may not see it sees this version
    Index("message_versions_by_time", "replaced_at"),
    Index("message_versions_by_cause", "cause", "replaced_at"),
)

reactions = Table(
    "reactions",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("user_id", text_key(64), primary_key=True),
    Column("emoji", text_key(32), primary_key=True),
    number("at"),
)

reaction_counts = Table(
    "reaction_counts",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("emoji", text_key(32), primary_key=True),
    number("counted"),
    number("since"),
)

reaction_marks = Table(  # changes that no event has announced yet
    "reaction_marks",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("user_id", text_key(64), primary_key=True),
    Column("emoji", text_key(32), primary_key=True),
    flag("is_on"),
    number("at"),
)

reaction_changes = Table(  # what an event 111 announced: the counts after it, and the changes
    "reaction_changes",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    number("at"),
    Column("reactions", long_text(), nullable=False),
    Column("added", long_text()),
    Column("removed", long_text()),
)

pins = Table(
    "pins",
    metadata,
    Column("conv", BigInteger, primary_key=True, autoincrement=False),
    Column("server_msg_id", BigInteger, primary_key=True, autoincrement=False),
    flag("is_on"),
    number("event_seq"),
    number("at"),
)

TABLES = (message_versions, reactions, reaction_counts, reaction_marks, reaction_changes, pins)

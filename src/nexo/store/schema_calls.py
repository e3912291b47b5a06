"""Tables of calls; part of `schema.py`. What devices exchange is in the row of a call only while it rings."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, UniqueConstraint

from nexo.store.engines.column_types import big_key, long_text, text_key
from nexo.store.schema_columns import flag, metadata, number

calls = Table(
    "calls",
    metadata,
    Column("call_id", big_key(), primary_key=True, autoincrement=False),
    Column("conversation_id", text_key(140), nullable=False),
    Column("caller_id", text_key(64), nullable=False),
    Column("callee_id", text_key(64), nullable=False),
    Column("client_msg_id", text_key(64)),
    Column("digest", text_key(64), nullable=False),  # of the request, by which a retry is known
    flag("kind"),
    flag("state"),
    flag("outcome"),
    number("created_at"),
    number("ring_until"),
    number("answered_at"),
    number("ended_at"),
    number("caller_gone_at"),  # since when that participant has no connection; 0: it has one
    number("callee_gone_at"),
    Column("caller_address", text_key(160), nullable=False, server_default=""),
    Column("caller_sid", text_key(64), nullable=False, server_default=""),
    Column("callee_address", text_key(160), nullable=False, server_default=""),
    Column("callee_sid", text_key(64), nullable=False, server_default=""),
    Column("offer", long_text()),
    Column("caller_candidates", long_text()),
    Column("callee_candidates", long_text()),
    Column("record_id", BigInteger),
    UniqueConstraint("caller_id", "client_msg_id", name="calls_by_client"),
    Index("calls_by_state", "state", "call_id"),
    Index("calls_by_caller", "caller_id", "call_id"),
    Index("calls_by_callee", "callee_id", "call_id"),
)

call_seats = Table(  # a user takes part in one call at a time
    "call_seats",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    number("call_id"),
)

CALL_TABLES = (calls, call_seats)

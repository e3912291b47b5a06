"""Tables of contacts, invite links, reports, and the closing and export of accounts; part of `schema.py`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, String, Table, UniqueConstraint

from nexo.store.engines.column_types import big_key, long_text, text_key
from nexo.store.schema_columns import flag, metadata, number

contacts = Table(  # two rows for each pair: each has its own remark
    "contacts",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    Column("contact_id", text_key(64), primary_key=True),
    Column("remark", String(128), nullable=False, server_default=""),
    number("created_at"),
)

contact_requests = Table(  # open ones
    "contact_requests",
    metadata,
    Column("to_id", text_key(64), primary_key=True),
    Column("from_id", text_key(64), primary_key=True),
    number("request_id"),
    Column("message", String(512), nullable=False, server_default=""),
    number("created_at"),
    Index("contact_requests_by_sender", "from_id", "to_id"),
)

group_links = Table(  # `uses` and `expires_at` 0: without end
    "group_links",
    metadata,
    Column("code", text_key(32), primary_key=True),
    Column("group_id", text_key(64), nullable=False),
    Column("creator_id", text_key(64), nullable=False),
    number("uses"),
    number("used"),
    number("created_at"),
    number("expires_at"),
    number("revoked_at"),
    Index("group_links_by_group", "group_id"),
)

reports = Table(  # `context` has the seqs around the message that the reporter could see
    "reports",
    metadata,
    Column("report_id", big_key(), primary_key=True, autoincrement=True),
    Column("reporter_id", text_key(64), nullable=False),
    number("server_msg_id"),
    Column("conversation_id", text_key(140), nullable=False),
    number("seq"),
    Column("sender_id", text_key(64), nullable=False),
    Column("reason", String(512), nullable=False, server_default=""),
    Column("context", long_text(), nullable=False),
    number("created_at"),
    number("resolved_at"),
    Column("resolved_by", String(160), nullable=False, server_default=""),
    Column("resolution", String(512), nullable=False, server_default=""),
    UniqueConstraint("reporter_id", "server_msg_id", name="reports_by_reporter"),
    Index("reports_by_state", "resolved_at", "report_id"),
)

account_closings = Table(  # closed accounts whose traces are being removed; see closing.py
    "account_closings",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    flag("erases"),
    flag("stage"),
    number("conv"),
    Column("client_msg_id", text_key(64), nullable=False, server_default=""),
    number("created_at"),
)

exports = Table(  # at most one for each user; see exports.py
    "exports",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    Column("export_id", text_key(32), nullable=False),
    flag("status"),
    number("conv"),
    number("next_seq"),
    number("parts"),
    number("messages"),
    number("size"),
    number("created_at"),
    number("expires_at"),
)

export_parts = Table(  # parts of a gzip file, in base64
    "export_parts",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    Column("part", BigInteger, primary_key=True, autoincrement=False),
    Column("data", long_text(), nullable=False),
)

PEOPLE_TABLES = (contacts, contact_requests, group_links, reports, account_closings, exports, export_parts)

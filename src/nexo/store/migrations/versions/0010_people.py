"""Contacts, invite links, addresses and times of sessions, reports, closing of accounts, exports."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TABLES = ("export_parts", "exports", "account_closings", "reports", "group_links", "contact_requests", "contacts")


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def text_key(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.SmallInteger, nullable=False, server_default="0")


def upgrade() -> None:
    long_text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    big_key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "contacts",
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("contact_id", text_key(64), primary_key=True),
        sa.Column("remark", sa.String(128), nullable=False, server_default=""),
        number("created_at"),
        **table_options(),
    )
    op.create_table(
        "contact_requests",
        sa.Column("to_id", text_key(64), primary_key=True),
        sa.Column("from_id", text_key(64), primary_key=True),
        number("request_id"),
        sa.Column("message", sa.String(512), nullable=False, server_default=""),
        number("created_at"),
        sa.Index("contact_requests_by_sender", "from_id", "to_id"),
        **table_options(),
    )
    op.create_table(
        "group_links",
        sa.Column("code", text_key(32), primary_key=True),
        sa.Column("group_id", text_key(64), nullable=False),
        sa.Column("creator_id", text_key(64), nullable=False),
        number("uses"),
        number("used"),
        number("created_at"),
        number("expires_at"),
        number("revoked_at"),
        sa.Index("group_links_by_group", "group_id"),
        **table_options(),
    )
    op.create_table(
        "reports",
        sa.Column("report_id", big_key, primary_key=True, autoincrement=True),
        sa.Column("reporter_id", text_key(64), nullable=False),
        number("server_msg_id"),
        sa.Column("conversation_id", text_key(140), nullable=False),
        number("seq"),
        sa.Column("sender_id", text_key(64), nullable=False),
        sa.Column("reason", sa.String(512), nullable=False, server_default=""),
        sa.Column("context", long_text, nullable=False),
        number("created_at"),
        number("resolved_at"),
        sa.Column("resolved_by", sa.String(160), nullable=False, server_default=""),
        sa.Column("resolution", sa.String(512), nullable=False, server_default=""),
        sa.UniqueConstraint("reporter_id", "server_msg_id", name="reports_by_reporter"),
        sa.Index("reports_by_state", "resolved_at", "report_id"),
        **table_options(),
    )
    op.create_table(
        "account_closings",
        sa.Column("user_id", text_key(64), primary_key=True),
        flag("erases"),
        flag("stage"),
        number("conv"),
        sa.Column("client_msg_id", text_key(64), nullable=False, server_default=""),
        number("created_at"),
        **table_options(),
    )
    op.create_table(
        "exports",
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("export_id", text_key(32), nullable=False),
        flag("status"),
        number("conv"),
        number("next_seq"),
        number("parts"),
        number("messages"),
        number("size"),
        number("created_at"),
        number("expires_at"),
        **table_options(),
    )
    op.create_table(
        "export_parts",
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("part", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", long_text, nullable=False),
        **table_options(),
    )
    with op.batch_alter_table("users") as users:
        users.add_column(number("last_seen_at"))
        users.add_column(flag("last_seen_for"))
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("address", sa.String(64), nullable=False, server_default=""))
        sessions.add_column(number("last_seen_at"))
    with op.batch_alter_table("members") as members:
        members.add_column(flag("contact"))


def downgrade() -> None:
    with op.batch_alter_table("members") as members:
        members.drop_column("contact")
    with op.batch_alter_table("sessions") as sessions:
        for name in ("last_seen_at", "address"):
            sessions.drop_column(name)
    with op.batch_alter_table("users") as users:
        for name in ("last_seen_for", "last_seen_at"):
            users.drop_column(name)
    for table in TABLES:
        op.drop_table(table)

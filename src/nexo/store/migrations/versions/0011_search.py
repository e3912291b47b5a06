"""The index of search in a server database: terms of messages by conversation. The embedded database has a file."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def text_key(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)


def upgrade() -> None:
    long_text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    op.create_table(
        "search_state",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        *(number(name) for name in ("format", "version", "position", "part", "below", "last_id", "entries")),
        **table_options(),
    )
    op.create_table(
        "search_docs",
        key("conv"),
        key("server_msg_id"),
        number("seq"),
        sa.Column("sender_id", text_key(64), nullable=False),
        sa.Column("msg_type", sa.SmallInteger, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False, server_default="0"),
        number("send_at"),
        sa.Column("terms", long_text, nullable=False),
        **table_options(),
    )
    op.create_table(
        "search_terms",
        key("conv"),
        key("block"),
        sa.Column("term", text_key(64), primary_key=True),
        key("server_msg_id"),
        **table_options(),
    )
    op.create_table("search_units", key("conv"), key("block"), number("last_id"), **table_options())
    op.create_table(
        "search_media",
        key("conv"),
        sa.Column("kind", sa.SmallInteger, primary_key=True, autoincrement=False),
        key("seq"),
        **table_options(),
    )


def downgrade() -> None:
    for table in ("search_media", "search_units", "search_terms", "search_docs", "search_state"):
        op.drop_table(table)

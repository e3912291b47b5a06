"""Calls, the users who take part in one, and messages of the server that count as unread."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0015"
down_revision = "0014"
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


def flag(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.SmallInteger, nullable=False, server_default="0")


def upgrade() -> None:
    long_text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    big_key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "calls",
        sa.Column("call_id", big_key, primary_key=True, autoincrement=False),
        sa.Column("conversation_id", text_key(140), nullable=False),
        sa.Column("caller_id", text_key(64), nullable=False),
        sa.Column("callee_id", text_key(64), nullable=False),
        sa.Column("client_msg_id", text_key(64)),
        sa.Column("digest", text_key(64), nullable=False),
        *(flag(name) for name in ("kind", "state", "outcome")),
        *(number(name) for name in ("created_at", "ring_until", "answered_at", "ended_at")),
        *(number(name) for name in ("caller_gone_at", "callee_gone_at")),
        sa.Column("caller_address", text_key(160), nullable=False, server_default=""),
        sa.Column("caller_sid", text_key(64), nullable=False, server_default=""),
        sa.Column("callee_address", text_key(160), nullable=False, server_default=""),
        sa.Column("callee_sid", text_key(64), nullable=False, server_default=""),
        *(sa.Column(name, long_text) for name in ("offer", "caller_candidates", "callee_candidates")),
        sa.Column("record_id", sa.BigInteger),
        sa.UniqueConstraint("caller_id", "client_msg_id", name="calls_by_client"),
        sa.Index("calls_by_state", "state", "call_id"),
        sa.Index("calls_by_caller", "caller_id", "call_id"),
        sa.Index("calls_by_callee", "callee_id", "call_id"),
        **table_options(),
    )
    op.create_table(
        "call_seats",
        sa.Column("user_id", text_key(64), primary_key=True),
        number("call_id"),
        **table_options(),
    )
    op.add_column("messages", flag("counted_event"))


def downgrade() -> None:
    op.drop_column("messages", "counted_event")
    op.drop_table("call_seats")
    op.drop_table("calls")

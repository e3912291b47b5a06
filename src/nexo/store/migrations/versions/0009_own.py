"""Deleting for oneself, clearing, expiry, and more settings of a conversation of one's own."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

MEMBER_NUMBERS = (
    "cleared_seq",
    "deleted_above",
    "deleted_count",
    "deleted_rev",
    "cleared_rev",
    "archived_seq",
    "silent_until",
)
CONVERSATION_NUMBERS = ("message_ttl_s", "erasures")


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def text_key(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def upgrade() -> None:
    long_text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    big_key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "message_deletions",
        sa.Column("conv", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("server_msg_id", sa.BigInteger, nullable=False),
        sa.Column("counts", sa.SmallInteger, nullable=False, server_default="0"),
        number("rev"),
        sa.Index("message_deletions_by_seq", "conv", "seq"),
        **table_options(),
    )
    op.create_table(
        "message_expiries",
        sa.Column("server_msg_id", big_key, primary_key=True, autoincrement=False),
        sa.Column("conv", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Index("message_expiries_by_time", "expires_at"),
        **table_options(),
    )
    op.create_table(
        "work_positions",
        sa.Column("name", text_key(64), primary_key=True),
        number("position"),
        **table_options(),
    )
    # columns that are added without writing the rows anew
    op.add_column("messages", sa.Column("expires_at", sa.BigInteger))
    for name in CONVERSATION_NUMBERS:
        op.add_column("conversations", number(name))
    for name in MEMBER_NUMBERS:
        op.add_column("members", number(name))
    op.add_column("members", sa.Column("marked_unread", sa.SmallInteger, nullable=False, server_default="0"))
    op.add_column("members", sa.Column("draft", long_text))
    op.add_column("members", sa.Column("own_extra", long_text))


def downgrade() -> None:
    with op.batch_alter_table("members") as members:
        for name in ("own_extra", "draft", "marked_unread", *reversed(MEMBER_NUMBERS)):
            members.drop_column(name)
    with op.batch_alter_table("conversations") as conversations:
        for name in reversed(CONVERSATION_NUMBERS):
            conversations.drop_column(name)
    with op.batch_alter_table("messages") as messages:
        messages.drop_column("expires_at")
    for table in ("work_positions", "message_expiries", "message_deletions"):
        op.drop_table(table)

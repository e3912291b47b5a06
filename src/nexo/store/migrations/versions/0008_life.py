"""Edits, reactions, pins and forwards; the last message of a conversation behind events about earlier ones."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0008"
down_revision = "0007"
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


def upgrade() -> None:
    long_text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    big_key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

    def message_key() -> sa.Column[int]:
        return sa.Column("server_msg_id", big_key, primary_key=True, autoincrement=False)

    # 0 in all three of them stands for "the newest is a message", which is true of every conversation so far
    for name in ("quiet_head", "last_seq", "last_at"):
        op.add_column("conversations", number(name))
    for name in ("edited_at", "edit_seq", "reactions"):
        op.add_column("messages", sa.Column(name, sa.BigInteger))
    op.add_column("messages", sa.Column("forwarded_from", long_text))
    op.add_column("message_versions", sa.Column("seq", sa.BigInteger))
    op.create_index("message_versions_by_cause", "message_versions", ["cause", "replaced_at"])
    op.create_table(
        "reactions",
        message_key(),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("emoji", text_key(32), primary_key=True),
        number("at"),
        **table_options(),
    )
    op.create_table(
        "reaction_counts",
        message_key(),
        sa.Column("emoji", text_key(32), primary_key=True),
        number("counted"),
        number("since"),
        **table_options(),
    )
    op.create_table(
        "reaction_marks",
        message_key(),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("emoji", text_key(32), primary_key=True),
        sa.Column("is_on", sa.SmallInteger, nullable=False, server_default="0"),
        number("at"),
        **table_options(),
    )
    op.create_table(
        "reaction_changes",
        message_key(),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        number("at"),
        sa.Column("reactions", long_text, nullable=False),
        sa.Column("added", long_text),
        sa.Column("removed", long_text),
        **table_options(),
    )
    op.create_table(
        "pins",
        sa.Column("conv", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("server_msg_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("is_on", sa.SmallInteger, nullable=False, server_default="0"),
        number("event_seq"),
        number("at"),
        **table_options(),
    )


def downgrade() -> None:
    for table in ("pins", "reaction_changes", "reaction_marks", "reaction_counts", "reactions"):
        op.drop_table(table)
    op.drop_index("message_versions_by_cause", "message_versions")
    with op.batch_alter_table("message_versions") as versions:
        versions.drop_column("seq")
    with op.batch_alter_table("messages") as messages:
        for name in ("forwarded_from", "reactions", "edit_seq", "edited_at"):
            messages.drop_column(name)
    with op.batch_alter_table("conversations") as conversations:
        for name in ("last_at", "last_seq", "quiet_head"):
            conversations.drop_column(name)

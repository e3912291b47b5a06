"""Push notifications: registered devices, what each shows of a conversation, and the keys of Web Push."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0012"
down_revision = "0011"
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


def key(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)


def upgrade() -> None:
    long_text = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
    own_key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "push_targets",
        sa.Column("push_id", own_key, primary_key=True, autoincrement=True),
        sa.Column("user_id", text_key(64), nullable=False),
        sa.Column("sid", text_key(64), nullable=False),
        sa.Column("kind", text_key(8), nullable=False),
        sa.Column("address_hash", text_key(64), nullable=False),
        sa.Column("address", long_text, nullable=False),
        sa.Column("device_id", text_key(128), nullable=False, server_default=""),
        sa.Column("lang", sa.String(16), nullable=False, server_default=""),
        number("created_at"),
        sa.UniqueConstraint("address_hash", name="push_targets_by_address"),
        **table_options(),
    )
    op.create_index("push_targets_by_user", "push_targets", ["user_id"])
    op.create_index("push_targets_by_session", "push_targets", ["sid"])
    op.create_table(
        "push_notes",
        key("push_id"),
        key("conv"),
        sa.Column("kind", text_key(8), nullable=False),
        flag("state"),
        flag("again"),
        number("due_at"),
        number("made_at"),
        number("tries"),
        number("sent_seq"),
        number("sent_at"),
        number("shown_seq"),
        sa.Column("result", sa.String(64), nullable=False, server_default=""),
        number("want_seq"),
        **table_options(),
    )
    op.create_index("push_notes_by_state", "push_notes", ["kind", "state", "due_at"])
    op.create_index("push_notes_by_conv", "push_notes", ["conv", "shown_seq"])
    op.create_table(
        "push_keys",
        sa.Column("name", text_key(32), primary_key=True),
        sa.Column("value", sa.String(512), nullable=False),
        **table_options(),
    )


def downgrade() -> None:
    for table in ("push_keys", "push_notes", "push_targets"):
        op.drop_table(table)

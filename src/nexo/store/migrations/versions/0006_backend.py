"""A product's backend: keys, webhooks, the audit log; disabled and deleted users; originals of changed messages."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"
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
    op.create_table(
        "api_keys",
        sa.Column("key_id", text_key(16), primary_key=True),
        sa.Column("name", text_key(64), nullable=False),
        sa.Column("key_hash", text_key(64), nullable=False),
        sa.Column("scopes", sa.String(128), nullable=False),
        sa.Column("user_id", text_key(64)),
        number("created_at"),
        number("expires_at"),
        number("revoked_at"),
        number("last_used_at"),
        sa.UniqueConstraint("name", name="api_keys_by_name"),
        sa.UniqueConstraint("key_hash", name="api_keys_by_hash"),
        **table_options(),
    )
    op.create_table(
        "hooks",
        sa.Column("hook_id", text_key(16), primary_key=True),
        sa.Column("name", text_key(64), nullable=False),
        sa.Column("url", sa.String(2048), nullable=False),
        sa.Column("types", long_text, nullable=False),
        sa.Column("conversations", long_text, nullable=False),
        sa.Column("secrets", long_text, nullable=False),
        sa.Column("status", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("reason", sa.String(512), nullable=False, server_default=""),
        number("failing_since"),
        number("revision"),
        number("created_at"),
        number("updated_at"),
        sa.UniqueConstraint("name", name="hooks_by_name"),
        **table_options(),
    )
    op.create_table(
        "audit_log",
        sa.Column("id", big_key, primary_key=True, autoincrement=True),
        number("at"),
        sa.Column("actor", sa.String(160), nullable=False),
        sa.Column("act", sa.String(64), nullable=False),
        sa.Column("target", text_key(160), nullable=False, server_default=""),
        sa.Column("detail", long_text),
        sa.Index("audit_log_by_target", "target", "id"),
        **table_options(),
    )
    op.create_table(
        "message_versions",
        sa.Column("server_msg_id", big_key, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", long_text, nullable=False),
        sa.Column("mentions", long_text),
        sa.Column("reply_to", sa.BigInteger),
        sa.Column("extra", long_text),
        number("replaced_at"),
        sa.Column("replaced_by", text_key(160), nullable=False),
        sa.Column("cause", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Index("message_versions_by_time", "replaced_at"),
        **table_options(),
    )
    with op.batch_alter_table("users") as users:
        users.add_column(number("disabled_at"))
        users.add_column(sa.Column("disabled_reason", sa.String(255), nullable=False, server_default=""))
        users.add_column(number("deleted_at"))
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("origin", sa.SmallInteger, nullable=False, server_default="0"))
        sessions.add_column(number("issued_after"))


def downgrade() -> None:
    with op.batch_alter_table("sessions") as sessions:
        for name in ("issued_after", "origin"):
            sessions.drop_column(name)
    with op.batch_alter_table("users") as users:
        for name in ("deleted_at", "disabled_reason", "disabled_at"):
            users.drop_column(name)
    for table in ("message_versions", "audit_log", "hooks", "api_keys"):
        op.drop_table(table)

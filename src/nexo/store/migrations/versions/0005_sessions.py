"""Families of refresh tokens, a note of users whose sessions changed, and codes that allow to register."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
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
    op.add_column("sessions", sa.Column("family_hash", text_key(64), nullable=False, server_default=""))
    op.add_column("sessions", number("generation"))
    op.create_index("sessions_by_family", "sessions", ["family_hash"])
    op.add_column("refresh_tokens", number("generation"))
    op.create_table(
        "session_changes",
        sa.Column("user_id", text_key(64), primary_key=True),
        number("changes"),
        number("changed_at"),
        **table_options(),
    )
    op.create_index("session_changes_by_time", "session_changes", ["changed_at"])
    op.create_table(
        "registration_codes",
        sa.Column("code_hash", text_key(64), primary_key=True),
        number("uses_left"),
        number("created_at"),
        number("expires_at"),
        **table_options(),
    )


def downgrade() -> None:
    op.drop_table("registration_codes")
    op.drop_table("session_changes")
    op.drop_column("refresh_tokens", "generation")
    op.drop_index("sessions_by_family", "sessions")
    op.drop_column("sessions", "generation")
    op.drop_column("sessions", "family_hash")

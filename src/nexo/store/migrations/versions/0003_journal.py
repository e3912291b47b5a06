"""The journal of what was committed, its consumers, and how far it was trimmed."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def text_key(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def number(name: str) -> Any:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def upgrade() -> None:
    options = table_options()
    op.create_table(
        "journal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        number("at"),
        sa.Column("entries", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False),
        **options,
    )
    op.create_table(
        "journal_consumers",
        sa.Column("name", text_key(64), primary_key=True),
        number("position"),
        number("part"),
        sa.Column("owner", text_key(64), nullable=False, server_default=""),
        number("epoch"),
        number("expires_at"),
        number("updated_at"),
        **options,
    )
    op.create_table(
        "journal_state",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        number("trimmed_to"),
        number("beat"),
        **options,
    )


def downgrade() -> None:
    for name in ("journal_state", "journal_consumers", "journal"):
        op.drop_table(name)

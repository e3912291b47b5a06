"""Versions of lists, for OpenIM clients that ask what has changed."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def text_key(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "openim_versions",
        sa.Column("owner", text_key(80), primary_key=True),
        sa.Column("kind", text_key(16), primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("version_id", text_key(32), nullable=False),
        sa.Column("state", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False),
        **table_options(),
    )


def downgrade() -> None:
    op.drop_table("openim_versions")

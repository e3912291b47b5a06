"""Instances that use the database: who lives, who is on the bus, and a digest of the signing secret."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def upgrade() -> None:
    text_key = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
    op.create_table(
        "instances",
        sa.Column("instance_id", text_key, primary_key=True),
        sa.Column("place", sa.String(128), nullable=False),
        sa.Column("is_worker", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("on_bus", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("secret_digest", sa.String(128), nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("seen_at", sa.BigInteger, nullable=False, server_default="0"),
        **table_options(),
    )


def downgrade() -> None:
    op.drop_table("instances")

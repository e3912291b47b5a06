"""Who owns the shards of accepted messages, by an epoch that every save checks."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
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
        "stream_owners",
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("owner", text_key, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("expires_at", sa.BigInteger, nullable=False, server_default="0"),
        **table_options(),
    )


def downgrade() -> None:
    op.drop_table("stream_owners")

"""Files: their metadata and bytes, uploads in parts, and which messages and profiles name them."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
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
    big_key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "blobs",
        sa.Column("blob_name", text_key(80), primary_key=True),
        sa.Column("sha256", text_key(64), nullable=False),
        number("size"),
        sa.Column("is_ready", sa.SmallInteger, nullable=False, server_default="0"),
        sa.Column("mime", sa.String(127), nullable=False, server_default=""),
        sa.Column("width", sa.BigInteger),
        sa.Column("height", sa.BigInteger),
        sa.Column("duration_ms", sa.BigInteger),
        sa.Column("placeholder", sa.String(128)),
        sa.Column("small_bytes", sa.BigInteger),
        sa.Column("medium_bytes", sa.BigInteger),
        number("created_at"),
        number("free_at"),
        sa.UniqueConstraint("sha256", name="blobs_by_content"),
        sa.Index("blobs_by_free", "free_at"),
        **table_options(),
    )
    op.create_table(
        "files",
        sa.Column("file_id", text_key(32), primary_key=True),
        sa.Column("owner_id", text_key(64), nullable=False),
        sa.Column("blob_name", text_key(80), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=""),
        number("size"),
        number("created_at"),
        number("free_at"),
        sa.Index("files_by_owner", "owner_id", "created_at"),
        sa.Index("files_by_blob", "blob_name"),
        sa.Index("files_by_free", "free_at"),
        **table_options(),
    )
    op.create_table(
        "file_uses",
        sa.Column("server_msg_id", big_key, primary_key=True, autoincrement=False),
        sa.Column("file_id", text_key(32), primary_key=True),
        number("conv"),
        number("seq"),
        number("ended_at"),
        sa.Index("file_uses_by_file", "file_id"),
        sa.Index("file_uses_by_end", "ended_at"),
        **table_options(),
    )
    op.create_table(
        "file_avatars",
        sa.Column("subject", text_key(80), primary_key=True),
        sa.Column("file_id", text_key(32), nullable=False),
        sa.Index("file_avatars_by_file", "file_id"),
        **table_options(),
    )
    op.create_table(
        "uploads",
        sa.Column("file_id", text_key(32), primary_key=True),
        sa.Column("owner_id", text_key(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False, server_default=""),
        number("length"),
        number("received"),
        number("created_at"),
        number("touched_at"),
        number("expires_at"),
        sa.Index("uploads_by_owner", "owner_id"),
        sa.Index("uploads_by_expiry", "expires_at"),
        **table_options(),
    )
    op.create_table(
        "upload_parts",
        sa.Column("file_id", text_key(32), primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
        number("size"),
        sa.Column("blob_name", text_key(80), nullable=False),
        **table_options(),
    )
    op.create_table(
        "blob_leftovers",
        sa.Column("blob_name", text_key(80), primary_key=True),
        number("due_at"),
        sa.Index("blob_leftovers_by_time", "due_at"),
        **table_options(),
    )


def downgrade() -> None:
    tables = ("blob_leftovers", "upload_parts", "uploads", "file_avatars", "file_uses", "files", "blobs")
    for table in tables:
        op.drop_table(table)

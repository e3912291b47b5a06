"""The first schema: users, sessions, conversations, members, groups, messages."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def text_key(length: int) -> Any:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def long_text() -> Any:
    return sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def number(name: str, default: int = 0) -> Any:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=str(default))


def flag(name: str, default: int = 0) -> Any:
    return sa.Column(name, sa.SmallInteger, nullable=False, server_default=str(default))


def table_options() -> dict[str, Any]:
    """Options that only MySQL and MariaDB read."""
    is_mariadb = getattr(op.get_bind().dialect, "is_mariadb", False)
    collation = "utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
    return {"mysql_charset": "utf8mb4", "mysql_collate": collation, "mysql_engine": "InnoDB"}


def upgrade() -> None:
    options = table_options()
    op.create_table(
        "users",
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("password_hash", sa.String(255), nullable=False),
        sa.Column("nickname", sa.String(128), nullable=False, server_default=""),
        sa.Column("nickname_key", text_key(128), nullable=False, server_default=""),
        sa.Column("avatar", sa.String(512), nullable=False, server_default=""),
        sa.Column("extra", long_text()),
        flag("is_admin"),
        number("session_version", 1),
        number("created_at"),
        number("updated_at"),
        **options,
    )
    op.create_index("users_by_nickname", "users", ["nickname_key"])
    op.create_table(
        "sessions",
        sa.Column("sid", text_key(64), primary_key=True),
        sa.Column("user_id", text_key(64), nullable=False),
        number("platform_id"),
        sa.Column("device_id", text_key(128), nullable=False, server_default=""),
        number("version"),
        number("created_at"),
        number("expires_at"),
        number("revoked_at"),
        **options,
    )
    op.create_index("sessions_by_user", "sessions", ["user_id"])
    op.create_table(
        "refresh_tokens",
        sa.Column("token_hash", text_key(64), primary_key=True),
        sa.Column("sid", text_key(64), nullable=False),
        number("created_at"),
        number("expires_at"),
        number("rotated_at"),
        **options,
    )
    op.create_index("refresh_tokens_by_session", "refresh_tokens", ["sid"])
    op.create_table(
        "conversations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("conversation_id", text_key(140), nullable=False),
        flag("kind"),
        flag("status"),
        number("head_seq"),
        number("closed_seq"),
        number("countable"),
        number("at_all_count"),
        number("last_send_at"),
        number("mute_until"),
        number("member_epoch", 1),
        number("member_count"),
        number("created_at"),
        sa.UniqueConstraint("conversation_id", name="conversations_by_name"),
        **options,
    )
    op.create_table(
        "members",
        sa.Column("conv", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("peer_id", text_key(64), nullable=False, server_default=""),
        flag("role"),
        flag("status"),
        number("from_seq", 1),
        sa.Column("to_seq", sa.BigInteger),
        sa.Column("to_countable", sa.BigInteger),
        sa.Column("to_at_all", sa.BigInteger),
        sa.Column("left_at", sa.BigInteger),
        flag("has_past"),
        number("delivered_seq"),
        number("read_seq"),
        number("read_countable"),
        number("own_above"),
        number("last_own_seq"),
        number("mention_unread"),
        number("at_all_base"),
        number("muted_until"),
        flag("blocked"),
        flag("pinned"),
        flag("recv_msg_opt"),
        number("hidden_seq"),
        sa.Column("group_nickname", sa.String(128), nullable=False, server_default=""),
        sa.Column("group_avatar", sa.String(512), nullable=False, server_default=""),
        sa.Column("inviter_id", text_key(64), nullable=False, server_default=""),
        number("joined_at"),
        sa.Column("extra", long_text()),
        **options,
    )
    op.create_index("members_by_user", "members", ["user_id", "conv"])
    op.create_table(
        "member_spans",
        sa.Column("conv", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("from_seq", sa.BigInteger, primary_key=True, autoincrement=False),
        number("to_seq"),
        **options,
    )
    op.create_table(
        "chat_groups",
        sa.Column("group_id", text_key(64), primary_key=True),
        number("conv"),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("introduction", sa.String(512), nullable=False, server_default=""),
        sa.Column("announcement", long_text()),
        sa.Column("avatar", sa.String(512), nullable=False, server_default=""),
        flag("group_type"),
        sa.Column("creator_id", text_key(64), nullable=False),
        sa.Column("owner_id", text_key(64), nullable=False),
        sa.Column("join_policy", sa.String(16), nullable=False, server_default="open"),
        sa.Column("extra", long_text()),
        flag("status"),
        number("created_at"),
        number("updated_at"),
        sa.UniqueConstraint("conv", name="chat_groups_by_conv"),
        **options,
    )
    op.create_table(
        "join_requests",
        sa.Column("group_id", text_key(64), primary_key=True),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("message", sa.String(512), nullable=False, server_default=""),
        number("created_at"),
        **options,
    )
    op.create_table(
        "messages",
        sa.Column(
            "server_msg_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("conv", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("sender_id", text_key(64), nullable=False),
        sa.Column("client_msg_id", text_key(64)),
        sa.Column("msg_type", sa.SmallInteger, nullable=False),
        sa.Column("content", long_text(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(16).with_variant(mysql.VARBINARY(16), "mysql", "mariadb")),
        sa.Column("reply_to", sa.BigInteger),
        sa.Column("mentions", long_text()),
        sa.Column("extra", long_text()),
        flag("status"),
        sa.Column("recalled_at", sa.BigInteger),
        sa.Column("recall_seq", sa.BigInteger),
        sa.Column("send_at", sa.BigInteger, nullable=False),
        sa.Column("countable_no", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("conv", "seq", name="messages_by_seq"),
        sa.UniqueConstraint("sender_id", "client_msg_id", name="messages_by_client"),
        **options,
    )
    op.create_table(
        "mentions",
        sa.Column("conv", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("sender_id", text_key(64), nullable=False),
        **options,
    )
    op.create_table(
        "blocks",
        sa.Column("user_id", text_key(64), primary_key=True),
        sa.Column("blocked_id", text_key(64), primary_key=True),
        number("created_at"),
        **options,
    )
    op.create_table(
        "node_leases",
        sa.Column("node", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("holder", text_key(64), nullable=False),
        number("expires_at"),
        number("last_ms"),
        **options,
    )


def downgrade() -> None:
    for table in (
        "node_leases",
        "blocks",
        "mentions",
        "messages",
        "join_requests",
        "chat_groups",
        "member_spans",
        "members",
        "conversations",
        "refresh_tokens",
        "sessions",
        "users",
    ):
        op.drop_table(table)

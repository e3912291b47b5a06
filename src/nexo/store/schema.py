"""The tables as they are at the newest migration; a test compares them with what the migrations make.

Identifiers compare byte-wise in every engine: SQLite does so by itself, PostgreSQL gets collation "C",
MySQL and MariaDB a binary collation without padding for whole tables (see `binary_collation`).
A conversation is known by a small number, `conv`, in every other table: keys stay short and everything
of one conversation can live in one partition.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

metadata = MetaData()


def binary_collation(dialect: Dialect) -> str | None:
    """MySQL's and MariaDB's names for byte-wise comparison without padding; others need none."""
    if dialect.name not in ("mysql", "mariadb"):
        return None
    return "utf8mb4_nopad_bin" if getattr(dialect, "is_mariadb", False) else "utf8mb4_0900_bin"


def text_key(length: int) -> TypeEngine[str]:
    """Text that is compared, sorted or looked up."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def big_key() -> TypeEngine[int]:
    # SQLite numbers rows by itself only in a column of exactly this type
    return BigInteger().with_variant(Integer(), "sqlite")


def long_text() -> TypeEngine[str]:
    return Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def short_bytes(length: int) -> TypeEngine[bytes]:
    return LargeBinary(length).with_variant(mysql.VARBINARY(length), "mysql", "mariadb")


def number(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=str(default))


def flag(name: str, default: int = 0) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=str(default))


users = Table(
    "users",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    Column("password_hash", String(255), nullable=False),
    Column("nickname", String(128), nullable=False, server_default=""),
    Column("nickname_key", text_key(128), nullable=False, server_default=""),  # folded, for search
    Column("avatar", String(512), nullable=False, server_default=""),
    Column("extra", long_text()),
    flag("is_admin"),
    number("session_version", 1),
    number("created_at"),
    number("updated_at"),
    Index("users_by_nickname", "nickname_key"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("sid", text_key(64), primary_key=True),
    Column("user_id", text_key(64), nullable=False),
    number("platform_id"),
    Column("device_id", text_key(128), nullable=False, server_default=""),
    number("version"),
    number("created_at"),
    number("expires_at"),
    number("revoked_at"),
    Index("sessions_by_user", "user_id"),
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("token_hash", text_key(64), primary_key=True),
    Column("sid", text_key(64), nullable=False),
    number("created_at"),
    number("expires_at"),
    number("rotated_at"),
    Index("refresh_tokens_by_session", "sid"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", big_key(), primary_key=True, autoincrement=True),
    Column("conversation_id", text_key(140), nullable=False),
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
    UniqueConstraint("conversation_id", name="conversations_by_name"),
)

members = Table(
    "members",
    metadata,
    Column("conv", BigInteger, primary_key=True, autoincrement=False),
    Column("user_id", text_key(64), primary_key=True),
    Column("peer_id", text_key(64), nullable=False, server_default=""),
    flag("role"),
    flag("status"),
    number("from_seq", 1),
    Column("to_seq", BigInteger),
    Column("to_countable", BigInteger),
    Column("to_at_all", BigInteger),
    Column("left_at", BigInteger),  # last activity this member may know of
    flag("has_past"),
    number("delivered_seq"),
    number("read_seq"),
    number("read_countable"),
    number("own_above"),
    number("last_own_seq"),
    number("mention_unread"),
    number("at_all_base"),
    number("muted_until"),
    flag("blocked"),  # the peer has blocked this member (single chats)
    flag("pinned"),
    flag("recv_msg_opt"),
    number("hidden_seq"),
    Column("group_nickname", String(128), nullable=False, server_default=""),
    Column("group_avatar", String(512), nullable=False, server_default=""),
    Column("inviter_id", text_key(64), nullable=False, server_default=""),
    number("joined_at"),
    Column("extra", long_text()),
    Index("members_by_user", "user_id", "conv"),
)

member_spans = Table(
    "member_spans",
    metadata,
    Column("conv", BigInteger, primary_key=True, autoincrement=False),
    Column("user_id", text_key(64), primary_key=True),
    Column("from_seq", BigInteger, primary_key=True, autoincrement=False),
    number("to_seq"),
)

chat_groups = Table(  # GROUPS is a reserved word in MySQL
    "chat_groups",
    metadata,
    Column("group_id", text_key(64), primary_key=True),
    number("conv"),
    Column("name", String(128), nullable=False),
    Column("introduction", String(512), nullable=False, server_default=""),
    Column("announcement", long_text()),
    Column("avatar", String(512), nullable=False, server_default=""),
    flag("group_type"),
    Column("creator_id", text_key(64), nullable=False),
    Column("owner_id", text_key(64), nullable=False),
    Column("join_policy", String(16), nullable=False, server_default="open"),
    Column("extra", long_text()),
    flag("status"),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("conv", name="chat_groups_by_conv"),
)

join_requests = Table(
    "join_requests",
    metadata,
    Column("group_id", text_key(64), primary_key=True),
    Column("user_id", text_key(64), primary_key=True),
    Column("message", String(512), nullable=False, server_default=""),
    number("created_at"),
)

messages = Table(
    "messages",
    metadata,
    Column("server_msg_id", BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=False),
    Column("conv", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("sender_id", text_key(64), nullable=False),
    Column("client_msg_id", text_key(64)),
    Column("msg_type", SmallInteger, nullable=False),
    Column("content", long_text(), nullable=False),
    Column("request_hash", short_bytes(16)),
    Column("reply_to", BigInteger),
    Column("mentions", long_text()),
    Column("extra", long_text()),
    flag("status"),
    Column("recalled_at", BigInteger),
    Column("recall_seq", BigInteger),  # the event that tells of the recall
    Column("send_at", BigInteger, nullable=False),
    Column("countable_no", BigInteger, nullable=False),
    UniqueConstraint("conv", "seq", name="messages_by_seq"),
    UniqueConstraint("sender_id", "client_msg_id", name="messages_by_client"),
)

mentions = Table(
    "mentions",
    metadata,
    Column("conv", BigInteger, primary_key=True, autoincrement=False),
    Column("user_id", text_key(64), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("sender_id", text_key(64), nullable=False),
)

blocks = Table(
    "blocks",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    Column("blocked_id", text_key(64), primary_key=True),
    number("created_at"),
)

node_leases = Table(
    "node_leases",
    metadata,
    Column("node", Integer, primary_key=True, autoincrement=False),
    Column("holder", text_key(64), nullable=False),
    number("expires_at"),
    number("last_ms"),
)

stream_owners = Table(  # who saves what was accepted into a shard; see owners.py
    "stream_owners",
    metadata,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("owner", text_key(64), nullable=False),
    number("epoch"),
    number("expires_at"),
)


def use_binary_collation(connection: Connection) -> None:
    """Give every table of `metadata` the collation this server calls byte-wise."""
    collation = binary_collation(connection.dialect)
    for table in metadata.tables.values():
        table.dialect_options["mysql"]["charset"] = "utf8mb4"
        table.dialect_options["mysql"]["collate"] = collation
        table.dialect_options["mysql"]["engine"] = "InnoDB"

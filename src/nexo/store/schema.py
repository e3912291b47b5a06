"""The tables as they are at the newest migration; a test compares them with what the migrations make.

Identifiers compare byte-wise in every engine (see `engines/column_types.py`).
A conversation is known by a small number, `conv`, in every other table: keys stay short and everything
of one conversation can live in one partition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from nexo.core.message_fields import PLAIN, FieldKind
from nexo.store import schema_messages, schema_openim, schema_search
from nexo.store.engines.column_types import big_key, long_text, short_bytes, text_key
from nexo.store.schema_backend import BACKEND_TABLES as BACKEND_TABLES
from nexo.store.schema_calls import CALL_TABLES as CALL_TABLES
from nexo.store.schema_columns import flag, number
from nexo.store.schema_columns import metadata as metadata
from nexo.store.schema_people import PEOPLE_TABLES as PEOPLE_TABLES
from nexo.store.schema_push import PUSH_TABLES as PUSH_TABLES

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
    number("disabled_at"),
    Column("disabled_reason", String(255), nullable=False, server_default=""),
    number("deleted_at"),
    number("last_seen_at"),
    flag("last_seen_for"),  # `core.people.LastSeenFor`
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
    Column("family_hash", text_key(64), nullable=False, server_default=""),  # of all its refresh tokens
    number("generation"),  # exchanges of refresh tokens so far
    flag("origin"),
    number("issued_after"),  # a product's tokens that are not newer do not open it
    Column("address", String(64), nullable=False, server_default=""),
    number("last_seen_at"),
    Index("sessions_by_user", "user_id"),
    Index("sessions_by_family", "family_hash"),
)

session_changes = Table(  # users whose sessions ended or changed, for instances that were not notified
    "session_changes",
    metadata,
    Column("user_id", text_key(64), primary_key=True),
    number("changes"),
    number("changed_at"),
    Index("session_changes_by_time", "changed_at"),
)

registration_codes = Table(  # see `auth.registration`
    "registration_codes",
    metadata,
    Column("code_hash", text_key(64), primary_key=True),
    number("uses_left"),
    number("created_at"),
    number("expires_at"),
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("token_hash", text_key(64), primary_key=True),
    Column("sid", text_key(64), nullable=False),
    number("created_at"),
    number("expires_at"),
    number("rotated_at"),
    number("generation"),  # 0: made before tokens had families
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
    # While `quiet_head` is the head, the newest are events about earlier messages (`core.visibility.last_seq_sql`):
    # seq and time of the last message before them.
    number("quiet_head"),
    number("last_seq"),
    number("last_at"),
    number("message_ttl_s"),
    number("erasures"),  # transactions that erased messages or only lock: each changes the row that it locks
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
    Column("left_at", BigInteger),  # the last activity that this member may see
    flag("has_past"),
    number("delivered_seq"),
    number("read_seq"),
    number("read_countable"),
    number("own_above"),
    number("last_own_seq"),
    number("mention_unread"),
    number("at_all_base"),
    number("muted_until"),
    flag("blocked"),  # `core.model.Blocked` (single chats)
    flag("pinned"),
    flag("recv_msg_opt"),
    number("hidden_seq"),
    Column("group_nickname", String(128), nullable=False, server_default=""),
    Column("group_avatar", String(512), nullable=False, server_default=""),
    Column("inviter_id", text_key(64), nullable=False, server_default=""),
    number("joined_at"),
    Column("extra", long_text()),
    number("cleared_seq"),
    number("deleted_above"),
    number("deleted_count"),
    number("deleted_rev"),  # grows with each message that the member deletes, and each time they clear
    number("cleared_rev"),
    number("archived_seq"),
    number("silent_until"),
    flag("marked_unread"),
    Column("draft", long_text()),
    Column("own_extra", long_text()),  # of the conversation, for this member alone; `extra` is shown to the group
    flag("contact"),  # the peer is a contact (single chats)
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

MESSAGE_TYPES: dict[FieldKind, Callable[[], TypeEngine[Any]]] = {
    FieldKind.ID: BigInteger,
    FieldKind.NUMBER: BigInteger,
    FieldKind.SMALL: SmallInteger,
    FieldKind.KEY: lambda: text_key(64),
    FieldKind.TEXT: long_text,
    FieldKind.JSON: long_text,
    FieldKind.NAMES: long_text,
    FieldKind.REACTIONS: BigInteger,
    FieldKind.SOURCE: long_text,
}

messages = Table(
    "messages",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
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
    Column("recall_seq", BigInteger),  # the event of the recall
    Column("send_at", BigInteger, nullable=False),
    Column("countable_no", BigInteger, nullable=False),
    Column("edited_at", BigInteger),
    Column("edit_seq", BigInteger),  # the event of the last edit
    Column("reactions", BigInteger),  # changes of its reactions; none: there never were any
    Column("forwarded_from", long_text()),
    Column("expires_at", BigInteger),
    flag("counted_event"),  # the record of a missed call, which counts as unread
    *(Column(field.name, MESSAGE_TYPES[field.kind]()) for field in PLAIN),
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

message_deletions = Table(  # messages that a member deleted for themselves; see deletions.py
    "message_deletions",
    metadata,
    Column("conv", BigInteger, primary_key=True, autoincrement=False),
    Column("user_id", text_key(64), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("server_msg_id", BigInteger, nullable=False),
    flag("counts"),  # a countable message of another sender
    number("rev"),
    Index("message_deletions_by_seq", "conv", "seq"),
)

message_expiries = Table(  # when content has to be erased; see expiry.py
    "message_expiries",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("conv", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index("message_expiries_by_time", "expires_at"),
)

work_positions = Table(  # how far background work has got
    "work_positions",
    metadata,
    Column("name", text_key(64), primary_key=True),
    number("position"),
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

stream_owners = Table(  # which instance saves the accepted messages of a shard; see owners.py
    "stream_owners",
    metadata,
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("owner", text_key(64), nullable=False),
    number("epoch"),
    number("expires_at"),
)

instances = Table(  # instances that use this database; see instances.py
    "instances",
    metadata,
    Column("instance_id", text_key(64), primary_key=True),
    Column("place", String(128), nullable=False),
    flag("is_worker"),
    flag("on_bus"),
    Column("secret_digest", String(128), nullable=False),
    number("started_at"),
    number("seen_at"),
)

journal = Table(  # one row per transaction, with references to what it changed; see journal/writing.py
    "journal",
    metadata,
    Column("id", big_key(), primary_key=True, autoincrement=True),
    number("at"),
    Column("entries", long_text(), nullable=False),
)

journal_consumers = Table(  # consumers, their places and instances; see journal/consumers.py
    "journal_consumers",
    metadata,
    Column("name", text_key(64), primary_key=True),
    number("position"),
    number("part"),
    Column("owner", text_key(64), nullable=False, server_default=""),
    number("epoch"),
    number("expires_at"),
    number("updated_at"),
)

journal_state = Table(  # at most one row; see journal/reading.py
    "journal_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    number("trimmed_to"),
    number("beat"),
)

audit_log = Table(  # acts of administrators and keys; rows are added and never changed
    "audit_log",
    metadata,
    Column("id", big_key(), primary_key=True, autoincrement=True),
    number("at"),
    Column("actor", String(160), nullable=False),
    Column("act", String(64), nullable=False),
    Column("target", text_key(160), nullable=False, server_default=""),
    Column("detail", long_text()),
    Index("audit_log_by_target", "target", "id"),
)

blobs = Table(  # bytes in the storage of files, once for equal content; see files/ports.py
    "blobs",
    metadata,
    Column("blob_name", text_key(80), primary_key=True),  # of this row only: never used again after it is deleted
    Column("sha256", text_key(64), nullable=False),
    number("size"),
    flag("is_ready"),  # stored completely, and measured
    Column("mime", String(127), nullable=False, server_default=""),
    Column("width", BigInteger),
    Column("height", BigInteger),
    Column("duration_ms", BigInteger),
    Column("placeholder", String(128)),
    Column("small_bytes", BigInteger),
    Column("medium_bytes", BigInteger),
    number("created_at"),
    number("free_at"),  # 0: in use; otherwise from when on it may be deleted
    UniqueConstraint("sha256", name="blobs_by_content"),
    Index("blobs_by_free", "free_at"),
)

files = Table(  # files of users, each a name for a blob
    "files",
    metadata,
    Column("file_id", text_key(32), primary_key=True),
    Column("owner_id", text_key(64), nullable=False),
    Column("blob_name", text_key(80), nullable=False),
    Column("name", String(255), nullable=False, server_default=""),
    number("size"),
    number("created_at"),
    number("free_at"),  # as that of a blob
    Index("files_by_owner", "owner_id", "created_at"),
    Index("files_by_blob", "blob_name"),
    Index("files_by_free", "free_at"),
)

file_uses = Table(  # messages that name files
    "file_uses",
    metadata,
    Column("server_msg_id", big_key(), primary_key=True, autoincrement=False),
    Column("file_id", text_key(32), primary_key=True),
    number("conv"),
    number("seq"),
    number("ended_at"),  # 0: the message has its content
    Index("file_uses_by_file", "file_id"),
    Index("file_uses_by_end", "ended_at"),
)

file_avatars = Table(  # users (`u:` and the id) and groups (`g:`) whose picture is a file
    "file_avatars",
    metadata,
    Column("subject", text_key(80), primary_key=True),
    Column("file_id", text_key(32), nullable=False),
    Index("file_avatars_by_file", "file_id"),
)

uploads = Table(  # uploads in parts that are not complete
    "uploads",
    metadata,
    Column("file_id", text_key(32), primary_key=True),
    Column("owner_id", text_key(64), nullable=False),
    Column("name", String(255), nullable=False, server_default=""),
    number("length"),
    number("received"),
    number("created_at"),
    number("touched_at"),
    number("expires_at"),
    Index("uploads_by_owner", "owner_id"),
    Index("uploads_by_expiry", "expires_at"),
)

upload_parts = Table(
    "upload_parts",
    metadata,
    Column("file_id", text_key(32), primary_key=True),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    number("size"),
    Column("blob_name", text_key(80), nullable=False),
)

blob_leftovers = Table(  # bytes in the storage that are to be deleted
    "blob_leftovers",
    metadata,
    Column("blob_name", text_key(80), primary_key=True),
    number("due_at"),
    Index("blob_leftovers_by_time", "due_at"),
)

search_tables = (
    schema_search.search_state,
    schema_search.search_docs,
    schema_search.search_terms,
    schema_search.search_units,
    schema_search.search_media,
)

message_tables = schema_messages.TABLES  # what belongs to messages, in a module of its own
openim_versions = schema_openim.openim_versions

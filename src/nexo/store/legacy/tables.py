"""The t_* tables of a source: which columns it has, under which names, and reading them in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import Any, NamedTuple

from nexo.errors import StartupError
from nexo.store.engines.transfer_connection import Row, TransferConnection
from nexo.store.transfer.table_pages import TablePages


class LegacyTable(NamedTuple):
    """A table's columns; those in `optional` may be missing and are then read as NULL."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    may_be_missing: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return self.required + self.optional


USERS = LegacyTable(
    "t_user",
    ("id",),
    ("username", "nickname", "avatar_url", "password_hash", "status", "created_at"),
    may_be_missing=True,
)
SINGLES = LegacyTable("t_single_chat", ("id",), ("user1_id", "user2_id", "created_at"))
SINGLE_MEMBERS = LegacyTable(
    "t_single_chat_member",
    ("single_chat_id", "user_id", "last_delivered_msg_id", "last_read_msg_id"),
    ("role", "join_at", "mute_until", "speak_mute_until", "last_delivered_msg_seq", "last_read_msg_seq"),
)
GROUPS = LegacyTable("t_group", ("id",), ("name", "avatar_url", "created_by", "created_at", "nexo_join_policy"))
GROUP_MEMBERS = LegacyTable(
    "t_group_member",
    ("group_id", "user_id", "last_delivered_msg_id", "last_read_msg_id"),
    ("role", "join_at", "mute_until", "speak_mute_until", "last_delivered_msg_seq", "last_read_msg_seq"),
)
MESSAGES = LegacyTable(
    "t_message",
    ("id", "single_chat_id", "group_id", "from_user_id", "content"),
    ("to_user_id", "chat_type", "msg_type", "status", "client_msg_id", "created_at", "msg_seq", "nexo_extra"),
)
MENTIONS = LegacyTable("t_message_mention", ("message_id", "mentioned_user_id"), ("mention_type",), may_be_missing=True)
REQUESTS = LegacyTable(
    "t_group_join_request",
    ("group_id", "from_user_id"),
    ("message", "status", "created_at"),
    may_be_missing=True,
)
ALL = (USERS, SINGLES, SINGLE_MEMBERS, GROUPS, GROUP_MEMBERS, MESSAGES, MENTIONS, REQUESTS)
# What has no place in Nexo; its rows are counted and reported.
NOT_IMPORTED = ("t_message_ack", "t_friend_relation", "t_friend_request", "t_call_record")

# Other names of the same column in known installations.
_ALIASES = {
    "content": ("body",),
    "created_at": ("create_time", "sent_at", "send_at", "send_time"),
    "user1_id": ("user_a_id", "low_user_id", "user_id_1"),
    "user2_id": ("user_b_id", "high_user_id", "user_id_2"),
    "avatar_url": ("avatar",),
    "created_by": ("owner_id", "owner_user_id", "creator_id"),
    "join_at": ("joined_at",),
}


class LegacyDatabase:
    """One legacy database: its columns by the names used here."""

    def __init__(self, connection: TransferConnection, names: dict[str, dict[str, str]]) -> None:
        self.connection = connection
        self._names = names

    @classmethod
    async def open(cls, connection: TransferConnection, overrides: Mapping[str, str]) -> LegacyDatabase:
        """`overrides` has the database's own names: {"t_message.content": "body"}."""
        names: dict[str, dict[str, str]] = {}
        for table in ALL:
            found = await connection.columns(table.name)
            if found:
                names[table.name] = _match(table, found, overrides)
            elif not table.may_be_missing:
                raise StartupError(f"there is no table {table.name}: is this the database with the t_* tables?")
        has_seqs = any("last_read_msg_seq" in names[table.name] for table in (SINGLE_MEMBERS, GROUP_MEMBERS))
        if has_seqs and "msg_seq" not in names[MESSAGES.name]:
            raise StartupError(
                "the members of this database have cursors that are seqs (last_read_msg_seq), and its messages have "
                "no msg_seq: say what it is called with --column t_message.msg_seq=NAME"
            )
        return cls(connection, names)

    @property
    def has_seqs(self) -> bool:
        """Returns whether messages have numbers in their chats, to which cursors may refer."""
        return self.has(MESSAGES, "msg_seq")

    def has(self, table: LegacyTable, column: str | None = None) -> bool:
        names = self._names.get(table.name)
        return names is not None and (column is None or column in names)

    def select(self, table: LegacyTable) -> list[str]:
        """Returns what to write after SELECT for all of a table's columns."""
        names = self._names[table.name]
        return [names.get(column, "NULL") for column in table.columns]

    def name(self, table: LegacyTable, column: str) -> str:
        return self._names[table.name][column]

    async def count(self, table: str) -> int:
        ((count,),) = await self.connection.read(f"SELECT COUNT(*) FROM {table}")
        return int(count)

    async def pages(
        self, table: LegacyTable, rows: int, after: object = None, upto: object = None
    ) -> AsyncIterator[list[Row]]:
        """Yields pages in the order of `id`, which is the first column."""
        where = "" if upto is None else f"{self.name(table, 'id')}<={int(str(upto))}"
        reader = TablePages(table.name, self.select(table), (self.name(table, "id"),), rows, where)
        async for page in reader.all(self.connection, None if after is None else (after,)):
            yield page

    async def of_chats(self, table: LegacyTable, ids: Sequence[object]) -> list[Row]:
        """Returns the members, or requests, of these chats; the chat's id is the first column."""
        found: list[Row] = []
        chat = self.select(table)[0]
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            marks = ",".join("?" * len(some))
            found += await self.connection.read(
                f"SELECT {','.join(self.select(table))} FROM {table.name} WHERE {chat} IN ({marks})", *some
            )
        return found


def _match(table: LegacyTable, found: Sequence[str], overrides: Mapping[str, str]) -> dict[str, str]:
    present = {name.lower(): name for name in found}
    names: dict[str, str] = {}
    for column in table.columns:
        chosen = overrides.get(f"{table.name}.{column}")
        candidates = (chosen,) if chosen else (column, *_ALIASES.get(column, ()))
        name = next((present[word.lower()] for word in candidates if word.lower() in present), None)
        if name is not None:
            names[column] = name
        elif chosen or (column in table.required and f"{column.removesuffix('_id')}_seq" not in present):
            raise StartupError(
                f"the table {table.name} has no column {chosen or column} (it has {', '.join(found)}): "
                f"say what it is called with --column {table.name}.{column}=NAME"
            )
    return names


def to_ms(value: Any, zone: tzinfo) -> int:
    """Returns a time of any type as milliseconds; 0 without one. Times without a zone are in `zone`."""
    if value is None or value == "":
        return 0
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return 0
    if isinstance(value, datetime):
        known = value if value.tzinfo is not None else value.replace(tzinfo=zone)
        return max(0, round(known.timestamp() * 1000))
    if isinstance(value, date):
        return max(0, round(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp() * 1000))
    number = int(value)
    return number if number > 100_000_000_000 else number * 1000  # seconds until the year 5138

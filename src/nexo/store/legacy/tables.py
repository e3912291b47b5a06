"""The t_* tables as they are found: which columns there are, under which names, and reading them in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from typing import Any, NamedTuple

from nexo.errors import StartupError
from nexo.store.transfer.links import Link, Row
from nexo.store.transfer.paging import Pages


class Table(NamedTuple):
    """A table's columns; those in `optional` may be missing and are then read as NULL."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    may_be_missing: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return self.required + self.optional


USERS = Table(
    "t_user",
    ("id",),
    ("username", "nickname", "avatar_url", "password_hash", "status", "created_at"),
    may_be_missing=True,
)
SINGLES = Table("t_single_chat", ("id",), ("user1_id", "user2_id", "created_at"))
SINGLE_MEMBERS = Table(
    "t_single_chat_member",
    ("single_chat_id", "user_id", "last_delivered_msg_id", "last_read_msg_id"),
    ("role", "join_at", "mute_until", "speak_mute_until"),
)
GROUPS = Table("t_group", ("id",), ("name", "avatar_url", "created_by", "created_at"))
GROUP_MEMBERS = Table(
    "t_group_member",
    ("group_id", "user_id", "last_delivered_msg_id", "last_read_msg_id"),
    ("role", "join_at", "mute_until", "speak_mute_until"),
)
MESSAGES = Table(
    "t_message",
    ("id", "single_chat_id", "group_id", "from_user_id", "content"),
    ("to_user_id", "chat_type", "msg_type", "status", "client_msg_id", "created_at"),
)
MENTIONS = Table("t_message_mention", ("message_id", "mentioned_user_id"), ("mention_type",), may_be_missing=True)
REQUESTS = Table(
    "t_group_join_request",
    ("group_id", "from_user_id"),
    ("message", "status", "created_at"),
    may_be_missing=True,
)
ALL = (USERS, SINGLES, SINGLE_MEMBERS, GROUPS, GROUP_MEMBERS, MESSAGES, MENTIONS, REQUESTS)
# What has no place in Nexo; counted, so that nobody believes it came along.
NOT_IMPORTED = ("t_message_ack", "t_friend_relation", "t_friend_request", "t_call_record")

# Names under which installations are known to keep the same thing.
_ALIASES = {
    "content": ("body",),
    "created_at": ("create_time", "sent_at", "send_at", "send_time"),
    "user1_id": ("user_a_id", "low_user_id", "user_id_1"),
    "user2_id": ("user_b_id", "high_user_id", "user_id_2"),
    "avatar_url": ("avatar",),
    "created_by": ("owner_id", "owner_user_id", "creator_id"),
    "join_at": ("joined_at",),
}


class Legacy:
    """One legacy database that was looked at: columns by the names used here."""

    def __init__(self, link: Link, names: dict[str, dict[str, str]]) -> None:
        self.link = link
        self._names = names

    @classmethod
    async def open(cls, link: Link, overrides: Mapping[str, str]) -> Legacy:
        """`overrides` has the database's own names: {"t_message.content": "body"}."""
        names: dict[str, dict[str, str]] = {}
        for table in ALL:
            found = await link.columns(table.name)
            if found:
                names[table.name] = _match(table, found, overrides)
            elif not table.may_be_missing:
                raise StartupError(f"there is no table {table.name}: is this the database with the t_* tables?")
        if "last_read_msg_seq" in await link.columns(GROUP_MEMBERS.name):
            raise StartupError(
                "the cursors of this database have moved to *_msg_seq already; import-legacy reads those that are "
                "message ids (*_msg_id), and would take members back to where they were before"
            )
        return cls(link, names)

    def has(self, table: Table, column: str | None = None) -> bool:
        names = self._names.get(table.name)
        return names is not None and (column is None or column in names)

    def select(self, table: Table) -> list[str]:
        """What to write after SELECT for all of a table's columns."""
        names = self._names[table.name]
        return [names.get(column, "NULL") for column in table.columns]

    def name(self, table: Table, column: str) -> str:
        return self._names[table.name][column]

    async def count(self, table: str) -> int:
        ((count,),) = await self.link.read(f"SELECT COUNT(*) FROM {table}")
        return int(count)

    async def pages(
        self, table: Table, rows: int, after: object = None, upto: object = None
    ) -> AsyncIterator[list[Row]]:
        """In the order of `id`, which is the first column."""
        where = "" if upto is None else f"{self.name(table, 'id')}<={int(str(upto))}"
        reader = Pages(table.name, self.select(table), (self.name(table, "id"),), rows, where)
        async for page in reader.all(self.link, None if after is None else (after,)):
            yield page

    async def of_chats(self, table: Table, ids: Sequence[object]) -> list[Row]:
        """The members, or requests, of these chats; the chat's id is the first column."""
        found: list[Row] = []
        chat = self.select(table)[0]
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            marks = ",".join("?" * len(some))
            found += await self.link.read(
                f"SELECT {','.join(self.select(table))} FROM {table.name} WHERE {chat} IN ({marks})", *some
            )
        return found


def _match(table: Table, found: Sequence[str], overrides: Mapping[str, str]) -> dict[str, str]:
    present = {name.lower(): name for name in found}
    names: dict[str, str] = {}
    for column in table.columns:
        chosen = overrides.get(f"{table.name}.{column}")
        candidates = (chosen,) if chosen else (column, *_ALIASES.get(column, ()))
        name = next((present[word.lower()] for word in candidates if word.lower() in present), None)
        if name is not None:
            names[column] = name
        elif chosen or column in table.required:
            raise StartupError(
                f"the table {table.name} has no column {chosen or column} (it has {', '.join(found)}): "
                f"say what it is called with --column {table.name}.{column}=NAME"
            )
    return names


def to_ms(value: Any, zone: tzinfo) -> int:
    """A time of whatever type as milliseconds; 0 without one. Times without a zone are in `zone`."""
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

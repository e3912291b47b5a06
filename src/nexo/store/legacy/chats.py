"""Conversations of the import: their numbers, and how many messages of each were counted.

Numbers follow the old ids (single chats, then groups, then chats that only messages refer to), so a run that
continues after an interruption numbers them as the first one did.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, NamedTuple

from nexo.core.model import Kind
from nexo.ids import group_conversation_id, single_conversation_id
from nexo.store.engines.transfer_connection import Row
from nexo.store.legacy import id_mapping
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.tables import GROUPS, SINGLE_MEMBERS, SINGLES, LegacyDatabase, to_ms
from nexo.store.legacy.users import LegacyUsers, clean


class OwnerCandidate(NamedTuple):
    """A member who may become the owner of a group; the least candidate does."""

    rank: int  # 0 owner, 1 creator, 2 admin, 3 member
    joined_at: int
    user_id: str


class LegacyChat:
    """One conversation. `total`, `last_at` and `recalls` are known after the survey; `count`, `at` and
    `recalled` run along while messages pass."""

    __slots__ = (
        "at",
        "conv",
        "count",
        "created_at",
        "first_sender",
        "group",
        "kind",
        "last_at",
        "legacy_ids",
        "name",
        "owner",
        "pair",
        "recalled",
        "recalls",
        "total",
    )

    def __init__(self, conv: int, name: str, kind: Kind, legacy_id: Any, created_at: int) -> None:
        self.conv = conv
        self.name = name
        self.kind = kind
        self.legacy_ids = [] if legacy_id is None else [legacy_id]
        self.created_at = created_at
        self.pair: tuple[str, str] | None = None
        self.group: Row | None = None
        self.first_sender = ""
        self.owner: OwnerCandidate | None = None  # the best candidate that was met
        self.total = self.last_at = self.recalls = 0
        self.count = self.at = self.recalled = 0

    @property
    def head(self) -> int:
        """The last seq: its messages, an event for each that was recalled, and in a group without messages the event
        of its creation."""
        return self.total + self.recalls + (1 if self.is_silent_group else 0)

    @property
    def is_silent_group(self) -> bool:
        return self.kind == Kind.GROUP and not self.total

    def remember(self) -> None:
        """Keep what the survey counted as the totals."""
        self.total, self.last_at, self.recalls = self.count, self.at, self.recalled
        self.count = self.at = self.recalled = 0


Snapshot = dict[int, tuple[int, int, int]]


class Chats:
    def __init__(self, users: LegacyUsers, issues: Issues, zone: tzinfo) -> None:
        self._users = users
        self._issues = issues
        self._zone = zone
        self.all: list[LegacyChat] = []
        self._singles: dict[str, LegacyChat] = {}
        self._groups: dict[str, LegacyChat] = {}
        self._names: dict[str, LegacyChat] = {}

    async def read(self, legacy: LegacyDatabase, batch_rows: int) -> None:
        by_columns = legacy.has(SINGLES, "user1_id") and legacy.has(SINGLES, "user2_id")
        async for page in legacy.pages(SINGLES, batch_rows):
            pairs = {} if by_columns else await self._pairs_of(legacy, page)
            for chat_id, one, other, created_at in page:
                users = [one, other] if by_columns else pairs.get(str(chat_id), [])
                if len(users) == 2:
                    self._add_single(chat_id, users, to_ms(created_at, self._zone))
        async for page in legacy.pages(GROUPS, batch_rows):
            for row in page:
                self._add_group(row)

    async def _pairs_of(self, legacy: LegacyDatabase, page: list[Row]) -> dict[str, list[Any]]:
        """Returns the two users of each chat from its member rows, for a source without columns for them."""
        pairs: dict[str, list[Any]] = {}
        for row in await legacy.of_chats(SINGLE_MEMBERS, [row[0] for row in page]):
            pairs.setdefault(str(row[0]), []).append(row[1])
        return pairs

    def _add_single(self, chat_id: Any, users: list[Any], created_at: int) -> LegacyChat | None:
        one, other = (self._users.find(user) for user in users)
        if one == other:
            return None
        name = single_conversation_id(one, other)
        chat = self._names.get(name)
        if chat is None:
            chat = self._new(name, Kind.SINGLE, chat_id, created_at)
            chat.pair = (one, other) if one < other else (other, one)
        elif chat_id is not None:
            chat.legacy_ids.append(chat_id)
            self._issues.add("chats_merged", "t_single_chat", chat_id, becomes=name)
        if chat_id is not None:
            self._singles[str(chat_id)] = chat
        return chat

    def _add_group(self, row: Row) -> LegacyChat:
        group_id = id_mapping.group_id_of(row[0])
        self._issues.add("group_id_changed", "t_group", row[0], row[0], group_id)
        chat = self._new(group_conversation_id(group_id), Kind.GROUP, row[0], to_ms(row[4], self._zone))
        chat.group = row
        self._groups[str(row[0])] = chat
        if row[3] is not None:
            self._users.find(row[3])
        return chat

    def choose_owners(self) -> None:
        """Choose after all members were read. A group without members is owned by its creator, or its first sender."""
        for chat in self.all:
            if chat.kind != Kind.GROUP or (chat.owner is not None and chat.owner.rank == 0):
                continue
            if chat.owner is None:
                creator = chat.group[3] if chat.group else None
                user_id = chat.first_sender if creator is None else self._users.find(creator)
                chat.owner = OwnerCandidate(1, 0, user_id) if user_id else None
            if chat.owner is None:
                self._issues.add("group_left_out", "t_group", chat.legacy_ids[0])
            else:
                self._issues.add("group_owner_chosen", "t_group", chat.legacy_ids[0], becomes=chat.owner.user_id)

    def _new(self, name: str, kind: Kind, legacy_id: Any, created_at: int) -> LegacyChat:
        chat = self._names[name] = LegacyChat(len(self.all) + 1, name, kind, legacy_id, created_at)
        self.all.append(chat)
        return chat

    def group(self, legacy_id: Any) -> LegacyChat:
        """Returns the group, which is added when only its messages refer to it."""
        found = self._groups.get(str(legacy_id))
        return found or self._add_group((legacy_id, None, None, None, None, None))

    def single(self, legacy_id: Any, sender: Any, receiver: Any) -> LegacyChat | None:
        """Returns the chat of two users; None when it is unknown who the two are."""
        found = self._singles.get(str(legacy_id)) if legacy_id is not None else None
        if found is None and receiver is not None:
            found = self._add_single(legacy_id, [sender, receiver], 0)
        return found

    def known_single(self, legacy_id: Any) -> LegacyChat | None:
        return self._singles.get(str(legacy_id))

    def known_group(self, legacy_id: Any) -> LegacyChat | None:
        return self._groups.get(str(legacy_id))

    def snapshot(self) -> Snapshot:
        return {chat.conv: (chat.count, chat.at, chat.recalled) for chat in self.all if chat.count}

    def restore(self, snapshot: Snapshot) -> None:
        for chat in self.all:
            chat.count, chat.at, chat.recalled = snapshot.get(chat.conv, (0, 0, 0))


def group_name(chat: LegacyChat) -> str:
    return clean(chat.group[1] if chat.group else "")[:128] or f"Group {chat.legacy_ids[0]}"

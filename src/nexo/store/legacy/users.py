"""Users of the import: those of t_user, and those that other tables refer to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

import msgspec

from nexo.errors import StartupError
from nexo.store.accounts import search_key
from nexo.store.engines.transfer_connection import Row
from nexo.store.legacy import id_mapping
from nexo.store.legacy.issues import Issues
from nexo.store.legacy.tables import USERS, LegacyDatabase, to_ms

COLUMNS = ("user_id", "password_hash", "nickname", "nickname_key", "avatar", "extra", "created_at", "updated_at")
NO_PASSWORD = "-"  # no password matches it


class LegacyUsers:
    """Maps the old id of every user, as text, to the new one."""

    def __init__(self, renames: Mapping[str, str], issues: Issues) -> None:
        self._renames = renames
        self._issues = issues
        self._new: dict[str, str] = {}
        self._taken: dict[str, str] = {}  # new id → old id
        self.strangers: list[str] = []  # referred to, but without a row in t_user; in the order of their first use

    def __len__(self) -> int:
        return len(self._new)

    def learn(self, legacy_id: object) -> str:
        """Add a user who has a row; returns the new id."""
        old = str(legacy_id)
        new = id_mapping.user_id_of(old, self._renames)
        if self._taken.setdefault(new, old) != old:
            raise StartupError(
                f"the users {old} and {self._taken[new]} would both be called {new}: give one of them another id "
                "with --rename"
            )
        if new != old:
            self._issues.add("user_id_changed", "t_user", old, old, new)
        self._new[old] = new
        return new

    def find(self, legacy_id: object) -> str:
        """Returns the new id of any user; one without a row is added."""
        old = str(legacy_id)
        found = self._new.get(old)
        if found is None:
            found = self.learn(old)
            self.strangers.append(found)
            self._issues.add("user_without_row", "t_user", old, becomes=found)
        return found

    async def read(self, legacy: LegacyDatabase, batch_rows: int) -> None:
        if not legacy.has(USERS):
            return
        unusable = 0
        async for page in legacy.pages(USERS, batch_rows):
            for row in page:
                self.learn(row[0])
                unusable += password_of(row) == NO_PASSWORD
        if unusable:
            self._issues.add("password_not_usable", "t_user", count=unusable)


def password_of(row: Row) -> str:
    value = str(row[4] or "")
    return value if value.startswith("$argon2id$") and len(value) <= 255 else NO_PASSWORD


def user_row(row: Row, user_id: str, zone: tzinfo) -> Row:
    _, username, nickname, avatar, _, status, created_at = row
    shown = clean(nickname or username)[:128]
    extra: dict[str, Any] = {}
    if username:
        extra["username"] = clean(username)
    if status is not None and int(status) != 1:
        extra["legacy_status"] = int(status)
    if nickname and len(clean(nickname)) > 128:
        extra["nickname"] = clean(nickname)
    text = msgspec.json.encode(extra).decode() if extra else None
    at = to_ms(created_at, zone)
    return (user_id, password_of(row), shown, search_key(shown), clean(avatar)[:512], text, at, at)


def stranger_row(user_id: str) -> Row:
    return (user_id, NO_PASSWORD, "", "", "", None, 0, 0)


def clean(value: object) -> str:
    """Returns text that every engine can store."""
    text = "" if value is None else str(value)
    return text.replace("\x00", "").encode("utf-8", "replace").decode()

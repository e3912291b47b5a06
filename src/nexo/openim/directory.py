"""Nicknames and avatars of users, for pushes: what was read last, and read anew in the background when it is old."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable

from nexo.background import Background
from nexo.core.model import User
from nexo.errors import NexoError
from nexo.ids import is_user_id
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.service.accounts import Accounts

NAMES_MAX = 20_000
NAMES_S = 60.0
WANTED_MAX = 500


class Directory:
    """A push never waits for a name: a user that is not known yet is shown by the id."""

    def __init__(self, accounts: Accounts, background: Background) -> None:
        self._accounts = accounts
        self._background = background
        self._known: OrderedDict[str, tuple[str, str, float]] = OrderedDict()
        self._wanted: set[str] = set()

    def samples(self) -> Iterable[Sample]:
        yield f.CACHE(len(self._known), "openim_names")
        yield f.CACHE_LIMIT(NAMES_MAX, "openim_names")

    def name(self, user_id: str) -> tuple[str, str]:
        """Returns nickname and avatar, as far as they are known."""
        found = self._known.get(user_id)
        if found is None or time.monotonic() - found[2] > NAMES_S:
            self._want(user_id)
        return (found[0], found[1]) if found is not None else (user_id, "")

    def note(self, users: Iterable[User]) -> None:
        now = time.monotonic()
        for user in users:
            self._known[user.user_id] = (user.nickname or user.user_id, user.avatar, now)
            self._known.move_to_end(user.user_id)
        while len(self._known) > NAMES_MAX:
            self._known.popitem(last=False)

    async def users(self, user_ids: Iterable[str]) -> dict[str, User]:
        """Returns the users that exist, and remembers their names."""
        wanted = [user_id for user_id in dict.fromkeys(user_ids) if is_user_id(user_id)]
        found = await self._accounts.users(wanted) if wanted else []
        self.note(found)
        return {user.user_id: user for user in found}

    def _want(self, user_id: str) -> None:
        if len(self._wanted) >= WANTED_MAX:
            return
        if not self._wanted:
            self._background.start("openim_names", self._load())
        self._wanted.add(user_id)

    async def _load(self) -> None:
        wanted, self._wanted = self._wanted, set()
        try:
            await self.users(wanted)
        except NexoError:
            return  # it is asked for again with the next push

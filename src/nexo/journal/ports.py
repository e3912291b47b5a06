"""The interface between the journal and the store."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from nexo.core.journal import ConsumerLease, JournalPage, JournalState, Place


class JournalStore(Protocol):
    """The journal in the database. Every method may raise `NexoError("server_busy")`."""

    async def page(self, place: Place, limit: int, types: Collection[str] | None = None) -> JournalPage:
        """Returns the entries after a place, in order: of each conversation by seq, of each user by commit. A row that
        may still be committed is never passed. About `limit` entries and one megabyte; entries of other types are
        skipped. Raises `cursor_expired` for a place before the oldest row that is kept."""

    async def newest(self) -> int:
        """Returns the number of the newest visible row."""

    async def oldest(self) -> Place:
        """Returns the place before the oldest row that is kept."""

    async def place_of(self, cursor: str | None) -> Place:
        """Returns the place of a cursor: None for now, `begin` for the oldest. Raises `bad_cursor`, and
        `cursor_expired` for one of another journal."""

    def cursor_of(self, place: Place) -> str: ...

    async def take(self, name: str, owner: str, ttl_s: float, *, from_now: bool | None) -> ConsumerLease | None:
        """Returns the lease of a consumer; None while another owner holds it. A new consumer starts with the next
        commit (`from_now`), or with the oldest row that is kept; with None it is not made."""

    async def renew(self, lease: ConsumerLease, ttl_s: float) -> bool:
        """Extends a lease. Returns False if another owner has taken it."""

    async def save(self, lease: ConsumerLease, place: Place) -> bool:
        """Saves the place of a consumer. Returns False, and writes nothing, if another owner has taken it."""

    async def release(self, lease: ConsumerLease) -> None: ...

    async def state(self) -> JournalState: ...

    async def trim(self, older_than_ms: int) -> int:
        """Deletes some of the rows that are older. Returns how many."""

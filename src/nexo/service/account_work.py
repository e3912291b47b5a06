"""Closing and export of accounts.

Both begin with a request and are done in steps: the instance that gets the request does the first steps, a periodic
task on one instance of the cluster does the rest.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import structlog

from nexo.core.people import Export, ExportStatus
from nexo.errors import NexoError
from nexo.ids import check_new_user_id
from nexo.service.accounts import Accounts

log = structlog.get_logger()

AT_ONCE_S = 1.0  # of a request
PASS_S = 2.0  # of a chore: others wait for it


class AccountWorkStore(Protocol):
    """As for all ports: `server_busy` when the database cannot be reached. Steps of one account happen one after the
    other, on whatever instance."""

    async def close(self, user_id: str, erases: bool, actor: str) -> list[str]:
        """Close an account at once. Returns the sids of its sessions, which have ended. Raises `user_not_found`,
        `user_deleted`."""

    async def next_closing(self) -> str | None:
        """Returns an account that was closed and has traces left."""

    async def closing_step(self, user_id: str) -> bool:
        """Remove some traces. Returns whether there may be more."""

    async def begin_export(self, user_id: str, export_id: str) -> Export:
        """Returns the export that is running, or a new one."""

    async def export(self, user_id: str) -> Export:
        """Or `not_found`."""

    async def export_part(self, user_id: str, export_id: str, part: int) -> bytes | None: ...

    async def next_export(self) -> str | None: ...

    async def export_step(self, user_id: str) -> bool:
        """Write some more of an export. Returns whether there may be more."""

    async def trim_exports(self) -> int:
        """Delete an export whose time is over. Returns how many."""


class AccountWork:
    def __init__(self, store: AccountWorkStore, accounts: Accounts) -> None:
        self._store = store
        self._accounts = accounts

    async def close(self, user_id: str, actor: str, *, erase_messages: bool = False) -> None:
        check_new_user_id(user_id)  # the server needs its own accounts
        ended = await self._store.close(user_id, erase_messages, actor)
        self._accounts.end_sessions(user_id, ended, "user_deleted")
        log.info("user_deleted", user_id=user_id, actor=actor, sessions=len(ended), erases=erase_messages)
        await _for_a_moment(self._store.closing_step, user_id)

    async def begin_export(self, user_id: str) -> Export:
        export = await self._store.begin_export(user_id, secrets.token_urlsafe(12))
        if export.status == ExportStatus.RUNNING:
            await _for_a_moment(self._store.export_step, user_id)
        return await self._store.export(user_id)

    async def export(self, user_id: str) -> Export:
        return await self._store.export(user_id)

    def export_file(self, user_id: str, export: Export) -> AsyncIterator[bytes]:
        """Returns the parts of the file of an export that is done."""
        if export.status != ExportStatus.DONE:
            raise NexoError("not_found", "The export is not done; look again later")
        return self._parts(user_id, export)

    async def _parts(self, user_id: str, export: Export) -> AsyncIterator[bytes]:
        for number in range(export.parts):
            part = await self._store.export_part(user_id, export.export_id, number)
            if part is None:
                raise NexoError("not_found", "The export has been replaced or deleted")
            yield part


class AccountChores:
    """What is left of closings and exports, done on one instance of the cluster."""

    def __init__(self, store: AccountWorkStore) -> None:
        self._store = store

    async def run(self) -> int:
        """Do what is left of closings and exports, for a short time. Returns 0: the next time is soon enough."""
        ends_at = time.monotonic() + PASS_S
        for find, step in (
            (self._store.next_closing, self._store.closing_step),
            (self._store.next_export, self._store.export_step),
        ):
            while time.monotonic() < ends_at and (user_id := await find()) is not None:
                while time.monotonic() < ends_at and await step(user_id):
                    pass
        while time.monotonic() < ends_at and await self._store.trim_exports():
            pass
        return 0


async def _for_a_moment(step: Callable[[str], Awaitable[bool]], user_id: str) -> None:
    ends_at = time.monotonic() + AT_ONCE_S
    try:
        while await step(user_id) and time.monotonic() < ends_at:
            pass
    except NexoError as error:  # begun, and continued by the chores
        log.warning("account_work_put_off", user_id=user_id, error=error.name)

"""Messages that users put before the moderators."""

from __future__ import annotations

from typing import Protocol

import structlog

from nexo.core.content import check_text
from nexo.core.people import MessageReport
from nexo.errors import NexoError
from nexo.ids import parse_server_msg_id

log = structlog.get_logger()

REASON_MAX_CHARS = 512
PAGE_MAX = 50
STATES = ("open", "resolved", "all")


class ReportStore(Protocol):
    """Reports refer to messages: what was recalled or erased since is blank."""

    async def add(self, user_id: str, server_msg_id: int, reason: str) -> int:
        """Returns the number of the report; one user reports a message once. Raises `message_not_found`."""

    async def read(self, state: str, before: int, limit: int, actor: str) -> list[MessageReport]:
        """Returns reports, newest first, below a number (0: from the newest). Reading is written to the audit log."""

    async def resolve(self, report_id: int, resolution: str, actor: str) -> None:
        """Mark a report as dealt with; repeated, nothing changes. Raises `not_found`."""


class Reports:
    def __init__(self, store: ReportStore) -> None:
        self._store = store

    async def add(self, user_id: str, server_msg_id: str, reason: str) -> int:
        check_text(reason, "reason", REASON_MAX_CHARS)
        if not reason.strip():
            raise NexoError("missing_reason")
        report_id = await self._store.add(user_id, parse_server_msg_id(server_msg_id), reason)
        log.info("message_reported", report=report_id, user_id=user_id, server_msg_id=server_msg_id)
        return report_id

    async def read(
        self, state: str, before: int | None, limit: int | None, actor: str
    ) -> tuple[list[MessageReport], bool]:
        """Returns a page, and whether there is more."""
        if state not in STATES:
            raise NexoError("bad_kind", f"state is one of {', '.join(STATES)}")
        count = limit if limit is not None and 0 < limit <= PAGE_MAX else PAGE_MAX
        found = await self._store.read(state, before or 0, count + 1, actor)
        return found[:count], len(found) > count

    async def resolve(self, report_id: str, resolution: str, actor: str) -> None:
        check_text(resolution, "reason", REASON_MAX_CHARS)
        if not (report_id.isascii() and report_id.isdigit() and len(report_id) <= 18):
            raise NexoError("not_found", "There is no such report")
        await self._store.resolve(int(report_id), resolution, actor)

"""Messages that users have reported, as scripts. A report refers to messages and copies none."""

from __future__ import annotations

import msgspec

from nexo.core.model import Message
from nexo.core.people import MessageReport
from nexo.core.visibility import is_visible
from nexo.errors import NexoError
from nexo.store import audit, rows
from nexo.store.database import Database
from nexo.store.engine import NOW, Conflict, Script, do
from nexo.store.engine import rows as query
from nexo.store.history import find_message
from nexo.store.reader_view import EVERYTHING, complete
from nexo.store.sql import Sql

AROUND = 5  # messages before, and after
_COLUMNS = MessageReport.__struct_fields__[:-2]
_REPORT = rows.columns(_COLUMNS)
_decode = msgspec.json.Decoder(list[int]).decode


class SqlReports:
    """Behind the port `service.reports.ReportStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql

    async def add(self, user_id: str, server_msg_id: int, reason: str) -> int:
        while True:
            try:
                return await self._database.change(lambda: _add(user_id, server_msg_id, reason))
            except Conflict:  # the same report at the same moment: the second run finds it
                continue

    async def read(self, state: str, before: int, limit: int, actor: str) -> list[MessageReport]:
        found = await self._database.look(lambda: _read(self._sql, state, before, limit))
        detail = {"state": state, "before": before, "reports": len(found)}
        await self._database.change(lambda: audit.write(actor, "reports.read", "", detail))
        return found

    async def resolve(self, report_id: int, resolution: str, actor: str) -> None:
        await self._database.change(lambda: _resolve(self._sql, report_id, resolution, actor))


def _add(user_id: str, server_msg_id: int, reason: str) -> Script[int]:
    """Stores a report of a message that the reporter may see. Returns its number; of a repeated one, that of the
    first."""
    message, view = yield from find_message(user_id, server_msg_id)
    if message.is_event:
        raise NexoError("message_not_found", "Events cannot be reported")
    found = yield query("SELECT report_id FROM reports WHERE reporter_id=? AND server_msg_id=?", user_id, server_msg_id)
    if not found:
        around = range(max(1, message.seq - AROUND), min(view.head_seq, message.seq + AROUND) + 1)
        context = [seq for seq in around if seq != message.seq and is_visible(view.ranges, seq)]
        yield do(
            "INSERT INTO reports (reporter_id,server_msg_id,conversation_id,seq,sender_id,reason,context,created_at) "
            "VALUES (?,?,?,?,?,?,?,?)",
            user_id,
            server_msg_id,
            message.conversation_id,
            message.seq,
            message.sender_id,
            reason,
            msgspec.json.encode(context).decode(),
            (yield NOW),
        )
        found = yield query(
            "SELECT report_id FROM reports WHERE reporter_id=? AND server_msg_id=?", user_id, server_msg_id
        )
    return int(found[0][0])


_STATES = {"open": "resolved_at=0", "resolved": "resolved_at>0", "all": "resolved_at>=0"}


def _read(sql: Sql, state: str, before: int, limit: int) -> Script[list[MessageReport]]:
    """Returns reports with their messages, newest first, below a number (0: from the newest)."""
    found = yield query(
        f"SELECT {_REPORT},context FROM reports WHERE {_STATES[state]} AND report_id<? "
        f"ORDER BY report_id DESC LIMIT {int(limit)}",
        before or (1 << 62),
    )
    reports: list[MessageReport] = []
    for *row, context in found:
        report = MessageReport(*row)
        around = yield from _messages(sql, report.conversation_id, [*_decode(context), report.seq])
        report.message = next((message for message in around if message.seq == report.seq), None)
        report.context = [message for message in around if message.seq != report.seq]
        reports.append(report)
    return reports


def _messages(sql: Sql, name: str, seqs: list[int]) -> Script[list[Message]]:
    chosen = sql.one_of("m.seq", sorted(seqs), "bigint")
    found = yield query(
        f"SELECT {rows.columns(rows.MESSAGE, 'm')} FROM messages m JOIN conversations c ON c.id=m.conv "
        f"WHERE c.conversation_id=? AND {chosen.sql} ORDER BY m.seq",
        name,
        *chosen.params,
    )
    messages = [rows.message(row, name) for row in found]
    yield from complete(sql, "", messages, {name: EVERYTHING})
    return messages


def _resolve(sql: Sql, report_id: int, resolution: str, actor: str) -> Script[None]:
    found = yield query(f"SELECT resolved_at FROM reports WHERE report_id=?{sql.for_update}", report_id)
    if not found:
        raise NexoError("not_found", f"There is no report {report_id}")
    if found[0][0]:
        return
    yield do(
        "UPDATE reports SET resolved_at=?,resolved_by=?,resolution=? WHERE report_id=?",
        (yield NOW),
        actor,
        resolution,
        report_id,
    )
    yield from audit.write(actor, "report.resolve", str(report_id), {"resolution": resolution})

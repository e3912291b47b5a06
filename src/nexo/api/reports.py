"""Handlers under `/server`: what moderators do with reports."""

from __future__ import annotations

from msgspec import Struct

from nexo.api import people_requests as requests
from nexo.api.requests import given
from nexo.api.route import Caller, Services
from nexo.api.shapes import Empty
from nexo.core.people import MessageReport
from nexo.core.shapes import MessageShape, message_shape


class ReportShape(Struct):
    """`message` and `context` are as members see them now; what a message was before: `/server/messages/{id}`."""

    report_id: str
    reporter_id: str
    reason: str
    created_at: int
    server_msg_id: str
    conversation_id: str
    sender_id: str
    message: MessageShape | None
    context: list[MessageShape]
    resolved_at: int | None
    resolved_by: str
    resolution: str


class ReportList(Struct):
    reports: list[ReportShape]
    next_before: int | None
    has_more: bool


async def reports(services: Services, caller: Caller, request: requests.ReportsQuery) -> ReportList:
    found, has_more = await services.people.reports.read(
        request.state, given(request.before), given(request.limit), caller.actor
    )
    return ReportList([_shape(one) for one in found], found[-1].report_id if has_more else None, has_more)


async def resolve(services: Services, caller: Caller, request: requests.ResolveRequest) -> Empty:
    await services.people.reports.resolve(caller.path_id, request.resolution, caller.actor)
    return Empty()


def _shape(report: MessageReport) -> ReportShape:
    return ReportShape(
        str(report.report_id),
        report.reporter_id,
        report.reason,
        report.created_at,
        str(report.server_msg_id),
        report.conversation_id,
        report.sender_id,
        None if report.message is None else message_shape(report.message),
        [message_shape(message) for message in report.context],
        report.resolved_at or None,
        report.resolved_by,
        report.resolution,
    )

"""Handlers: for administrators."""

from __future__ import annotations

from msgspec import Struct

from nexo.api import requests
from nexo.api.callers import is_administrator
from nexo.api.route import Caller, Services
from nexo.core.trace_shapes import TraceReply, trace_shape
from nexo.errors import NexoError
from nexo.metrics.live import SLOW_CANARY_S, Live


class Status(Struct):
    """`state` is `ready`, `slow` or `not_ready`; `reason` states why it is not ready, `slow` what is slow."""

    state: str
    reason: str
    slow: list[str]
    canary_ms: float
    live: Live


async def stats(services: Services, caller: Caller, request: requests.AdminStats) -> Status:
    if not await is_administrator(services.accounts, caller.session):
        raise NexoError("no_permission", "Only for administrators; `nexo user admin NAME` makes a user one")
    live = services.live.look(requests.given(request.since) or 0)
    reason = ""
    try:
        await services.health.check_ready()
    except NexoError as error:
        reason = error.detail
    slow = list(live.slow)
    if services.health.canary_s > SLOW_CANARY_S:
        slow.insert(0, "canary")
    state = "not_ready" if reason else "slow" if slow else "ready"
    return Status(state, reason, slow, round(services.health.canary_s * 1000, 2), live)


async def trace(services: Services, caller: Caller, request: requests.TraceRequest) -> TraceReply:
    found = await services.backend.tracing.trace(request.server_msg_id, requests.given(request.user_id))
    return trace_shape(found.stored, found.found)

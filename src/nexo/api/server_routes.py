"""The routes of the server itself: numbers and traces for administrators, health."""

from __future__ import annotations

from nexo.api import admin, requests, status
from nexo.api.route import Route, route
from nexo.core.trace_shapes import TraceReply

SERVER_ROUTES: tuple[Route, ...] = (
    route(
        "GET", "/admin/stats", admin.stats, requests.AdminStats, admin.Status,
        "How the server is doing, for administrators: what the page /admin shows", "no_permission", by_key=False,
    ),
    route(
        "GET", "/admin/trace", admin.trace, requests.TraceRequest, TraceReply,
        "Where a message is: saved, pushed to which connections or why not, delivered, read; never its text",
        "message_not_found", "no_permission", scopes=("moderate",),
    ),
    route(
        "GET", "/healthz", status.alive, requests.Nothing, status.Alive, "Is the server alive",
        signed_in=False, limited=False,
    ),
    route(
        "GET", "/readyz", status.ready, requests.Nothing, status.Ready,
        "Can it store and deliver; a message is sent on trial", signed_in=False, limited=False,
    ),
)  # fmt: skip

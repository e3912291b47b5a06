"""Logs: one line per event, structured, and never a secret or a message in it."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

_SECRET = frozenset(
    ("token", "access_token", "refresh_token", "password", "old_password", "new_password", "secret", "authorization")
)
_CONTENT = frozenset(("content", "body", "text", "extra"))


def hide_secrets(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """The last line of defence: fields that could hold a secret or what somebody wrote are blanked."""
    for key in event:
        if key in _SECRET or key in _CONTENT:
            event[key] = "[hidden]"
    return event


class _ToStderr:
    """Writes to what is standard error now, not to what it was when a logger was first used."""

    def __init__(self, *_: Any) -> None: ...

    def msg(self, line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    debug = info = warning = error = critical = exception = log = msg


def set_up_logs(level: str = "info", *, as_json: bool | None = None, process: int | str | None = None) -> None:
    """Readable lines on a terminal, JSON elsewhere. One of several processes has its number in every line."""
    if as_json is None:
        as_json = not sys.stderr.isatty()
    # The default on a terminal would print every local variable: messages, tokens, for seconds.
    on_terminal = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    render: Any = structlog.processors.JSONRenderer() if as_json else on_terminal
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        *([] if process is None else [lambda _, __, event: {"process": process} | event]),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    if as_json:
        processors.append(structlog.processors.format_exc_info)
    structlog.configure(
        processors=[*processors, render],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=_ToStderr,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s", force=True)

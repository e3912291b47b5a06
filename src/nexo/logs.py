"""Logs: one structured line per event, without secrets and without the text of messages.

The level and the choice of acknowledgements that are logged can change while the process runs.
"""

from __future__ import annotations

import logging
import random
import sys
import traceback
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import Any

import structlog

_SECRET = frozenset(
    ("token", "access_token", "refresh_token", "password", "old_password", "new_password", "secret", "authorization")
)
_CONTENT = frozenset(("content", "body", "text", "extra"))

# What identifies the request that the current task works for; part of every line that the task writes. Setting it
# costs a tenth of a microsecond, and nothing is formatted until there is a line.
request_fields: ContextVar[Mapping[str, Any]] = ContextVar("request_fields")


def _add_request(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    fields = request_fields.get(None)
    return event if fields is None else {**fields, **event}


class _Logger(structlog.make_filtering_bound_logger(logging.INFO)):  # type: ignore[misc]
    """The class of all loggers. Loggers are cached where they are used, and look their methods up here: exchanging the
    methods changes the level of all of them, and a line below the level costs nothing."""


class DeliveryLines:
    """Lines about sends, requests and acknowledgements over connections, resends, and pushes that were not taken: all
    at debug level; at info level a random share of them, and those of chosen users and conversations. While `is_on`
    is False there is nothing to write."""

    def __init__(self) -> None:
        self.is_on = False
        self._at_debug = False
        self._share = 0.0
        self._users: frozenset[str] = frozenset()
        self._conversations: frozenset[str] = frozenset()

    def choose(self, share: float, users: Collection[str] = (), conversations: Collection[str] = ()) -> None:
        self._share, self._users, self._conversations = share, frozenset(users), frozenset(conversations)
        self._decide()

    def set_debug(self, at_debug: bool) -> None:
        self._at_debug = at_debug
        self._decide()

    def write(self, event: str, user: str | None, conversation_id: str | None, **fields: Any) -> None:
        log = structlog.get_logger()
        write_line = log.info if self._is_chosen(user, conversation_id) else log.debug
        write_line(event, user=user, conversation_id=conversation_id, **fields)

    def _is_chosen(self, user: str | None, conversation_id: str | None) -> bool:
        return user in self._users or conversation_id in self._conversations or random.random() < self._share

    def _decide(self) -> None:
        self.is_on = self._at_debug or bool(self._share or self._users or self._conversations)


delivery_lines = DeliveryLines()


def set_log_level(level: str) -> None:
    """Change the level of all loggers of this process."""
    filtering = structlog.make_filtering_bound_logger(getattr(logging, level.upper()))
    for name, method in vars(filtering).items():
        if not name.startswith("__"):
            setattr(_Logger, name, method)
    delivery_lines.set_debug(level == "debug")


def hide_secrets(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Returns the event with all fields blanked that could hold a secret or the text of a message."""
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


class _OneLine(logging.Handler):
    """Writes logs of libraries as one-line events: a driver that cannot connect would print its whole traceback for
    each attempt, hundreds of lines a second in an outage."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = {} if error is None else {"error": f"{type(error).__name__}: {error}", "where": _where(error)}
        write = structlog.get_logger().error if record.levelno >= logging.ERROR else structlog.get_logger().warning
        write("library_log", logger=record.name, says=record.getMessage(), **fields)


def _where(error: BaseException) -> str:
    """Returns the file and line that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def set_up_logs(level: str = "info", *, as_json: bool | None = None, process: int | str | None = None) -> None:
    """Configure logs: readable lines on a terminal, otherwise JSON. `process` is added to every line."""
    if as_json is None:
        as_json = not sys.stderr.isatty()
    # The default on a terminal would print every local variable: messages, tokens, for seconds.
    on_terminal = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    render: Any = structlog.processors.JSONRenderer() if as_json else on_terminal
    processors: list[Any] = [
        _add_request,
        *([] if process is None else [lambda _, __, event: {"process": process} | event]),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    if as_json:
        processors.append(structlog.processors.format_exc_info)
    set_log_level(level)
    structlog.configure(
        processors=[*processors, render],
        wrapper_class=_Logger,
        logger_factory=_ToStderr,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_OneLine()], force=True)

"""Logs are set up for a process, once and for all; the process of all tests gets its own set-up back after each.

A command that a test calls in this process may set them up anew: another level, another form, and every logger that is
used under it keeps both.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any

import structlog

_lazy = type(structlog.get_logger())


def set_up_for_tests() -> dict[str, Any]:
    """What tests log with. The default would print every local variable of a traceback, which can take seconds."""
    render = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], render])
    return structlog.get_config()


@contextlib.contextmanager
def restored(setup: dict[str, Any]) -> Iterator[None]:
    """At the end logs are set up like this, and no logger remembers anything else."""
    try:
        yield
    finally:
        if any(structlog.get_config()[name] is not value for name, value in setup.items()):
            structlog.configure(**setup)
            _forget_cached_loggers()
            _undo_basic_config()


def _forget_cached_loggers() -> None:
    """A module's logger that was used while `cache_logger_on_first_use` held has its set-up in an attribute."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "nexo":
            for value in list(vars(module).values()):
                if isinstance(value, _lazy):
                    vars(value).pop("bind", None)


def _undo_basic_config() -> None:
    for handler in list(logging.root.handlers):
        if type(handler) is logging.StreamHandler:  # pytest's own are of other classes
            logging.root.removeHandler(handler)
    logging.root.setLevel(logging.WARNING)

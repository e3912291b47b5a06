"""Failures to open, migrate or move a database, for code that only reports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nexo.config import StoreUrl
from nexo.errors import StartupError, Unavailable
from nexo.store.engine import StoreError, Transient
from nexo.store.engines.advice import LASTING
from nexo.store.engines.registry import engine_kind


def failures_of(*urls: StoreUrl) -> tuple[type[Exception], ...]:
    """Returns what working with these databases may raise because of them, for an `except` clause."""
    drivers = (error for url in urls for error in engine_kind(url).driver_errors)
    return (StoreError, OSError, *drivers)


def failure_text(error: Exception) -> str:
    return str(error) or type(error).__name__


def advice_for(error: BaseException, url: StoreUrl) -> str:
    """Returns the operator's next step; empty where nothing better than the error is known."""
    causes = _causes(error)
    kind = engine_kind(url)
    for cause in causes:
        if advice := kind.advice_on(cause, url):
            return advice
    return kind.unreachable_advice if any(isinstance(cause, OSError) for cause in causes) else ""


def may_pass(error: BaseException, url: StoreUrl) -> bool:
    """Whether the same attempt may succeed later, without a change of configuration or rights."""
    if advice_for(error, url) in LASTING:
        return False
    kind = engine_kind(url)
    return any(isinstance(cause, Transient | TimeoutError) or kind.is_passing(cause) for cause in _causes(error))


def _causes(error: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    while error not in causes:
        causes.append(error)
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__ or error
    return causes


@contextmanager
def startup_errors(url: StoreUrl) -> Iterator[None]:
    """Raise the failures of a database or its driver as a StartupError (Unavailable if it may pass), with the next step
    where it is known."""
    try:
        yield
    except failures_of(url) as error:
        text = f"the database {url.redacted()} cannot be used: {failure_text(error)}"
        advice = advice_for(error, url)
        kind = Unavailable if may_pass(error, url) else StartupError
        raise kind(f"{text}; {advice}" if advice else text) from error

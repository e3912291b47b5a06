"""What the commands that move whole stores share: how they show progress, and how they end."""

from __future__ import annotations

import os
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from nexo.cli.output import progress as progress_console
from nexo.cli.output import run
from nexo.config import StoreUrl, parse_store_url
from nexo.errors import StartupError
from nexo.store.failures import failure_text, failures_of
from nexo.store.transfer.progress_record import TransferRefused

T = TypeVar("T")

EXIT_REFUSED = 1  # nothing was done; the text states why
EXIT_DIFFERENT = 3  # the target is not what it must be: do not use it
EXIT_UNFINISHED = 4  # interrupted: the same command continues where it stopped
_LINE_S = 10.0  # without a terminal: a line at every tenth, and at least this often


def parse_url(text: str, option: str) -> StoreUrl:
    """A URL, or `env:NAME` for one that is in the environment, where other users of the machine cannot see it."""
    if text.startswith("env:"):
        name = text.removeprefix("env:")
        text = os.environ.get(name, "")
        if not text:
            raise StartupError(f"{option}: the environment variable {name} is not set")
    try:
        return parse_store_url(text)
    except StartupError as error:
        raise StartupError(f"{option}: {error}") from None


class Shown:
    """Progress for people (a bar) or for a log (lines), on standard error."""

    def __init__(self, bar: Progress | None) -> None:
        self._bar = bar
        self._task: Any = None
        self._stage = ""
        self._tenth = -1
        self._said_at = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        total = max(total, done)
        if self._bar is not None:
            if stage != self._stage:
                self._task = self._bar.add_task(stage.capitalize(), total=total)
            self._bar.update(self._task, completed=done, total=total)
        else:
            self._print_progress(stage, done, total)
        self._stage = stage

    def _print_progress(self, stage: str, done: int, total: int) -> None:
        tenth = done * 10 // total if total else 10
        now = time.monotonic()
        if stage == self._stage and tenth == self._tenth and now - self._said_at < _LINE_S:
            return
        self._tenth, self._said_at = tenth, now
        percent = done * 100 // total if total else 100
        typer.echo(f"nexo: {stage}: {done:,} of {total:,} ({percent} %)", err=True)


@contextmanager
def shown() -> Iterator[Shown]:
    if not progress_console.is_terminal:
        yield Shown(None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=progress_console) as bar:
        yield Shown(bar)


def run_transfer(work: Coroutine[Any, Any, T], *urls: StoreUrl) -> T:
    """Run a transfer between these databases, and translate how it can end: refused, or interrupted half-way."""
    try:
        return run(work)
    except TransferRefused as error:
        _print_status(str(error))
        raise typer.Exit(EXIT_REFUSED) from None
    except KeyboardInterrupt:
        _print_status("stopped: the same command continues where it stopped")
        raise typer.Exit(EXIT_UNFINISHED) from None
    except failures_of(*urls) as error:
        _print_status(f"a database failed: {failure_text(error)}")
        _print_status("what was written stays: the same command continues where it stopped")
        raise typer.Exit(EXIT_UNFINISHED) from None


def _print_status(text: str) -> None:
    typer.echo(f"nexo: {text}", err=True)

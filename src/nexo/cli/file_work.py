"""What `nexo backup` and `nexo restore` share: how they check the laws, how they end, and what they report of a running
server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from nexo.cli.output import print_json, print_text, run
from nexo.cli.transfer import EXIT_DIFFERENT, EXIT_REFUSED, EXIT_UNFINISHED, Shown
from nexo.config import StoreUrl
from nexo.errors import StartupError
from nexo.store.backup.writing import ProvenFile, Verify
from nexo.store.check import check
from nexo.store.engines.database_files import DumpCommands, FileDamaged
from nexo.store.engines.registry import engine_kind
from nexo.store.failures import advice_for, failure_text, failures_of
from nexo.store.transfer.progress_record import TransferRefused


def laws(progress: Shown) -> Verify:
    """Returns what asks the laws of `nexo check` about a file, and shows how far it is."""
    return lambda url: run(check(url, progress=lambda done, of: progress("checking", done, of)))


@contextmanager
def reported(url: StoreUrl, damaged: str) -> Iterator[None]:
    """Translate how work on a file can end. `damaged` is the text for a file whose structure is broken."""
    try:
        yield
    except TransferRefused as error:
        _fail(str(error), EXIT_REFUSED)
    except FileDamaged as error:
        _fail(f"{damaged}: {error}", EXIT_DIFFERENT)
    except KeyboardInterrupt:
        _fail("stopped: run the same command again", EXIT_UNFINISHED)
    except failures_of(url) as error:
        advice = advice_for(error, url)
        text = f"a file cannot be used: {failure_text(error)}"
        raise StartupError(f"{text}; {advice}" if advice else text) from error


def refuse_server(url: StoreUrl, word: str, lines: Callable[[DumpCommands], tuple[str, ...]], as_json: bool) -> None:
    """End the command for a database of a server, with the lines that do the same there."""
    commands = engine_kind(url).dump_commands(url)
    if commands is None:
        return
    if as_json:
        print_json({"store": url.redacted(), "commands": lines(commands), "password": commands.password})
    else:
        for line in lines(commands):
            print_text(line)
    _fail(
        f"{url.redacted()} is the database of a server, which its own tools {word}: run the lines above. "
        f"They find the password in {commands.password}",
        EXIT_REFUSED,
    )


def proof_fields(proven: ProvenFile) -> dict[str, object]:
    return {name: getattr(proven, name) for name in proven.__struct_fields__}


def print_proof(proven: ProvenFile) -> None:
    if not proven.laws_checked:
        print_text(f"It was read back and is whole. Its schema is {proven.revision}, not of this version.")
    elif proven.findings:
        found = ", ".join(f"{kind} {count}" for kind, count in proven.findings.items())
        print_text(f"It was read back and is whole; `nexo check` finds what was wrong in the database already: {found}")
    else:
        print_text(f"It was read back, and `nexo check` finds nothing wrong: {proven.messages} messages.")


def _fail(text: str, code: int) -> NoReturn:
    typer.echo(f"nexo: {text}", err=True)
    raise typer.Exit(code) from None

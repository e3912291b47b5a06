"""The `nexo` command. Each group of commands is a module here with a Typer object called `app`.

To add one: write `cli/<name>.py` in the pattern of `config.py` and give it a line in GROUPS. A group's
module is imported when one of its commands runs, so that `nexo --help` never waits for a database driver.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from nexo import __version__
from nexo.errors import NexoError, StartupError

EXIT_REFUSED = 1  # the command was understood, and the answer is no
EXIT_UNUSABLE = 2  # wrong usage or configuration; also what Typer itself uses


class Group(NamedTuple):
    module: str
    help: str
    hidden: bool = False


GROUPS = {
    "serve": Group("nexo.cli.serve", "Run the server."),
    "demo": Group("nexo.cli.demo", "Run a populated server to look at, which leaves nothing behind."),
    "worker": Group("nexo.cli.worker", "Save what servers have accepted (two-phase acknowledgement)."),
    "streams": Group("nexo.cli.streams", "Look at what was accepted and not saved; replay or drop dead letters."),
    "user": Group("nexo.cli.user", "Add and list users, set passwords."),
    "migrate": Group("nexo.cli.migrate", "Bring the database to the schema this version needs."),
    "check": Group("nexo.cli.check", "Check that what is stored is consistent."),
    "copy-store": Group("nexo.cli.copy_store", "Copy a whole store to another database, of any engine."),
    "import-legacy": Group("nexo.cli.import_legacy", "Import a database with t_* tables and id cursors."),
    "config": Group("nexo.cli.config", "Show, check and explain the configuration."),
    "bench": Group("nexo.cli.bench", "Put a server under load and prove that nothing is lost."),
    "docs": Group("nexo.cli.docs", "Print or write the generated pages of the documentation.", hidden=True),
}


class LazyGroups(TyperGroup):
    """Knows its commands by name and help, loads them when they are called, and ends all of them alike."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, group in GROUPS.items():
            self.add_command(TyperGroup(name=name, help=group.help, hidden=group.hidden))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name in GROUPS:
            command = typer.main.get_command(import_module(GROUPS[name].module).app)
            command.help = command.help or GROUPS[name].help
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except StartupError as error:
            _say_failed(str(error))
            raise typer.Exit(EXIT_UNUSABLE) from None
        except NexoError as error:
            _say_failed(str(error))
            raise typer.Exit(EXIT_REFUSED) from None


def _say_failed(text: str) -> None:
    for line in text.splitlines():
        typer.echo(f"nexo: {line}", err=True)


# Typer's own tracebacks print local variables, and with them secrets.
app = typer.Typer(cls=LazyGroups, no_args_is_help=True, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nexo {__version__}")
        raise typer.Exit


@app.callback()
def nexo(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A self-hosted instant-messaging server."""


def main() -> None:
    app(prog_name="nexo")

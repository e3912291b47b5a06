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
from nexo.errors import NexoError, StartupError, Unavailable

EXIT_REFUSED = 1  # the command was understood, and the answer is no
EXIT_UNUSABLE = 2  # wrong usage or configuration; also what Typer itself uses
EXIT_UNAVAILABLE = 75  # of a service whose database is away: starting it again may help (EX_TEMPFAIL of sysexits.h)
KEPT_RUNNING = ("serve", "worker")  # by a service manager, which acts on the exit code


class CommandGroup(NamedTuple):
    module: str
    help: str
    hidden: bool = False


GROUPS = {
    "serve": CommandGroup("nexo.cli.serve", "Run the server."),
    "demo": CommandGroup("nexo.cli.demo", "Run a populated server to look at, which leaves nothing behind."),
    "worker": CommandGroup("nexo.cli.worker", "Save what servers have accepted (two-phase acknowledgement)."),
    "streams": CommandGroup(
        "nexo.cli.streams", "Look at what was accepted and not saved; replay or drop dead letters."
    ),
    "two-phase": CommandGroup("nexo.cli.two_phase", "Switch two-phase acknowledgement of running servers."),
    "log": CommandGroup("nexo.cli.log", "Change what running servers log."),
    "user": CommandGroup("nexo.cli.user", "Add, list, disable and enable users, set passwords, end sessions."),
    "group": CommandGroup("nexo.cli.group", "Disable and enable groups."),
    "invite": CommandGroup("nexo.cli.invite", "Make a code that allows to register."),
    "key": CommandGroup("nexo.cli.key", "Make, list and revoke keys of backends and bots."),
    "hook": CommandGroup("nexo.cli.hook", "Add, list, test, pause, replay and remove webhooks."),
    "push": CommandGroup("nexo.cli.push", "List devices that are registered for push; send test notifications."),
    "audit": CommandGroup("nexo.cli.audit", "Show what administrators, keys and commands have done."),
    "migrate": CommandGroup("nexo.cli.migrate", "Bring the database to the schema this version needs."),
    "check": CommandGroup("nexo.cli.check", "Check that what is stored is consistent."),
    "files": CommandGroup("nexo.cli.files", "List, check, collect and move the files of users."),
    "backup": CommandGroup("nexo.cli.backup", "Write a backup of the embedded database, beside a running server."),
    "restore": CommandGroup("nexo.cli.restore", "Restore a backup in place of the embedded database."),
    "journal": CommandGroup("nexo.cli.journal", "Show what the journal keeps and how far its consumers are."),
    "search": CommandGroup("nexo.cli.search", "Build the index of search anew; show how far it is."),
    "why": CommandGroup("nexo.cli.why", "Show where a message is: saved, pushed, delivered, read, or why not."),
    "copy-store": CommandGroup("nexo.cli.copy_store", "Copy a whole store to another database, of any engine."),
    "import-openim": CommandGroup("nexo.cli.import_openim", "Import an export of OpenIM's MongoDB."),
    "import-legacy": CommandGroup("nexo.cli.import_legacy", "Import a database with t_* tables and id cursors."),
    "config": CommandGroup("nexo.cli.config", "Show, check and explain the configuration."),
    "bench": CommandGroup("nexo.cli.bench", "Put a server under load and prove that nothing is lost."),
    "docs": CommandGroup("nexo.cli.docs", "Print or write the generated pages of the documentation.", hidden=True),
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
            is_kept_running = ctx.invoked_subcommand in KEPT_RUNNING
            code = EXIT_UNAVAILABLE if is_kept_running and isinstance(error, Unavailable) else EXIT_UNUSABLE
            raise typer.Exit(code) from None
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

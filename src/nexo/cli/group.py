"""`nexo group`: disable and enable groups, also while servers run."""

from __future__ import annotations

from typing import Annotated

import typer

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, load_config, print_text, run
from nexo.service.moderation import Moderation
from nexo.store.moderation import SqlModeration

app = typer.Typer(no_args_is_help=True, add_completion=False)

GroupId = Annotated[str, typer.Argument(metavar="GROUP_ID", help="The group.", show_default=False)]
ACTOR = "command line"


@app.command()
def disable(
    group_id: GroupId,
    reason: Annotated[str, typer.Option(help="For the audit log.")] = "",
    config: ConfigFile = None,
    data: DataDir = None,
) -> None:
    """Disable a group: nothing can be sent to it or changed in it, and it can still be read."""
    settings = load_config(config, data)

    async def work() -> None:
        async with opened(settings) as database:
            await Moderation(SqlModeration(database)).disable_group(group_id, reason, ACTOR)

    run(work())
    print_text(f"Disabled {group_id}.")


@app.command()
def enable(group_id: GroupId, config: ConfigFile = None, data: DataDir = None) -> None:
    """Enable a disabled group again."""
    settings = load_config(config, data)

    async def work() -> None:
        async with opened(settings) as database:
            await Moderation(SqlModeration(database)).enable_group(group_id, ACTOR)

    run(work())
    print_text(f"Enabled {group_id}.")

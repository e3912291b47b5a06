"""`nexo invite`: a code that allows to register where `auth.registration` is `invite`."""

from __future__ import annotations

from typing import Annotated

import typer

from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.cli.user import open_accounts
from nexo.core.accounts import RegistrationCode

app = typer.Typer(add_completion=False)

_DAY_MS = 86_400_000


@app.command()
def invite(
    uses: Annotated[int, typer.Option(min=1, max=1_000_000, help="Users that may register with it.")] = 1,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long it is valid.")] = 7,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a code that allows to register. It is shown once; only a hash of it is kept."""
    settings = load_config(config, data)

    async def work() -> RegistrationCode:
        async with open_accounts(settings, create=True) as accounts:
            return await accounts.new_code(uses, days * _DAY_MS)

    made = run(work())
    if as_json:
        print_json({"code": made.code, "uses": uses, "days": days, "registration": settings.auth.registration})
        return
    print_text(made.code)
    if settings.auth.registration != "invite":
        note = f"Note: auth.registration is {settings.auth.registration}; codes count where it is invite."
        typer.echo(note, err=True)  # apart from the code, which a script may read

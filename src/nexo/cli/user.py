"""`nexo user`: accounts from the command line, also while the server runs."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, load_config, print_json, print_text, run
from nexo.config import Config
from nexo.core.model import User
from nexo.ids import check_user_id
from nexo.service.accounts import Accounts
from nexo.store.account_store import SqlAccounts

app = typer.Typer(no_args_is_help=True, add_completion=False)

UserId = Annotated[str, typer.Argument(metavar="USER_ID", help="The user.", show_default=False)]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from a line of stdin instead of asking for it.")
]
_PAGE = 500


@app.command()
def add(
    user_id: UserId,
    nickname: Annotated[str, typer.Option(help="The name that others see.")] = "",
    admin: Annotated[bool, typer.Option("--admin", help="Make the user an administrator.")] = False,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Create a user. The password is asked for, or read from stdin where that is no terminal."""
    check_user_id(user_id)
    settings = load_config(config, data)
    password = _password(password_stdin)

    async def work() -> User:
        async with _accounts(settings, create=True) as accounts:
            return await accounts.register(password, user_id, nickname, is_admin=admin)

    _tell(run(work()), as_json, f"Added the {'administrator' if admin else 'user'} {user_id}.")


@app.command()
def passwd(
    user_id: UserId,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Set a user's password; all of the user's sessions end."""
    check_user_id(user_id)
    settings = load_config(config, data)
    password = _password(password_stdin)

    async def work() -> User:
        async with _accounts(settings) as accounts:
            await accounts.set_password(user_id, password)
            return await accounts.info(user_id)

    told = f"Set the password of {user_id}. All sessions have ended: every device has to sign in again."
    _tell(run(work()), as_json, told)


@app.command()
def admin(
    user_id: UserId,
    off: Annotated[bool, typer.Option("--off", help="The user is an administrator no more.")] = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a user an administrator, who may open /admin."""
    settings = load_config(config, data)

    async def work() -> User:
        async with _accounts(settings) as accounts:
            return await accounts.set_admin(user_id, not off)

    _tell(run(work()), as_json, f"{user_id} is {'no administrator any more' if off else 'an administrator'}.")


@app.command("list")
def list_users(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """List all users."""
    settings = load_config(config, data)

    async def work() -> list[User]:
        everybody: list[User] = []
        async with _accounts(settings) as accounts:
            while page := await accounts.page(everybody[-1].user_id if everybody else "", _PAGE):
                everybody += page
        return everybody

    users = run(work())
    if as_json:
        print_json([_as_json(user) for user in users])
        return
    width = max((len(user.user_id) for user in users), default=0)
    for user in users:
        created = datetime.fromtimestamp(user.created_at / 1000, UTC)
        role = "admin" if user.is_admin else "user"
        line = f"{user.user_id:<{width}}  {role:<5}  {created:%Y-%m-%d %H:%M} UTC  {_printable(user.nickname)}"
        print_text(line.rstrip())


@asynccontextmanager
async def _accounts(config: Config, *, create: bool = False) -> AsyncIterator[Accounts]:
    async with opened(config, create=create) as database:
        # no token is signed here, so no command needs the server's secret
        accounts = Accounts(SqlAccounts(database), config, secrets.token_urlsafe(48))
        try:
            yield accounts
        finally:
            accounts.close()


def _password(from_stdin: bool) -> str:
    """Never an argument: those are in the shell's history and in the list of processes."""
    if from_stdin or not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt="The same again"))


def _tell(user: User, as_json: bool, text: str) -> None:
    if as_json:
        print_json(_as_json(user))
    else:
        print_text(text)


def _as_json(user: User) -> dict[str, object]:
    return {
        "user_id": user.user_id,
        "nickname": user.nickname,
        "is_admin": user.is_admin,
        "created_at": user.created_at,
    }


def _printable(text: str) -> str:
    """A nickname must not command the terminal of whoever lists it."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)

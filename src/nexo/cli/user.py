"""`nexo user`: accounts from the command line, also while the server runs."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from nexo.cli.database import opened
from nexo.cli.output import ConfigFile, DataDir, Json, console, load_config, print_json, print_text, run
from nexo.config import Config
from nexo.core.accounts import SessionRow
from nexo.core.model import User
from nexo.ids import check_user_id
from nexo.service.account_admin import AccountAdmin
from nexo.service.accounts import Accounts
from nexo.service.password_resets import PasswordResets, ResetCode
from nexo.service.secret import load_secret
from nexo.store.account_admin import SqlAccountAdmin
from nexo.store.account_store import SqlAccounts

app = typer.Typer(no_args_is_help=True, add_completion=False)

UserId = Annotated[str, typer.Argument(metavar="USER_ID", help="The user.", show_default=False)]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from a line of stdin instead of asking for it.")
]
ACTOR = "command line"
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
        async with open_accounts(settings, create=True) as accounts:
            return await accounts.register(password, user_id, nickname, is_admin=admin)

    _print_user(run(work()), as_json, f"Added the {'administrator' if admin else 'user'} {user_id}.")


@app.command()
def passwd(
    user_id: UserId,
    password_stdin: PasswordStdin = False,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """Set a user's password; all of the user's sessions end, on running servers within a second."""
    check_user_id(user_id)
    settings = load_config(config, data)
    password = _password(password_stdin)

    async def work() -> User:
        async with open_accounts(settings) as accounts:
            await accounts.set_password(user_id, password)
            return await accounts.info(user_id)

    summary = f"Set the password of {user_id}. All sessions have ended: every device has to sign in again."
    _print_user(run(work()), as_json, summary)


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
        async with open_accounts(settings) as accounts:
            return await accounts.set_admin(user_id, not off)

    _print_user(run(work()), as_json, f"{user_id} is {'no administrator any more' if off else 'an administrator'}.")


@app.command()
def disable(
    user_id: UserId,
    reason: Annotated[str, typer.Option(help="Shown to the user.")] = "",
    config: ConfigFile = None,
    data: DataDir = None,
) -> None:
    """Disable an account: its sessions end, and it cannot sign in."""
    settings = load_config(config, data)

    async def work() -> None:
        async with _admin(settings) as accounts:
            await accounts.disable(user_id, reason, ACTOR)

    run(work())
    print_text(f"Disabled {user_id}. All sessions have ended.")


@app.command()
def enable(user_id: UserId, config: ConfigFile = None, data: DataDir = None) -> None:
    """Enable a disabled account again."""
    settings = load_config(config, data)

    async def work() -> None:
        async with _admin(settings) as accounts:
            await accounts.enable(user_id, ACTOR)

    run(work())
    print_text(f"Enabled {user_id}: the user can sign in again.")


@app.command()
def sessions(user_id: UserId, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """List the sessions of a user that have not ended."""
    settings = load_config(config, data)

    async def work() -> list[SessionRow]:
        async with _admin(settings) as accounts:
            return await accounts.sessions(user_id)

    found = run(work())
    if as_json:
        print_json([session._asdict() for session in found])
        return
    table = Table("device", "platform", "signed in", "expires")
    for session in found:
        table.add_row(
            printable(session.device_id), str(session.platform_id), _time(session.created_at), _time(session.expires_at)
        )
    console.print(table)


@app.command()
def revoke(
    user_id: UserId,
    device: Annotated[str | None, typer.Option(help="Only sessions of this device.")] = None,
    config: ConfigFile = None,
    data: DataDir = None,
    as_json: Json = False,
) -> None:
    """End the sessions of a user; servers close their connections within a second."""
    settings = load_config(config, data)

    async def work() -> int:
        async with _admin(settings) as accounts:
            return await accounts.revoke_sessions(user_id, device, ACTOR)

    ended = run(work())
    if as_json:
        print_json({"user_id": user_id, "revoked": ended})
    else:
        print_text(f"Ended the sessions of {user_id}{f' on {device}' if device is not None else ''}.")


@app.command()
def reset(user_id: UserId, config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """Print a code by which the user sets a new password, once: `POST /auth/reset {code, new_password}`."""
    settings = load_config(config, data)
    secret = load_secret(settings)

    async def work() -> ResetCode:
        async with opened(settings) as database:
            accounts = Accounts(SqlAccounts(database), settings, secret)
            try:
                resets = PasswordResets(SqlAccountAdmin(database), accounts, secret, settings.auth.reset_ttl_s)
                return await resets.issue(user_id, ACTOR)
            finally:
                accounts.close()

    made = run(work())
    if as_json:
        print_json({"user_id": user_id, "code": made.code, "expires_at": made.expires_at})
    else:
        print_text(made.code)
        typer.echo(f"nexo: the code works once, until {_time(made.expires_at)}; it is not shown again.", err=True)


@app.command("list")
def list_users(config: ConfigFile = None, data: DataDir = None, as_json: Json = False) -> None:
    """List all users."""
    settings = load_config(config, data)

    async def work() -> list[User]:
        found: list[User] = []
        async with open_accounts(settings) as accounts:
            while page := await accounts.page(found[-1].user_id if found else "", _PAGE):
                found += page
        return found

    users = run(work())
    if as_json:
        print_json([_as_json(user) for user in users])
        return
    width = max((len(user.user_id) for user in users), default=0)
    for user in users:
        role = "admin" if user.is_admin else "user"
        line = f"{user.user_id:<{width}}  {role:<5}  {_time(user.created_at)}  {printable(user.nickname)}"
        print_text(line.rstrip())


@asynccontextmanager
async def _admin(config: Config) -> AsyncIterator[AccountAdmin]:
    async with opened(config) as database:
        accounts = Accounts(SqlAccounts(database), config, secrets.token_urlsafe(48))
        try:
            yield AccountAdmin(SqlAccountAdmin(database), accounts)
        finally:
            accounts.close()


@asynccontextmanager
async def open_accounts(config: Config, *, create: bool = False) -> AsyncIterator[Accounts]:
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


def _print_user(user: User, as_json: bool, text: str) -> None:
    if as_json:
        print_json(_as_json(user))
    else:
        print_text(text)


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _as_json(user: User) -> dict[str, object]:
    return {
        "user_id": user.user_id,
        "nickname": user.nickname,
        "is_admin": user.is_admin,
        "created_at": user.created_at,
    }


def printable(text: str) -> str:
    """Returns the nickname without control characters, which could command the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)

"""Accounts on an open store, with a product's own tokens where they are configured."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from nexo.config import Config
from nexo.core.file_links import LINKS
from nexo.core.model import Session
from nexo.ports import Bus
from nexo.service.accounts import Accounts, OtherTokens
from nexo.service.limits import Limits
from nexo.store.account_store import SqlAccounts
from nexo.store.store import Store


def make_accounts(
    config: Config,
    store: Store,
    secret: str,
    on_ended: Callable[[list[str], str], None] | None = None,
    on_renewed: Callable[[Session], None] | None = None,
) -> Accounts:
    """Returns the accounts of this process. Their secret also signs addresses of files."""
    LINKS.use_secret(secret)
    accounts = SqlAccounts(store.database, store.seam)
    external: OtherTokens | None = None
    if config.auth.external.is_used:
        external = import_module("nexo.assembly.external").make_external(config, accounts)
    return Accounts(accounts, config, secret, on_ended, on_renewed=on_renewed, external=external)


def make_limits(config: Config, bus: Bus) -> Limits:
    """Returns the limits of this process; with several instances they count over all of them."""
    return Limits(config, bus if bus.is_shared else None)

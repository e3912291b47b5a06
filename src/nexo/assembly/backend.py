"""What a product's backend uses, on an open store."""

from __future__ import annotations

from nexo.assembly.hooks import make_hook_admin
from nexo.config import Config
from nexo.hooks.hooks import Hooks
from nexo.journal.journal import Journal
from nexo.service.account_admin import AccountAdmin
from nexo.service.accounts import Accounts
from nexo.service.backend import Backend
from nexo.service.keys import Keys
from nexo.service.moderation import Moderation
from nexo.service.password_resets import PasswordResets
from nexo.service.tracing import InstanceTraces, Tracing
from nexo.store.account_admin import SqlAccountAdmin
from nexo.store.audit import SqlAudit
from nexo.store.keys import SqlKeys
from nexo.store.store import Store
from nexo.store.tracing import SqlTracing


def make_backend(
    config: Config,
    store: Store,
    accounts: Accounts,
    secret: str,
    journal: Journal,
    hooks: Hooks,
    instances: InstanceTraces,
) -> Backend:
    limits = config.limits
    admin = SqlAccountAdmin(store.database, store.seam)
    return Backend(
        keys=Keys(SqlKeys(store.database), limits.key_requests_per_s, limits.key_requests_burst),
        accounts=AccountAdmin(admin, accounts),
        audit=SqlAudit(store.database),
        events=journal.pollers,
        hooks=make_hook_admin(config, store, hooks),
        moderation=Moderation(store.moderation),
        resets=PasswordResets(admin, accounts, secret, config.auth.reset_ttl_s),
        tracing=Tracing(SqlTracing(store.database), instances),
    )

"""Contacts, links, own sessions, closing and export of accounts, and reports, on an open store."""

from __future__ import annotations

from nexo.assembly.core import Core
from nexo.config import Config
from nexo.journal.housekeeping import Chore
from nexo.service.account_work import AccountChores, AccountWork
from nexo.service.accounts import Accounts
from nexo.service.actions import Actions
from nexo.service.contacts import Contacts
from nexo.service.last_seen import LastSeen
from nexo.service.limits import Limits
from nexo.service.links import Links
from nexo.service.own_sessions import OwnSessions
from nexo.service.people import People
from nexo.service.reports import Reports
from nexo.store.account_work import SqlAccountWork
from nexo.store.profiles import SqlProfiles
from nexo.store.reports import SqlReports
from nexo.store.sql_contacts import SqlContacts
from nexo.store.sql_links import SqlLinks
from nexo.store.store import Store

DAY_MS = 86_400_000


def make_actions(core: Core, accounts: Accounts, limits: Limits) -> Actions:
    people = make_people(core.config, core.store, accounts)
    return Actions(
        accounts,
        core.sending,
        core.acknowledging,
        core.conversations,
        core.groups,
        limits,
        core.changes,
        core.forwarding,
        people,
    )


def versions_chore(config: Config, store: Store) -> Chore:
    """Returns the deletion of originals of recalled messages that are no longer kept."""
    keep_ms = config.recall.keep_days * DAY_MS
    return Chore("message_versions", lambda: store.moderation.trim_versions(keep_ms))


def account_chore(config: Config, store: Store) -> Chore:
    """Returns what one instance of the cluster does for accounts that are being closed or exported."""
    return Chore("accounts", AccountChores(SqlAccountWork(store.database, store.seam, config)).run, every_s=1.0)


def make_people(config: Config, store: Store, accounts: Accounts) -> People:
    profiles = SqlProfiles(store.database, store.seam)
    return People(
        contacts=Contacts(SqlContacts(store.database, store.seam, config)),
        links=Links(SqlLinks(store.database, store.seam, config)),
        sessions=OwnSessions(profiles, accounts, config.auth.fresh_s),
        last_seen=LastSeen(profiles),
        work=AccountWork(SqlAccountWork(store.database, store.seam, config), accounts),
        reports=Reports(SqlReports(store.database)),
    )

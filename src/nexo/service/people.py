"""Contacts, invite links, own sessions and accounts, reports: what users do besides chatting, in one place."""

from __future__ import annotations

from msgspec import Struct

from nexo.service.account_work import AccountWork
from nexo.service.contacts import Contacts
from nexo.service.last_seen import LastSeen
from nexo.service.links import Links
from nexo.service.own_sessions import OwnSessions
from nexo.service.reports import Reports


class People(Struct, frozen=True):
    contacts: Contacts
    links: Links
    sessions: OwnSessions
    last_seen: LastSeen
    work: AccountWork
    reports: Reports

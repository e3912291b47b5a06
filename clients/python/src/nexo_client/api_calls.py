"""The calls of the HTTP API that a client offers by subject."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nexo_client.account import Account
from nexo_client.contacts import Contacts
from nexo_client.devices import Devices, Push
from nexo_client.groups import Groups
from nexo_client.http import Call
from nexo_client.users import Users


class ApiCalls:
    def __init__(
        self, call: Call, download: Callable[[str], Awaitable[bytes]], forget: Callable[[], Awaitable[None]]
    ) -> None:
        """`forget` deletes everything stored of the user here."""
        self.users = Users(call)
        self.contacts = Contacts(call)
        self.groups = Groups(call)
        self.devices = Devices(call)
        self.push = Push(call)
        self.account = Account(call, download, forget)

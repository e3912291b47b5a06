"""A call of OpenIM's HTTP API: who makes it, what is in it, and what handlers work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from nexo.config.tree_openim import OpenimConfig
from nexo.core.keys import ApiKey
from nexo.core.model import Session
from nexo.delivery.delivery import Delivery
from nexo.errors import NexoError
from nexo.files.files import Files
from nexo.openim.directory import Directory
from nexo.openim.lists import Lists
from nexo.openim.notices import OpenimNotices
from nexo.ports.openim import OpenimStore
from nexo.service.actions import Actions
from nexo.service.backend import Backend

NAMES_MAX = 1000
PAGE_MAX = 1000


class Facade(Struct, frozen=True):
    """What the handlers work with."""

    config: OpenimConfig
    actions: Actions
    backend: Backend
    store: OpenimStore
    directory: Directory
    lists: Lists
    notices: OpenimNotices
    delivery: Delivery
    files: Files


class Call(Struct, frozen=True):
    facade: Facade
    session: Session
    body: dict[str, Any]
    raw: bytes
    operation_id: str
    base_url: str
    address: str
    token: str = ""
    key: ApiKey | None = None

    @property
    def user_id(self) -> str:
        return self.session.user_id

    def text(self, name: str, default: str = "") -> str:
        value = self.body.get(name)
        value = plain(value)
        if value is None:
            return default
        if not isinstance(value, str):
            raise NexoError("bad_request", f"{name} is a text")
        return value

    def number(self, name: str, default: int = 0) -> int:
        value = plain(self.body.get(name))
        if value is None:
            return default
        if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
            raise NexoError("bad_request", f"{name} is a number")
        return value

    def names(self, name: str) -> list[str]:
        value = self.body.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > NAMES_MAX or any(not isinstance(item, str) for item in value):
            raise NexoError("bad_request", f"{name} is a list of at most {NAMES_MAX} texts")
        return value

    def numbers(self, name: str) -> list[int]:
        value = self.body.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > NAMES_MAX or any(type(item) is not int for item in value):
            raise NexoError("bad_request", f"{name} is a list of at most {NAMES_MAX} numbers")
        return value

    def part(self, name: str) -> dict[str, Any]:
        value = self.body.get(name)
        return value if isinstance(value, dict) else {}

    def check_self(self, *names: str) -> None:
        """Raises where a request is for another user: identity comes from the token."""
        for name in names:
            value = self.body.get(name)
            if value not in (None, "", self.user_id):
                raise NexoError("no_permission", f"{name} is not the user of the token")

    def page(self) -> tuple[int, int]:
        """Returns where the page begins that is asked for, and its length."""
        found = self.part("pagination")
        number, length = found.get("pageNumber"), found.get("showNumber")
        count = length if type(length) is int and 0 < length <= PAGE_MAX else PAGE_MAX
        start = (number - 1) * count if type(number) is int and number > 1 else 0
        return min(start, 1 << 40), count


Handler = Callable[[Call], Awaitable[Any]]


def plain(value: Any) -> Any:
    """Returns a value, also where it is wrapped as an optional one."""
    return value.get("value") if isinstance(value, dict) else value

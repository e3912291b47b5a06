"""Keys of a product's backend: their text, their hash, and what a scope opens. Pure."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable

from msgspec import Struct

from nexo.errors import NexoError

PREFIX = "nexo_sk_"
SCOPES = ("users", "tokens", "act", "moderate", "events", "files")
NAME_MAX_CHARS = 64

_TEXT = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ApiKey(Struct, frozen=True):
    """A key as it is stored: its text is not known. `key_id` names it in logs and commands."""

    key_id: str
    name: str
    scopes: tuple[str, ...]
    user_id: str | None  # a bot's key acts as this user only
    created_at: int
    expires_at: int  # 0: never
    revoked_at: int = 0
    last_used_at: int = 0

    def check_scope(self, scope: str) -> None:
        if scope not in self.scopes:
            raise NexoError("scope_missing", f"This call needs a key with the scope {scope}")


def new_key_text() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def new_key_id() -> str:
    return f"k_{secrets.token_hex(4)}"


def is_key(token: str) -> bool:
    return token.startswith(PREFIX)


def hash_key(text: str) -> str:
    """Returns the stored form. Random keys need no salt and no slow hash: there are too many to try."""
    if _TEXT.fullmatch(text) is None:
        raise NexoError("unauthorized", "This is not a key of this server")
    return hashlib.sha256(text.encode()).hexdigest()


def check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise NexoError("bad_name", "A name has 1 to 64 letters, digits, dots, dashes and underscores")
    return name


def check_scopes(scopes: Iterable[str], *, is_bot: bool) -> tuple[str, ...]:
    """Returns the scopes in their fixed order. A bot may have none: it acts as its user anyway."""
    chosen = set(scopes)
    unknown = chosen - set(SCOPES)
    if unknown:
        raise NexoError("bad_scopes", f"There is no scope {sorted(unknown)[0]}; scopes are {', '.join(SCOPES)}")
    if not chosen and not is_bot:
        raise NexoError("missing_scopes", f"A key needs at least one scope of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in chosen)

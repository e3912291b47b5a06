"""Webhooks as they are stored: what they want, their secrets and their state. Pure."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

from msgspec import Struct

from nexo.core.webhook_signature import decode_secret
from nexo.errors import NexoError

PATTERNS_MAX = 100
_PATTERN = re.compile(r"[A-Za-z0-9._@:*-]{1,140}")


class HookStatus(IntEnum):
    ACTIVE = 0
    PAUSED = 1  # by an operator
    GIVEN_UP = 2  # by the server, after `hooks.give_up_h` of failures

    @property
    def word(self) -> str:
        return self.name.lower()


class HookSecret(Struct, frozen=True):
    secret: str
    expires_at: int = 0  # 0: until it is rotated out


class Hook(Struct, frozen=True):
    """One webhook. `types` and `conversations` empty: all. `revision` grows with every change that its delivery must
    know."""

    hook_id: str
    name: str
    url: str
    types: tuple[str, ...]
    conversations: tuple[str, ...]  # patterns, in which * stands for any characters
    secrets: tuple[HookSecret, ...]  # newest first
    status: HookStatus = HookStatus.ACTIVE
    reason: str = ""
    failing_since: int = 0  # since when something waits that was refused; 0: nothing does
    revision: int = 1
    created_at: int = 0
    updated_at: int = 0

    @property
    def consumer(self) -> str:
        """Returns the name of its row among the consumers of the journal."""
        return f"hook.{self.hook_id}"

    def wants(self, conversation_id: str | None) -> bool:
        if not self.conversations:
            return True
        return conversation_id is not None and _matcher(self.conversations).fullmatch(conversation_id) is not None

    def keys(self, now_ms: int) -> list[bytes]:
        """Returns the keys that sign now, newest first."""
        return [decode_secret(one.secret) for one in self.secrets if not one.expires_at or one.expires_at > now_ms]


@lru_cache(1000)
def _matcher(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(".*".join(map(re.escape, pattern.split("*"))) for pattern in patterns))


def new_hook_id() -> str:
    return f"h_{secrets.token_hex(4)}"


def check_patterns(patterns: Iterable[str]) -> tuple[str, ...]:
    """Returns patterns of conversation ids, such as `sg_*`. Raises `bad_conversation_id`."""
    chosen = tuple(dict.fromkeys(patterns))
    if len(chosen) > PATTERNS_MAX:
        raise NexoError("bad_conversation_id", f"A hook has at most {PATTERNS_MAX} patterns of conversations")
    for pattern in chosen:
        if _PATTERN.fullmatch(pattern) is None:
            detail = f"{pattern!r} is not a conversation id, nor a pattern such as sg_*"
            raise NexoError("bad_conversation_id", detail)
    return chosen

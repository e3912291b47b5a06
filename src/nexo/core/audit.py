"""An entry of the audit log: an act of an administrator, a key or the command line."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class AuditEntry(Struct, frozen=True):
    id: int
    at: int
    actor: str  # `user:alice`, `key:shop`, `command line`
    act: str  # `user.disable`
    target: str
    detail: dict[str, Any]

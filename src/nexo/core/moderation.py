"""What moderators see: what a message was before a recall or an edit."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from nexo.core.model import Message


class VersionCause(IntEnum):
    """What replaced a version of a message."""

    RECALL = 1
    EDIT = 2


CAUSE_NAMES = {VersionCause.RECALL: "recall", VersionCause.EDIT: "edit"}


class MessageVersion(Struct, frozen=True):
    """A version of a message that has been replaced. `content` and `extra` are JSON text."""

    content: str
    mentions: tuple[str, ...]
    reply_to: int | None
    extra: str | None
    replaced_at: int
    replaced_by: str  # the user, or the actor as the audit log names it
    cause: int


class ReadMessage(NamedTuple):
    message: Message  # as members see it
    versions: list[MessageVersion]  # what it was before, oldest first


class Moderator(NamedTuple):
    """The actor of a moderation: its name in the audit log, and the user that an event names."""

    actor: str
    user_id: str

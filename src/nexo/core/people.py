"""Contacts, invite links, sessions as their user sees them, reports, exports: plain values."""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from nexo.core.model import Message

DELETED_NICKNAME = "deleted user"


class LastSeenFor(IntEnum):
    """Which users see when another one was connected last, and whether that one is connected."""

    ALL = 0
    CONTACTS = 1
    NONE = 2


LAST_SEEN_VALUES = {"everybody": LastSeenFor.ALL, "contacts": LastSeenFor.CONTACTS, "nobody": LastSeenFor.NONE}
LAST_SEEN_NAMES = {value: name for name, value in LAST_SEEN_VALUES.items()}


class Contact(Struct):
    user_id: str
    nickname: str
    avatar: str
    remark: str
    created_at: int


class ContactRequest(Struct):
    """An open request: `user_id` is the other user."""

    request_id: int
    user_id: str
    message: str
    created_at: int


class ContactChange(Struct):
    """The result of a request or a decision. `status` is pending, accepted or refused; `crossed` is the request of the
    other user that a request has met."""

    status: str
    request_id: int
    at: int
    message: str = ""
    crossed: int = 0
    is_new: bool = True


class GroupLink(Struct):
    """`uses` and `expires_at` 0: without end."""

    code: str
    group_id: str
    creator_id: str
    uses: int
    used: int
    created_at: int
    expires_at: int
    revoked_at: int = 0

    def is_open(self, now_ms: int) -> bool:
        return (
            not self.revoked_at
            and (not self.expires_at or self.expires_at > now_ms)
            and (not self.uses or self.used < self.uses)
        )


class LinkView(Struct):
    """The group that a link leads to, for a user who may join by it."""

    group_id: str
    name: str
    avatar: str
    member_count: int
    is_member: bool


class OwnSession(Struct):
    """A session that has not ended, as its user sees it."""

    session_id: str
    device_id: str
    platform_id: int
    address: str
    created_at: int
    last_seen_at: int


class SeenSession(Struct, frozen=True):
    """A session was in use."""

    sid: str
    user_id: str
    address: str
    at: int


class MessageReport(Struct):
    """A message that a user has put before the moderators. `context` has the messages around it that the reporter
    could see, as they are now."""

    report_id: int
    reporter_id: str
    server_msg_id: int
    conversation_id: str
    seq: int
    sender_id: str
    reason: str
    created_at: int
    resolved_at: int
    resolved_by: str
    resolution: str
    message: Message | None = None
    context: list[Message] = []


class ExportStatus(IntEnum):
    RUNNING = 0
    DONE = 1
    TOO_LARGE = 2


EXPORT_NAMES = {ExportStatus.RUNNING: "running", ExportStatus.DONE: "done", ExportStatus.TOO_LARGE: "too_large"}


class Export(Struct):
    export_id: str
    status: int
    parts: int
    messages: int
    size: int
    created_at: int
    expires_at: int

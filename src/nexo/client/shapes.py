"""What HTTP calls give back, in the names of the API."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class User(Struct):
    user_id: str
    nickname: str = ""
    avatar: str = ""
    extra: Any = None
    created_at: int = 0


class UserOnline(Struct):
    user_id: str
    online: bool
    platforms: list[int] = []


class Group(Struct):
    group_id: str
    conversation_id: str
    name: str
    owner_id: str = ""
    avatar: str = ""
    introduction: str = ""
    announcement: str = ""
    group_type: int = 0
    creator_id: str = ""
    member_count: int = 0
    status: int = 0
    join_policy: str = "open"
    mute_until: int = 0
    extra: Any = None
    created_at: int = 0


class Member(Struct):
    user_id: str
    role: str
    nickname: str = ""
    joined_at: int = 0
    muted_until: int = 0


class MembersPage(Struct):
    members: list[Member]
    next_cursor: str = ""
    has_more: bool = False


class JoinRequest(Struct):
    user_id: str
    message: str
    created_at: int


class Skipped(Struct):
    user_id: str
    reason: str


class Invited(Struct):
    added: list[str] = []
    skipped: list[Skipped] = []


class Receipts(Struct):
    read: list[str]
    delivered: list[str]
    pending: list[str]
    read_count: int
    delivered_count: int


class RecallResult(Struct):
    """`seq` is that of the event which tells of it."""

    server_msg_id: str
    seq: int

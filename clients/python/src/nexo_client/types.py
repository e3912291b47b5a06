"""The types that the SDK returns and takes. Field names are those of the HTTP API."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Literal, Protocol

from msgspec import Struct, structs

State = Literal["offline", "connecting", "syncing", "online", "closed"]
SendState = Literal["uploading", "sending", "accepted", "saved", "delivered", "read", "failed"]
ReceiptState = Literal["saved", "delivered", "read"]


class MsgType(IntEnum):
    TEXT = 1
    IMAGE = 2
    VIDEO = 3
    AUDIO = 4
    FILE = 5
    CUSTOM = 6
    QUOTE = 7
    MERGED = 8
    RECALLED = 100
    EDITED = 110
    REACTIONS = 111
    PINNED = 112
    CALL = 120  # the record of a call: a message of the caller that the server made


FIRST_EVENT = 100  # types from here on are made by the server
# Events about an earlier message, which change neither the last message nor the place in the list.
QUIET_TYPES = frozenset((MsgType.EDITED, MsgType.REACTIONS, MsgType.PINNED))
TEXT_TYPES = frozenset((MsgType.TEXT, MsgType.QUOTE))
MEDIA_TYPES = frozenset((MsgType.IMAGE, MsgType.VIDEO, MsgType.AUDIO, MsgType.FILE))


class Quote(Struct, frozen=True):
    server_msg_id: str
    sender_id: str
    msg_type: int
    text: str


class Reaction(Struct, frozen=True):
    emoji: str
    count: int
    mine: bool = False


class ForwardedFrom(Struct, frozen=True):
    """The sender and the time of a message that was forwarded."""

    sender_id: str
    send_at: int


class Message(Struct, frozen=True, kw_only=True):
    """A message or event. Never modified: a change makes a new object. `seq` is None while it is provisional.
    `status` is 0, 1 when it was recalled, 2 when it has expired."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int | None
    sender_id: str
    recv_id: str | None = None
    group_id: str | None = None
    msg_type: int = 1
    content: Any = None
    mentions: tuple[str, ...] = ()
    reply_to: str | None = None
    quote: Quote | None = None
    extra: Any = None
    status: int = 0
    recalled_at: int | None = None
    edited_at: int | None = None
    reactions: tuple[Reaction, ...] = ()
    forwarded_from: ForwardedFrom | None = None
    expires_at: int | None = None
    send_at: int = 0
    important: bool = False
    silent: bool = False
    provisional: bool = False

    @property
    def is_event(self) -> bool:
        return self.msg_type >= FIRST_EVENT and self.msg_type != MsgType.CALL

    @property
    def is_quiet(self) -> bool:
        """Whether it is an event about an earlier message, which leaves the place in the list as it is."""
        return self.msg_type in QUIET_TYPES

    @property
    def is_recalled(self) -> bool:
        return self.status == 1

    @property
    def place(self) -> int:
        """The seq of a message that has one."""
        assert self.seq is not None
        return self.seq

    def file_path(self, preview: Literal["", "small", "medium"] = "") -> str | None:
        """Returns the path of its file on the server, or of a smaller picture of it; None when there is none. It is
        valid without a token for an hour or two. `NexoClient.file_url` has it with the server."""
        url = self.content.get("url") if self.msg_type in MEDIA_TYPES and isinstance(self.content, dict) else None
        if not isinstance(url, str) or not url.startswith("/files/"):
            return None if preview else url
        if not preview:
            return url
        path, mark, query = url.partition("?")
        return f"{path}/{preview}{mark}{query}" if self.content.get("preview") else None

    def mentions_user(self, user_id: str) -> bool:
        return self.sender_id != user_id and (user_id in self.mentions or self.mentions[:1] == ("@all",))

    def is_over(self, server_ms: float) -> bool:
        """Returns whether its time is over, and it is still shown."""
        return not self.status and self.expires_at is not None and self.expires_at <= server_ms

    def recalled(self, recalled_at: int) -> Message:
        """Returns what remains of it after a recall."""
        return self._blank(1, recalled_at)

    def expired(self) -> Message:
        """Returns what remains of it after its time."""
        return self._blank(2, self.recalled_at)

    def _blank(self, status: int, recalled_at: int | None) -> Message:
        return structs.replace(
            self,
            status=status,
            recalled_at=recalled_at,
            content="" if self.msg_type in TEXT_TYPES else {},
            mentions=(),
            reply_to=None,
            quote=None,
            extra=None,
            edited_at=None,
            reactions=(),
            forwarded_from=None,
        )


class Upload(Struct, frozen=True):
    """A file that is being uploaded, as the outbox keeps it. Without a `path` its bytes are in the storage."""

    name: str
    size: int
    path: str = ""
    modified_ns: int = 0
    address: str = ""  # where it continues; empty before it has begun


class Session(Struct, frozen=True, kw_only=True):
    """One login. At `refresh_at` its access token is exchanged for the next one."""

    user_id: str
    access_token: str
    refresh_token: str
    expires_at: int
    refresh_at: int
    platform_id: int = 7
    device_id: str = ""


class Draft(Struct, frozen=True):
    """A text that the user has begun to write."""

    text: str
    reply_to: str | None = None


class ConversationSettings(Struct, frozen=True, kw_only=True):
    """What a user has set for a conversation; `message_ttl_s` is for all members."""

    pinned: bool = False
    recv_msg_opt: int = 0
    archived: bool = False
    silent_until: int = 0
    marked_unread: bool = False
    message_ttl_s: int = 0
    draft: Draft | None = None
    extra: Any = None


class Entry(Struct, frozen=True, kw_only=True):
    """A conversation as SYNC or the conversation list describes it. Fields that SYNC does not have are None.
    `settings` and `deleted_rev` are None when an older server does not have them."""

    conversation_id: str
    head_seq: int
    min_seq: int
    read_seq: int
    delivered_seq: int
    unread: int
    unread_mentions: int | None = None
    settings: ConversationSettings | None = None
    hidden: bool | None = None
    deleted_rev: int | None = None
    updated_at: int | None = None
    peer_read_seq: int | None = None
    peer_delivered_seq: int | None = None
    last_message: Message | None = None


class Privacy(Struct):
    """Who sees when one was there last, and whether one is connected."""

    last_seen: Literal["everybody", "contacts", "nobody"]


class User(Struct):
    """`last_seen_at` is there where you may see it, `privacy` of yourself, `deleted` of accounts that were closed."""

    user_id: str
    nickname: str = ""
    avatar: str = ""
    extra: Any = None
    created_at: int = 0
    last_seen_at: int | None = None
    privacy: Privacy | None = None
    deleted: bool = False


class UserOnline(Struct):
    user_id: str
    online: bool
    platforms: list[int] = []
    last_seen_at: int | None = None


class Group(Struct):
    """Of a group that one is not in, only id, name, avatar, member count and join policy are known, or less."""

    group_id: str
    conversation_id: str = ""
    name: str = ""
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
    group_nickname: str = ""
    group_avatar: str = ""
    inviter_id: str = ""
    extra: Any = None


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


class GroupLink(Struct):
    """An invite link of a group. `expires_at` and `uses` are None without an end."""

    code: str
    group_id: str
    creator_id: str
    created_at: int
    expires_at: int | None
    uses: int | None
    used: int


class LinkedGroup(Struct):
    """The group that an invite link leads to."""

    group_id: str
    name: str
    avatar: str
    member_count: int
    is_member: bool


class Contact(Struct):
    """`remark` is your own name for the contact."""

    user_id: str
    nickname: str
    avatar: str
    remark: str
    created_at: int


class ContactRequest(Struct):
    """`user_id` is the other user."""

    request_id: str
    user_id: str
    message: str
    created_at: int


class ContactStatus(Struct):
    status: Literal["pending", "accepted", "refused"]
    request_id: str


class Device(Struct):
    """One of the user's sessions; `current` is that of this client."""

    session_id: str
    device_id: str
    platform_id: int
    address: str
    created_at: int
    last_seen_at: int
    current: bool


class AccountExport(Struct):
    export_id: str
    status: Literal["running", "done", "too_large"]
    messages: int
    size: int
    created_at: int
    expires_at: int


class EditResult(Struct):
    """`seq` is that of the event; `content` is what was stored when the word filter changed it."""

    server_msg_id: str
    conversation_id: str
    seq: int
    edited_at: int | None = None
    content: Any = None


class PinResult(Struct):
    """`seq` is that of the event."""

    server_msg_id: str
    seq: int


class GivenReaction(Struct):
    emoji: str
    user_id: str
    at: int


class ReactionsPage(Struct):
    reactions: list[GivenReaction]
    next_cursor: str = ""
    has_more: bool = False


class MediaPage(Struct):
    """Newest first. `next_seq` is the `before_seq` of the next page."""

    messages: list[Message]
    next_seq: int
    has_more: bool


class SearchResult(Struct):
    """`ranges` are the places in `snippet` that match: pairs of numbers of characters, the second excluded."""

    message: Message
    snippet: str
    ranges: list[tuple[int, int]]


class SearchPage(Struct):
    results: list[SearchResult]
    next_cursor: str
    has_more: bool


class Forwarded(Struct):
    """What became of a forward to one target; `error` is the name of an error."""

    conversation_id: str
    server_msg_ids: list[str]
    error: str | None = None


class Receipts(Struct):
    read: list[str]
    delivered: list[str]
    pending: list[str]
    read_count: int
    delivered_count: int


class RecallResult(Struct):
    """`seq` is the seq of the recall event."""

    server_msg_id: str
    seq: int


class HistoryPage(Struct):
    messages: list[Message]
    head_seq: int
    next_seq: int
    has_more: bool


class SentMessage(Struct):
    """The answer to a send. `status` is `saved`, or `accepted` when it has no place yet; `content` is what was stored
    when the word filter changed it."""

    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    status: str = "saved"
    seq: int | None = None
    send_at: int | None = None
    content: Any = None


class BackendUser(User):
    disabled: bool = False
    disabled_reason: str = ""


class IssuedToken(Struct):
    """`expires_at` is a date in ms; `refresh_token` is empty unless it was asked for."""

    user_id: str
    access_token: str
    expires_at: int
    refresh_token: str = ""
    platform_id: int = 0
    device_id: str = ""

    def __repr__(self) -> str:
        return f"IssuedToken(user_id={self.user_id!r}, expires_at={self.expires_at})"


class BackendEvent(Struct):
    """`data` has the names of the HTTP API. `cursor` is the place to continue from once this event was handled."""

    event_id: str
    type: str
    at: int
    conversation_id: str | None = None
    user_id: str | None = None
    data: Any = None
    cursor: str | None = None


class Storage(Protocol):
    """Keeps the session, the outbox and the baselines. Keys are strings, values plain JSON values.

    When `set` or `delete` returns, the change is durable.
    """

    async def get(self, key: str) -> Any: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def delete(self, key: str) -> None: ...

    async def entries(self, prefix: str) -> list[tuple[str, Any]]:
        """Returns keys and values in the order of the keys."""

    async def close(self) -> None: ...

"""Requests of the routes: bodies of POST and PUT, queries of GET and DELETE. Unknown fields are refused.

Types are checked here. Sizes and forms are checked by the services, which raise the error that names the field.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from nexo.core.message_fields import with_plain
from nexo.core.model import JOIN_POLICIES, DraftText
from nexo.core.people import LAST_SEEN_VALUES

SEQ_MAX = (1 << 63) - 1
NUMBER_MAX = (1 << 31) - 1  # of what is no seq, id or time: larger ones fit into no column
_ID = "[A-Za-z0-9._@-]{1,64}"
PLATFORMS = "1 iOS, 2 Android, 3 Windows, 4 macOS, 5 web, 6 mini web, 7 Linux, 8 Android pad, 9 iPad, 10 admin"
_MSG_TYPES = "1 text, 2 image, 3 video, 4 audio, 5 file, 6 custom, 7 quote."
_EXPIRES = "Its content is shown for so many seconds, and erased then."
_GROUP = "g_[A-Za-z0-9]{12}"


def form(pattern: str | None = None, **more: Any) -> Meta:
    """Bounds for the OpenAPI document only: the services check them and refuse with the error of the field."""
    return Meta(extra_json_schema=more if pattern is None else {"pattern": f"^({pattern})$", **more})


UserId = Annotated[str, form(_ID)]
GroupId = Annotated[str, form(_GROUP)]
ConversationId = Annotated[str, form(f"si_{_ID}:{_ID}|sg_{_GROUP}")]
MessageId = Annotated[str, form("[0-9]{1,19}")]
ClientMsgId = Annotated[str, form("[!-~]([ -~]{0,62}[!-~])?")]
Password = Annotated[str, form(maxLength=128)]
Nickname = Annotated[str, form(maxLength=128)]
Avatar = Annotated[str, form(maxLength=512)]
GroupName = Annotated[str, form(minLength=1, maxLength=128)]
Introduction = Annotated[str, form(maxLength=512)]
Announcement = Annotated[str, form(maxLength=4096)]
GroupType = Annotated[int, form(minimum=0, maximum=32_767, description="A number of your own.")]
JoinPolicy = Annotated[str, form(enum=list(JOIN_POLICIES))]
Seq = Annotated[int, Meta(ge=0, le=SEQ_MAX)]
BodySeq = Seq | Annotated[str, Meta(pattern="^[0-9]{1,18}$")]
Limit = Annotated[int, Meta(description="At most 200; absent, not positive or larger means 200.")]
SeedLimit = Annotated[int, Meta(description="At most 200, 50 when absent; not positive or larger means 200.")]
NewUserId = Annotated[str, form(_ID, description="Differs by case: `Ann` is not `ann`. It never changes.")]
PlatformId = Annotated[
    int,
    form(minimum=1, maximum=10, description=f"{PLATFORMS}."),
]
DeviceId = Annotated[str, form(maxLength=128, description="Identifies the installation.")]
Cursor = Annotated[str, Meta(description="As the previous page gave it in `next_cursor`.")]

T = TypeVar("T")


def given(value: T | UnsetType) -> T | None:
    """The value, or None when the caller left it out."""
    return None if value is UNSET else value


class ApiRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """`error_names` states which row of the error table (`missing_…`, `bad_…`) belongs to a field, where neither the
    field's own name nor `FIELD_ERRORS` does."""

    error_names: ClassVar[dict[str, str]] = {}


class Nothing(ApiRequest, frozen=True):
    """No parameters."""


# -- users and sessions ----------------------------------------------------------------------------------


class RegisterRequest(ApiRequest, frozen=True):
    password: Password
    user_id: NewUserId | None = None
    nickname: Nickname = ""
    avatar: Avatar = ""
    extra: Any = None
    code: Annotated[str, form(maxLength=64, description="Where registering needs one.")] = ""


class WhichUser(ApiRequest, frozen=True):
    user_id: Annotated[str, form(f"{_ID}|", description="None: yourself.")] = ""


class SearchRequest(ApiRequest, frozen=True):
    q: Annotated[str, Meta(description="The beginning of a user id or nickname.")]


class WhichUsers(ApiRequest, frozen=True):
    user_ids: list[UserId]


class PrivacyFields(Struct, forbid_unknown_fields=True, frozen=True):
    last_seen: Annotated[str, form(enum=list(LAST_SEEN_VALUES))]


class UpdateUserRequest(ApiRequest, frozen=True):
    nickname: Nickname | UnsetType = UNSET
    avatar: Avatar | UnsetType = UNSET
    extra: Any = UNSET
    privacy: PrivacyFields | UnsetType = UNSET


class OtherUser(ApiRequest, frozen=True):
    user_id: UserId


class LoginRequest(ApiRequest, frozen=True):
    user_id: UserId
    password: Password
    platform_id: PlatformId = 5
    device_id: DeviceId = ""


class RefreshRequest(ApiRequest, frozen=True):
    refresh_token: str


class ChangePasswordRequest(ApiRequest, frozen=True):
    old_password: Password
    new_password: Password


class ResetPasswordRequest(ApiRequest, frozen=True):
    code: Annotated[str, Meta(description="As `/server/users/{id}/password_reset` gave it; it works once.")]
    new_password: Password


# -- messages --------------------------------------------------------------------------------------------


@with_plain()
class SendRequest(ApiRequest, frozen=True):
    """`content` is a string for text (`msg_type` 1 and 7), an object otherwise. Either `recv_id` or `group_id`
    is named. The sender is who is signed in; one named here must be the same."""

    client_msg_id: Annotated[ClientMsgId, Meta(description="New for every message, the same when it is repeated.")]
    content: Annotated[str | dict[str, Any], Meta(description="Text: 1 to 4,096 characters. Object: 16 KiB.")]
    recv_id: UserId | None = None
    group_id: GroupId | None = None
    msg_type: Annotated[int, form(minimum=1, maximum=7, description=_MSG_TYPES)] = 1
    mentions: Annotated[list[str], form(maxItems=100, description="User ids, or `@all`.")] | None = None
    reply_to: MessageId | None = None
    extra: Annotated[Any, Meta(description="An object of your own, 16 KiB.")] = None
    expires_s: Annotated[int, form(minimum=5, maximum=604_800, description=_EXPIRES)] | None = None
    send_id: UserId | None = None
    sender_id: UserId | None = None
    from_: UserId | None = msgspec.field(default=None, name="from")


class WhichMessage(ApiRequest, frozen=True):
    server_msg_id: MessageId


class DeleteRequest(ApiRequest, frozen=True):
    server_msg_ids: Annotated[list[MessageId], form(minItems=1, maxItems=1000)]


class DeletedRequest(ApiRequest, frozen=True):
    """Deletions after the revision `after`, which is the `deleted_rev` of an earlier answer or of SYNC."""

    error_names: ClassVar[dict[str, str]] = {"after": "seq"}

    conversation_id: ConversationId
    after: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class EditRequest(ApiRequest, frozen=True):
    """`content` as the message's `msg_type` takes it."""

    server_msg_id: MessageId
    client_msg_id: Annotated[ClientMsgId, Meta(description="New for every edit, the same when it is repeated.")]
    content: Annotated[str | dict[str, Any], Meta(description="Text: 1 to 4,096 characters. Object: 16 KiB.")]
    mentions: Annotated[list[str], form(maxItems=100, description="User ids; absent: as before.")] | None = None


class ReactRequest(ApiRequest, frozen=True):
    server_msg_id: MessageId
    emoji: Annotated[str, form(maxLength=32, description="One emoji, 32 bytes.")]
    on: Annotated[bool, Meta(description="False takes the reaction back.")] = True
    client_msg_id: Annotated[str, Meta(description="Echoed by a refusal.")] | None = None


class PinRequest(ApiRequest, frozen=True):
    server_msg_id: MessageId
    on: Annotated[bool, Meta(description="False unpins.")] = True
    client_msg_id: Annotated[str, Meta(description="Echoed by a refusal.")] | None = None


class WhichReactions(ApiRequest, frozen=True):
    server_msg_id: MessageId
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class ForwardTo(Struct, forbid_unknown_fields=True, frozen=True):
    """A user or a group."""

    recv_id: UserId | None = None
    group_id: GroupId | None = None


class ForwardRequest(ApiRequest, frozen=True):
    """The number of messages times that of targets is at most 200."""

    error_names = {"title": "content"}

    client_msg_id: Annotated[ClientMsgId, Meta(description="New for every request, the same when it is repeated.")]
    server_msg_ids: Annotated[list[MessageId], form(maxItems=100)]
    to: Annotated[list[ForwardTo], form(maxItems=20)]
    merge: Annotated[bool, Meta(description="Send one message of type 8 that holds all of them.")] = False
    title: Annotated[str, form(maxLength=128, description="Of the merged message.")] | None = None


class PullRequest(ApiRequest, frozen=True):
    """`begin_seq` with `end_seq` and `limit`, or `seqs`."""

    conversation_id: ConversationId
    begin_seq: Seq | UnsetType = UNSET
    end_seq: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    seqs: list[Seq] | UnsetType = UNSET


class HistoryRequest(ApiRequest, frozen=True):
    conversation_id: ConversationId
    before_seq: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class Paging(ApiRequest, frozen=True):
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class SingleCursor(ApiRequest, frozen=True, rename="camel"):
    peer_user_id: UserId
    last_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


class GroupCursor(ApiRequest, frozen=True, rename="camel"):
    group_id: GroupId
    last_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


class GroupSince(ApiRequest, frozen=True, rename="camel"):
    group_id: GroupId
    since_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


# -- conversations ---------------------------------------------------------------------------------------


class WhichConversations(ApiRequest, frozen=True):
    conversation_ids: Annotated[list[ConversationId], Meta(description="None: all.")] | UnsetType = UNSET


class WhichConversation(ApiRequest, frozen=True):
    conversation_id: ConversationId


class UpdateConversationRequest(ApiRequest, frozen=True):
    conversation_id: ConversationId
    pinned: bool | UnsetType = UNSET
    recv_msg_opt: Annotated[int, form(minimum=0, maximum=2)] | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET
    archived: Annotated[bool, Meta(description="Returns with the next message, unless muted.")] | UnsetType = UNSET
    silent_until: Annotated[Seq, Meta(description="As recv_msg_opt 2 until this time; 0: lifted.")] | UnsetType = UNSET
    marked_unread: bool | UnsetType = UNSET
    message_ttl_s: (
        Annotated[
            int | None, form(description="Later messages are erased after so many seconds (5 to 604800); 0: kept.")
        ]
        | UnsetType
    ) = UNSET
    draft: DraftText | UnsetType | None = UNSET
    extra: Annotated[Any, Meta(description="An object of your own, 16 KiB; null removes it.")] = UNSET


class TimeRequest(ApiRequest, frozen=True):
    conversation_id: ConversationId
    time: Annotated[int, Meta(description="Milliseconds since 1970.")]


class MarkReadRequest(ApiRequest, frozen=True):
    """Up to `seq`, or to the message `last_msg_id`."""

    conversation_id: ConversationId
    seq: BodySeq | None = None
    last_msg_id: MessageId | None = None


# -- groups ----------------------------------------------------------------------------------------------


class CreateGroupRequest(ApiRequest, frozen=True):
    name: GroupName
    member_ids: list[UserId]
    avatar: Avatar = ""
    introduction: Introduction = ""
    join_policy: JoinPolicy = "open"
    extra: Any = None
    group_type: GroupType = 0


class WhichGroup(ApiRequest, frozen=True):
    group_id: GroupId


class JoinGroupRequest(ApiRequest, frozen=True):
    """By `group_id`, or by the `code` of an invite link."""

    group_id: GroupId | None = None
    message: Annotated[str, form(maxLength=512)] = ""
    code: str | None = None


class DecideJoinRequest(ApiRequest, frozen=True):
    group_id: GroupId
    user_id: UserId
    accept: bool


class InviteRequest(ApiRequest, frozen=True):
    """Unknown users are skipped, also those whose id has a wrong form."""

    error_names: ClassVar[dict[str, str]] = {"user_ids": "member_ids"}

    group_id: GroupId
    user_ids: list[str]


class WhichMember(ApiRequest, frozen=True):
    group_id: GroupId
    user_id: UserId


class SetRoleRequest(ApiRequest, frozen=True):
    group_id: GroupId
    user_id: UserId
    role: Annotated[str, form(enum=["admin", "member"])]


class MuteRequest(ApiRequest, frozen=True):
    group_id: GroupId
    duration_s: Annotated[int, Meta(description="0 lifts it, -1 is without end.")]
    user_id: Annotated[UserId | None, Meta(description="None: all members except owner and admins.")] = None


class UpdateGroupRequest(ApiRequest, frozen=True):
    group_id: GroupId
    name: GroupName | UnsetType = UNSET
    avatar: Avatar | UnsetType = UNSET
    introduction: Introduction | UnsetType = UNSET
    announcement: Announcement | UnsetType = UNSET
    join_policy: JoinPolicy | UnsetType = UNSET
    group_type: GroupType | UnsetType = UNSET
    extra: Any = UNSET


class OwnMemberRequest(ApiRequest, frozen=True):
    error_names: ClassVar[dict[str, str]] = {"group_nickname": "nickname", "group_avatar": "avatar"}

    group_id: GroupId
    group_nickname: Nickname | UnsetType = UNSET
    group_avatar: Avatar | UnsetType = UNSET
    extra: Any = UNSET


class Members(ApiRequest, frozen=True):
    group_id: GroupId
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class AdminStats(ApiRequest, frozen=True):
    since: (
        Annotated[Seq, Meta(description="Only points after this one: the `at` of the last point received.")] | UnsetType
    ) = UNSET


class TraceRequest(ApiRequest, frozen=True):
    server_msg_id: MessageId
    user_id: Annotated[UserId, Meta(description="One receiver; none: the first 50.")] | UnsetType = UNSET


FIELD_ERRORS = {
    "refresh_token": "token",
    "old_password": "password",
    "new_password": "password",
    "q": "query",
    "user_ids": "user_id",
    "peer_user_id": "user_id",
    "conversation_ids": "conversation_id",
    "recv_id": "receiver",
    "send_id": "user_id",
    "sender_id": "user_id",
    "from": "user_id",
    "last_msg_id": "server_msg_id",
    "begin_seq": "seq",
    "end_seq": "seq",
    "before_seq": "seq",
    "last_seq": "seq",
    "since_seq": "seq",
    "seqs": "seq",
    "duration_s": "duration",
    "group_type": "kind",
    "since": "seq",
    "after": "time",
    "before": "time",
    "expires_s": "expires",
    "message_ttl_s": "ttl",
    "silent_until": "time",
}

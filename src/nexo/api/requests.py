"""What the calls take: bodies of POST and PUT, queries of GET and DELETE. Anything else in them is refused.

Types are checked here; sizes and forms by the services, which know the error that names the field.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from nexo.core.model import JOIN_POLICIES

SEQ_MAX = (1 << 63) - 1
_ID = "[A-Za-z0-9._@-]{1,64}"
_GROUP = "g_[A-Za-z0-9]{12}"


def _form(pattern: str | None = None, **more: Any) -> Meta:
    """For the document only: the services refuse what does not fit, by the error that says so."""
    return Meta(extra_json_schema=more if pattern is None else {"pattern": f"^({pattern})$", **more})


UserId = Annotated[str, _form(_ID)]
GroupId = Annotated[str, _form(_GROUP)]
ConversationId = Annotated[str, _form(f"si_{_ID}:{_ID}|sg_{_GROUP}")]
MessageId = Annotated[str, _form("[0-9]{1,19}")]
ClientMsgId = Annotated[str, _form("[!-~]([ -~]{0,62}[!-~])?")]
Password = Annotated[str, _form(maxLength=128)]
Nickname = Annotated[str, _form(maxLength=128)]
Avatar = Annotated[str, _form(maxLength=512)]
GroupName = Annotated[str, _form(minLength=1, maxLength=128)]
Introduction = Annotated[str, _form(maxLength=512)]
Announcement = Annotated[str, _form(maxLength=4096)]
JoinPolicy = Annotated[str, _form(enum=list(JOIN_POLICIES))]
Seq = Annotated[int, Meta(ge=0, le=SEQ_MAX)]
BodySeq = Seq | Annotated[str, Meta(pattern="^[0-9]{1,18}$")]
Limit = Annotated[int, Meta(description="At most 200; absent, not positive or larger means 200.")]
SeedLimit = Annotated[int, Meta(description="At most 200, 50 when absent; not positive or larger means 200.")]
Cursor = Annotated[str, Meta(description="As the previous page gave it in `next_cursor`.")]

T = TypeVar("T")


def given(value: T | UnsetType) -> T | None:
    """The value, or None when the caller left it out."""
    return None if value is UNSET else value


class Request(Struct, forbid_unknown_fields=True, frozen=True):
    """`error_names` says which row of the error table (`missing_…`, `bad_…`) speaks of a field, where neither the
    field's own name nor `FIELD_ERRORS` does."""

    error_names: ClassVar[dict[str, str]] = {}


class Nothing(Request, frozen=True):
    """No parameters."""


# -- users and sessions ----------------------------------------------------------------------------------


class Register(Request, frozen=True):
    password: Password
    user_id: UserId | None = None
    nickname: Nickname = ""
    avatar: Avatar = ""
    extra: Any = None


class WhichUser(Request, frozen=True):
    user_id: Annotated[str, _form(f"{_ID}|", description="None: yourself.")] = ""


class Search(Request, frozen=True):
    q: Annotated[str, Meta(description="The beginning of a user id or nickname.")]


class WhichUsers(Request, frozen=True):
    user_ids: list[UserId]


class UpdateUser(Request, frozen=True):
    nickname: Nickname | UnsetType = UNSET
    avatar: Avatar | UnsetType = UNSET
    extra: Any = UNSET


class OtherUser(Request, frozen=True):
    user_id: UserId


class Login(Request, frozen=True):
    user_id: UserId
    password: Password
    platform_id: Annotated[int, _form(minimum=1, maximum=10)] = 5
    device_id: Annotated[str, _form(maxLength=128)] = ""


class Refresh(Request, frozen=True):
    refresh_token: str


class ChangePassword(Request, frozen=True):
    old_password: Password
    new_password: Password


# -- messages --------------------------------------------------------------------------------------------


class Send(Request, frozen=True):
    """`content` is a string for text (`msg_type` 1 and 7), an object otherwise. Either `recv_id` or `group_id`
    is named. The sender is who is signed in; one named here must be the same."""

    client_msg_id: ClientMsgId
    content: str | dict[str, Any]
    recv_id: UserId | None = None
    group_id: GroupId | None = None
    msg_type: Annotated[int, _form(minimum=1, maximum=7)] = 1
    mentions: Annotated[list[str], _form(maxItems=100)] | None = None
    reply_to: MessageId | None = None
    extra: Any = None
    send_id: UserId | None = None
    sender_id: UserId | None = None
    from_: UserId | None = msgspec.field(default=None, name="from")


class WhichMessage(Request, frozen=True):
    server_msg_id: MessageId


class Pull(Request, frozen=True):
    """`begin_seq` with `end_seq` and `limit`, or `seqs`."""

    conversation_id: ConversationId
    begin_seq: Seq | UnsetType = UNSET
    end_seq: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    seqs: list[Seq] | UnsetType = UNSET


class History(Request, frozen=True):
    conversation_id: ConversationId
    before_seq: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class Paging(Request, frozen=True):
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class SingleCursor(Request, frozen=True, rename="camel"):
    peer_user_id: UserId
    last_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


class GroupCursor(Request, frozen=True, rename="camel"):
    group_id: GroupId
    last_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


class GroupSince(Request, frozen=True, rename="camel"):
    group_id: GroupId
    since_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


# -- conversations ---------------------------------------------------------------------------------------


class WhichConversations(Request, frozen=True):
    conversation_ids: Annotated[list[ConversationId], Meta(description="None: all.")] | UnsetType = UNSET


class WhichConversation(Request, frozen=True):
    conversation_id: ConversationId


class UpdateConversation(Request, frozen=True):
    conversation_id: ConversationId
    pinned: bool | UnsetType = UNSET
    recv_msg_opt: Annotated[int, _form(minimum=0, maximum=2)] | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


class MarkRead(Request, frozen=True):
    """Up to `seq`, or to the message `last_msg_id`."""

    conversation_id: ConversationId
    seq: BodySeq | None = None
    last_msg_id: MessageId | None = None


# -- groups ----------------------------------------------------------------------------------------------


class CreateGroup(Request, frozen=True):
    name: GroupName
    member_ids: list[UserId]
    avatar: Avatar = ""
    introduction: Introduction = ""
    join_policy: JoinPolicy = "open"
    extra: Any = None


class WhichGroup(Request, frozen=True):
    group_id: GroupId


class JoinGroup(Request, frozen=True):
    group_id: GroupId
    message: Annotated[str, _form(maxLength=512)] = ""


class DecideJoin(Request, frozen=True):
    group_id: GroupId
    user_id: UserId
    accept: bool


class Invite(Request, frozen=True):
    """Whom nobody knows is skipped, also by an id that nobody can have."""

    error_names: ClassVar[dict[str, str]] = {"user_ids": "member_ids"}

    group_id: GroupId
    user_ids: list[str]


class WhichMember(Request, frozen=True):
    group_id: GroupId
    user_id: UserId


class SetRole(Request, frozen=True):
    group_id: GroupId
    user_id: UserId
    role: Annotated[str, _form(enum=["admin", "member"])]


class Mute(Request, frozen=True):
    group_id: GroupId
    duration_s: Annotated[int, Meta(description="0 lifts it, -1 is without end.")]
    user_id: Annotated[UserId | None, Meta(description="None: everybody but owner and admins.")] = None


class UpdateGroup(Request, frozen=True):
    group_id: GroupId
    name: GroupName | UnsetType = UNSET
    avatar: Avatar | UnsetType = UNSET
    introduction: Introduction | UnsetType = UNSET
    announcement: Announcement | UnsetType = UNSET
    join_policy: JoinPolicy | UnsetType = UNSET


class Members(Request, frozen=True):
    group_id: GroupId
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class AdminStats(Request, frozen=True):
    since: (
        Annotated[Seq, Meta(description="Leave out what was told before: the `at` of the last point.")] | UnsetType
    ) = UNSET


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
    "since": "seq",
}

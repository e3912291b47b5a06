"""What the calls take: bodies of POST and PUT, queries of GET and DELETE. Anything else in them is refused.

Types are checked here; sizes and forms by the services, which know the error that names the field.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

SEQ_MAX = (1 << 63) - 1

Name = Annotated[str, Meta(min_length=1)]  # in a query, nothing is as good as absent
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
    password: str
    user_id: str | None = None
    nickname: str = ""
    avatar: str = ""
    extra: Any = None


class WhichUser(Request, frozen=True):
    user_id: Annotated[str, Meta(min_length=1, description="None: yourself.")] | UnsetType = UNSET


class Search(Request, frozen=True):
    q: Annotated[str, Meta(min_length=1, description="The beginning of a user id or nickname.")]


class WhichUsers(Request, frozen=True):
    user_ids: list[str]


class UpdateUser(Request, frozen=True):
    nickname: str | UnsetType = UNSET
    avatar: str | UnsetType = UNSET
    extra: Any = UNSET


class OtherUser(Request, frozen=True):
    user_id: str


class Login(Request, frozen=True):
    user_id: str
    password: str
    platform_id: int = 5
    device_id: str = ""


class Refresh(Request, frozen=True):
    refresh_token: str


class ChangePassword(Request, frozen=True):
    old_password: str
    new_password: str


# -- messages --------------------------------------------------------------------------------------------


class Send(Request, frozen=True):
    """`content` is a string for text (`msg_type` 1 and 7), an object otherwise. Either `recv_id` or `group_id`
    is named. The sender is who is signed in; one named here must be the same."""

    client_msg_id: str
    content: str | dict[str, Any]
    recv_id: str | None = None
    group_id: str | None = None
    msg_type: int = 1
    mentions: list[str] = []
    reply_to: str | None = None
    extra: Any = None
    send_id: str | None = None
    sender_id: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")


class WhichMessage(Request, frozen=True):
    server_msg_id: Name


class Pull(Request, frozen=True):
    """`begin_seq` with `end_seq` and `limit`, or `seqs`."""

    conversation_id: Name
    begin_seq: Seq | UnsetType = UNSET
    end_seq: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
    seqs: list[Seq] | UnsetType = UNSET


class History(Request, frozen=True):
    conversation_id: Name
    before_seq: Seq | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class Paging(Request, frozen=True):
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class SingleCursor(Request, frozen=True, rename="camel"):
    peer_user_id: Name
    last_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


class GroupCursor(Request, frozen=True, rename="camel"):
    group_id: Name
    last_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


class GroupSince(Request, frozen=True, rename="camel"):
    group_id: Name
    since_seq: Seq | UnsetType = UNSET
    limit: SeedLimit | UnsetType = UNSET


# -- conversations ---------------------------------------------------------------------------------------


class WhichConversations(Request, frozen=True):
    conversation_ids: Annotated[list[str], Meta(description="None: all.")] | UnsetType = UNSET


class WhichConversation(Request, frozen=True):
    conversation_id: Name


class UpdateConversation(Request, frozen=True):
    conversation_id: str
    pinned: bool | UnsetType = UNSET
    recv_msg_opt: int | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET


class MarkRead(Request, frozen=True):
    """Up to `seq`, or to the message `last_msg_id`."""

    conversation_id: str
    seq: BodySeq | UnsetType = UNSET
    last_msg_id: str | UnsetType = UNSET


# -- groups ----------------------------------------------------------------------------------------------


class CreateGroup(Request, frozen=True):
    name: str
    member_ids: list[str]
    avatar: str = ""
    introduction: str = ""
    join_policy: str = "open"
    extra: Any = None


class WhichGroup(Request, frozen=True):
    group_id: Name


class JoinGroup(Request, frozen=True):
    group_id: str
    message: str = ""


class DecideJoin(Request, frozen=True):
    group_id: str
    user_id: str
    accept: bool


class Invite(Request, frozen=True):
    error_names: ClassVar[dict[str, str]] = {"user_ids": "member_ids"}

    group_id: str
    user_ids: list[str]


class WhichMember(Request, frozen=True):
    group_id: str
    user_id: str


class SetRole(Request, frozen=True):
    group_id: str
    user_id: str
    role: Annotated[str, Meta(description="`admin` or `member`.")]


class Mute(Request, frozen=True):
    group_id: str
    duration_s: Annotated[int, Meta(description="0 lifts it, -1 is without end.")]
    user_id: Annotated[str | None, Meta(description="None: everybody but owner and admins.")] = None


class UpdateGroup(Request, frozen=True):
    group_id: str
    name: str | UnsetType = UNSET
    avatar: str | UnsetType = UNSET
    introduction: str | UnsetType = UNSET
    announcement: str | UnsetType = UNSET
    join_policy: str | UnsetType = UNSET


class Members(Request, frozen=True):
    group_id: Name
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


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
}

"""What a client can ask over a connection, whatever its dialect. Decoded, typed, not yet judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from nexo.ids import group_conversation_id, single_conversation_id


class Private(Struct, frozen=True):
    """Holds a password or a token, which its printed form does not show."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


# -- who is there -------------------------------------------------------------------------------------


class Auth(Private, frozen=True):
    token: str
    device_id: str | None = None
    baselines: Mapping[str, int] = {}


class Login(Private, frozen=True):
    """Sign in with a password: answered with the tokens of a new session."""

    user_id: str
    password: str
    platform_id: int = 5
    device_id: str = ""


class Register(Private, frozen=True):
    password: str
    user_id: str | None = None
    nickname: str = ""
    avatar: str = ""
    extra: Any = None


class RefreshToken(Private, frozen=True):
    refresh_token: str


class Reauth(Private, frozen=True):
    token: str


class WithToken(Private, frozen=True):
    """A request that shows another token than the one before it: Reauth, then the request."""

    token: str
    command: Command


class Logout(Struct, frozen=True):
    pass


class Ping(Struct, frozen=True):
    pass


class Pong(Struct, frozen=True):
    pass


# -- messages -----------------------------------------------------------------------------------------


class Send(Struct, frozen=True):
    """As decoded: the sending service checks every field."""

    client_msg_id: str
    recv_id: str | None = None
    group_id: str | None = None
    msg_type: int = 1
    content: Any = None
    mentions: Any = ()
    reply_to: str | int | None = None
    extra: Any = None

    def place(self, sender_id: str) -> str:
        """Where it is meant to go, well-formed or not."""
        if self.group_id:
            return group_conversation_id(self.group_id)
        return single_conversation_id(sender_id, self.recv_id or "")


class Ack(Struct, frozen=True):
    """By message, or by place."""

    ack_type: str
    server_msg_id: str | int | None = None
    conversation_id: str | None = None
    seq: int | None = None


class MarkRead(Struct, frozen=True):
    conversation_id: str
    seq: int | None = None
    last_msg_id: str | int | None = None


class Recall(Struct, frozen=True):
    server_msg_id: str | int


class Pull(Struct, frozen=True):
    conversation_id: str
    begin_seq: int = 1
    end_seq: int | None = None
    limit: int | None = None


class PullSeqs(Struct, frozen=True):
    conversation_id: str
    seqs: tuple[int, ...]


class History(Struct, frozen=True):
    """Newest first, below a message or from the head."""

    conversation_id: str
    before_msg_id: str | int | None = None
    limit: int | None = None


class PullOffline(Struct, frozen=True):
    """What was not delivered, over all conversations."""

    cursor: str | None = None
    limit: int | None = None
    baselines: Mapping[str, int] = {}


class LastMessages(Struct, frozen=True):
    conversation_ids: tuple[str, ...]


class Resend(Struct, frozen=True):
    baselines: Mapping[str, int] = {}


# -- conversations ------------------------------------------------------------------------------------


class Sync(Struct, frozen=True):
    """The user's conversations: a page of all, or just those named."""

    cursor: str | None = None
    limit: int | None = None
    conversation_ids: tuple[str, ...] | None = None


class Heads(Struct, frozen=True):
    """Heads and cursors of all conversations, or of those named, at once."""

    conversation_ids: tuple[str, ...] | None = None


class ListConversations(Struct, frozen=True):
    cursor: str | None = None
    limit: int | None = None


class DeleteConversation(Struct, frozen=True):
    conversation_id: str


class Typing(Struct, frozen=True):
    on: bool
    recv_id: str | None = None
    group_id: str | None = None


class SubscribePresence(Struct, frozen=True):
    user_ids: tuple[str, ...]


# -- groups -------------------------------------------------------------------------------------------


class CreateGroup(Struct, frozen=True):
    name: str
    member_ids: tuple[str, ...]
    avatar: str = ""
    introduction: str = ""
    join_policy: str = "open"
    extra: Any = None


class JoinGroup(Struct, frozen=True):
    group_id: str
    message: str = ""


class LeaveGroup(Struct, frozen=True):
    group_id: str


class DismissGroup(Struct, frozen=True):
    group_id: str


class InviteMembers(Struct, frozen=True):
    group_id: str
    user_ids: tuple[str, ...]


class RemoveMember(Struct, frozen=True):
    group_id: str
    user_id: str


class TransferOwner(Struct, frozen=True):
    group_id: str
    user_id: str


class SetMemberRole(Struct, frozen=True):
    group_id: str
    user_id: str
    role: str


class UpdateGroup(Struct, frozen=True):
    """None leaves a field as it is."""

    group_id: str
    name: str | None = None
    avatar: str | None = None
    introduction: str | None = None
    announcement: str | None = None
    join_policy: str | None = None


class GetGroup(Struct, frozen=True):
    group_id: str


class ListMembers(Struct, frozen=True):
    group_id: str
    cursor: str | None = None
    limit: int | None = None


class ListGroups(Struct, frozen=True):
    pass


Command = (
    Auth
    | Login
    | Register
    | RefreshToken
    | Reauth
    | WithToken
    | Logout
    | Ping
    | Pong
    | Send
    | Ack
    | MarkRead
    | Recall
    | Pull
    | PullSeqs
    | History
    | PullOffline
    | LastMessages
    | Resend
    | Sync
    | Heads
    | ListConversations
    | DeleteConversation
    | Typing
    | SubscribePresence
    | CreateGroup
    | JoinGroup
    | LeaveGroup
    | DismissGroup
    | InviteMembers
    | RemoveMember
    | TransferOwner
    | SetMemberRole
    | UpdateGroup
    | GetGroup
    | ListMembers
    | ListGroups
)

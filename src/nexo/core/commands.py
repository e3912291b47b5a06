"""Commands that a client can send over a connection, in any dialect. Decoded and typed, not yet checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, Struct

from nexo.core.message_fields import with_plain
from nexo.core.numbering import NumberSpan as NumberSpan
from nexo.ids import group_conversation_id, single_conversation_id


class Private(Struct, frozen=True):
    """A command with a password or a token, which its `repr` does not show."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


# -- connections and presence -------------------------------------------------------------------------------------


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
    code: str = ""


class RefreshToken(Private, frozen=True):
    refresh_token: str


class Reauth(Private, frozen=True):
    token: str


class WithToken(Private, frozen=True):
    """A request with another token than the request before it: Reauth, then the request."""

    token: str
    command: Command


class Logout(Struct, frozen=True):
    pass


class Ping(Struct, frozen=True):
    pass


class Pong(Struct, frozen=True):
    pass


# -- messages -----------------------------------------------------------------------------------------


@with_plain()
class Send(Struct, frozen=True):
    """A message as decoded. The sending service checks every field."""

    client_msg_id: str
    recv_id: str | None = None
    group_id: str | None = None
    msg_type: int = 1
    content: Any = None
    mentions: Any = ()
    reply_to: str | int | None = None
    extra: Any = None
    sent_at: Any = None  # by the client's clock, as it gave it
    expires_s: int | None = None  # how long it is shown

    def place(self, sender_id: str) -> str:
        """Returns the address as sent, well-formed or not."""
        if self.group_id:
            return group_conversation_id(self.group_id)
        return single_conversation_id(sender_id, self.recv_id or "")


class Ack(Struct, frozen=True):
    """Acknowledges a message by its id, or by conversation and seq."""

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


class DeleteForMe(Struct, frozen=True):
    server_msg_ids: tuple[str | int, ...]


class Edit(Struct, frozen=True):
    """Gives a message another content. `mentions` None leaves them as they are."""

    server_msg_id: str | int
    content: Any = None
    client_msg_id: str | None = None
    mentions: Any = None


class React(Struct, frozen=True):
    server_msg_id: str | int
    emoji: Any = None
    on: bool = True


class Pin(Struct, frozen=True):
    server_msg_id: str | int
    on: bool = True


class Pull(Struct, frozen=True):
    conversation_id: str
    begin_seq: int = 1
    end_seq: int | None = None
    limit: int | None = None


class PullSeqs(Struct, frozen=True):
    conversation_id: str
    seqs: tuple[int, ...]


class History(Struct, frozen=True):
    """Asks for messages, newest first, from below a message or from the head."""

    conversation_id: str
    before_msg_id: str | int | None = None
    limit: int | None = None


class PullOffline(Struct, frozen=True):
    """Asks for undelivered messages of all conversations."""

    cursor: str | None = None
    limit: int | None = None
    baselines: Mapping[str, int] = {}


class LastMessages(Struct, frozen=True):
    conversation_ids: tuple[str, ...]


class Resend(Struct, frozen=True):
    baselines: Mapping[str, int] = {}


# -- conversations ------------------------------------------------------------------------------------


class Sync(Struct, frozen=True):
    """Asks for the user's conversations: a page of all, or the named ones."""

    cursor: str | None = None
    limit: int | None = None
    conversation_ids: tuple[str, ...] | None = None


class Heads(Struct, frozen=True):
    """Asks for the heads and cursors of all or the named conversations, in one answer."""

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
    group_type: int = 0


class JoinGroup(Struct, frozen=True):
    """By the id of the group, or by the code of an invite link."""

    group_id: str | None = None
    message: str = ""
    code: str | None = None


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
    group_type: int | None = None
    extra: Any = UNSET


class GetGroup(Struct, frozen=True):
    group_id: str


class ListMembers(Struct, frozen=True):
    group_id: str
    cursor: str | None = None
    limit: int | None = None


class ListGroups(Struct, frozen=True):
    pass


# -- contacts -----------------------------------------------------------------------------------------


class RequestContact(Struct, frozen=True):
    user_id: str
    message: str = ""


class DecideContact(Struct, frozen=True):
    user_id: str
    accept: bool


class RemoveContact(Struct, frozen=True):
    user_id: str


class RemarkContact(Struct, frozen=True):
    user_id: str
    remark: str


class ListContacts(Struct, frozen=True):
    cursor: str | None = None
    limit: int | None = None


class ListContactRequests(Struct, frozen=True):
    """Asks for the open requests that the user has received, or has sent."""

    sent: bool = False
    cursor: str | None = None
    limit: int | None = None


# -- calls --------------------------------------------------------------------------------------------


class InviteCall(Private, frozen=True):
    """Fields of calls may be missing: whether calls are switched on is asked first."""

    user_id: str | None
    kind: str | None
    sdp: str | None
    client_msg_id: str | None


class AcceptCall(Private, frozen=True):
    call_id: str | int | None
    sdp: str | None


class RejectCall(Struct, frozen=True):
    call_id: str | int | None


class CancelCall(Struct, frozen=True):
    call_id: str | int | None


class SignalCall(Private, frozen=True):
    """A candidate, or a new description, for the other device. `fields` by their names in snake case."""

    call_id: str | int | None
    fields: Mapping[str, Any]


class EndCall(Struct, frozen=True):
    call_id: str | int | None
    reason: str | None = None


CALL_COMMANDS = (InviteCall, AcceptCall, RejectCall, CancelCall, SignalCall, EndCall)
CallCommand = InviteCall | AcceptCall | RejectCall | CancelCall | SignalCall | EndCall


# -- messages by number (OpenIM) -------------------------------------------------------------------------


class Numbers(Struct, frozen=True):
    """Asks for heads in numbers: of all conversations, or of the named ones."""

    conversation_ids: tuple[str, ...] | None = None


class PullNumbers(Struct, frozen=True):
    spans: tuple[NumberSpan, ...]


class Pass(Struct, frozen=True):
    """A request that is answered and changes nothing; `closes`: the client leaves after it, and its session stays."""

    closes: bool = False


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
    | DeleteForMe
    | Edit
    | React
    | Pin
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
    | RequestContact
    | DecideContact
    | RemoveContact
    | RemarkContact
    | ListContacts
    | ListContactRequests
    | CallCommand
    | Numbers
    | PullNumbers
    | Pass
)

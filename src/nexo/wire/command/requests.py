"""What a client of the command dialect can ask: the commands' names, their `data`, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct

from nexo.core import commands
from nexo.core.message_fields import carries_plain, with_plain
from nexo.errors import NexoError
from nexo.wire.call_forms import CALL_ERROR_FIELDS
from nexo.wire.command.calls import CALL_REQUESTS
from nexo.wire.command.names import conversation_by_name, conversation_of, target_of
from nexo.wire.reading import SEQ_MAX, Seq, reader, seq

ERROR_FIELDS = {
    "to_id": "receiver",
    "chat_id": "receiver",
    "msg_id": "server_msg_id",
    "last_msg_id": "server_msg_id",
    "before_msg_id": "server_msg_id",
    "msg_ids": "server_msg_ids",
    "from_user_id": "user_id",
    "sender_id": "user_id",
    "send_id": "user_id",
    "from": "user_id",
    "new_owner_id": "user_id",
    "user_ids": "user_id",
    "expires_s": "expires",
    **CALL_ERROR_FIELDS,
    "group_name": "name",
    "avatar_url": "avatar",
    "refresh_token": "token",
}


class _Nothing(Struct):
    pass


# -- signing in ----------------------------------------------------------------------------------------


class _Register(Struct):
    password: str
    user_id: str | None = None
    nickname: str = ""
    avatar: str = ""
    extra: Any = None
    code: str = ""


class _Login(Struct):
    user_id: str
    password: str
    platform_id: int = 5
    device_id: str = ""


class _Token(Struct):
    token: str
    device_id: str | None = None


class _Refresh(Struct):
    refresh_token: str


def _register(data: _Register, user_id: str) -> commands.Command:
    return commands.Register(data.password, data.user_id, data.nickname, data.avatar, data.extra, data.code)


def _login(data: _Login, user_id: str) -> commands.Command:
    return commands.Login(data.user_id, data.password, data.platform_id, data.device_id)


def _token(data: _Token, user_id: str) -> commands.Command:
    if not data.token:
        raise NexoError("missing_token")
    return commands.Reauth(data.token) if user_id else commands.Auth(data.token, data.device_id)


# -- chat ----------------------------------------------------------------------------------------------


@with_plain()
class _Send(Struct):
    chat_type: int
    to_id: str
    client_msg_id: str
    content: Any = None
    msg_type: int = 1
    mentions: list[str] | None = None
    reply_to: str | int | None = None
    extra: Any = None
    timestamp: Any = None
    expires_s: int | None = None
    from_user_id: str | None = None
    sender_id: str | None = None
    send_id: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")


class _WhichMessage(Struct):
    msg_id: str | int


class _WhichMessages(Struct):
    msg_ids: list[str | int]


class _Edit(_WhichMessage):
    client_msg_id: str
    content: Any = None
    mentions: list[str] | None = None


class _React(_WhichMessage):
    emoji: str
    on: bool = True


class _Pin(_WhichMessage):
    on: bool = True


class _Chat(Struct):
    chat_type: int
    chat_id: str


class _MarkRead(_Chat):
    last_msg_id: str | int | None = None


class _History(_Chat):
    before_msg_id: str | int | None = None
    limit: int | None = None


class _Typing(_Chat):
    on: bool = True


class _Baseline(Struct):
    chat_type: int
    chat_id: str
    seq: Seq


class _Offline(Struct):
    cursor: str | None = None
    limit: int | None = None
    baselines: dict[str, Seq] | list[_Baseline] | None = None


class _Paging(Struct):
    cursor: str | None = None
    limit: int | None = None


class _Users(Struct):
    user_ids: list[str]


@carries_plain
def _send(data: _Send, user_id: str) -> commands.Command:
    claimed = (data.from_user_id, data.sender_id, data.send_id, data.from_)
    if any(named is not None and named != user_id for named in claimed):
        raise NexoError("identity_mismatch")
    recv_id, group_id = target_of(data.chat_type, data.to_id)
    return commands.Send(
        data.client_msg_id,
        recv_id,
        group_id,
        data.msg_type,
        data.content,
        data.mentions or (),
        data.reply_to or None,
        data.extra,
        data.timestamp,
        data.expires_s,
    )


def _mark_read(data: _MarkRead, user_id: str) -> commands.Command:
    name = conversation_of(user_id, data.chat_type, data.chat_id)
    if data.last_msg_id in (None, ""):  # all there is: a seq beyond the head means the head
        return commands.MarkRead(name, SEQ_MAX)
    return commands.MarkRead(name, None, data.last_msg_id)


def _history(data: _History, user_id: str) -> commands.Command:
    name = conversation_of(user_id, data.chat_type, data.chat_id)
    return commands.History(name, data.before_msg_id or None, data.limit)


def _offline(data: _Offline, user_id: str) -> commands.Command:
    baselines: dict[str, int] = {}
    try:
        if isinstance(data.baselines, dict):
            for name, value in data.baselines.items():
                baselines[conversation_by_name(user_id, name)] = seq(value)
        else:
            for each in data.baselines or ():
                baselines[conversation_of(user_id, each.chat_type, each.chat_id)] = seq(each.seq)
    except NexoError as error:
        raise NexoError("bad_baselines", error.detail) from None
    return commands.PullOffline(data.cursor or None, data.limit, baselines)


def _delete(data: _Chat, user_id: str) -> commands.Command:
    return commands.DeleteConversation(conversation_of(user_id, data.chat_type, data.chat_id))


def _typing(data: _Typing, user_id: str) -> commands.Command:
    return commands.Typing(data.on, *target_of(data.chat_type, data.chat_id))


# -- groups --------------------------------------------------------------------------------------------


class _Create(Struct):
    group_name: str
    member_ids: list[str]
    avatar_url: str = ""
    introduction: str = ""
    join_policy: str = "open"
    extra: Any = None
    group_type: int = 0


class _WhichGroup(Struct):
    group_id: str


class _Join(Struct):
    group_id: str | None = None
    message: str = ""
    code: str | None = None


class _Members(_WhichGroup):
    cursor: str | None = None
    limit: int | None = None


class _Invite(_WhichGroup):
    member_ids: list[str]


class _WhichMember(_WhichGroup):
    user_id: str


class _Transfer(_WhichGroup):
    new_owner_id: str


class _SetRole(_WhichMember):
    role: str


class _Update(_WhichGroup):
    group_name: str | None = None
    avatar_url: str | None = None
    introduction: str | None = None
    announcement: str | None = None
    join_policy: str | None = None
    group_type: int | None = None
    extra: Any = UNSET


def _create(data: _Create, user_id: str) -> commands.Command:
    return commands.CreateGroup(
        data.group_name,
        tuple(data.member_ids),
        data.avatar_url,
        data.introduction,
        data.join_policy,
        data.extra,
        data.group_type,
    )


def _update(data: _Update, user_id: str) -> commands.Command:
    return commands.UpdateGroup(
        data.group_id,
        data.group_name,
        data.avatar_url,
        data.introduction,
        data.announcement,
        data.join_policy,
        data.group_type,
        data.extra,
    )


def _join(data: _Join, user_id: str) -> commands.Command:
    if not data.code and data.group_id is None:
        raise NexoError("missing_group_id")
    return commands.JoinGroup(data.group_id, data.message, data.code or None)


# -- contacts ------------------------------------------------------------------------------------------


class _WhichUser(Struct):
    user_id: str


class _Ask(_WhichUser):
    message: str = ""


class _Decide(_WhichUser):
    accept: bool


class _Remark(_WhichUser):
    remark: str


class _Requests(_Paging):
    sent: bool = False


# -- the table -----------------------------------------------------------------------------------------


class CommandAction(NamedTuple):
    """A command: how its `data` is read and what it means. `for_all`: no sign-in needed."""

    read: Callable[[bytes | Raw], Any]
    command: Callable[[Any, str], commands.Command]
    for_all: bool
    form: type[Struct]  # the fields of `data`


def _row(
    form: type[Struct], command: Callable[[Any, str], commands.Command], *, for_all: bool = False
) -> CommandAction:
    return CommandAction(reader(form, ERROR_FIELDS), command, for_all, form)


SEND = "chat.send_message"
SIGN_IN = "auth.token"

REQUESTS: dict[str, CommandAction] = {
    "heartbeat": _row(_Nothing, lambda data, _: commands.Ping(), for_all=True),
    "auth.register": _row(_Register, _register, for_all=True),
    "auth.login": _row(_Login, _login, for_all=True),
    SIGN_IN: _row(_Token, _token, for_all=True),
    "auth.refresh": _row(_Refresh, lambda data, _: commands.RefreshToken(data.refresh_token), for_all=True),
    "auth.logout": _row(_Nothing, lambda data, _: commands.Logout()),
    SEND: _row(_Send, _send),
    "chat.recall_message": _row(_WhichMessage, lambda data, _: commands.Recall(data.msg_id)),
    "chat.delete_for_me": _row(_WhichMessages, lambda data, _: commands.DeleteForMe(tuple(data.msg_ids))),
    "chat.edit_message": _row(
        _Edit, lambda data, _: commands.Edit(data.msg_id, data.content, data.client_msg_id, data.mentions)
    ),
    "chat.react": _row(_React, lambda data, _: commands.React(data.msg_id, data.emoji, data.on)),
    "chat.pin_message": _row(_Pin, lambda data, _: commands.Pin(data.msg_id, data.on)),
    "chat.pull_offline": _row(_Offline, _offline),
    "chat.mark_read": _row(_MarkRead, _mark_read),
    "chat.ack": _row(_WhichMessage, lambda data, _: commands.Ack("delivered", data.msg_id)),
    "chat.get_history": _row(_History, _history),
    "chat.sync_conversations": _row(
        _Paging, lambda data, _: commands.ListConversations(data.cursor or None, data.limit)
    ),
    "chat.delete_conversation": _row(_Chat, _delete),
    "chat.typing": _row(_Typing, _typing),
    "group.create": _row(_Create, _create),
    "group.join": _row(_Join, _join),
    "group.leave": _row(_WhichGroup, lambda data, _: commands.LeaveGroup(data.group_id)),
    "group.dismiss": _row(_WhichGroup, lambda data, _: commands.DismissGroup(data.group_id)),
    "group.invite_members": _row(
        _Invite, lambda data, _: commands.InviteMembers(data.group_id, tuple(data.member_ids))
    ),
    "group.remove_member": _row(_WhichMember, lambda data, _: commands.RemoveMember(data.group_id, data.user_id)),
    "group.transfer_owner": _row(_Transfer, lambda data, _: commands.TransferOwner(data.group_id, data.new_owner_id)),
    "group.set_member_role": _row(
        _SetRole, lambda data, _: commands.SetMemberRole(data.group_id, data.user_id, data.role)
    ),
    "group.update": _row(_Update, _update),
    "group.get_info": _row(_WhichGroup, lambda data, _: commands.GetGroup(data.group_id)),
    "group.get_members": _row(
        _Members, lambda data, _: commands.ListMembers(data.group_id, data.cursor or None, data.limit)
    ),
    "group.get_user_groups": _row(_Nothing, lambda data, _: commands.ListGroups()),
    "contact.request": _row(_Ask, lambda data, _: commands.RequestContact(data.user_id, data.message)),
    "contact.decide": _row(_Decide, lambda data, _: commands.DecideContact(data.user_id, data.accept)),
    "contact.remove": _row(_WhichUser, lambda data, _: commands.RemoveContact(data.user_id)),
    "contact.remark": _row(_Remark, lambda data, _: commands.RemarkContact(data.user_id, data.remark)),
    "contact.list": _row(_Paging, lambda data, _: commands.ListContacts(data.cursor or None, data.limit)),
    "contact.requests": _row(
        _Requests, lambda data, _: commands.ListContactRequests(data.sent, data.cursor or None, data.limit)
    ),
    **{name: _row(*call) for name, call in CALL_REQUESTS.items()},
    "presence.subscribe": _row(_Users, lambda data, _: commands.SubscribePresence(tuple(data.user_ids))),
}

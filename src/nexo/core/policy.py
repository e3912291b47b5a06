"""Permissions. Each `check_` raises an error of the table and changes nothing."""

from __future__ import annotations

from nexo.core.model import (
    MUTED_FOREVER,
    Blocked,
    Conversation,
    ConversationStatus,
    Kind,
    Member,
    MemberStatus,
    Message,
    MessageStatus,
    MsgType,
    Role,
)
from nexo.errors import NexoError
from nexo.ids import CANARY_IDS

EDITABLE = (MsgType.TEXT, MsgType.QUOTE, MsgType.CUSTOM)
SINGLE = int(Kind.SINGLE)  # a plain int: comparing with the enum member costs more, and every send does it


def check_open(conversation: Conversation) -> None:
    if conversation.status != ConversationStatus.NORMAL:
        raise NexoError("group_not_available")


def check_active(member: Member | None) -> Member:
    """Returns the member; raises unless they are one now."""
    if member is None:
        raise NexoError("not_group_member")
    if member.status != MemberStatus.NORMAL:
        raise NexoError("member_not_active")
    return member


def is_muted(until: int, now_ms: int) -> bool:
    return until == MUTED_FOREVER or until > now_ms


def check_may_send(
    conversation: Conversation, member: Member | None, now_ms: int, *, contacts_only: bool = False
) -> None:
    """With `contacts_only` users without a contact may not send to each other."""
    if conversation.kind == SINGLE:
        if member is None:
            raise NexoError("conversation_not_found")
        if member.blocked:
            if member.blocked == Blocked.PEER_CLOSED:
                raise NexoError("user_not_found", "The account of the receiver has been closed")
            raise NexoError("blocked")
        if contacts_only and not member.contact and member.user_id not in CANARY_IDS:
            raise NexoError("not_contact")
        return
    check_open(conversation)
    member = check_active(member)
    if is_muted(member.muted_until, now_ms) or (
        member.role == Role.MEMBER and is_muted(conversation.mute_until, now_ms)
    ):
        raise NexoError("speak_muted")


def check_may_mention_all(conversation: Conversation, member: Member) -> None:
    if conversation.kind != Kind.GROUP or member.role == Role.MEMBER:
        raise NexoError("no_permission", "Only the owner and admins of a group may mention all members")


def check_manager(member: Member) -> None:
    if member.role == Role.MEMBER:
        raise NexoError("no_permission", "Only the owner and admins may do this")


def check_owner(member: Member) -> None:
    if member.role != Role.OWNER:
        raise NexoError("no_permission", "Only the owner may do this")


def check_may_invite(member: Member, join_policy: str) -> None:
    if join_policy == "invite" and member.role == Role.MEMBER:
        raise NexoError("no_permission", "Only the owner and admins may invite to this group")


def check_may_leave(member: Member) -> None:
    if member.role == Role.OWNER:
        raise NexoError("owner_cannot_leave")


def check_may_act_on(actor: Member, target: Member) -> None:
    """Removing and muting: an owner may act on all other members, an admin on plain members only."""
    check_manager(actor)
    if actor.user_id == target.user_id:
        raise NexoError("no_permission", "You cannot do this to yourself")
    if target.role >= actor.role:
        raise NexoError("no_permission", "Their role is not below yours")


def check_may_edit(message: Message, user_id: str, now_ms: int, window_s: int) -> None:
    if message.is_event:
        raise NexoError("not_editable", "Events cannot be edited")
    if message.sender_id != user_id:
        raise NexoError("not_message_sender", "Only the sender may edit this message")
    if message.status != MessageStatus.NORMAL:
        raise NexoError("not_editable", "There is nothing left to edit")
    if message.msg_type not in EDITABLE:
        raise NexoError("not_editable", "Only texts, quotes and custom messages can be edited")
    if not window_s or now_ms - message.send_at > window_s * 1000:
        raise NexoError("edit_timeout")


def check_may_touch(conversation: Conversation, member: Member | None) -> None:
    """Check that a member may react and pin: members that could write in this conversation may, muted or not."""
    if conversation.kind == SINGLE:
        if member is None:
            raise NexoError("message_not_found")
        if member.blocked:
            raise NexoError("blocked")
        return
    check_open(conversation)
    check_active(member)


def check_may_pin(conversation: Conversation, member: Member) -> None:
    if conversation.kind == Kind.GROUP:
        check_manager(member)


def check_may_recall(
    message: Message, actor: Member, kind: int, now_ms: int, window_s: int, admin_recall: bool
) -> None:
    if message.is_event:
        raise NexoError("message_not_found", "Events cannot be recalled")
    if kind == Kind.GROUP and admin_recall and actor.role != Role.MEMBER:
        return
    if message.sender_id != actor.user_id:
        raise NexoError("not_message_sender")
    if now_ms - message.send_at > window_s * 1000:
        raise NexoError("recall_timeout")

"""Handlers under `/server`: what moderators do to messages, users and groups."""

from __future__ import annotations

from msgspec import Raw, Struct

from nexo.api import backend_requests as requests
from nexo.api.requests import Nothing, given
from nexo.api.route import Caller, Services
from nexo.api.shapes import Empty, RecalledReply, recalled_shape
from nexo.core.moderation import CAUSE_NAMES, MessageVersion, VersionCause
from nexo.core.shapes import MessageShape, message_shape
from nexo.service.moderation import PAGE_MAX
from nexo.service.password_resets import ResetCode


class VersionShape(Struct):
    """What a message was until `replaced_at`. `replaced_by` is a user, or an actor as the audit log names it; `cause`
    is `recall` or `edit`."""

    content: Raw
    mentions: tuple[str, ...]
    reply_to: str | None
    extra: Raw | None
    replaced_at: int
    replaced_by: str
    cause: str


class MessageAndVersions(Struct):
    """`message` is as members see it, `versions` what it was before, oldest first."""

    message: MessageShape
    versions: list[VersionShape]


class MessagesOfUser(Struct):
    messages: list[MessageShape]
    next_before: str | None
    has_more: bool


async def recall(services: Services, caller: Caller, request: Nothing) -> RecalledReply:
    return recalled_shape(await services.backend.moderation.recall(caller.path_id, caller.moderator))


async def message(services: Services, caller: Caller, request: Nothing) -> MessageAndVersions:
    found = await services.backend.moderation.read(caller.path_id, caller.moderator)
    return MessageAndVersions(message_shape(found.message), [_version(version) for version in found.versions])


async def messages_of(services: Services, caller: Caller, request: requests.UserMessagesRequest) -> MessagesOfUser:
    limit = given(request.limit)
    found, has_more = await services.backend.moderation.messages_of(
        caller.path_id, request.before, PAGE_MAX if limit is None else limit, caller.moderator
    )
    next_before = str(found[-1].server_msg_id) if has_more else None
    return MessagesOfUser([message_shape(one) for one in found], next_before, has_more)


async def reset_password(services: Services, caller: Caller, request: Nothing) -> ResetCode:
    return await services.backend.resets.issue(caller.path_id, caller.actor)


async def disable_group(services: Services, caller: Caller, request: requests.DisableRequest) -> Empty:
    await services.backend.moderation.disable_group(caller.path_id, request.reason, caller.actor)
    return Empty()


async def enable_group(services: Services, caller: Caller, request: Nothing) -> Empty:
    await services.backend.moderation.enable_group(caller.path_id, caller.actor)
    return Empty()


def _version(version: MessageVersion) -> VersionShape:
    return VersionShape(
        Raw(version.content.encode()),
        version.mentions,
        None if version.reply_to is None else str(version.reply_to),
        None if version.extra is None else Raw(version.extra.encode()),
        version.replaced_at,
        version.replaced_by,
        CAUSE_NAMES[VersionCause(version.cause)],
    )

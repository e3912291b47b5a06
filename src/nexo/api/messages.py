"""Handlers: sending, reading and recalling messages."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from nexo.api import requests
from nexo.api.requests import given
from nexo.api.route import Caller, Services
from nexo.api.shapes import (
    CamelMessages,
    DeletedReply,
    Empty,
    Messages,
    OfflineMessages,
    RecalledReply,
    camel_messages,
    messages_shape,
    offline_shape,
    recalled_shape,
)
from nexo.core.events import Accepted
from nexo.core.message_fields import plain_values
from nexo.core.model import Receipts
from nexo.core.shapes import AcceptedShape, SentShape, sent_shape
from nexo.errors import NexoError
from nexo.ids import check_user_id, group_conversation_id, is_group_id, single_conversation_id

CURSOR_PAGE_LIMIT = 50  # of `/single-chat/message/cursor`, `/group/message/cursor` and `/group/message/since`


async def send(services: Services, caller: Caller, request: requests.SendRequest) -> SentShape:
    for named in (request.send_id, request.sender_id, request.from_):
        if named is not None and named != caller.user_id:
            raise NexoError("identity_mismatch")
    sent = await services.actions.send(
        caller.user_id,
        client_msg_id=request.client_msg_id,
        recv_id=request.recv_id,
        group_id=request.group_id,
        msg_type=request.msg_type,
        content=request.content,
        mentions=request.mentions or (),
        reply_to=request.reply_to,
        extra=request.extra,
        expires_s=request.expires_s,
        **plain_values(request),
    )
    if isinstance(sent, Accepted):
        return AcceptedShape(str(sent.server_msg_id), sent.client_msg_id, sent.conversation_id, status="accepted")
    return sent_shape(sent.message, sent.content_changed)


async def pull(services: Services, caller: Caller, request: requests.PullRequest) -> Messages:
    conversations = services.conversations
    if request.seqs is not UNSET:
        if request.begin_seq is not UNSET or request.end_seq is not UNSET or request.limit is not UNSET:
            raise NexoError("bad_request", "seqs stands alone: without begin_seq, end_seq and limit")
        page = await conversations.pull_seqs(caller.user_id, request.conversation_id, request.seqs)
    elif request.begin_seq is UNSET:
        raise NexoError("missing_seq", "Name begin_seq or seqs")
    else:
        end_seq, limit = given(request.end_seq), given(request.limit)
        page = await conversations.pull(caller.user_id, request.conversation_id, request.begin_seq, end_seq, limit)
    return messages_shape(page)


async def history(services: Services, caller: Caller, request: requests.HistoryRequest) -> Messages:
    before_seq, limit = given(request.before_seq), given(request.limit)
    page = await services.conversations.history(caller.user_id, request.conversation_id, before_seq, limit)
    return messages_shape(page)


async def offline(services: Services, caller: Caller, request: requests.Paging) -> OfflineMessages:
    return offline_shape(
        await services.conversations.offline(caller.user_id, given(request.cursor), given(request.limit))
    )


async def receipts(services: Services, caller: Caller, request: requests.WhichMessage) -> Receipts:
    return await services.acknowledging.receipts(caller.user_id, request.server_msg_id)


async def recall(services: Services, caller: Caller, request: requests.WhichMessage) -> RecalledReply:
    return recalled_shape(await services.actions.recall(caller.user_id, request.server_msg_id))


async def delete(services: Services, caller: Caller, request: requests.DeleteRequest) -> Empty:
    await services.actions.delete_messages(caller.user_id, request.server_msg_ids)
    return Empty()


async def deleted(services: Services, caller: Caller, request: requests.DeletedRequest) -> DeletedReply:
    after = 0 if request.after is UNSET else request.after
    name, ids, up_to_seq, rev, has_more = await services.conversations.deleted_since(
        caller.user_id, request.conversation_id, after, given(request.limit)
    )
    return DeletedReply(name, list(map(str, ids)), up_to_seq, rev, has_more)


async def single_cursor(services: Services, caller: Caller, request: requests.SingleCursor) -> CamelMessages:
    check_user_id(request.peer_user_id)
    if request.peer_user_id == caller.user_id:
        raise NexoError("bad_user_id", "There is no chat with yourself")
    return await _below(
        services, caller, single_conversation_id(caller.user_id, request.peer_user_id), request.last_seq, request.limit
    )


async def group_cursor(services: Services, caller: Caller, request: requests.GroupCursor) -> CamelMessages:
    return await _below(services, caller, _conversation_of(request.group_id), request.last_seq, request.limit)


async def group_since(services: Services, caller: Caller, request: requests.GroupSince) -> CamelMessages:
    name = _conversation_of(request.group_id)
    since_seq = 0 if request.since_seq is UNSET else request.since_seq
    limit = CURSOR_PAGE_LIMIT if request.limit is UNSET else request.limit
    page = await services.conversations.pull_since(caller.user_id, name, since_seq, limit)
    return camel_messages(page, caller.user_id)


async def _below(
    services: Services, caller: Caller, conversation_id: str, last_seq: int | UnsetType, limit: int | UnsetType
) -> CamelMessages:
    count = CURSOR_PAGE_LIMIT if limit is UNSET else limit
    page = await services.conversations.history(caller.user_id, conversation_id, given(last_seq), count)
    return camel_messages(page, caller.user_id)


def _conversation_of(group_id: str) -> str:
    if not is_group_id(group_id):
        raise NexoError("group_not_found")
    return group_conversation_id(group_id)

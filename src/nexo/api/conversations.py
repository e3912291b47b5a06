"""Handlers: a user's conversations."""

from __future__ import annotations

from msgspec import UNSET

from nexo.api import requests
from nexo.api.requests import given
from nexo.api.route import Caller, Services
from nexo.api.shapes import (
    ClearedReply,
    ConversationShape,
    ConversationsReply,
    Empty,
    HeadsReply,
    MarkedReadReply,
    NewestSeqs,
    SeqAt,
    conversation_shape,
    newest_seq,
)
from nexo.errors import NexoError
from nexo.ids import group_of, peers_of


async def entries(services: Services, caller: Caller, request: requests.Paging) -> ConversationsReply:
    found, next_cursor, has_more = await services.conversations.entries(
        caller.user_id, given(request.cursor), given(request.limit)
    )
    return ConversationsReply([conversation_shape(entry) for entry in found], next_cursor, has_more)


async def sync(services: Services, caller: Caller, request: requests.Paging) -> HeadsReply:
    return HeadsReply(*await services.conversations.sync(caller.user_id, given(request.cursor), given(request.limit)))


async def newest_seqs(services: Services, caller: Caller, request: requests.WhichConversations) -> NewestSeqs:
    wanted = given(request.conversation_ids)
    for name in wanted or ():
        if peers_of(name) is None and group_of(name) is None:
            raise NexoError("bad_conversation_id", "A conversation_id is si_{user}:{user} or sg_{group}")
    heads = await services.conversations.heads(caller.user_id, wanted)
    return NewestSeqs([newest_seq(head) for head in heads])


async def update(services: Services, caller: Caller, request: requests.UpdateConversationRequest) -> ConversationShape:
    entry = await services.actions.change_settings(
        caller.user_id,
        request.conversation_id,
        pinned=given(request.pinned),
        recv_msg_opt=given(request.recv_msg_opt),
        hidden=given(request.hidden),
        archived=given(request.archived),
        silent_until=given(request.silent_until),
        marked_unread=given(request.marked_unread),
        message_ttl_s=None if request.message_ttl_s is UNSET else request.message_ttl_s or 0,
        draft=request.draft,
        extra=request.extra,
    )
    return conversation_shape(entry)


async def mark_read(services: Services, caller: Caller, request: requests.MarkReadRequest) -> MarkedReadReply:
    seq = None if request.seq is None else int(request.seq)
    read_seq, unread = await services.actions.mark_read(
        caller.user_id, request.conversation_id, seq=seq, last_msg_id=request.last_msg_id
    )
    return MarkedReadReply(request.conversation_id, read_seq, unread)


async def clear(services: Services, caller: Caller, request: requests.WhichConversation) -> ClearedReply:
    done = await services.actions.clear_conversation(caller.user_id, request.conversation_id)
    return ClearedReply(request.conversation_id, done.up_to_seq or 0, done.deleted_rev, done.unread)


async def seq_at(services: Services, caller: Caller, request: requests.TimeRequest) -> SeqAt:
    return SeqAt(await services.conversations.seq_at(caller.user_id, request.conversation_id, request.time))


async def delete(services: Services, caller: Caller, request: requests.WhichConversation) -> Empty:
    await services.actions.delete_conversation(caller.user_id, request.conversation_id)
    return Empty()

"""Handlers: a user's conversations."""

from __future__ import annotations

from msgspec import UNSET

from nexo.api import requests
from nexo.api.call import Caller, Services
from nexo.api.requests import given
from nexo.api.shapes import (
    Conversations,
    ConversationShape,
    Empty,
    Heads,
    MarkedRead,
    NewestSeqs,
    conversation_shape,
    newest_seq,
)
from nexo.errors import NexoError
from nexo.ids import group_of, peers_of


async def entries(services: Services, caller: Caller, request: requests.Paging) -> Conversations:
    found, next_cursor, has_more = await services.conversations.entries(
        caller.user_id, given(request.cursor), given(request.limit)
    )
    return Conversations([conversation_shape(entry) for entry in found], next_cursor, has_more)


async def sync(services: Services, caller: Caller, request: requests.Paging) -> Heads:
    return Heads(*await services.conversations.sync(caller.user_id, given(request.cursor), given(request.limit)))


async def newest_seqs(services: Services, caller: Caller, request: requests.WhichConversations) -> NewestSeqs:
    wanted = given(request.conversation_ids)
    for name in wanted or ():
        if peers_of(name) is None and group_of(name) is None:
            raise NexoError("bad_conversation_id", "A conversation_id is si_{user}:{user} or sg_{group}")
    heads = await services.conversations.heads(caller.user_id, wanted)
    return NewestSeqs([newest_seq(head) for head in heads])


async def update(services: Services, caller: Caller, request: requests.UpdateConversation) -> ConversationShape:
    entry = await services.conversations.change_settings(
        caller.user_id,
        request.conversation_id,
        pinned=given(request.pinned),
        recv_msg_opt=given(request.recv_msg_opt),
        hidden=given(request.hidden),
    )
    if request.recv_msg_opt is not UNSET:
        services.publisher.audience_changed(request.conversation_id)
    return conversation_shape(entry)


async def mark_read(services: Services, caller: Caller, request: requests.MarkRead) -> MarkedRead:
    seq = None if request.seq is None else int(request.seq)
    read_seq, unread = await services.telling.mark_read(
        caller.user_id, request.conversation_id, seq=seq, last_msg_id=request.last_msg_id
    )
    return MarkedRead(request.conversation_id, read_seq, unread)


async def delete(services: Services, caller: Caller, request: requests.WhichConversation) -> Empty:
    await services.telling.delete_conversation(caller.user_id, request.conversation_id)
    return Empty()

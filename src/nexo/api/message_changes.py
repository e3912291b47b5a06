"""Handlers: edits, reactions, pins and forwards."""

from __future__ import annotations

from nexo.api import requests
from nexo.api.requests import given
from nexo.api.route import Caller, Services
from nexo.api.shapes import (
    ForwardedReply,
    GivenReactionShape,
    PinnedReply,
    Pins,
    ReactedReply,
    ReactionList,
    forwarded_shape,
)
from nexo.core.events import Edited
from nexo.core.shapes import EditedShape, edited_shape, message_shape, reaction_shapes
from nexo.service.forwarding import ForwardTarget


async def edit(services: Services, caller: Caller, request: requests.EditRequest) -> EditedShape:
    edited, is_changed = await services.actions.edit(
        caller.user_id, request.server_msg_id, request.content, request.client_msg_id, request.mentions
    )
    content = edited.content if is_changed else None
    return edited_shape(Edited(edited.server_msg_id, edited.conversation_id, edited.seq, edited.edited_at, content))


async def react(services: Services, caller: Caller, request: requests.ReactRequest) -> ReactedReply:
    reacted = await services.actions.react(caller.user_id, request.server_msg_id, request.emoji, request.on)
    return ReactedReply(str(reacted.server_msg_id), reacted.conversation_id, reaction_shapes(reacted.reactions))


async def reactions(services: Services, caller: Caller, request: requests.WhichReactions) -> ReactionList:
    found, next_cursor, has_more = await services.actions.changes.reactions(
        caller.user_id, request.server_msg_id, given(request.cursor), given(request.limit)
    )
    return ReactionList([GivenReactionShape(*one) for one in found], next_cursor, has_more)


async def pin(services: Services, caller: Caller, request: requests.PinRequest) -> PinnedReply:
    pinned = await services.actions.pin(caller.user_id, request.server_msg_id, request.on)
    return PinnedReply(str(pinned.server_msg_id), pinned.conversation_id, pinned.seq)


async def pins(services: Services, caller: Caller, request: requests.WhichConversation) -> Pins:
    messages = await services.actions.changes.pins(caller.user_id, request.conversation_id)
    return Pins([message_shape(message) for message in messages])


async def forward(services: Services, caller: Caller, request: requests.ForwardRequest) -> ForwardedReply:
    targets = [ForwardTarget(target.recv_id, target.group_id) for target in request.to]
    sent = await services.actions.forward(
        caller.user_id,
        request.client_msg_id,
        request.server_msg_ids,
        targets,
        merge=request.merge,
        title=request.title,
    )
    return ForwardedReply([forwarded_shape(one) for one in sent])

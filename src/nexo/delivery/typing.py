"""Pushes that a user types. It is never stored and never repeated."""

from __future__ import annotations

from functools import partial

from nexo.core import events
from nexo.core.model import Kind
from nexo.delivery.audiences import Audiences
from nexo.delivery.fanout import Fanout
from nexo.delivery.remote import Remote
from nexo.ids import peers_of
from nexo.ports import Audience, Listener


def _with_peers(conversation_id: str, audience: Audience) -> Audience:
    """Returns the audience, with both users of a chat of two that has no message and no block yet."""
    peers = peers_of(conversation_id)
    if audience.listeners or peers is None:
        return audience
    return Audience(audience.epoch, dict.fromkeys(peers, Listener(1, 0, False, ())))


class TypingPusher:
    def __init__(self, audiences: Audiences, fanout: Fanout, remote: Remote | None) -> None:
        self._audiences = audiences
        self._fanout = fanout
        self._remote = remote

    def push(self, sender: str, conversation_id: str, kind: int, on: bool) -> None:
        """Push to the connected members, on every instance."""

        def tell(audience: Audience) -> None:
            audience = _with_peers(conversation_id, audience)
            listener = audience.listeners.get(sender)
            if listener is None or (kind == Kind.SINGLE and listener.blocked):
                return
            self._push_here(audience, sender, conversation_id, on)
            if self._remote is not None:
                self._remote.typing(sender, conversation_id, audience, on)

        self._audiences.with_audience(conversation_id, 0, tell, fleeting=True)

    def push_elsewhere(self, sender: str, conversation_id: str, epoch: int, on: bool) -> None:
        """Push to the members on this instance, for another instance."""

        def tell(audience: Audience) -> None:
            self._push_here(_with_peers(conversation_id, audience), sender, conversation_id, on)

        self._audiences.with_audience(conversation_id, epoch, tell, heard=True, fleeting=True)

    def _push_here(self, audience: Audience, sender: str, conversation_id: str, on: bool) -> None:
        others = [user_id for user_id in self._fanout.members_here(audience.listeners) if user_id != sender]
        if conversation_id not in self._fanout.portions:  # typing that waits is out of date
            event = events.IsTyping(sender, conversation_id, on)
            self._fanout.at_once_or_later(conversation_id, others, partial(self._fanout.to_users, event=event, made={}))

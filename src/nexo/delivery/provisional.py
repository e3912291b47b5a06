"""Pushes messages that were accepted and are not saved yet (two-phase acknowledgement), and withdraws refused ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nexo.core import events
from nexo.core.model import Message
from nexo.delivery.audiences import Audiences
from nexo.delivery.fanout import NO_FRAME, Fanout
from nexo.delivery.hub import Hub
from nexo.delivery.outputs import Output
from nexo.delivery.remote import Remote
from nexo.ids import AT_ALL
from nexo.ports import Address, Audience, Listener

SILENT = 2  # recv_msg_opt


class ProvisionalPusher:
    def __init__(self, hub: Hub, audiences: Audiences, fanout: Fanout, remote: Remote | None) -> None:
        self._hub = hub
        self._audiences = audiences
        self._fanout = fanout
        self._remote = remote

    def push(self, message: Message, epoch: int, origin: Address | None) -> None:
        """Push an accepted message to the members that would get a frame of it once it is saved."""

        def deliver(audience: Audience) -> None:
            if self._remote is not None:
                self._remote.provisional(message, epoch, audience, origin)
            self._deliver(message, audience, origin)

        self._audiences.with_audience(message.conversation_id, epoch, deliver)

    def push_elsewhere(self, message: Message, epoch: int, origin: Address | None) -> None:
        """Push to the members on this instance a message that another instance has accepted."""
        self._audiences.with_audience(
            message.conversation_id,
            epoch,
            lambda audience: self._deliver(message, audience, origin),
            heard=True,
        )

    def _deliver(self, message: Message, audience: Audience, origin: Address | None) -> None:
        here = self._fanout.members_here(audience.listeners)
        if self._fanout.mode_of(message, audience.listeners, here) != "push":
            return
        push = partial(self._push, message, audience.listeners, self._fanout.connection_at(origin), {})
        self._fanout.at_once_or_later(message.conversation_id, here, push)

    def _push(
        self,
        message: Message,
        listeners: dict[str, Listener],
        sender: Output | None,
        made: dict[tuple[str, bool, bool], bytes],
        user_ids: Sequence[str],
    ) -> None:
        mentions_all = message.mentions[:1] == (AT_ALL,)
        for user_id in user_ids:
            option = SILENT if listeners[user_id].is_silent else listeners[user_id].recv_msg_opt
            important = (mentions_all or user_id in message.mentions) and user_id != message.sender_id
            for connection in self._hub.of(user_id):
                if option == NO_FRAME or connection is sender:
                    continue
                key = (connection.dialect.name, important, option == SILENT)
                if key not in made:
                    event = events.Pushed(message, important, option == SILENT, False, False, True)
                    made[key] = connection.dialect.frame(connection.dialect.encode(event))
                connection.push(made[key])

    def withdraw(self, event: events.Withdrawn, sender_id: str) -> None:
        """Push that an accepted message was refused in the end."""

        def deliver(audience: Audience) -> None:
            if self._remote is not None:
                self._remote.withdrawn(event, sender_id, audience)
            self._push_withdrawn(event, sender_id, audience)

        self._audiences.with_audience(event.conversation_id, 0, deliver)

    def withdraw_elsewhere(self, event: events.Withdrawn, sender_id: str) -> None:
        self._audiences.with_audience(
            event.conversation_id, 0, lambda audience: self._push_withdrawn(event, sender_id, audience), heard=True
        )

    def _push_withdrawn(self, event: events.Withdrawn, sender_id: str, audience: Audience) -> None:
        """Push to the members and the sender's other devices, which have a copy even if the sender has left."""
        user_ids = list({*self._fanout.members_here(audience.listeners), sender_id})
        self._fanout.at_once_or_later(
            event.conversation_id, user_ids, partial(self._fanout.to_users, event=event, made={})
        )

"""`session.policy` across instances: of all connections in a slot only the latest stays.

Every sign-in gets a number from Redis. The instances with connections of the user are notified of it and close
connections with a lower number. The number of a connection may arrive after the notice of a later sign-in; the notice
is kept until then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from nexo.cluster.messages import DeviceSignedIn
from nexo.cluster.publisher import ClusterPublisher
from nexo.delivery.hub import Hub
from nexo.delivery.outputs import Output
from nexo.ids import CANARY_IDS


class SessionPolicy:
    def __init__(self, hub: Hub, publisher: ClusterPublisher, is_exclusive: bool) -> None:
        """`is_exclusive`: the policy limits the connections of a user."""
        self._hub = hub
        self._publisher = publisher
        self.is_exclusive = is_exclusive
        self._numbers: dict[Output, int] = {}
        self._outdone: dict[Output, DeviceSignedIn] = {}  # a later sign-in, while the own number is unknown

    async def take(self, connection: Output, *, is_newcomer: bool = True) -> None:
        """Register the connection's presence; when this returns, publishers find it. Connections that the policy
        excludes beside it are closed, on other instances too."""
        user_id = connection.session.user_id
        age_ms = 0 if is_newcomer else int((time.monotonic() - connection.opened_at) * 1000)
        registration = await self._publisher.presence.register(
            user_id, self._hub.platform_of_each(user_id), anew=self.is_exclusive, age_ms=age_ms
        )
        if not self.is_exclusive or registration is None or connection.closing:
            return
        self._numbers[connection] = registration.number
        later = self._outdone.pop(connection, None)
        if later is not None and later.number > registration.number:
            self._drop(connection, later)
        elif registration.others:
            self._publisher.newcomer(self._news(connection), registration.others)

    def signed_in_elsewhere(self, newcomer: DeviceSignedIn) -> None:
        """Close connections that the policy excludes beside a sign-in on another instance."""
        for connection in list(self._hub.of(newcomer.user_id)):
            if not self._hub.shares_slot(connection, newcomer.platform_id):
                continue
            number = self._numbers.get(connection)
            if number is None:
                known = self._outdone.get(connection)
                if known is None or known.number < newcomer.number:
                    self._outdone[connection] = newcomer
            elif number < newcomer.number:
                self._drop(connection, newcomer)
            elif number > newcomer.number:  # the other instance has not received the notice of this one
                self._publisher.newcomer(self._news(connection), (newcomer.instance_id,))

    async def on_other_instances(self, user_id: str) -> Sequence[int]:
        """Returns the platform of each connection of the user to other instances, as far as they are known."""
        return (await self._publisher.presence.on_other_instances((user_id,))).get(user_id, ())

    def left(self, connection: Output) -> None:
        self._numbers.pop(connection, None)
        self._outdone.pop(connection, None)
        user_id = connection.session.user_id
        if user_id not in CANARY_IDS:
            self._publisher.presence.changed(user_id, self._hub.platform_of_each(user_id))

    async def assert_all(self) -> None:
        """Register all connections again: notices may have been lost, or could not be published."""
        if not self.is_exclusive:
            return
        for user_id in list(self._hub.online_users()):
            for connection in list(self._hub.of(user_id)):
                if not connection.closing:
                    await self.take(connection, is_newcomer=False)

    def _news(self, connection: Output) -> DeviceSignedIn:
        session = connection.session
        return DeviceSignedIn(
            self._publisher.bus.instance_id,
            session.user_id,
            self._numbers[connection],
            session.platform_id,
            connection.device_id,
        )

    def _drop(self, connection: Output, newcomer: DeviceSignedIn) -> None:
        same_device = bool(connection.device_id) and connection.device_id == newcomer.device_id
        connection.drop("replaced" if same_device else "kicked")

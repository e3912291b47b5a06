"""`session.policy` across instances: of all connections in a slot the latest stays.

Every sign-in gets a number from Redis; the instances that hold the user are told of the newcomer, and whoever
has a lower number goes. The number of a connection may arrive after the news of one that came later: that is
remembered until it does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from nexo.gateway.connection import Connection
from nexo.gateway.elsewhere import Elsewhere
from nexo.gateway.hub import Hub
from nexo.gateway.telegrams import Newcomer
from nexo.ids import CANARY_IDS


class Slots:
    def __init__(self, hub: Hub[Connection], elsewhere: Elsewhere, is_exclusive: bool) -> None:
        """`is_exclusive`: not every device and tab may live."""
        self._hub = hub
        self._elsewhere = elsewhere
        self.is_exclusive = is_exclusive
        self._numbers: dict[Connection, int] = {}
        self._outdone: dict[Connection, Newcomer] = {}  # by a newcomer, as far as is known

    async def take(self, connection: Connection, *, is_newcomer: bool = True) -> None:
        """Make the connection's presence known; when this returns, publishers find it. Others who cannot stay
        beside it are told to go."""
        user_id = connection.session.user_id
        age_ms = 0 if is_newcomer else int((time.monotonic() - connection.opened_at) * 1000)
        registration = await self._elsewhere.presence.register(
            user_id, self._hub.seats(user_id), anew=self.is_exclusive, age_ms=age_ms
        )
        if not self.is_exclusive or registration is None or connection.closing:
            return
        self._numbers[connection] = registration.number
        later = self._outdone.pop(connection, None)
        if later is not None and later.number > registration.number:
            self._drop(connection, later)
        elif registration.elsewhere:
            self._elsewhere.newcomer(self._news(connection), registration.elsewhere)

    def came(self, newcomer: Newcomer) -> None:
        """Somebody signed in on another instance."""
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
            elif number > newcomer.number:  # it has not heard of this one
                self._elsewhere.newcomer(self._news(connection), (newcomer.instance_id,))

    async def seats_elsewhere(self, user_id: str) -> Sequence[int]:
        """The platforms of the user's connections to other instances, as far as is known."""
        return (await self._elsewhere.presence.elsewhere((user_id,))).get(user_id, ())

    def left(self, connection: Connection) -> None:
        self._numbers.pop(connection, None)
        self._outdone.pop(connection, None)
        user_id = connection.session.user_id
        if user_id not in CANARY_IDS:
            self._elsewhere.presence.changed(user_id, self._hub.seats(user_id))

    async def assert_all(self) -> None:
        """News may have been lost, or could not be told: everybody says again who is here."""
        if not self.is_exclusive:
            return
        for user_id in list(self._hub.online_users()):
            for connection in list(self._hub.of(user_id)):
                if not connection.closing:
                    await self.take(connection, is_newcomer=False)

    def _news(self, connection: Connection) -> Newcomer:
        session = connection.session
        return Newcomer(
            self._elsewhere.bus.instance_id,
            session.user_id,
            self._numbers[connection],
            session.platform_id,
            connection.device_id,
        )

    def _drop(self, connection: Connection, newcomer: Newcomer) -> None:
        same_device = bool(connection.device_id) and connection.device_id == newcomer.device_id
        connection.drop("replaced" if same_device else "kicked")

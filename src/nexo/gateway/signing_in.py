"""From AUTH to being up to date: check the token, register, SYNC, then what was pushed meanwhile, then resend.

The order is what keeps messages from falling between: a connection is registered before the heads are read,
so whatever is committed after the reading is pushed, and whatever was committed before is in the heads. In a
dialect whose clients ask for both themselves, the order is theirs: they ask after they were let in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from msgspec import structs

from nexo.config import Config
from nexo.core import commands, events
from nexo.core.model import Message, Session
from nexo.core.shapes import is_important
from nexo.errors import NexoError
from nexo.gateway.connection import Connection
from nexo.gateway.hub import Hub
from nexo.gateway.slots import Slots
from nexo.metrics.traffic import Traffic
from nexo.ports import Bus
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.limits import Limits

log = structlog.get_logger()

RESEND_EACH = 200
RESEND_CHUNK = 50
RESEND_LOCK_S = 10.0
DEVICE_ID_MAX = 128
BASELINES_MAX = 2000


class SigningIn:
    def __init__(
        self,
        config: Config,
        accounts: Accounts,
        conversations: Conversations,
        limits: Limits,
        hub: Hub[Connection],
        traffic: Traffic,
        instance: str,
        bus: Bus,
        slots: Slots | None,
    ) -> None:
        """`slots` tells other instances of those who come in here, if there are any."""
        self._bus = bus
        self._slots = slots
        self._traffic = traffic
        self._instance = instance
        self._accounts = accounts
        self._limits = limits
        self._conversations = conversations
        self._hub = hub
        self._resend_after_auth = config.resend.after_auth
        self._per_user = config.limits.connections_per_user
        self._resending: set[tuple[str, str]] = set()

    async def sign_in(self, connection: Connection, command: commands.Auth | commands.Login, ref: Any) -> None:
        try:
            if isinstance(command, commands.Auth):
                await self._show_token(connection, command, ref)
            else:
                await self._log_in(connection, command, ref)
        except NexoError as error:
            if isinstance(command, commands.Auth):
                connection.fail_sign_in(error, ref)
            else:  # a wrong password may be followed by the right one
                connection.fail(error, ref)
                connection.opened_at = time.monotonic()
                connection.unpark()
        except Exception:
            log.exception("sign_in_failed", conn=connection.conn_id)
            connection.fail_sign_in(NexoError("internal_error"), ref)

    async def _show_token(self, connection: Connection, command: commands.Auth, ref: Any) -> None:
        session = await self._accounts.authenticate(command.token)
        device_id = command.device_id if command.device_id is not None else session.device_id
        if len(device_id) > DEVICE_ID_MAX or len(command.baselines) > BASELINES_MAX:
            raise NexoError("bad_device_id" if len(device_id) > DEVICE_ID_MAX else "bad_baselines")
        connection.device_id = device_id
        await self.admit(connection, session, command.baselines, self._welcome(connection, session), ref)

    async def _log_in(self, connection: Connection, command: commands.Login, ref: Any) -> None:
        await self._limits.try_password(connection.remote, command.user_id)
        tokens = await self._accounts.login(command.user_id, command.password, command.platform_id, command.device_id)
        session = await self._accounts.authenticate(tokens.access_token)
        connection.device_id = session.device_id
        await self.admit(connection, session, {}, events.TokensIssued(*structs.astuple(tokens)), ref)

    async def let_in(self, connection: Connection, session: Session) -> None:
        """The token came with the upgrade, and is good."""
        try:
            await self.admit(connection, session, {}, self._welcome(connection, session))
        except NexoError as error:
            connection.fail_sign_in(error)

    def _welcome(self, connection: Connection, session: Session) -> events.SignedIn:
        return events.SignedIn(session.user_id, connection.conn_id, connection.host.rules.heartbeat_ms)

    async def admit(
        self,
        connection: Connection,
        session: Session,
        baselines: Mapping[str, int],
        answer: events.Event,
        ref: Any = None,
    ) -> None:
        """Everything that follows a token that is good."""
        elsewhere: Sequence[int] = ()
        if self._per_user and self._slots is not None:
            elsewhere = await self._slots.seats_elsewhere(session.user_id)
        if 0 < self._per_user <= self._hub.staying(session, elsewhere):
            self._traffic.refusals["connections_per_user"] += 1
            raise NexoError("too_many_requests", "This user has as many connections as allowed", retry_after_ms=5000)
        if connection.closing:
            return
        catches_up = connection.dialect.catches_up
        connection.become(session)
        connection.hold_pushes()
        try:
            self._hub.add(connection)
            await self._tell_in(connection, answer, ref)
            connection.synced_at = time.monotonic()
            if catches_up:
                await self._sync(connection)
        finally:
            connection.release_pushes()
        log.info("signed_in", conn=connection.conn_id, user=session.user_id, platform=session.platform_id)
        connection.unpark()
        if catches_up and self._resend_after_auth and not connection.closing:
            await self._resend_quietly(connection, baselines)

    async def _tell_in(self, connection: Connection, answer: events.Event, ref: Any) -> None:
        """Whoever hears that they are in is found by everybody: presence comes first. Except where somebody later
        may take their place: nobody is told to go without having been let in. What is sent meanwhile is parked."""
        slots = self._slots
        if slots is not None and not slots.is_exclusive:
            await slots.take(connection)
        if connection.asks_outcome:
            connection.tell_outcome(None)
        connection.reply(answer, ref)
        if slots is not None and slots.is_exclusive:
            await slots.take(connection)

    async def _sync(self, connection: Connection) -> None:
        try:
            heads, cursor, has_more = await self._conversations.sync(connection.session.user_id)
        except NexoError as error:
            # signed in all the same; it will ask again
            log.warning("sync_failed", conn=connection.conn_id, error=error.name)
            connection.resync("sync_failed")
            return
        connection.reply(events.Synced(heads, has_more, cursor))

    async def _resend_quietly(self, connection: Connection, baselines: Mapping[str, int]) -> None:
        try:
            await self.resend(connection, baselines)
        except NexoError as error:
            log.warning("resend_failed", conn=connection.conn_id, error=error.name)
            connection.reply(events.ResendDone(True))

    async def resend(self, connection: Connection, baselines: Mapping[str, int]) -> None:
        """Undelivered messages, as ordinary frames. One resend at a time per device: a storm of reconnects
        gets SYNC each time and this once."""
        user_id = connection.session.user_id
        key = (user_id, connection.device_id or connection.conn_id)
        if key in self._resending:
            connection.reply(events.ResendDone(True))
            return
        lock = f"{user_id}:{connection.device_id}" if self._slots is not None and connection.device_id else ""
        self._resending.add(key)
        try:
            if lock and not await self._bus.lock(lock, RESEND_LOCK_S):
                lock = ""
                connection.reply(events.ResendDone(True))
                return
            messages, has_more = await self._conversations.resend(user_id, RESEND_EACH, baselines)
            silenced = await self._conversations.silenced(user_id) if messages else ()
            for start in range(0, len(messages), RESEND_CHUNK):
                for message in messages[start : start + RESEND_CHUNK]:
                    silent = message.conversation_id in silenced
                    connection.reply(events.Pushed(message, is_important(message, user_id), silent, resend=True))
                await connection.drained()
                if connection.closing:
                    return
                await asyncio.sleep(0)  # others have their turn
            connection.reply(events.ResendDone(has_more))
            self._count_resent(connection, messages, has_more)
        finally:
            self._resending.discard(key)
            if lock:
                await self._bus.unlock(lock)

    def _count_resent(self, connection: Connection, messages: Sequence[Message], has_more: bool) -> None:
        self._traffic.resent += len(messages)
        if not log.is_enabled_for(logging.DEBUG):
            return
        to = {
            "user": connection.session.user_id,
            "device": connection.device_id,
            "conn": connection.conn_id,
            "instance": self._instance,
        }
        for message in messages:
            log.debug(
                "resent_message",
                server_msg_id=message.server_msg_id,
                conversation_id=message.conversation_id,
                seq=message.seq,
                sender=message.sender_id,
                **to,
            )
        log.debug("resent", count=len(messages), has_more=has_more, **to)

    async def renew(self, connection: Connection, token: str) -> events.SignedIn:
        """REAUTH: a newer token of the same user extends the connection."""
        session = await self._accounts.authenticate(token)
        if session.user_id != connection.session.user_id:
            raise NexoError("reauth_uid_mismatch")
        if session.expires_at >= connection.session.expires_at:
            self._hub.renew(connection, session)
            if self._slots is not None:
                await self._slots.take(connection)
        return self._welcome(connection, session)

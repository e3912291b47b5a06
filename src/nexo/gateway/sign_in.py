"""Sign-in: check the token, register the connection, send SYNC, then the pushes held meanwhile, then resend.

The order makes sure that no message is missed: a connection is registered before its heads are read, so a message
that is committed later is pushed, and one that was committed earlier is in the heads. In dialects whose clients request
heads and messages themselves, they do so after they are signed in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from msgspec import structs

from nexo.cluster.session_policy import SessionPolicy
from nexo.config import Config
from nexo.core import commands, events
from nexo.core.model import Message, Session
from nexo.core.shapes import is_important
from nexo.delivery.deletion_watch import DeletionWatch
from nexo.delivery.hub import Hub
from nexo.errors import NexoError
from nexo.gateway.call_handlers import CallHandlers
from nexo.gateway.connection import Connection
from nexo.logs import delivery_lines
from nexo.metrics.traffic import Traffic
from nexo.ports import Bus
from nexo.service.actions import Actions

log = structlog.get_logger()

RESEND_EACH = 200
RESEND_CHUNK = 50
RESEND_LOCK_S = 10.0
DEVICE_ID_MAX = 128
BASELINES_MAX = 2000


class SignIn:
    def __init__(
        self,
        config: Config,
        actions: Actions,
        hub: Hub,
        deletions: DeletionWatch,
        traffic: Traffic,
        instance: str,
        bus: Bus,
        policy: SessionPolicy | None,
        calls: CallHandlers,
    ) -> None:
        """`policy` registers presence and closes connections that the session policy excludes; None with a single
        instance."""
        self._bus = bus
        self._policy = policy
        self._calls = calls
        self._traffic = traffic
        self._instance = instance
        self._accounts = actions.accounts
        self._limits = actions.limits
        self._last_seen = actions.people.last_seen
        self._conversations = actions.conversations
        self._hub = hub
        self._deletions = deletions
        self._resend_after_auth = config.resend.after_auth
        self._per_user = config.limits.connections_per_user
        self._auth_timeout_s = config.gateway.auth_timeout_s
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
            else:  # a wrong password may be followed by the right one, within the time to sign in
                connection.fail(error, ref)
                if time.monotonic() - connection.opened_at >= self._auth_timeout_s:
                    connection.drop("auth_timeout")
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
        async with self._limits.try_password(connection.remote, command.user_id):
            tokens = await self._accounts.login(
                command.user_id, command.password, command.platform_id, command.device_id, connection.remote
            )
        session = await self._accounts.authenticate(tokens.access_token)
        connection.device_id = session.device_id
        await self.admit(connection, session, {}, events.TokensIssued(*structs.astuple(tokens)), ref)

    async def let_in(self, connection: Connection, session: Session) -> None:
        """Sign in with a token that was checked during the upgrade."""
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
        """Sign the connection in with a valid session: check limits, register, answer, catch up."""
        other_platforms: Sequence[int] = ()
        if self._per_user and self._policy is not None:
            other_platforms = await self._policy.on_other_instances(session.user_id)
        if 0 < self._per_user <= self._hub.staying(session, other_platforms):
            self._traffic.refusals["connections_per_user"] += 1
            raise NexoError("too_many_requests", "This user has as many connections as allowed", retry_after_ms=5000)
        if connection.closing:
            return
        catches_up = connection.dialect.catches_up
        connection.become(session)
        connection.hold_pushes()
        try:
            self._hub.add(connection)
            await self._register_and_reply(connection, answer, ref)
            connection.synced_at = time.monotonic()
            if catches_up:
                await self._sync(connection)
        finally:
            connection.release_pushes()
        self._last_seen.note(session, connection.remote)
        log.info("signed_in", conn=connection.conn_id, user=session.user_id, platform=session.platform_id)
        connection.unpark()
        await self._calls.catch_up(connection)
        if catches_up and self._resend_after_auth and not connection.closing:
            await self._resend_quietly(connection, baselines)

    async def _register_and_reply(self, connection: Connection, answer: events.Event, ref: Any) -> None:
        """Register presence before replying, so that publishers always find a signed-in connection. Under an exclusive
        session policy the reply is first: a connection is closed by the policy only after it was signed in. Frames that
        arrive meanwhile are parked."""
        policy = self._policy
        if policy is not None and not policy.is_exclusive:
            await policy.take(connection)
        if connection.asks_outcome:
            connection.tell_outcome(None)
        connection.reply(answer, ref)
        if policy is not None and policy.is_exclusive:
            await policy.take(connection)

    async def _sync(self, connection: Connection) -> None:
        try:
            heads, cursor, has_more = await self._conversations.sync(connection.session.user_id)
        except NexoError as error:
            # the connection stays signed in; RESYNC makes the client sync again
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
        """Send undelivered messages as ordinary frames. One resend at a time per device: a client that reconnects
        often gets SYNC each time and the resend once."""
        user_id = connection.session.user_id
        key = (user_id, connection.device_id or connection.conn_id)
        if key in self._resending:
            connection.reply(events.ResendDone(True))
            return
        lock = f"{user_id}:{connection.device_id}" if self._policy is not None and connection.device_id else ""
        self._resending.add(key)
        try:
            if lock and not await self._bus.lock(lock, RESEND_LOCK_S):
                lock = ""
                connection.reply(events.ResendDone(True))
                return
            with self._deletions.during_resend(user_id) as deleted:
                messages, has_more = await self._conversations.resend(user_id, RESEND_EACH, baselines)
                silenced = await self._conversations.silenced(user_id) if messages else ()
                for start in range(0, len(messages), RESEND_CHUNK):
                    for message in messages[start : start + RESEND_CHUNK]:
                        if deleted.has(message):
                            continue
                        silent = message.conversation_id in silenced
                        connection.reply(events.Pushed(message, is_important(message, user_id), silent, resend=True))
                    await connection.drained()
                    if connection.closing:
                        return
                    await asyncio.sleep(0)  # let other tasks run
            has_more = has_more or deleted.is_full
            connection.reply(events.ResendDone(has_more))
            self._count_resent(connection, messages, has_more)
        finally:
            self._resending.discard(key)
            if lock:
                await self._bus.unlock(lock)

    def _count_resent(self, connection: Connection, messages: Sequence[Message], has_more: bool) -> None:
        self._traffic.resent += len(messages)
        if not delivery_lines.is_on:
            return
        user_id = connection.session.user_id
        to = {
            "device": connection.device_id,
            "conn": connection.conn_id,
            "instance": self._instance,
        }
        for message in messages:
            delivery_lines.write(
                "resent_message",
                user_id,
                message.conversation_id,
                server_msg_id=message.server_msg_id,
                seq=message.seq,
                sender=message.sender_id,
                **to,
            )
        log.debug("resent", user=user_id, count=len(messages), has_more=has_more, **to)

    async def renew(self, connection: Connection, token: str) -> events.SignedIn:
        """Extend the connection by a newer token of the same user (REAUTH). Returns the answer."""
        session = await self._accounts.authenticate(token)
        if session.user_id != connection.session.user_id:
            raise NexoError("reauth_uid_mismatch")
        if session.expires_at >= connection.session.expires_at:
            self._hub.renew(connection, session)
            if self._policy is not None:
                await self._policy.take(connection)
        return self._welcome(connection, session)

"""Calls over a connection: its commands, and what a device that has just connected has missed of a call."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from nexo.calls.calls import Calls
from nexo.core import commands, events
from nexo.core.calls import KIND_NAMES, Device
from nexo.delivery.call_frames import address_of, push_call
from nexo.errors import NexoError
from nexo.gateway.connection import Connection

log = structlog.get_logger()

_DONE = events.Done()


class _Turn:
    """The lock of a connection, which is fair, and how many requests hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.requests = 0


class CallHandlers:
    def __init__(self, calls: Calls, instance_id: str) -> None:
        self._calls = calls
        self._instance_id = instance_id
        self._turns: dict[str, _Turn] = {}  # by connection, while it has requests

    def _device(self, connection: Connection) -> Device:
        return Device(address_of(self._instance_id, connection.conn_id), connection.session.sid)

    async def perform(self, connection: Connection, command: commands.CallCommand, ref: Any) -> None:
        """Run the commands of one connection in order: candidates follow the answer that they belong to."""
        turn = self._turns.setdefault(connection.conn_id, _Turn())
        turn.requests += 1
        try:
            async with turn.lock:
                await self._perform(connection, command, ref)
        finally:
            turn.requests -= 1
            if not turn.requests:
                del self._turns[connection.conn_id]

    async def _perform(self, connection: Connection, command: commands.CallCommand, ref: Any) -> None:
        user_id, calls = connection.session.user_id, self._calls
        match command:
            case commands.InviteCall():
                await self._invite(connection, command, ref)
                return
            case commands.AcceptCall(call_id, sdp):
                await calls.accept(user_id, self._device(connection), call_id, sdp)
            case commands.RejectCall(call_id):
                await calls.reject(user_id, call_id)
            case commands.CancelCall(call_id):
                await calls.cancel(user_id, call_id)
            case commands.SignalCall(call_id, fields):
                await calls.signal(user_id, call_id, fields)
            case commands.EndCall(call_id, reason):
                await calls.end(user_id, call_id, reason)
        connection.reply(_DONE, ref)

    async def _invite(self, connection: Connection, command: commands.InviteCall, ref: Any) -> None:
        invited = await self._calls.invite(
            connection.session.user_id,
            self._device(connection),
            command.user_id,
            command.kind,
            command.sdp,
            command.client_msg_id,
        )
        call = invited.call
        connection.reply(events.CallInvited(call.call_id, command.client_msg_id or ""), ref)
        if invited.is_crossed:
            kind = KIND_NAMES[call.kind]
            event = events.CallRinging(call_id=call.call_id, user_id=call.caller_id, kind=kind, sdp=invited.sdp)
            push_call([connection], event, self._instance_id)

    async def catch_up(self, connection: Connection) -> None:
        """Push what the device has missed of a call that is going on."""
        if connection.closing:
            return
        try:
            missed = await self._calls.missed_by(connection.session.user_id, connection.session.sid)
        except NexoError as error:
            log.warning("call_not_looked_up", conn=connection.conn_id, error=error.name)
            connection.drop("server_busy")  # it may ring: the client connects again
            return
        for event in missed:
            push_call([connection], event, self._instance_id)

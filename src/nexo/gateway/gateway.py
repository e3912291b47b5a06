"""The gateway: lets connections in, signs them in, does what they ask, and tells them what happens.

It is the `Gate` of the WebSocket implementation, the `Host` of every connection and the `Publisher` and
`Online` of the HTTP API.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import msgspec
import structlog

from nexo.config import Config
from nexo.core import commands, events
from nexo.core.addresses import client_address, limit_key, parse_networks
from nexo.core.model import Draft, Kind, Message, MsgType, Sent, Session
from nexo.errors import NexoError
from nexo.gateway.audiences import Audiences
from nexo.gateway.connection import Connection
from nexo.gateway.database_watch import DatabaseWatch
from nexo.gateway.elsewhere import Elsewhere
from nexo.gateway.handshake import Handshake, asks_outcome, encode_outcome, parse_query, read_handshake
from nexo.gateway.hub import PRESENCE_MAX, Hub
from nexo.gateway.neighbours import Neighbours
from nexo.gateway.performing import Performing
from nexo.gateway.pushing import Pushing
from nexo.gateway.rates import Rules
from nexo.gateway.receipts import Receipts
from nexo.gateway.signing_in import SigningIn
from nexo.gateway.slots import Slots
from nexo.gateway.sweeping import Sweeper
from nexo.gateway.watchers import Watchers
from nexo.gateway.websocket import Accept, Refuse, Request
from nexo.ids import (
    check_user_id,
    group_conversation_id,
    is_conversation_id,
    is_group_id,
    single_conversation_id,
)
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.sending import SendMeter
from nexo.metrics.traffic import Traffic
from nexo.ports import (
    Address,
    Bus,
    ConversationStore,
    GroupChange,
    GroupStore,
    MessageStore,
    Outcome,
    Presence,
    Recall,
)
from nexo.service.accounts import Accounts
from nexo.service.conversations import Conversations
from nexo.service.groups import Groups
from nexo.service.limits import Limits
from nexo.service.receipts import Acknowledging
from nexo.service.send import Sending
from nexo.service.telling import Telling
from nexo.wire.registry import DIALECTS, choose

log = structlog.get_logger()

_DONE = events.Done()
_GROUP_ENDS = {MsgType.LEFT: "user_id", MsgType.REMOVED: "user_ids"}


class Gateway:
    def __init__(
        self,
        config: Config,
        *,
        messages: MessageStore,
        conversation_store: ConversationStore,
        group_store: GroupStore,
        accounts: Accounts,
        sending: Sending,
        acknowledging: Acknowledging,
        conversations: Conversations,
        groups: Groups,
        limits: Limits,
        sends: SendMeter,
        bus: Bus,
        presence: Presence,
        instance: str = "",
    ) -> None:
        """`sends` is the store's: what is pushed is the last stage of a send. `instance` is for the logs."""
        self._config = config
        self.traffic = Traffic()
        self._sends = sends
        self._messages = messages
        self._accounts = accounts
        self._sending = sending
        self._send_limits = limits.sends
        self.rules = Rules(
            config.limits.frames_per_s,
            config.limits.frames_burst,
            config.limits.acks_per_s,
            config.limits.inflight_sends,
            config.backpressure.high_water_bytes,
            config.gateway.heartbeat_s * 1000,
        )
        self._trusted = parse_networks(config.http.trusted_proxies)
        elsewhere = Elsewhere(bus, presence, config.bus.lookup_max_members, self.spawn) if bus.is_shared else None
        self._elsewhere = elsewhere
        self._instance_id = bus.instance_id
        self.hub: Hub[Connection] = Hub(config.session.policy, lambda user_id: self._watchers.changed_here(user_id))
        self._watchers = Watchers(self.hub, elsewhere)
        self.audiences = Audiences(
            group_store, config.cache.ttl_s, self._push_lost, lambda *new: self.pushing.introduce_newcomers(*new)
        )
        self.pushing = Pushing(
            self.hub,
            self.audiences,
            conversation_store,
            config.group.strategy,
            config.sync.heads_s,
            sends,
            instance,
            elsewhere,
        )
        self.receipts = Receipts(
            acknowledging,
            messages,
            conversation_store,
            self.audiences,
            self.pushing,
            self.spawn,
            config.receipts.group_push_max_members,
            sends,
            instance,
        )
        conversation_store.on_advance(self.receipts.moved)
        telling = Telling(groups, conversations, acknowledging, limits, self)
        self._performing = Performing(accounts, conversations, groups, telling, limits, self.receipts.given)
        self._slots = None if elsewhere is None else Slots(self.hub, elsewhere, config.session.policy != "multi")
        self.signing_in = SigningIn(
            config, accounts, conversations, limits, self.hub, self.traffic, instance, bus, self._slots
        )
        self.neighbours: Neighbours | None = None
        if self._slots is not None:
            self._database_watch = DatabaseWatch(conversation_store, self.hub, self.pushing, self.receipts.last_seq)
            self.neighbours = Neighbours(
                hub=self.hub,
                pushing=self.pushing,
                receipts=self.receipts,
                audiences=self.audiences,
                accounts=accounts,
                watchers=self._watchers,
                slots=self._slots,
                database_watch=self._database_watch,
                end_sessions=self._end_sessions,
                tell_here=self.tell_here,
                spawn=self.spawn,
            )
        self._leaving: set[Connection] = set()  # whose client has just logged out
        self.connections: set[Connection] = set()
        self._by_address: dict[str, int] = {}
        self._sweeper = Sweeper(config, self.connections, self.pushing, accounts, self.spawn)
        self._touched: list[Connection] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._count = 0
        self._stopping = False
        self._over = asyncio.Event()  # stopping, and nobody is here any more

    def start(self) -> None:
        self._sweeper.start()

    # -- letting in (`websocket.Gate`) -----------------------------------------------------------------------

    def decide(self, request: Request) -> Accept | Refuse | Coroutine[Any, Any, Accept | Refuse]:
        if self._stopping:
            return _refuse(NexoError("server_shutdown"))
        try:
            query = parse_query(request.query)
            dialect, subprotocol = choose(request.path, query, request.subprotocols)
        except NexoError as error:
            return _refuse(error)
        address = client_address(request.remote, request.headers.get("x-forwarded-for", ""), self._trusted)
        full = self._full(address)
        if full is not None:
            return _refuse(full)
        self._count += 1
        conn_id = f"c{self._count:x}"
        try:
            shown = read_handshake(query, request.headers)
        except NexoError as error:
            if not asks_outcome(query):
                return _refuse(error, 401)
            connection = Connection(self, dialect.for_connection(None), conn_id, address)
            connection.asks_outcome, connection.presigned = True, error
            return Accept(connection, subprotocol)
        connection = Connection(self, dialect.for_connection(shown.token), conn_id, address)
        if shown.token is None and dialect.signs_in:
            return Accept(connection, subprotocol)
        return self._let_in(connection, shown, subprotocol)

    async def _let_in(self, connection: Connection, shown: Handshake, subprotocol: str | None) -> Accept | Refuse:
        """The token came with the upgrade: it is checked before there is a connection, unless the client wants
        to be told the outcome by a frame."""
        connection.asks_outcome = shown.asks_outcome
        try:
            if shown.token is None:
                raise NexoError("missing_token", "This dialect has its token in the query or in Authorization: Bearer")
            session = await self._accounts.authenticate(shown.token)
            shown.check(session)
        except NexoError as error:
            if not shown.asks_outcome:
                return _refuse(error, error.row.http_status if error.row.retry else 401)
            connection.presigned = error
        else:
            connection.device_id = session.device_id
            connection.presigned = session
        return Accept(connection, subprotocol)

    def _full(self, address: str) -> NexoError | None:
        limits = self._config.limits
        if 0 < limits.connections_total <= len(self.connections):
            self.traffic.refusals["connections_total"] += 1
            return NexoError("server_busy", "This instance has as many connections as it may have", retry_after_ms=5000)
        if 0 < limits.connections_per_ip <= self._by_address.get(limit_key(address), 0):
            self.traffic.refusals["connections_per_ip"] += 1
            return NexoError("too_many_requests", "Too many connections from this address", retry_after_ms=5000)
        return None

    # -- for its connections (`host.Host`) ----------------------------------------------------------------

    def touch(self, connection: Connection) -> None:
        if not self._touched:
            asyncio.get_running_loop().call_soon(self.flush)
        self._touched.append(connection)

    def flush(self) -> None:
        """Write out what connections were told in this turn. Whoever cannot wait for its end may call it."""
        touched, self._touched = self._touched, []
        for connection in touched:
            connection.flush()
        self._sends.flushed()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def arrived(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.traffic.opened.add(_short(connection.dialect.name))
        key = limit_key(connection.remote)
        self._by_address[key] = self._by_address.get(key, 0) + 1

    def gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.traffic.closed.add(connection.ended or "left")
        self.traffic.read_from(connection.link)
        key = limit_key(connection.remote)
        left = self._by_address.get(key, 0) - 1
        if left > 0:
            self._by_address[key] = left
        else:
            self._by_address.pop(key, None)
        if connection.signed_in:
            self.hub.remove(connection)
            if self._slots is not None:
                self._slots.left(connection)
            if self._sending.accepting is not None:
                self._sending.accepting.gone(connection.conn_id)
        self._check_over()

    def _check_over(self) -> None:
        if self._stopping and not self.connections:
            self._over.set()

    async def sign_in(self, connection: Connection, command: commands.Auth | commands.Login, ref: Any) -> None:
        await self.signing_in.sign_in(connection, command, ref)

    async def admit(self, connection: Connection, session: Session) -> None:
        await self.signing_in.let_in(connection, session)

    async def renew(self, connection: Connection, token: str) -> events.SignedIn:
        return await self.signing_in.renew(connection, token)

    def charge_send(self, user_id: str) -> int:
        return self._send_limits.take(user_id)

    def draft(self, user_id: str, command: commands.Send) -> Draft:
        return self._sending.draft(
            user_id,
            command.client_msg_id,
            command.recv_id,
            command.group_id,
            command.msg_type,
            command.content,
            command.mentions,
            command.reply_to,
            command.extra,
        )

    def submit(self, connection: Connection, draft: Draft, answer: Callable[[Outcome], None]) -> None:
        self._sending.submit(draft, connection.conn_id, answer)

    def acknowledge(self, connection: Connection, command: commands.Ack, ref: Any) -> None:
        try:
            if command.server_msg_id is not None and self.receipts.acknowledge_known(
                connection, command.ack_type, command.server_msg_id
            ):
                if connection.dialect.confirms:
                    connection.reply(_DONE, ref)
                return
        except NexoError as error:
            connection.fail(error, ref)
            return
        self.spawn(self._acknowledge(connection, command, ref))

    async def _acknowledge(self, connection: Connection, command: commands.Ack, ref: Any) -> None:
        try:
            await self.receipts.acknowledge(connection, command)
        except NexoError as error:
            connection.fail(error, ref)
        else:
            connection.reply(_DONE, ref)

    def typing(self, connection: Connection, command: commands.Typing) -> None:
        user_id = connection.session.user_id
        if command.group_id is not None:
            if is_group_id(command.group_id):
                name = group_conversation_id(command.group_id)
                self.pushing.typing(user_id, name, Kind.GROUP, command.on)
        elif command.recv_id is not None and command.recv_id != user_id:
            name = single_conversation_id(user_id, command.recv_id)
            self.pushing.typing(user_id, name, Kind.SINGLE, command.on)

    async def perform(self, connection: Connection, command: commands.Command, ref: Any) -> None:
        match command:
            case commands.Resend():
                await self.signing_in.resend(connection, command.baselines)
            case commands.SubscribePresence():
                await self._subscribe(connection, command, ref)
            case commands.Logout():
                await self._log_out(connection, ref)
            case commands.Register() | commands.RefreshToken():
                connection.reply(await self._performing.perform_for_all(connection.remote, command), ref)
            case _:
                if isinstance(command, commands.MarkRead) and is_conversation_id(command.conversation_id):
                    self.receipts.said(connection, command.conversation_id)
                connection.reply(await self._performing.perform(connection.session.user_id, command), ref)

    async def _log_out(self, connection: Connection, ref: Any) -> None:
        """The one who asked is answered before it is closed like all others of the session."""
        self._leaving.add(connection)
        try:
            await self._accounts.logout(connection.session)
            connection.reply(_DONE, ref)
            connection.drop("session_invalid")
        finally:
            self._leaving.discard(connection)

    async def _subscribe(self, connection: Connection, command: commands.SubscribePresence, ref: Any) -> None:
        if len(command.user_ids) > PRESENCE_MAX:
            raise NexoError("bad_user_id", f"At most {PRESENCE_MAX} users can be watched")
        for user_id in command.user_ids:
            check_user_id(user_id)
        connection.reply(events.Presence(await self._watchers.subscribe(connection, command.user_ids)), ref)

    # -- what was committed (`ports.Publisher`, `ports.Online`) ---------------------------------------------------

    def message_saved(self, sent: Sent, origin: object | None) -> None:
        if sent.fresh:
            self.receipts.remember(sent.message)
        self.pushing.saved(sent, origin if isinstance(origin, (Connection, Address)) else None)

    def message_provisional(self, message: Message, member_epoch: int, origin: Address | None) -> None:
        self.pushing.provisional(message, member_epoch, origin)

    def message_withdrawn(self, message: Message, reason: str) -> None:
        event = events.Withdrawn(message.server_msg_id, message.conversation_id, reason)
        self.pushing.withdrawn(event, message.sender_id)

    def group_changed(self, change: GroupChange) -> None:
        event = change.event
        if event is None:
            return
        self.receipts.remember(event)
        self.audiences.forget(event.conversation_id)
        left: Sequence[str] = ()
        field = _GROUP_ENDS.get(MsgType(event.msg_type))
        if field is not None:
            ended = msgspec.json.decode(event.content)[field]
            left = [ended] if isinstance(ended, str) else ended
        self.pushing.changed(change, left)

    def recalled(self, recall: Recall) -> None:
        if recall.event is not None:
            self.receipts.remember(recall.event)
        self.pushing.recalled(recall)

    def conversation_read(self, user_id: str, conversation_id: str, read_seq: int, unread: int) -> None:
        """The user's devices learn of it by the receipt that follows every committed cursor."""

    def audience_changed(self, conversation_id: str) -> None:
        self.audiences.forget(conversation_id)
        if self._elsewhere is not None:
            self._elsewhere.forget(conversation_id)

    async def online(self, user_ids: Sequence[str]) -> list[tuple[str, bool, Sequence[int]]]:
        return list(await self._watchers.show(user_ids))

    def sessions_ended(self, sids: list[str]) -> None:
        """Sessions were revoked: their sockets are told and closed, on every instance."""
        self._end_sessions(sids)
        if self._elsewhere is not None:
            self._elsewhere.sessions_ended(sids)

    def _end_sessions(self, sids: list[str]) -> None:
        for connection in self.hub.of_sessions(set(sids)):
            if connection not in self._leaving:
                connection.drop("session_invalid")

    def _push_lost(self, conversation_id: str) -> None:
        self.traffic.lost += 1
        self.pushing.lost(conversation_id)
        if self._elsewhere is not None:
            self._elsewhere.push_lost(conversation_id)

    # -- to connections on any instance (`ports.Router`) -----------------------------------------------------------

    def tell_connection(self, address: Address, event: events.Event) -> None:
        if address.instance_id != self._instance_id:
            if self._elsewhere is not None:
                self._elsewhere.tell_connection(address, event)
            return
        self.tell_here(address.user_id, address.conn_id, event)

    def tell_here(self, user_id: str, conn_id: str, event: events.Event) -> None:
        """A connection of this instance, or a request that waits for it."""
        if self._sending.accepting is not None:
            self._sending.accepting.settled(conn_id, event)
        for connection in self.hub.of(user_id):
            if connection.conn_id == conn_id:
                self.pushing.push(connection, event)

    def tell_user(self, user_id: str, event: events.Event) -> None:
        self.pushing.to_user(user_id, event)

    # -- what is measured --------------------------------------------------------------------------------------

    def samples(self) -> Iterable[Sample]:
        yield from self.traffic.samples()
        yield from self.audiences.samples()
        yield from self.pushing.samples()
        yield from self.receipts.samples()
        yield f.USERS(len(self.hub.online_users()))
        yield f.CONNECTIONS_LIMIT(self._config.limits.connections_total)
        yield from self._sum_connections()

    def _sum_connections(self) -> Iterable[Sample]:
        """All in one turn of the loop, every few seconds: what can be counted elsewhere is."""
        signed_in = dict.fromkeys(DIALECTS, 0)
        new: dict[str, int] = {}
        blocked = buffered = queued = 0
        for connection in self.connections:
            name = connection.dialect.name
            if connection.user_id is not None:
                signed_in[name] += 1
            else:
                new[name] = new.get(name, 0) + 1
            if connection.blocked_since:
                blocked += 1
            buffered += connection.link.buffered()
            queued += connection.queued
        for state, counts in (("signed_in", signed_in), ("new", new)):
            for dialect, count in counts.items():
                yield f.CONNECTIONS(count, _short(dialect), state, self._config.session.policy)
        yield f.BLOCKED(blocked)
        yield f.BUFFERED(buffered)
        yield f.QUEUE(queued, "requests")

    # -- the end -----------------------------------------------------------------------------------------------

    async def say_goodbye(self, timeout_s: float) -> None:
        """Take no more, tell everybody to come back at moments spread out, and finish what is under way."""
        self._stopping = True
        for connection in self.connections:
            connection.link.pause_reading()
        deadline = time.monotonic() + timeout_s / 2
        while any(connection.inflight for connection in self.connections) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # their answers are on the way; nobody counts them for this moment alone
        connections = list(self.connections)
        spread_ms = min(10_000, 200 + 2 * len(connections))
        for i, connection in enumerate(connections):
            connection.drop("server_shutdown", retry_after_ms=100 + i * spread_ms // max(1, len(connections)))
        self._check_over()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), timeout_s)
        self._sweeper.stop()
        if self.neighbours is not None:
            self._database_watch.stop()
        for connection in list(self.connections):
            connection.link.abort()
        for task in list(self._tasks):
            task.cancel()


def _short(dialect: str) -> str:
    """`envelope` of `nexo.envelope.v1`."""
    return dialect.split(".")[1]


def _refuse(error: NexoError, status: int | None = None) -> Refuse:
    return Refuse(status or error.row.http_status, encode_outcome(error))

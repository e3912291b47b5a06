"""From a committed message to the screens of those who are connected here.

A frame is encoded once per dialect and variant and shared by all who get it. What is not pushed (by
strategy, by a member's own wish, for want of room) is told by a notice, by changed heads or by RESYNC.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from functools import partial

import structlog

from nexo.config.tree import Strategy
from nexo.core import events
from nexo.core.model import Kind, Message, Sent
from nexo.errors import NexoError
from nexo.gateway.audiences import Audiences
from nexo.gateway.connection import Connection
from nexo.gateway.elsewhere import Elsewhere
from nexo.gateway.hub import Hub
from nexo.gateway.turns import Turns
from nexo.gateway.websocket import text_frame
from nexo.ids import AT_ALL, now_ms, peers_of
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.sending import SendMeter
from nexo.ports import Address, Audience, ConversationStore, GroupChange, Listener, Recall
from nexo.wire.dialect import Dialect

log = structlog.get_logger()

NOTICE_PAUSE_S = 1.0
RETRY_PUSH_MS = 60_000
NO_FRAME = 1  # recv_msg_opt
SILENT = 2
INTRODUCED_MAX = 20_000


def _with_peers(conversation_id: str, audience: Audience) -> Audience:
    """A chat of two exists from the first message or block on; before that, nobody has blocked anybody."""
    peers = peers_of(conversation_id)
    if audience.listeners or peers is None:
        return audience
    return Audience(audience.epoch, dict.fromkeys(peers, Listener(1, 0, False, ())))


class Frames:
    """The frames of one event, each encoded when the first connection of its kind needs it."""

    __slots__ = ("_made", "_message", "plain")

    def __init__(self, message: Message) -> None:
        self._message = message
        self.plain: dict[str, bytes] = {}  # by dialect: with the quote, and no flag
        self._made: dict[tuple[str, bool, bool, bool], bytes] = {}

    def get_plain(self, dialect: Dialect) -> bytes:
        frame = self.plain[dialect.name] = self.get(dialect, False, False, True)
        return frame

    def get(self, dialect: Dialect, important: bool, silent: bool, quoted: bool) -> bytes:
        key = (dialect.name, important, silent, quoted)
        frame = self._made.get(key)
        if frame is None:
            pushed = events.Pushed(self._message, important, silent, False, quoted)
            frame = self._made[key] = text_frame(dialect.encode(pushed))
        return frame


class Pushing:
    def __init__(
        self,
        hub: Hub[Connection],
        audiences: Audiences,
        conversations: ConversationStore,
        strategy: Strategy,
        heads_s: int,
        sends: SendMeter,
        instance: str,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """`elsewhere` tells other instances of everything that happens here, if there are any."""
        self._instance = instance
        self._hub = hub
        self._audiences = audiences
        self._conversations = conversations
        self._strategy = strategy
        self._heads_s = heads_s
        self._sends = sends
        self._elsewhere = elsewhere
        self._turns = None if elsewhere is None else Turns()
        self._introduced: OrderedDict[tuple[str, str], int] = OrderedDict()  # conversation, user: from_seq
        self._given = self._noticed = self._noted = 0

    def samples(self) -> Iterable[Sample]:
        yield f.PUSHES(self._given - self._noticed - self._noted, "message")
        yield f.PUSHES(self._noticed, "notice")
        yield f.PUSHES(self._noted, "head")

    # -- what happened -----------------------------------------------------------------------------------

    def saved(self, sent: Sent, origin: Connection | Address | None) -> None:
        """A send was answered: tell everybody else. A retry is pushed again only while its first push may
        have been lost with the first attempt."""
        message = sent.message
        if not sent.fresh and now_ms() - message.send_at > RETRY_PUSH_MS:
            return
        since = self._sends.committed_at
        elsewhere = self._elsewhere
        if elsewhere is None and not isinstance(origin, Address):
            known = self._audiences.at_once(message.conversation_id, sent.member_epoch)
            if known is not None:
                self._deliver(message, known, origin, sent.quoted_seq, (), since)
                return
        address = None
        if isinstance(origin, Address):
            address, origin = origin, self._connection_at(origin)

        def deliver(audience: Audience) -> None:
            if elsewhere is None:
                self._deliver(message, audience, origin, sent.quoted_seq, (), since)
            else:
                elsewhere.said(sent, audience, address)
                self._in_turn(message, audience, origin, sent.quoted_seq, (), since)

        self._audiences.with_audience(message.conversation_id, sent.member_epoch, deliver)

    def said_elsewhere(self, message: Message, epoch: int, quoted_seq: int | None, origin: Address | None) -> None:
        """Another instance has told its own; these are the ones who are here."""
        here = self._connection_at(origin)
        self._audiences.with_audience(
            message.conversation_id, epoch, lambda audience: self._in_turn(message, audience, here, quoted_seq, ())
        )

    def _connection_at(self, address: Address | None) -> Connection | None:
        if address is None or self._elsewhere is None or address.instance_id != self._elsewhere.bus.instance_id:
            return None
        return next((item for item in self._hub.of(address.user_id) if item.conn_id == address.conn_id), None)

    # -- before it is saved --------------------------------------------------------------------------------

    def provisional(self, message: Message, epoch: int, origin: Address | None) -> None:
        """A message that was accepted: to whoever would get a frame of it."""

        def deliver(audience: Audience) -> None:
            if self._elsewhere is not None:
                self._elsewhere.provisional(message, epoch, audience, origin)
            self._deliver_provisional(message, audience, origin)

        self._audiences.with_audience(message.conversation_id, epoch, deliver)

    def provisional_elsewhere(self, message: Message, epoch: int, origin: Address | None) -> None:
        self._audiences.with_audience(
            message.conversation_id, epoch, lambda audience: self._deliver_provisional(message, audience, origin)
        )

    def _deliver_provisional(self, message: Message, audience: Audience, origin: Address | None) -> None:
        here = self._here(audience.listeners)
        if self._mode(message, audience.listeners, here) != "push":
            return
        sender = self._connection_at(origin)
        made: dict[tuple[str, bool, bool], bytes] = {}
        everybody = message.mentions[:1] == (AT_ALL,)
        for user_id in here:
            option = audience.listeners[user_id].recv_msg_opt
            important = (everybody or user_id in message.mentions) and user_id != message.sender_id
            for connection in self._hub.of(user_id):
                if option == NO_FRAME or connection is sender:
                    continue
                key = (connection.dialect.name, important, option == SILENT)
                if key not in made:
                    event = events.Pushed(message, important, option == SILENT, False, False, True)
                    made[key] = text_frame(connection.dialect.encode(event))
                connection.push(made[key])

    def withdrawn(self, event: events.Withdrawn, sender_id: str) -> None:
        def tell(audience: Audience) -> None:
            if self._elsewhere is not None:
                self._elsewhere.withdrew(event, sender_id, audience)
            self._withdraw(event, sender_id, audience)

        self._audiences.with_audience(event.conversation_id, 0, tell)

    def withdrawn_elsewhere(self, event: events.Withdrawn, sender_id: str) -> None:
        self._audiences.with_audience(
            event.conversation_id, 0, lambda audience: self._withdraw(event, sender_id, audience)
        )

    def _withdraw(self, event: events.Withdrawn, sender_id: str, audience: Audience) -> None:
        """The sender's other devices have a copy too, also of one who is no longer a member."""
        self.to_users({*self._here(audience.listeners), sender_id}, event)

    # -- events --------------------------------------------------------------------------------------------

    def recalled(self, recall: Recall) -> None:
        if recall.event is not None:
            self._tell_event(recall.event, recall.member_epoch, (), (), self._elsewhere)

    def changed(self, change: GroupChange, left: Sequence[str] = ()) -> None:
        """A group changed. Those who came in get the conversation's SYNC entry before anything else of it;
        those who went out learn of the event that ended their span."""
        if change.event is not None:
            self._tell_event(change.event, change.member_epoch, change.added, left, self._elsewhere)

    def happened_elsewhere(self, event: Message, epoch: int, added: Sequence[str], left: Sequence[str]) -> None:
        self._tell_event(event, epoch, added, left, None)

    def _tell_event(
        self, event: Message, epoch: int, added: Sequence[str], left: Sequence[str], elsewhere: Elsewhere | None
    ) -> None:
        def deliver(audience: Audience) -> None:
            if elsewhere is not None:
                elsewhere.happened(event, epoch, audience, added, left)
            self._in_turn(event, audience, None, None, left)

        newcomers = dict.fromkeys((user_id for user_id in added if self._hub.of(user_id)), event.seq)
        self._audiences.with_audience(
            event.conversation_id,
            epoch,
            deliver,
            partial(self._introduce, event.conversation_id, newcomers) if newcomers else None,
        )

    async def introduce_newcomers(self, conversation_id: str, audience: Audience, asked_at: float) -> None:
        """Whoever came into a group since they signed in here. The event that let them in may be behind messages
        that other instances saved after it."""
        newcomers = {}
        for user_id, age_ms in audience.newcomers.items():
            if any(connection.synced_at < asked_at - age_ms / 1000 for connection in self._hub.of(user_id)):
                newcomers[user_id] = audience.listeners[user_id].from_seq
        await self._introduce(conversation_id, newcomers)

    async def _introduce(self, conversation_id: str, newcomers: dict[str, int]) -> None:
        """Give them the conversation's SYNC entry, each once per span."""
        for user_id, from_seq in newcomers.items():
            if self._introduced.get((conversation_id, user_id)) == from_seq:
                continue
            self._introduced[conversation_id, user_id] = from_seq
            if len(self._introduced) > INTRODUCED_MAX:
                self._introduced.popitem(last=False)
            try:
                heads = await self._conversations.heads(user_id, [conversation_id])
            except NexoError:
                self.resync(user_id, "joined", [conversation_id])
            else:
                self.to_user_here(user_id, events.Synced(heads))

    def lost(self, conversation_id: str) -> None:
        """Nobody knows who should have been told: everybody here asks for themselves."""
        for user_id in list(self._hub.online_users()):
            self.resync(user_id, "push_lost", [conversation_id])

    def _in_turn(
        self,
        message: Message,
        audience: Audience,
        origin: Connection | None,
        quoted_seq: int | None,
        also: Sequence[str],
        since: float = 0.0,
    ) -> None:
        """What comes from several instances at once is put in order."""
        push = partial(self._deliver, message, audience, origin, quoted_seq, also, since)
        if self._turns is None:
            push()
        else:
            self._turns.take(message.conversation_id, message.seq, push)

    # -- to whom -----------------------------------------------------------------------------------------

    def _deliver(
        self,
        message: Message,
        audience: Audience,
        origin: Connection | None,
        quoted_seq: int | None,
        also: Sequence[str],
        since: float = 0.0,
    ) -> None:
        listeners = audience.listeners
        here: Collection[str] = listeners  # of a chat of two nobody has to be sorted out first
        mode = "push"
        if message.conversation_id.startswith("sg_"):
            here = self._here(listeners)
            mode = self._mode(message, listeners, here)
        frames = Frames(message)
        plain = frames.plain
        seq, mentions = message.seq, message.mentions
        # most messages are the same for everybody
        is_plain = mode == "push" and not mentions and quoted_seq is None
        everybody = mentions[:1] == (AT_ALL,)
        mentioned = important = False
        given = 0
        connections_of = self._hub.connections.get
        for user_id in here:
            listener = listeners[user_id]
            if seq < listener.from_seq:
                continue
            if is_plain and not listener.recv_msg_opt:
                for connection in connections_of(user_id, ()):
                    if connection is not origin:
                        given += 1
                        dialect = connection.dialect
                        if not connection.push(plain.get(dialect.name) or frames.get_plain(dialect)):
                            self._log_not_taken(connection, message)
                continue
            if mentions:
                mentioned = user_id in mentions
                important = (mentioned or everybody) and user_id != message.sender_id
            quoted = quoted_seq is None or listener.sees(quoted_seq)
            for connection in connections_of(user_id, ()):
                if connection is not origin:
                    given += 1
                    self._give(connection, message, frames, listener, mode, important, mentioned, quoted)
        for user_id in also:
            for connection in self._hub.of(user_id):
                given += 1
                connection.push(frames.get(connection.dialect, False, False, True))
        self._given += given
        if given and since:
            self._sends.pushed.append(since)

    def _here(self, listeners: dict[str, Listener]) -> Collection[str]:
        """Members who are connected; walks the shorter of the two lists."""
        online = self._hub.online_users()
        if len(listeners) <= len(online):
            return [user_id for user_id in listeners if user_id in online]
        return [user_id for user_id in online if user_id in listeners]

    def _mode(self, message: Message, listeners: dict[str, Listener], here: Collection[str]) -> str:
        rules = self._strategy
        if message.is_event or message.group_id is None:
            return "push"
        if rules.mode != "auto":
            return rules.mode
        members, online = len(listeners), len(here)
        if self._elsewhere is not None and members >= min(rules.online_user_threshold, rules.notify_max_online_user):
            online = self._elsewhere.count_online(message.conversation_id, listeners, here)
        if online >= rules.notify_max_online_user or members >= rules.huge_group_no_notify_size:
            return "none"
        if members >= rules.group_size_threshold or online >= rules.online_user_threshold:
            return "notify"
        return "push"

    def _give(
        self,
        connection: Connection,
        message: Message,
        frames: Frames,
        listener: Listener,
        mode: str,
        important: bool,
        mentioned: bool,
        quoted: bool,
    ) -> None:
        if listener.recv_msg_opt == NO_FRAME and not message.is_event:
            mode = "none"
        if mode == "push":
            frame = frames.get(connection.dialect, important, listener.recv_msg_opt == SILENT, quoted)
            if not connection.push(frame):
                self._log_not_taken(connection, message)
        elif mode == "notify" or (mentioned and message.group_id is not None):
            self._notice(connection, message.conversation_id, message.seq, important)
        else:
            self._note_head(connection, message.conversation_id, message.seq)

    def _log_not_taken(self, connection: Connection, message: Message) -> None:
        log.debug(
            "push_not_taken",
            server_msg_id=message.server_msg_id,
            conversation_id=message.conversation_id,
            seq=message.seq,
            sender=message.sender_id,
            user=connection.user_id,
            device=connection.device_id,
            conn=connection.conn_id,
            instance=self._instance,
            result="closing" if connection.closing else "resync",
        )

    # -- less than a frame per message --------------------------------------------------------------------

    def _notice(self, connection: Connection, conversation_id: str, head_seq: int, important: bool) -> None:
        """At most one notice per connection, conversation and second; the last head is never swallowed."""
        self._noticed += 1
        if connection.notices is None:
            connection.notices = {}
        now = time.monotonic()
        entry = connection.notices.get(conversation_id)
        if entry is None:
            connection.notices[conversation_id] = [now + NOTICE_PAUSE_S, 0, False]
            self.push(connection, events.Notify(conversation_id, head_seq, important))
        else:
            entry[1], entry[2] = head_seq, entry[2] or important

    def _note_head(self, connection: Connection, conversation_id: str, head_seq: int) -> None:
        self._noted += 1
        if connection.heads is None:
            connection.heads = {}
        if not connection.heads:
            connection.heads_at = time.monotonic() + self._heads_s
        connection.heads[conversation_id] = head_seq

    def sweep(self, connection: Connection, now: float) -> None:
        """Send the notices and heads of a connection that have waited long enough."""
        if connection.notices:
            for name, (due, head_seq, important) in list(connection.notices.items()):
                if now < due:
                    continue
                if head_seq:
                    connection.notices[name] = [now + NOTICE_PAUSE_S, 0, False]
                    self.push(connection, events.Notify(name, head_seq, important))
                else:
                    del connection.notices[name]
        if connection.heads and now >= connection.heads_at:
            self.push(connection, events.HeadsChanged(list(connection.heads.items())))
            connection.heads = None

    # -- to one user ---------------------------------------------------------------------------------------

    def push(self, connection: Connection, event: events.Event) -> None:
        connection.push(text_frame(connection.dialect.encode(event)))

    def reaches(self, user_id: str, except_: Connection | None = None) -> bool:
        """Whether there may be somebody to tell."""
        if self._elsewhere is not None:
            return True
        return any(connection is not except_ for connection in self._hub.of(user_id))

    def to_user(self, user_id: str, event: events.Event, except_: Connection | None = None) -> None:
        """On every instance."""
        self.to_user_here(user_id, event, except_)
        if self._elsewhere is not None:
            self._elsewhere.tell_user(user_id, event)

    def to_user_here(self, user_id: str, event: events.Event, except_: Connection | None = None) -> None:
        for connection in self._hub.of(user_id):
            if connection is not except_:
                self.push(connection, event)

    def to_users(self, user_ids: Iterable[str], event: events.Event) -> None:
        made: dict[str, bytes] = {}
        for user_id in user_ids:
            for connection in self._hub.of(user_id):
                dialect = connection.dialect
                frame = made.get(dialect.name)
                if frame is None:
                    frame = made[dialect.name] = text_frame(dialect.encode(event))
                connection.push(frame)

    def resync(self, user_id: str, reason: str, conversation_ids: Sequence[str] = ()) -> None:
        for connection in self._hub.of(user_id):
            connection.resync(reason)

    def typing(self, sender: str, conversation_id: str, kind: int, on: bool) -> None:
        """Told to those who are here now; never stored, never repeated."""

        def tell(audience: Audience) -> None:
            audience = _with_peers(conversation_id, audience)
            listener = audience.listeners.get(sender)
            if listener is None or (kind == Kind.SINGLE and listener.blocked):
                return
            self._tell_typing(audience, sender, conversation_id, on)
            if self._elsewhere is not None:
                self._elsewhere.types(sender, conversation_id, audience, on)

        self._audiences.with_audience(conversation_id, 0, tell)

    def typing_elsewhere(self, sender: str, conversation_id: str, epoch: int, on: bool) -> None:
        def tell(audience: Audience) -> None:
            self._tell_typing(_with_peers(conversation_id, audience), sender, conversation_id, on)

        self._audiences.with_audience(conversation_id, epoch, tell)

    def _tell_typing(self, audience: Audience, sender: str, conversation_id: str, on: bool) -> None:
        others = [user_id for user_id in self._here(audience.listeners) if user_id != sender]
        self.to_users(others, events.IsTyping(sender, conversation_id, on))

"""Fan-out: pushes committed messages and events to the connections of their receivers on this instance.

A frame is encoded once per dialect and variant and shared by all its receivers. A message that is not pushed (by
strategy, by the member's setting, or because a buffer is full) is announced by a notice, by changed heads or by RESYNC.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from time import time

from nexo.config.tree import StrategyConfig
from nexo.core import events
from nexo.core.model import QUIET_TYPES, Message, Sent
from nexo.delivery.audiences import Audiences
from nexo.delivery.call_frames import push_call
from nexo.delivery.frames import Frames, Needed, frames_of, seqs_of_event, seqs_of_quote
from nexo.delivery.hub import Hub
from nexo.delivery.notices import Notices, push_event
from nexo.delivery.outputs import Output
from nexo.delivery.portions import PORTION, Portions
from nexo.delivery.push_log import PushLog
from nexo.delivery.remote import Remote, Reorder
from nexo.errors import NexoError
from nexo.ids import AT_ALL, now_ms
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.sending import SendMeter
from nexo.ports import Address, Audience, ConversationStore, GroupChange, Listener, MessageEvent, RecallResult

RETRY_PUSH_MS = 60_000
NO_FRAME = 1  # recv_msg_opt
INTRODUCED_MAX = 20_000
EVERYTHING = ""  # in place of a conversation: all of them


class Fanout:
    def __init__(
        self,
        hub: Hub,
        audiences: Audiences,
        conversations: ConversationStore,
        strategy: StrategyConfig,
        heads_s: int,
        sends: SendMeter,
        instance: str,
        remote: Remote | None = None,
        reorder: Reorder | None = None,
    ) -> None:
        """`remote` and `reorder` are there with several instances."""
        self._hub = hub
        self._audiences = audiences
        self._conversations = conversations
        self._strategy = strategy
        self._sends = sends
        self._remote = remote
        self._reorder = reorder
        self._introduced: OrderedDict[tuple[str, str], int] = OrderedDict()  # conversation, user: from_seq
        self._given = 0
        self.instance_id = ""  # of this process; part of the addresses of its connections in calls
        self.notices = Notices(heads_s)
        self.push_log = PushLog(instance)
        self._note = self.push_log.note
        self.portions = Portions(hub.connections, self._lose)

    def samples(self) -> Iterable[Sample]:
        noticed, noted = self.notices.noticed, self.notices.noted
        yield f.PUSHES(self._given - noticed - noted, "message")
        yield f.PUSHES(noticed, "notice")
        yield f.PUSHES(noted, "head")
        yield from self.portions.samples()

    # -- what happened -----------------------------------------------------------------------------------

    def saved(self, sent: Sent, output: object | None, address: Address | None) -> None:
        """Push a saved message to the receivers and the sender's other connections. A retry is pushed again only
        while the first push may have been lost with the first attempt."""
        message = sent.message
        if not sent.fresh and now_ms() - message.send_at > RETRY_PUSH_MS:
            return
        needed = None if sent.quoted_seq is None else seqs_of_quote(sent)
        since = self._sends.committed_at
        remote = self._remote
        if remote is None and address is None:
            known = self._audiences.at_once(message.conversation_id, sent.member_epoch)
            if known is not None:
                self._deliver(message, known, output, needed, (), since)
                return
        if address is not None:
            output = self.connection_at(address)

        def deliver(audience: Audience) -> None:
            if remote is None:
                self._deliver(message, audience, output, needed, (), since)
            else:
                remote.message_saved(sent, audience, address)
                self._in_turn(message, audience, output, needed, (), since)

        self._audiences.with_audience(message.conversation_id, sent.member_epoch, deliver)

    def saved_elsewhere(self, sent: Sent, origin: Address | None) -> None:
        """Push a message that another instance has saved to the receivers on this instance."""
        message, epoch, needed = sent.message, sent.member_epoch, seqs_of_quote(sent)
        here = self.connection_at(origin)
        self._audiences.with_audience(
            message.conversation_id,
            epoch,
            lambda audience: self._in_turn(message, audience, here, needed, ()),
            heard=True,
        )

    def connection_at(self, address: Address | None) -> Output | None:
        """Returns the connection, if it is one of this instance."""
        if address is None or self._remote is None or address.instance_id != self._remote.instance_id:
            return None
        return next((item for item in self._hub.of(address.user_id) if item.conn_id == address.conn_id), None)

    # -- events --------------------------------------------------------------------------------------------

    def message_changed(self, change: MessageEvent) -> None:
        self._tell_event(change.event, change.member_epoch, (), (), self._remote)

    def recalled(self, recall: RecallResult) -> None:
        if recall.event is not None:
            self._tell_event(recall.event, recall.member_epoch, (), (), self._remote)

    def changed(self, change: GroupChange, left: Sequence[str] = ()) -> None:
        """Push a change of a group. New members get the conversation's SYNC entry before anything else of it; members
        that left get the event that ended their span."""
        if change.event is not None:
            self._tell_event(change.event, change.member_epoch, change.added, left, self._remote)

    def event_saved_elsewhere(self, event: Message, epoch: int, added: Sequence[str], left: Sequence[str]) -> None:
        self._tell_event(event, epoch, added, left, None)

    def _tell_event(
        self, event: Message, epoch: int, added: Sequence[str], left: Sequence[str], remote: Remote | None
    ) -> None:
        needed = seqs_of_event(event)

        def deliver(audience: Audience) -> None:
            if remote is not None:
                remote.event_saved(event, epoch, audience, added, left)
            self._in_turn(event, audience, None, needed, left)

        newcomers = dict.fromkeys((user_id for user_id in added if self._hub.of(user_id)), event.seq)
        self._audiences.with_audience(
            event.conversation_id,
            epoch,
            deliver,
            partial(self._introduce, event.conversation_id, newcomers) if newcomers else None,
            also=(*added, *left),
            heard=remote is None,
        )

    async def introduce_newcomers(self, conversation_id: str, audience: Audience, asked_at: float) -> None:
        """Introduce users that joined a group after their connection was synced. The event of their joining may arrive
        later than messages that other instances saved after it."""
        newcomers = {}
        for user_id, age_ms in audience.newcomers.items():
            if any(connection.synced_at < asked_at - age_ms / 1000 for connection in self._hub.of(user_id)):
                newcomers[user_id] = audience.listeners[user_id].from_seq
        await self._introduce(conversation_id, newcomers)

    async def _introduce(self, conversation_id: str, newcomers: dict[str, int]) -> None:
        """Push the conversation's SYNC entry to new members, once per span."""
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

    def lost(self, conversation_id: str, user_ids: Collection[str] | None) -> None:
        """Make clients resync after a failed push: the members (`user_ids`) this conversation, or all connected users
        everything when the members are unknown; the id of a conversation is shown to its members only."""
        if user_ids is None:
            push = partial(self._resync_all, "push_lost", ())
            self.portions.add(EVERYTHING, list(self._hub.online_users()), push)
        else:
            self.portions.add_loss(conversation_id, [user_id for user_id in user_ids if self._hub.of(user_id)])

    def _lose(self, conversation_id: str, user_ids: Sequence[str]) -> None:
        names = () if conversation_id == EVERYTHING else (conversation_id,)
        self._resync_all("push_lost", names, user_ids)

    def _resync_all(self, reason: str, conversation_ids: Sequence[str], user_ids: Sequence[str]) -> None:
        for user_id in user_ids:
            self.resync(user_id, reason, conversation_ids)

    def lost_elsewhere(self, conversation_id: str) -> None:
        """Make members resync after a failed push on an instance that could not read the members."""
        self._audiences.forget(conversation_id)
        self._audiences.with_audience(
            conversation_id,
            0,
            lambda audience: self.lost(conversation_id, self.members_here(audience.listeners)),
            heard=True,
        )

    def _in_turn(
        self,
        message: Message,
        audience: Audience,
        origin: object | None,
        needed: Needed | None,
        also: Sequence[str],
        since: float = 0.0,
    ) -> None:
        """Deliver in the order of seqs, also when several instances commit at once."""
        push = partial(self._deliver, message, audience, origin, needed, also, since)
        if self._reorder is None:
            push()
        else:
            self._reorder.take(message.conversation_id, message.seq, push)

    # -- to whom -----------------------------------------------------------------------------------------

    def _deliver(
        self,
        message: Message,
        audience: Audience,
        origin: object | None,
        needed: Needed | None,
        also: Sequence[str],
        since: float = 0.0,
    ) -> None:
        conversation_id, listeners = message.conversation_id, audience.listeners
        here: Collection[str] = listeners  # a chat of two needs no search for connected members
        mode = "push"
        is_group = conversation_id.startswith("sg_")
        if is_group:
            here = self.members_here(listeners)
            mode = self.mode_of(message, listeners, here)
        self._note((message.server_msg_id, time(), mode))
        if is_group and (len(here) > PORTION or conversation_id in self.portions):
            push = partial(self._push_message, message, listeners, frames_of(message), mode, origin, needed)
            done = partial(self._finish, message, also, since)
            self.portions.add(conversation_id, list(here), push, done)
            return
        given = self._push_message(message, listeners, frames_of(message), mode, origin, needed, here)
        if also or (given and since):
            self._finish(message, also, since if given else 0.0)

    def _finish(self, message: Message, also: Sequence[str], since: float) -> None:
        """Push to users besides the members, and note the time since the commit."""
        if also:
            frames = Frames(message)
            for user_id in also:
                for connection in self._hub.of(user_id):
                    self._given += 1
                    connection.push(frames.get(connection.dialect, False, False, True))
        if since:
            self._sends.pushed.append(since)

    def _push_message(
        self,
        message: Message,
        listeners: dict[str, Listener],
        frames: Frames,
        mode: str,
        origin: object | None,
        needed: Needed | None,
        user_ids: Iterable[str],
    ) -> int:
        """Push to these members. A member that does not see all `needed` seqs gets the message without the quote, or
        the event bare. Returns how many connections there were."""
        plain = frames.plain
        seq, mentions = message.seq, message.mentions
        # most messages are the same for all receivers
        is_plain = mode == "push" and not mentions and needed is None
        mentions_all = mentions[:1] == (AT_ALL,)
        mentioned = important = False
        given = 0
        connections_of = self._hub.connections.get
        for user_id in user_ids:
            listener = listeners[user_id]
            if seq < listener.from_seq:
                continue
            if is_plain and not listener.recv_msg_opt and not listener.silent_until:
                for connection in connections_of(user_id, ()):
                    if connection is not origin:
                        given += 1
                        dialect = connection.dialect
                        if not connection.push(plain.get(dialect.name) or frames.get_plain(dialect)):
                            self.push_log.not_taken(connection, message)
                continue
            if mentions:
                mentioned = user_id in mentions
                important = (mentioned or mentions_all) and user_id != message.sender_id
            quoted = needed is None or (all(map(listener.sees, needed.seqs)) and user_id not in needed.hidden_from)
            for connection in connections_of(user_id, ()):
                if connection is not origin:
                    given += 1
                    self._give(connection, message, frames, listener, mode, important, mentioned, quoted)
        self._given += given
        return given

    def at_once_or_later(
        self, conversation_id: str, user_ids: Collection[str], push: Callable[[Sequence[str]], None]
    ) -> None:
        """Push now, or in portions to many users, behind earlier pushes of the conversation."""
        if len(user_ids) > PORTION or conversation_id in self.portions:
            self.portions.add(conversation_id, list(user_ids), push)
        else:
            push(list(user_ids))

    def members_here(self, listeners: dict[str, Listener]) -> Collection[str]:
        """Returns the connected members; iterates over the shorter of the two lists."""
        online = self._hub.online_users()
        if len(listeners) <= len(online):
            return [user_id for user_id in listeners if user_id in online]
        return [user_id for user_id in online if user_id in listeners]

    def mode_of(self, message: Message, listeners: dict[str, Listener], here: Collection[str]) -> str:
        """Returns how members learn of a message: `push`, `notify` or `none`."""
        rules = self._strategy
        if message.group_id is None or (message.is_event and message.msg_type not in QUIET_TYPES):
            return "push"
        if rules.mode != "auto":
            return rules.mode
        members, online = len(listeners), len(here)
        if self._remote is not None and members >= min(rules.online_user_threshold, rules.notify_max_online_user):
            online = self._remote.count_online(message.conversation_id, listeners, here)
        if online >= rules.notify_max_online_user or members >= rules.huge_group_no_notify_size:
            return "none"
        if members >= rules.group_size_threshold or online >= rules.online_user_threshold:
            return "notify"
        return "push"

    def _give(
        self,
        connection: Output,
        message: Message,
        frames: Frames,
        listener: Listener,
        mode: str,
        important: bool,
        mentioned: bool,
        quoted: bool,
    ) -> None:
        if listener.recv_msg_opt == NO_FRAME and (not message.shows_as_event or message.msg_type in QUIET_TYPES):
            mode = "none"
        if mode == "push":
            frame = frames.get(connection.dialect, important, listener.is_silent, quoted)
            if not connection.push(frame):
                self.push_log.not_taken(connection, message)
        elif mode == "notify" or (mentioned and message.group_id is not None):
            self.notices.notice(connection, message.conversation_id, message.seq, important)
        else:
            self.notices.note_head(connection, message.conversation_id, message.seq)

    # -- to one user ---------------------------------------------------------------------------------------

    def push(self, connection: Output, event: events.Event) -> None:
        push_event(connection, event)

    def reaches(self, user_id: str, except_: Output | None = None) -> bool:
        """Returns whether the user may have a connection besides `except_`."""
        if self._remote is not None:
            return True
        return any(connection is not except_ for connection in self._hub.of(user_id))

    def to_user(self, user_id: str, event: events.Event, except_: object | None = None) -> None:
        """Push to all connections of a user, on every instance."""
        self.to_user_here(user_id, event, except_)
        if self._remote is not None:
            self._remote.tell_user(user_id, event)

    def to_user_here(self, user_id: str, event: events.Event, except_: object | None = None) -> None:
        if isinstance(event, events.CallFrame):
            push_call(self._hub.of(user_id), event, self.instance_id)
            return
        for connection in self._hub.of(user_id):
            if connection is not except_:
                self.push(connection, event)

    def to_users(self, user_ids: Iterable[str], event: events.Event, made: dict[str, bytes]) -> None:
        """Push to the users' connections here. `made` keeps the frames by dialect."""
        for user_id in user_ids:
            for connection in self._hub.of(user_id):
                dialect = connection.dialect
                frame = made.get(dialect.name)
                if frame is None:
                    frame = made[dialect.name] = dialect.frame(dialect.encode(event))
                connection.push(frame)

    def resync(self, user_id: str, reason: str, conversation_ids: Sequence[str] = ()) -> None:
        for connection in self._hub.of(user_id):
            connection.resync(reason, conversation_ids=conversation_ids)

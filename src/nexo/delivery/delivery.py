"""Delivery: a listener of the publish seam that pushes commits to connected clients, here and on other instances.

It is the `CommitListener` of the store, and takes the outcomes of accepted sends from two-phase workers.
`nexo serve` puts a gateway in front of it, `nexo worker` uses it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec
import structlog

from nexo.background import Background
from nexo.config import Config
from nexo.core import events
from nexo.core.model import CursorChange, Head, Message, MsgType, Sent
from nexo.core.tracing import InstanceTrace
from nexo.delivery.audiences import Audiences
from nexo.delivery.deletion_watch import DeletionWatch
from nexo.delivery.fanout import Fanout
from nexo.delivery.hub import Hub
from nexo.delivery.presence import PresenceWatch
from nexo.delivery.provisional import ProvisionalPusher
from nexo.delivery.receipts import ReceiptPusher
from nexo.delivery.remote import Remote, Reorder
from nexo.delivery.typing import TypingPusher
from nexo.errors import NexoError
from nexo.ids import peers_of
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.sending import SendMeter
from nexo.ports import (
    Address,
    ConversationStore,
    Deletion,
    GroupChange,
    GroupStore,
    MessageEvent,
    MessageStore,
    Origin,
    RecallResult,
)
from nexo.service.receipts import Acknowledging

log = structlog.get_logger()

_ENDED_MEMBERS = {MsgType.LEFT: "user_id", MsgType.REMOVED: "user_ids"}  # the field of the event that names them

OnOutcome = Callable[[str, str, events.Event], None]  # user, connection, event


class Delivery:
    def __init__(
        self,
        config: Config,
        *,
        messages: MessageStore,
        conversations: ConversationStore,
        groups: GroupStore,
        acknowledging: Acknowledging,
        sends: SendMeter,
        background: Background,
        instance: str = "",
        remote: Remote | None = None,
        reorder: Reorder | None = None,
    ) -> None:
        """`sends` is the meter of the committer: pushing is a stage of a send. `instance` is the name used in logs.
        `remote` and `reorder` are None with a single instance."""
        self._remote = remote
        self._lost = 0
        self.hub = Hub(
            config.session.policy,
            lambda user_id: self.presence.changed_here(user_id),
            lambda user_ids: self.presence.unwatched(user_ids),
        )
        self.presence = PresenceWatch(self.hub, remote, conversations.hidden_from)
        self._background = background
        self.deletions = DeletionWatch()
        self.audiences = Audiences(
            groups,
            config.cache.ttl_s,
            self.push_lost,
            lambda *new: self.fanout.introduce_newcomers(*new),
            background,
        )
        self.fanout = Fanout(
            self.hub,
            self.audiences,
            conversations,
            config.group.strategy,
            config.sync.heads_s,
            sends,
            instance,
            remote,
            reorder,
        )
        self.provisionals = ProvisionalPusher(self.hub, self.audiences, self.fanout, remote)
        self.typing = TypingPusher(self.audiences, self.fanout, remote)
        self.hub.on_removed = self.fanout.push_log.ended
        self.receipts = ReceiptPusher(
            acknowledging,
            messages,
            conversations,
            self.audiences,
            self.fanout,
            background,
            config.receipts.group_push_max_members,
            sends,
            instance,
        )
        # Takes outcomes of accepted sends; two-phase acknowledgement puts its acceptor here.
        self.on_outcome: OnOutcome = self.push_to_connection
        self.on_answer_wanted: Callable[[int], None] = lambda call_id: None
        self.on_loss: Callable[[], None] = lambda: None  # something that other instances published may be missing

    # -- the publish seam (`ports.CommitListener`) -----------------------------------------------------------

    def on_saved(self, origins: Sequence[Origin], outcomes: Sequence[Sent | NexoError]) -> None:
        remember, publish = self.receipts.remember, self.fanout.saved
        for origin, sent in zip(origins, outcomes, strict=True):
            if type(sent) is not Sent:
                continue
            try:
                if sent.fresh:
                    remember(sent.message)
                publish(sent, origin.output, origin.address)
            except Exception:
                log.exception("push_failed", conversation_id=sent.message.conversation_id)
                self.push_lost(sent.message.conversation_id, None, False)

    def on_group_changed(self, change: GroupChange) -> None:
        event = change.event
        if event is None:
            return
        self.receipts.remember(event)
        self.audiences.forget(event.conversation_id)
        left: Sequence[str] = ()
        field = _ENDED_MEMBERS.get(MsgType(event.msg_type))
        if field is not None:
            ended = msgspec.json.decode(event.content)[field]
            left = [ended] if isinstance(ended, str) else ended
        self.fanout.changed(change, left)

    def on_recalled(self, recall: RecallResult) -> None:
        if recall.event is not None:
            self.receipts.remember(recall.event)
            self.fanout.recalled(recall)

    def on_message_changed(self, change: MessageEvent) -> None:
        self.receipts.remember(change.event)
        self.fanout.message_changed(change)

    def on_cursors_moved(self, changes: list[CursorChange]) -> None:
        self.receipts.moved(changes)

    def on_deleted(self, deletion: Deletion) -> None:
        event = events.Deleted(
            deletion.conversation_id, deletion.server_msg_ids, deletion.up_to_seq, deletion.deleted_rev
        )
        self.deletions.note(deletion.user_id, event)
        self.fanout.to_user(deletion.user_id, event, deletion.origin)

    def deleted_elsewhere(self, user_id: str, event: events.Deleted) -> None:
        self.deletions.note(user_id, event)
        self.fanout.to_user_here(user_id, event)

    def on_settings_changed(self, user_id: str, heads: list[Head]) -> None:
        if heads:
            self.fanout.to_user(user_id, events.Synced(heads))

    def on_audience_changed(self, conversation_id: str) -> None:
        self.audience_changed_elsewhere(conversation_id)
        if self._remote is not None:
            self._remote.audience_changed(conversation_id)

    def audience_changed_elsewhere(self, conversation_id: str) -> None:
        """Forget the members of a conversation; in a chat of two, a block may have changed."""
        self.audiences.forget(conversation_id)
        peers = peers_of(conversation_id)
        if peers is not None and self.presence.concerns(*peers):
            self._background.start("presence_blocks", self.presence.check_blocks(*peers))

    def on_account_changed(self, user_id: str) -> None: ...

    def on_user_event(self, user_ids: Sequence[str], event: events.Event) -> None:
        for user_id in user_ids:
            self.fanout.to_user(user_id, event)

    def on_visibility_changed(self, user_id: str) -> None:
        self.visibility_changed_elsewhere(user_id)
        if self._remote is not None:
            self._remote.visibility_changed(user_id)

    def visibility_changed_elsewhere(self, user_id: str) -> None:
        if self.hub.watchers(user_id):
            self._background.start("presence_visibility", self.presence.check_watchers(user_id))

    # -- messages that are accepted and not saved ------------------------------------------------------------

    def provisional(self, message: Message, member_epoch: int, origin: Address | None) -> None:
        self.provisionals.push(message, member_epoch, origin)

    def withdrawn(self, message: Message, reason: str) -> None:
        event = events.Withdrawn(message.server_msg_id, message.conversation_id, reason)
        self.provisionals.withdraw(event, message.sender_id)

    def outcome(self, address: Address, event: events.Event) -> None:
        """Hand the outcome of an accepted send to the instance that accepted it."""
        if self._remote is None or address.instance_id == self._remote.instance_id:
            self.on_outcome(address.user_id, address.conn_id, event)
        else:
            self._remote.outcome(address, event)

    # -- one connection, presence ----------------------------------------------------------------------------

    def push_to_connection(self, user_id: str, conn_id: str, event: events.Event) -> None:
        """Push to a connection of this instance, if it is still open."""
        for connection in self.hub.of(user_id):
            if connection.conn_id == conn_id:
                self.fanout.push(connection, event)

    def push_call(self, user_id: str, event: events.CallFrame) -> None:
        """Push to the user's connections on all instances."""
        self.fanout.to_user(user_id, event)  # type: ignore[arg-type]

    def ask_for_answer(self, call_id: int) -> None:
        if self._remote is not None:
            self._remote.ask_for_answer(call_id)

    def push_call_here(self, user_id: str, event: events.CallFrame) -> None:
        """Push to the user's connections to this instance."""
        self.fanout.to_user_here(user_id, event)  # type: ignore[arg-type]

    async def online(self, viewer_id: str, user_ids: Sequence[str]) -> list[tuple[str, bool, Sequence[int]]]:
        return list(await self.presence.show(viewer_id, user_ids))

    def trace(self, server_msg_id: int, user_ids: Sequence[str]) -> InstanceTrace:
        """Returns what this instance remembers of a message and these receivers."""
        connected = [connection for user_id in user_ids for connection in self.hub.of(user_id)]
        return self.fanout.push_log.trace(server_msg_id, user_ids, connected)

    def push_lost(self, conversation_id: str, user_ids: Collection[str] | None, is_known_remotely: bool) -> None:
        """Make the members (None: unknown) resync a conversation in which something could not be pushed; on other
        instances too, unless the instance that saved it has notified them."""
        self._lost += 1
        self.fanout.lost(conversation_id, user_ids)
        if self._remote is not None and not is_known_remotely:
            self._remote.push_lost(conversation_id)

    def samples(self) -> Iterable[Sample]:
        yield from self.audiences.samples()
        yield from self.fanout.samples()
        yield from self.receipts.samples()
        yield f.USERS(len(self.hub.online_users()))
        yield f.PUSHES_LOST(self._lost)

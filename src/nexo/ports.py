"""The interfaces between what Nexo does and what it is done with. Their docstrings are the guarantees.

Every method may raise `NexoError("server_busy")` when the database cannot be reached; nothing was changed
then unless the docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from nexo.core.events import Accepted, Event, Saved
from nexo.core.model import (
    ConversationEntry,
    CursorChange,
    Draft,
    Group,
    GroupMember,
    Head,
    JoinRequest,
    Message,
    OfflinePage,
    Page,
    Receipts,
    Role,
    Sent,
)
from nexo.core.visibility import Ranges
from nexo.errors import NexoError


class GroupDraft(NamedTuple):
    creator_id: str
    name: str
    member_ids: list[str]  # without the creator
    avatar: str
    introduction: str
    join_policy: str
    extra: str | None


class GroupChange(NamedTuple):
    """A committed change of a group: its event (None when nothing changed) and whom it concerned."""

    event: Message | None
    added: list[str]
    skipped: list[tuple[str, str]]  # user, reason
    member_epoch: int


class Recall(NamedTuple):
    server_msg_id: int
    conversation_id: str
    seq: int  # of the event
    event: Message | None  # None: it was recalled before
    member_epoch: int


class Located(NamedTuple):
    conversation_id: str
    seq: int
    sender_id: str


class Listener(NamedTuple):
    """A member as pushing needs them."""

    from_seq: int
    recv_msg_opt: int
    blocked: bool  # by their peer, in a single chat
    past: tuple[tuple[int, int], ...]  # earlier spans

    def sees(self, seq: int) -> bool:
        return seq >= self.from_seq or any(low <= seq <= high for low, high in self.past)


class Audience(NamedTuple):
    """The members of a conversation at one `member_epoch`."""

    epoch: int
    listeners: dict[str, Listener]
    newcomers: Mapping[str, int] = MappingProxyType({})  # who came into a group a moment ago: milliseconds since then


class Settings(NamedTuple):
    """What a member may set for themselves; None leaves it as it is."""

    pinned: bool | None = None
    recv_msg_opt: int | None = None
    hidden: bool | None = None


class ActiveSince(NamedTuple):
    now_ms: int  # by the database's clock
    heads: list[tuple[str, str, int]]  # user, conversation, head


class Permission(NamedTuple):
    is_allowed: bool | None  # None: a single chat that does not exist yet; nobody can say
    member_epoch: int  # of the conversation when it was looked up


class MessageStore(Protocol):
    """Messages. Readers get what the visibility gate lets them see, with quotes built for them."""

    async def may_send(self, drafts: Sequence[Draft]) -> list[Permission]:
        """Whether each would be allowed if it were stored now; what counts is decided when it is."""

    def submit(self, draft: Draft, answer: Callable[[Sent | NexoError], None]) -> None:
        """Queue a draft, at once: the order of calls is the order in the conversation.

        `answer` is called exactly once, later, on the event loop: with the committed row (`Sent`), or
        with the reason why there is none. A draft that was stored before, by anyone, gets its row again
        and takes no seq. `server_busy` means surely not saved by this call; it is raised here when the
        queue is full. One draft's failure is never another's.
        """

    async def send(self, draft: Draft) -> Sent:
        """As `submit`, awaited. Cancelling the wait does not take the send back."""

    async def pull(
        self, user_id: str, conversation_id: str, begin_seq: int, end_seq: int | None, limit: int | None
    ) -> Page:
        """Ascending. Everything visible below `next_seq` has been given."""

    async def pull_seqs(self, user_id: str, conversation_id: str, seqs: Sequence[int]) -> Page: ...

    async def history(self, user_id: str, conversation_id: str, before_seq: int | None, limit: int | None) -> Page:
        """Newest first; `next_seq` is the lowest seq given."""

    async def last_messages(self, user_id: str, conversation_ids: Sequence[str]) -> tuple[list[Message], bool]:
        """The last visible message of each conversation that has one, in the order asked for; whether some
        did not fit into a reply."""

    async def offline(
        self, user_id: str, cursor: str | None, limit: int | None, baselines: Mapping[str, int]
    ) -> OfflinePage:
        """What was not delivered, over all conversations, oldest first. Moves no cursor."""

    async def resend(
        self, user_id: str, kind: int, limit: int, baselines: Mapping[str, int]
    ) -> tuple[list[Message], bool]:
        """A fair share of every conversation of that kind, ascending in each; whether there is more."""

    async def locate(self, server_msg_id: int) -> Located | None:
        """Where a message is. Says nothing about who may see it."""

    async def last_by_author(self, conversation_id: str, low: int, high: int) -> dict[str, tuple[int, int]]:
        """Whom a cursor that moved from `low` to `high` passed: per author the last message (seq, id)."""

    async def find(self, user_id: str, server_msg_id: int) -> Message:
        """One message, or `message_not_found`."""

    async def receipts(self, user_id: str, server_msg_id: int) -> Receipts: ...

    async def recall(self, user_id: str, server_msg_id: int) -> Recall:
        """Blank a message for everyone and append its event, in one transaction. Again: the same answer."""


class ConversationStore(Protocol):
    """Conversations as one user sees them, and that user's cursors in them."""

    async def visible_ranges(self, user_id: str, conversation_id: str) -> Ranges:
        """The gate. Raises `group_not_found`, `not_group_member`, `conversation_not_found`; an own single
        chat without messages is empty."""

    async def entries(
        self, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[ConversationEntry], str, bool]:
        """Pinned first, then by activity; the next cursor, and whether there is more."""

    async def sync(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Head], str, bool]:
        """Heads as committed when asked, newest activity first."""

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None) -> list[Head]: ...

    async def silenced(self, user_id: str) -> set[str]:
        """The conversations that they want to hear of without a sound (`recv_msg_opt` 2)."""

    async def change_settings(self, user_id: str, conversation_id: str, settings: Settings) -> ConversationEntry: ...

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int = 0, read_seq: int = 0) -> None:
        """Move cursors forward, soon: coalesced and written in batches, clamped to what is visible. A crash
        may lose the last moments; deliveries are repeated then."""

    async def mark_read(self, user_id: str, conversation_id: str, seq: int) -> tuple[int, int]:
        """Move the read cursor now. `read_seq` and unread, as committed."""

    def on_advance(self, tell: Callable[[list[CursorChange]], None]) -> None:
        """Have `tell` called with the cursors that moved, after they are committed."""

    async def active_since(self, user_ids: Sequence[str], since_ms: int | None) -> ActiveSince:
        """What happened lately in the conversations that these users are in, in one query. The clock is the
        database's; without `since_ms` it goes back a few seconds. A transaction that is not committed yet
        is not seen and may bring an earlier time: look back further than to the last look."""


class GroupStore(Protocol):
    """Groups. Every change takes the conversation's lock, is told by an event with its own seq in the
    same transaction, and raises `member_epoch` when it opens or closes a span."""

    async def create(self, draft: GroupDraft) -> tuple[str, Message]:
        """The new group's id and its first event."""

    async def join(self, group_id: str, user_id: str, message: str) -> tuple[str, GroupChange]:
        """`joined` or `pending`. Joining twice is joining once."""

    async def decide_join(self, group_id: str, actor_id: str, user_id: str, accept: bool) -> GroupChange: ...

    async def invite(self, group_id: str, actor_id: str, user_ids: list[str]) -> GroupChange: ...

    async def leave(self, group_id: str, user_id: str) -> GroupChange: ...

    async def remove(self, group_id: str, actor_id: str, user_id: str) -> GroupChange: ...

    async def transfer(self, group_id: str, actor_id: str, user_id: str) -> GroupChange: ...

    async def set_role(self, group_id: str, actor_id: str, user_id: str, role: Role) -> GroupChange: ...

    async def mute(self, group_id: str, actor_id: str, user_id: str | None, duration_s: int) -> GroupChange: ...

    async def update(self, group_id: str, actor_id: str, changes: dict[str, str]) -> GroupChange: ...

    async def dismiss(self, group_id: str, actor_id: str, *, delete: bool) -> GroupChange:
        """A constant number of rows, whatever the size. With `delete` it leaves every member's list too."""

    async def info(self, group_id: str) -> Group: ...

    async def groups_of(self, user_id: str) -> list[Group]: ...

    async def members(
        self, group_id: str, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[GroupMember], str, bool]: ...

    async def join_requests(self, group_id: str, user_id: str) -> list[JoinRequest]: ...

    async def audience(self, conversation_id: str) -> Audience:
        """Who is to be told of something new in a conversation (of either kind), as committed."""


Outcome = Sent | Accepted | NexoError


class Accepting(Protocol):
    """Two-phase acknowledgement: sends are accepted first and saved later. What one connection sends to one
    conversation is saved in that order, whichever way each of them goes."""

    def takes(self, draft: Draft) -> bool:
        """Whether this one is to be accepted first."""

    def submit(self, draft: Draft, user_id: str, conn_id: str, answer: Callable[[Outcome], None]) -> None:
        """As `MessageStore.submit`; the answer may also be that it was accepted. The connection is told by an
        event of its own once it is saved, or refused for good."""

    async def send(self, draft: Draft, timeout_s: float) -> Sent | Saved | Accepted:
        """As `submit`, for one who wants it saved and waits for that, within bounds. Saved: everybody has been
        told; Sent: that is left to the caller."""

    def settled(self, conn_id: str, event: Event) -> None:
        """A connection of this instance is told what became of an accepted send."""

    def gone(self, conn_id: str) -> None:
        """The connection ended."""


class Publisher(Protocol):
    """Tells connected clients of what was committed elsewhere, say through the HTTP API. Called after the
    commit, on the event loop; returns at once and never raises: a push that fails is made good by RESYNC."""

    def message_saved(self, sent: Sent, origin: object | None) -> None:
        """Also for a retry that found its row (`sent.fresh` is False). `origin` is the connection that got
        the answer already (or its `Address`), None when there is none."""

    def group_changed(self, change: GroupChange) -> None:
        """`change.event` is there. For a new group `added` names all its members, the creator too."""

    def recalled(self, recall: Recall) -> None:
        """`recall.event` is there: repetitions are not told again."""

    def conversation_read(self, user_id: str, conversation_id: str, read_seq: int, unread: int) -> None:
        """For the user's own devices."""

    def audience_changed(self, conversation_id: str) -> None:
        """A block or a member's `recv_msg_opt` changed: an audience read before is out of date."""


class Online(Protocol):
    async def online(self, user_ids: Sequence[str]) -> list[tuple[str, bool, Sequence[int]]]:
        """Whether each of them is connected, and on which platforms; in the order asked for."""


# -- many instances ------------------------------------------------------------------------------------------


class Registration(NamedTuple):
    """A user's presence through this instance, as Redis has taken it."""

    number: int  # later registrations of the same user have higher ones, on every instance
    elsewhere: dict[str, tuple[int, ...]]  # other instances that hold the user, with the platforms there


class PresenceChange(NamedTuple):
    """A user came, went or changed platforms, seen over all instances."""

    user_id: str
    platforms: tuple[int, ...]  # none: offline
    number: int  # of two changes of one user the later has the higher one
    watchers: tuple[str, ...]  # the other instances on which somebody wants to know


class BusListener(Protocol):
    """The gateway, as the bus calls it: on the event loop, at any time between `start` and `stop`."""

    def received(self, payloads: Sequence[bytes]) -> None:
        """Published by another instance, in the order in which it published. At most once."""

    def lost(self, reason: str) -> None:
        """Something that was published for this instance may be missing: everybody connected here must
        RESYNC, and whatever was cached on the word of other instances is to be forgotten."""

    def registered_again(self, user_ids: Sequence[str]) -> None:
        """The presence of these had been lost, and is there again: what was pushed meanwhile is missing."""

    def presence_changed(self, change: PresenceChange) -> None:
        """Caused by this instance. Those who watch here and on `change.watchers` are to be told."""

    def instance_gone(self, instance_id: str) -> None:
        """Its users are no longer there; what they are shown as has to be looked up again."""

    def reachable(self, is_up: bool) -> None:
        """Whether other instances can be heard. While they cannot, the database is the only way to learn of
        new messages. Told on each change; `True` comes after all presence is registered again."""

    def here(self) -> Mapping[str, Sequence[int]]:
        """Everybody who is connected here, and on which platforms (one for each connection)."""

    def watched(self) -> Sequence[str]:
        """Whom somebody here watches."""


class Bus(Protocol):
    """Tells other instances what was committed here. Payloads are opaque.

    Nothing here is awaited by anybody who waits for an ACK; every method that publishes returns at once and
    never raises. What one instance publishes for another arrives in that order and at most once, or the other
    one learns of the loss within `bus.detect_s` (`BusListener.lost`): frames are numbered from 1 per publisher
    and receiver, a frame that could not be published takes its number all the same, heartbeats tell the last
    number, and a publisher that falls silent without a goodbye counts as a loss. Nobody's silence is a loss
    once it has said goodbye. An instance is told only what is published for users that it holds, or for all.
    """

    instance_id: str  # of this process from its start to its end, never used again
    is_shared: bool  # False: there is no other instance and never will be

    async def start(self, listener: BusListener) -> None:
        """Returns when the others can be heard, or when it is clear that they cannot be now."""

    async def stop(self) -> None:
        """Publish what waits, say goodbye."""

    def publish(self, payload: bytes, user_ids: Collection[str]) -> None:
        """To every other instance that holds one of these users when it is looked up, which happens after
        this call: one who registers before a commit is found by what is published after it."""

    def publish_to(self, payload: bytes, instance_ids: Collection[str]) -> None:
        """To these instances, whoever is there. This one is left out."""

    def publish_to_all(self, payload: bytes) -> None:
        """To all other instances."""

    async def take(self, key: str, per_min: int) -> int:
        """Count one against a limit that all instances share: 0, or after how many milliseconds there will be
        one to take. 0 too when Redis cannot be asked: each instance has its own limit beside it."""

    async def lock(self, key: str, ttl_s: float) -> bool:
        """Take a lock that ends by itself. True too when Redis cannot be asked: it only damps."""

    async def unlock(self, key: str) -> None:
        """Let go of a lock, if it is still this instance's."""


class Presence(Protocol):
    """Which users are where. An entry lives for `bus.presence_ttl_s` and is renewed; entries of an instance
    are only ever changed by itself, so the end of an old connection never removes a newer one's. All may be
    lost at any moment: that is noticed within `bus.detect_s` (everything) or at the next renewal (some),
    registered again and told (`BusListener.registered_again`)."""

    async def register(
        self, user_id: str, platforms: Sequence[int], *, anew: bool = False, age_ms: int = 0
    ) -> Registration | None:
        """The user is here, on these platforms (one for each connection). When this returns, whoever looks the
        user up finds this instance. None: it could not be written (it will be, once it can), which takes no
        longer than `redis.timeout_ms`. What is registered already is not written again, unless `anew`; `age_ms`
        ago is when the connection in question really came."""

    def changed(self, user_id: str, platforms: Sequence[int]) -> None:
        """The user's platforms here are these now, or there are none any more. Written soon, in order."""

    async def elsewhere(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        """Who of these is connected to another instance, and on which platforms (one for each connection). Nobody
        when it is unknown."""

    async def watch(self, user_ids: Collection[str]) -> dict[str, tuple[int, ...]]:
        """As `elsewhere`; and from before the look on, other instances tell this one of their changes, for as
        long as `BusListener.watched` names them."""


class OwnerStore(Protocol):
    """Who saves the shards of accepted messages. All times are the database's. A shard has one owner at a time;
    its epoch grows with each change, and a draft with a `fence` is stored only while its epoch is the present
    one: an owner that was paused cannot store what another one has taken over."""

    async def free(self, shards: int) -> list[int]:
        """Those below `shards` that nobody holds."""

    async def take(self, owner: str, shards: Collection[int], ttl_s: float, at_most: int) -> dict[int, int]:
        """Of these shards some that nobody holds, with their new epochs: up to `at_most`, and all that nobody has
        held for longer than `ttl_s`."""

    async def renew(self, owner: str, held: Mapping[int, int], ttl_s: float) -> set[int]:
        """Hold them for another while; those that are still this owner's."""

    async def release(self, owner: str, held: Mapping[int, int]) -> None: ...


class Address(NamedTuple):
    """One connection somewhere."""

    instance_id: str
    user_id: str
    conn_id: str


class Router(Protocol):
    """Tells connections on whichever instance they are. Returns at once, never raises, at most once; a lost
    event is followed by RESYNC like any other push."""

    def tell_connection(self, address: Address, event: Event) -> None:
        """This connection, if it is still there."""

    def tell_user(self, user_id: str, event: Event) -> None:
        """All connections of a user, on every instance."""

"""What the services need of the store: messages, conversations, groups; instances and owners of shards."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from nexo.core.model import (
    ConversationEntry,
    Draft,
    Group,
    GroupMember,
    Head,
    JoinRequest,
    MemberStatus,
    Message,
    OfflinePage,
    Page,
    Receipts,
    Role,
    Sent,
)
from nexo.core.visibility import Ranges
from nexo.ports.publishing import Origin
from nexo.ports.values import (
    ActiveSince,
    Audience,
    DeletedSince,
    Deletion,
    GroupChange,
    GroupDraft,
    Located,
    MemberSettings,
    Permission,
    RecallResult,
)


class MessageStore(Protocol):
    """Messages. Readers get what is visible to them, with quotes built for them."""

    async def may_send(self, drafts: Sequence[Draft]) -> list[Permission]:
        """Returns whether each draft would be allowed now; the decision is made when it is stored."""

    def submit(self, draft: Draft, origin: Origin) -> None:
        """Queue a draft, at once: the order of calls is the order in the conversation.

        `origin.decided` is called exactly once, later, on the event loop: with the committed row (`Sent`), or with
        the reason why there is none. A draft that was stored before, by any instance, gets its row again and takes no
        seq. `server_busy` means surely not saved by this call; it is raised here when the queue is full. The failure
        of one draft does not affect another. `CommitListener`s get what was committed, whatever `origin` does.
        """

    async def send(self, draft: Draft) -> Sent:
        """Submit and await the row. Cancelling the wait cancels neither the send nor its publication."""

    async def is_saved(self, sender_id: str, client_msg_id: str) -> bool:
        """Returns whether a message of this sender has this client_msg_id."""

    async def pull(
        self, user_id: str, conversation_id: str, begin_seq: int, end_seq: int | None, limit: int | None
    ) -> Page:
        """Returns messages in ascending order: everything visible below `next_seq`."""

    async def pull_seqs(self, user_id: str, conversation_id: str, seqs: Sequence[int]) -> Page: ...

    async def history(self, user_id: str, conversation_id: str, before_seq: int | None, limit: int | None) -> Page:
        """Returns messages, newest first; `next_seq` is the lowest seq returned."""

    async def last_messages(self, user_id: str, conversation_ids: Sequence[str]) -> tuple[list[Message], bool]:
        """Returns the last visible message of each conversation that has one, in the order asked for, and whether
        some did not fit into a reply."""

    async def offline(
        self, user_id: str, cursor: str | None, limit: int | None, baselines: Mapping[str, int]
    ) -> OfflinePage:
        """Returns undelivered messages of all conversations, oldest first. Moves no cursor."""

    async def resend(
        self, user_id: str, kind: int, limit: int, baselines: Mapping[str, int]
    ) -> tuple[list[Message], bool]:
        """Returns a fair share of every conversation of that kind, ascending in each, and whether there is more."""

    async def locate(self, server_msg_id: int) -> Located | None:
        """Returns where a message is, without a check of who may see it."""

    async def last_by_author(self, conversation_id: str, low: int, high: int) -> dict[str, tuple[int, int]]:
        """Returns, per author of messages above `low` up to `high`, the last message (seq, id)."""

    async def find(self, user_id: str, server_msg_id: int) -> Message:
        """Returns one message. Raises `message_not_found`."""

    async def seq_of(self, user_id: str, conversation_id: str, server_msg_id: int) -> int:
        """Returns the seq of a message of this conversation, also of one that the user has deleted. Raises
        `message_not_found`."""

    async def receipts(self, user_id: str, server_msg_id: int) -> Receipts: ...

    async def recall(self, user_id: str, server_msg_id: int) -> RecallResult:
        """Blank a message for all members and append its event, in one transaction. Repeated: the same answer."""


class ConversationStore(Protocol):
    """Conversations as one user sees them, and that user's cursors in them."""

    async def hidden_from(self, viewer_id: str, user_ids: Sequence[str]) -> set[str]:
        """Returns the users among these whose presence the viewer may not see."""

    async def visible_ranges(self, user_id: str, conversation_id: str) -> Ranges:
        """Returns the seqs that the user may see; none in an own single chat without messages. Raises
        `group_not_found`, `not_group_member`, `conversation_not_found`."""

    async def entries(
        self, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[ConversationEntry], str, bool]:
        """Returns conversations, pinned first, then by activity; the next cursor, and whether there is more."""

    async def sync(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Head], str, bool]:
        """Returns heads as committed at the time of the call, newest activity first; next cursor, more."""

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None) -> list[Head]: ...

    async def silenced(self, user_id: str) -> set[str]:
        """Returns the conversations that the user has set to silent (`recv_msg_opt` 2)."""

    async def change_settings(
        self, user_id: str, conversation_id: str, settings: MemberSettings
    ) -> ConversationEntry: ...

    async def set_message_ttl(self, user_id: str, conversation_id: str, ttl_s: int) -> GroupChange:
        """Set how long later messages are shown (0: without end) and append event 107, in one transaction. Without a
        change there is no event. Raises `no_permission` for plain members of a group."""

    async def seq_at(self, user_id: str, conversation_id: str, time_ms: int) -> int | None:
        """Returns the first seq at or after a time that is shown to the user; None if there is none."""

    async def delete_messages(
        self, user_id: str, server_msg_ids: Sequence[int], origin: object | None = None
    ) -> list[Deletion]:
        """Hide messages from this user on all their devices: all of them, or none. Returns what changed; messages that
        are hidden already change nothing. Raises `message_not_found`, `too_many_deleted`."""

    async def clear(self, user_id: str, conversation_id: str) -> Deletion:
        """Hide everything up to the visible head from this user. No cursor moves. Repeated: changes nothing."""

    async def deleted_since(self, user_id: str, conversation_id: str, after: int, limit: int | None) -> DeletedSince:
        """Returns a page of the user's deletions after a revision (`Head.deleted_rev`)."""

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int = 0, read_seq: int = 0) -> None:
        """Move cursors forward soon: coalesced, written in batches, limited to what is visible. A crash may lose the
        last moves; messages are delivered again then."""

    async def mark_read(self, user_id: str, conversation_id: str, seq: int) -> tuple[int, int]:
        """Move the read cursor now. Returns `read_seq` and the unread count, as committed."""

    async def active_since(self, user_ids: Sequence[str], since_ms: int | None) -> ActiveSince:
        """Returns recently active conversations of these users, in one query. Times are the database's; without
        `since_ms` the last few seconds count. A transaction that is not committed yet is not seen and may have an
        earlier time: use a `since_ms` before the last call."""


class GroupStore(Protocol):
    """Groups. Every change takes the conversation's lock, appends an event with its own seq in the same transaction,
    and raises `member_epoch` when it opens or closes a span."""

    async def create(self, draft: GroupDraft) -> str:
        """Returns the new group's id."""

    async def join(self, group_id: str, user_id: str, message: str) -> tuple[str, GroupChange]:
        """Returns `joined` or `pending`. Joining again changes nothing."""

    async def decide_join(self, group_id: str, actor_id: str, user_id: str, accept: bool) -> GroupChange: ...

    async def invite(self, group_id: str, actor_id: str, user_ids: list[str]) -> GroupChange: ...

    async def leave(self, group_id: str, user_id: str) -> GroupChange: ...

    async def remove(self, group_id: str, actor_id: str, user_id: str) -> GroupChange: ...

    async def transfer(self, group_id: str, actor_id: str, user_id: str) -> GroupChange: ...

    async def set_role(self, group_id: str, actor_id: str, user_id: str, role: Role) -> GroupChange: ...

    async def mute(self, group_id: str, actor_id: str, user_id: str | None, duration_s: int) -> GroupChange: ...

    async def update(self, group_id: str, actor_id: str, changes: dict[str, Any], shown: dict[str, Any]) -> GroupChange:
        """Write columns of a group; `shown` is what the event has of them."""

    async def set_own_member(self, group_id: str, user_id: str, changes: dict[str, str | None]) -> GroupMember:
        """Write some of group_nickname, group_avatar and extra of the caller's own membership."""

    async def dismiss(self, group_id: str, actor_id: str, *, delete: bool) -> GroupChange:
        """Write a constant number of rows, whatever the size. With `delete` it leaves every member's list too."""

    async def view(self, group_id: str, user_id: str) -> tuple[Group, MemberStatus | None]:
        """Returns the group and the status of the user in it; None: never a member. Or `group_not_found`."""

    async def info(self, group_id: str) -> Group: ...

    async def groups_of(self, user_id: str) -> list[Group]: ...

    async def members(
        self, group_id: str, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[GroupMember], str, bool]: ...

    async def join_requests(self, group_id: str, user_id: str) -> list[JoinRequest]: ...

    async def audience(self, conversation_id: str) -> Audience:
        """Returns the receivers of something new in a conversation of either kind, as committed."""


class InstanceRow(NamedTuple):
    """The row of an instance in the database."""

    instance_id: str
    place: str  # host and process, for logs
    is_worker: bool  # it has no clients
    on_bus: bool  # it receives its own heartbeats on the bus
    secret_digest: str
    started_at: int
    age_ms: int = 0  # since it was written


class InstancesSeen(NamedTuple):
    now_ms: int  # by the database's clock
    started_at: int  # when the caller's own row was written first
    others: list[InstanceRow]  # also rows of instances that have ended: check the age


class InstanceStore(Protocol):
    """The instances that use the database, each by its own row. All times are the database's."""

    @property
    def committed_at(self) -> float:
        """When the database last took anything from this instance, by `time.monotonic`."""

    async def announce(self, own: InstanceRow) -> InstancesSeen:
        """Write the caller's row (its times are ignored), in one attempt. Returns the rows of other instances."""

    async def leave(self, instance_id: str) -> None:
        """Remove the row of an instance that stops."""


class OwnerStore(Protocol):
    """Leases of the shards of accepted messages. All times are the database's. A shard has one owner at a time; its
    epoch grows with each change, and a draft with a `fence` is stored only while its epoch is the present one: an
    owner that was paused cannot store what another one has taken over."""

    async def free(self, shards: int) -> list[int]:
        """Returns the shards below `shards` without an owner."""

    async def take(self, owner: str, shards: Collection[int], ttl_s: float, at_most: int) -> dict[int, int]:
        """Lease shards without an owner: up to `at_most` of these, and all that had no owner for longer than `ttl_s`.
        Returns their new epochs."""

    async def renew(self, owner: str, held: Mapping[int, int], ttl_s: float) -> set[int]:
        """Extend the leases. Returns the shards that this owner still holds."""

    async def release(self, owner: str, held: Mapping[int, int]) -> None: ...

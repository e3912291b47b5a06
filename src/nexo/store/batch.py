"""One transaction for everything that waits to be sent.

The order is the contract's: locks, idempotency, permission, filter verdict, seq, write. A message that
cannot be stored gets an error of its own; its neighbours are stored. What each engine does differently
is behind `HotSql`.

Almost no send is a retry, so idempotency is at first left to the unique key: a batch without a retry asks
nothing, and one with a retry fails as a whole and comes again with `look_first`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import Enum
from typing import Any, NamedTuple, Protocol

from nexo.core import policy
from nexo.core.content import quote_text
from nexo.core.model import (
    Conversation,
    Draft,
    Kind,
    Member,
    MemberStatus,
    Message,
    MessageStatus,
    Quote,
    Sent,
)
from nexo.core.unread import step_over_own
from nexo.core.visibility import is_visible, visible_ranges
from nexo.errors import NexoError
from nexo.ids import AT_ALL, IdGenerator
from nexo.store import rows
from nexo.store.engine import Script

SentKey = tuple[str, str]  # sender, client_msg_id
MemberKey = tuple[int, str]  # conv, user
SeqKey = tuple[int, int]  # conv, seq


class Skipped(Enum):
    """Not decided in this transaction: the same draft has to come again."""

    LOCKED = "somebody else holds the conversation"
    MISSING = "the single chat has to be created first"
    AGAIN = "another draft of this batch has the same client_msg_id"


Outcome = Sent | NexoError | Skipped


class SentRow(NamedTuple):
    """A message that was stored before, found by its client_msg_id."""

    request_hash: bytes
    message: tuple[Any, ...]


class Target(NamedTuple):
    """A message that a reply points at."""

    conv: int
    seq: int
    sender_id: str
    msg_type: int
    content: str
    status: int


class Locked(NamedTuple):
    now_ms: int
    conversations: dict[str, Conversation]
    busy: set[str]  # exist, but are held by somebody else


class HotSql(Protocol):
    """The statements of a batch, and of the cursor writer, in one engine's best form."""

    exclusive: bool  # a transaction that writes is alone in the database

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        """Lock those that exist, in the order given. Without `wait`, what others hold is left out."""

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]: ...

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        """Lock in the order given: cursors are written by others at the same time."""

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        """The epochs of these shards of accepted messages, which stay as they are until this is committed."""

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]: ...

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]: ...

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        """As they are, without a lock; not to be changed."""

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        """How many countable messages there are up to each of these."""

    def save_members(self, members: list[Member]) -> Script[None]:
        """Write the cursors and counters of rows that are locked."""

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
    ) -> Script[None]: ...


def write_batch(
    sql: HotSql, new_ids: IdGenerator, drafts: Sequence[Draft], *, wait: bool, uncertain: Set[int], look_first: bool
) -> Script[list[Outcome]]:
    """Store what can be stored; one outcome per draft, in order.

    `uncertain`: an earlier attempt at these of the drafts may have been committed; rows found are then its
    work and count as fresh. Without `look_first` a retry among the drafts is a `Conflict`.
    """
    outcomes: list[Outcome | None] = [None] * len(drafts)
    followers: list[tuple[int, int]] = []
    first: dict[SentKey, int] = {}
    for i, draft in enumerate(drafts):
        leader = first.setdefault((draft.sender_id, draft.client_msg_id), i)
        if leader != i:
            if drafts[leader].request_hash == draft.request_hash:
                followers.append((i, leader))
            else:
                outcomes[i] = Skipped.AGAIN

    if any(draft.fence is not None for draft in drafts):
        yield from _refuse_fenced(sql, drafts, outcomes, first)

    now_ms, conversations, busy = yield from sql.lock_conversations(
        sorted({drafts[i].conversation_id for i in first.values()}), wait
    )
    if busy:
        for i in first.values():
            if outcomes[i] is None and drafts[i].conversation_id in busy:
                outcomes[i] = Skipped.LOCKED
    in_doubt = [
        key
        for key, i in first.items()
        if outcomes[i] is None and (look_first or drafts[i].is_retry or drafts[i].conversation_id not in conversations)
    ]
    found: dict[SentKey, SentRow] = {}
    if in_doubt:
        found = yield from sql.find_sent(in_doubt)

    open_drafts: list[tuple[int, Draft, Conversation]] = []
    for key, i in first.items():
        draft = drafts[i]
        conversation = conversations.get(draft.conversation_id)
        if outcomes[i] is not None:
            continue
        if key in found:
            outcomes[i] = _answer_again(draft, found[key], conversation, i in uncertain)
        elif conversation is not None:
            open_drafts.append((i, draft, conversation))
        else:
            outcomes[i] = Skipped.MISSING if draft.kind == Kind.SINGLE else NexoError("group_not_found")

    if open_drafts:
        refused = yield from _store_open(sql, new_ids, open_drafts, outcomes, now_ms)
        if refused and not look_first:
            yield from _answer_refused(sql, refused, outcomes)
    for i, leader in followers:
        outcomes[i] = _follow(outcomes[leader])
    return outcomes  # type: ignore[return-value]


def _refuse_fenced(
    sql: HotSql, drafts: Sequence[Draft], outcomes: list[Outcome | None], first: dict[SentKey, int]
) -> Script[None]:
    """Accepted messages are stored by the present owner of their shard only: one that was paused, and whose
    shard another one has by now, would store them a second time, or in another order."""
    epochs = yield from sql.lock_epochs(sorted({draft.fence[0] for draft in drafts if draft.fence is not None}))
    for i in first.values():
        fence = drafts[i].fence
        if fence is not None and epochs.get(fence[0]) != fence[1]:
            outcomes[i] = NexoError("server_busy", "Another instance saves these messages by now")


def _answer_refused(
    sql: HotSql, refused: list[tuple[int, Draft, Conversation]], outcomes: list[Outcome | None]
) -> Script[None]:
    """A retry is answered from its row, whatever changed since: also where it would not be allowed now."""
    found = yield from sql.find_sent([(draft.sender_id, draft.client_msg_id) for _, draft, _ in refused])
    for i, draft, conversation in refused:
        row = found.get((draft.sender_id, draft.client_msg_id))
        if row is not None:
            outcomes[i] = _answer_again(draft, row, conversation, False)


def _follow(outcome: Outcome | None) -> Outcome:
    assert outcome is not None
    if isinstance(outcome, Sent):
        return Sent(outcome.message, False, outcome.quoted_seq, outcome.content_changed, outcome.member_epoch)
    return outcome


def _answer_again(draft: Draft, row: SentRow, conversation: Conversation | None, uncertain: bool) -> Outcome:
    if bytes(row.request_hash) != draft.request_hash:
        return NexoError("client_msg_id_reused")
    message = rows.message(row.message, draft.conversation_id)
    # stored by an owner who did not live to tell anybody
    uncertain = uncertain or message.server_msg_id == draft.server_msg_id
    # judged by the row: the word list may have changed since
    changed = message.status == MessageStatus.NORMAL and (draft.filtered or message.content != draft.content)
    epoch = conversation.member_epoch if conversation is not None else 0
    return Sent(message, uncertain, None, changed, epoch)


def _store_open(
    sql: HotSql,
    new_ids: IdGenerator,
    open_drafts: list[tuple[int, Draft, Conversation]],
    outcomes: list[Outcome | None],
    now_ms: int,
) -> Script[list[tuple[int, Draft, Conversation]]]:
    """Those that were refused come back."""
    refused: list[tuple[int, Draft, Conversation]] = []
    wanted: set[MemberKey] = set()
    reply_ids: set[int] = set()
    for _, draft, conversation in open_drafts:
        wanted.add((conversation.id, draft.sender_id))
        if draft.mentions and draft.mentions[0] != AT_ALL:
            wanted.update((conversation.id, user_id) for user_id in draft.mentions)
        if draft.reply_to is not None:
            reply_ids.add(draft.reply_to)
    members = yield from sql.lock_members(sorted(wanted))
    targets: dict[int, Target] = {}
    past: dict[MemberKey, list[tuple[int, int]]] = {}
    if reply_ids:
        targets = yield from sql.find_targets(sorted(reply_ids))
        with_past = sorted(key for key, member in members.items() if member.has_past)
        if with_past:
            past = yield from sql.find_past(with_past)

    messages: list[tuple[Any, ...]] = []
    touched: dict[MemberKey, Member] = {}
    grown: dict[int, Conversation] = {}
    mention_rows: list[tuple[Any, ...]] = []
    ids = iter(new_ids.take(len(open_drafts)))
    for i, draft, conversation in open_drafts:
        key = (conversation.id, draft.sender_id)
        member = members.get(key)
        quote, quoted_seq = None, None
        try:
            policy.check_may_send(conversation, member, now_ms)
            assert member is not None
            if draft.mentions and draft.mentions[0] == AT_ALL:
                policy.check_may_mention_all(conversation, member)
            if draft.reply_to is not None:
                quote, quoted_seq = _quote(draft.reply_to, targets, member, conversation, past.get(key, ()))
            if draft.rejected:
                raise NexoError("content_rejected")
        except NexoError as error:
            outcomes[i] = error
            refused.append((i, draft, conversation))
            continue

        seq = conversation.head_seq + 1
        conversation.head_seq = seq
        conversation.countable += 1
        send_at = conversation.last_send_at + 1
        if now_ms > send_at:
            send_at = now_ms
        conversation.last_send_at = send_at
        mentions: tuple[str, ...] = ()
        at_all = False
        if draft.mentions:
            mentions, at_all = _mark_mentions(draft, conversation, members, touched, mention_rows)
        step_over_own(member, seq, conversation.countable, at_all)
        server_msg_id = next(ids) if draft.server_msg_id is None else draft.server_msg_id
        messages.append(
            (
                server_msg_id,
                conversation.id,
                seq,
                draft.sender_id,
                draft.client_msg_id,
                draft.msg_type,
                draft.content,
                draft.request_hash,
                draft.reply_to,
                rows.encode_mentions(mentions) if mentions else None,
                draft.extra,
                send_at,
                conversation.countable,
            )
        )
        touched[key] = member
        grown[conversation.id] = conversation
        message = Message(
            server_msg_id,
            draft.client_msg_id,
            draft.conversation_id,
            seq,
            draft.sender_id,
            draft.msg_type,
            draft.content,
            send_at,
            mentions,
            draft.reply_to,
            quote,
            draft.extra,
        )
        outcomes[i] = Sent(message, True, quoted_seq, draft.filtered, conversation.member_epoch)
    if messages:
        in_order = [touched[key] for key in sorted(touched)]
        yield from sql.store(messages, list(grown.values()), in_order, mention_rows)
    return refused


def _mark_mentions(
    draft: Draft,
    conversation: Conversation,
    members: dict[MemberKey, Member],
    touched: dict[MemberKey, Member],
    mention_rows: list[tuple[Any, ...]],
) -> tuple[tuple[str, ...], bool]:
    """Count the mention for members only, and never for the sender."""
    conv, seq = conversation.id, conversation.head_seq
    if draft.mentions[0] == AT_ALL:
        conversation.at_all_count += 1
        mention_rows.append((conv, AT_ALL, seq, draft.sender_id))
        return draft.mentions, True
    kept = []
    for user_id in draft.mentions:
        member = members.get((conv, user_id))
        if member is None or member.status != MemberStatus.NORMAL:
            continue
        kept.append(user_id)
        if user_id != draft.sender_id:
            member.mention_unread += 1
            touched[conv, user_id] = member
            mention_rows.append((conv, user_id, seq, draft.sender_id))
    return tuple(kept), False


def _quote(
    reply_to: int,
    targets: dict[int, Target],
    member: Member,
    conversation: Conversation,
    past: Sequence[tuple[int, int]],
) -> tuple[Quote | None, int | None]:
    target = targets.get(reply_to)
    if (
        target is None
        or target.conv != conversation.id
        or not is_visible(visible_ranges(member, conversation, past), target.seq)
    ):
        raise NexoError("message_not_found", "reply_to names no message of this conversation that you may see")
    if target.status == MessageStatus.RECALLED:
        return None, None
    text = quote_text(target.msg_type, target.content)
    return Quote(reply_to, target.sender_id, target.msg_type, text), target.seq

"""The transaction that stores a batch of drafts.

The order is the contract's: locks, idempotency, permission, filter verdict, seq, write. A message that
cannot be stored gets its own error; the other messages are stored. Differences between engines are
behind `HotSql`.

Few sends are retries, so idempotency is first left to the unique key: a batch without a retry looks up no
id, and a batch with a retry fails as a whole and runs again with `look_first`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import structs

from nexo.core import policy
from nexo.core.content import quote_text
from nexo.core.files import FILE_TYPES, MEDIA_TYPES, StoredFile, file_named_by, files_in_items, filled_content
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
from nexo.store import expiry, rows
from nexo.store.engine import Script
from nexo.store.files.reading import is_seen
from nexo.store.files.uses import NewUse
from nexo.store.files.uses import add as add_uses
from nexo.store.hiding import deleters_of
from nexo.store.journal import writing

T = TypeVar("T")

SentKey = tuple[str, str]  # sender, client_msg_id
MemberKey = tuple[int, str]  # conv, user
SeqKey = tuple[int, int]  # conv, seq
FileKey = tuple[str, str]  # sender, file_id
Stored = tuple[str, list[rows.NewMessage]]  # references in the journal, messages


class SkipReason(Enum):
    """Why a draft is not decided in this transaction; it has to be tried again."""

    LOCKED = "another transaction holds the conversation"
    MISSING = "the single chat has to be created first"
    AGAIN = "another draft of this batch has the same client_msg_id, or its predecessor is tried again"


Outcome = Sent | NexoError | SkipReason


class SentRow(NamedTuple):
    """A message that was stored before, found by its client_msg_id."""

    request_hash: bytes
    message: tuple[Any, ...]
    number: int  # how many messages its conversation has up to it


class Target(NamedTuple):
    """A message that a reply points at."""

    conv: int
    seq: int
    sender_id: str
    msg_type: int
    content: str
    status: int
    edit_seq: int | None  # the event of its last edit
    expires_at: int | None


class Locked(NamedTuple):
    now_ms: int
    conversations: dict[str, Conversation]
    busy: set[str]  # exist, but are held by another transaction


class HotSql(Protocol):
    """The statements of a batch, and of the cursor writer, in one engine's best form."""

    exclusive: bool  # a transaction that writes is alone in the database

    def lock_conversations(self, names: list[str], wait: bool) -> Script[Locked]:
        """Returns the conversations that exist, locked in the order given; without `wait`, without those that another
        transaction holds."""

    def find_sent(self, keys: list[SentKey]) -> Script[dict[SentKey, SentRow]]: ...

    def lock_members(self, keys: list[MemberKey]) -> Script[dict[MemberKey, Member]]:
        """Returns members, locked in the order given, because the cursor writer locks them too."""

    def lock_epochs(self, shards: list[int]) -> Script[dict[int, int]]:
        """Returns the epochs of these shards of accepted messages, locked until the commit."""

    def find_targets(self, ids: list[int]) -> Script[dict[int, Target]]: ...

    def lock_files(self, file_ids: list[str]) -> Script[dict[str, StoredFile]]:
        """Returns files that exist, locked in the order given, so that none is deleted while it gets a new use."""

    def find_past(self, keys: list[MemberKey]) -> Script[dict[MemberKey, list[tuple[int, int]]]]: ...

    def find_conversations(self, names: list[str]) -> Script[dict[str, Conversation]]:
        """Returns conversations without a lock; not to be changed."""

    def find_countable(self, keys: list[SeqKey]) -> Script[dict[SeqKey, int]]:
        """Returns the number of countable messages up to each of these."""

    def beside(self, script: Script[T]) -> Script[T]:
        """Runs a script that changes neither conversations nor members, so that remembered rows stay valid."""

    def save_members(self, members: list[Member], entries: str | None) -> Script[None]:
        """Writes the cursors and counters of locked members, and a row of the journal."""

    def store(
        self,
        messages: list[tuple[Any, ...]],
        conversations: list[Conversation],
        members: list[Member],
        mentions: list[tuple[Any, ...]],
        entries: str,
        now_ms: int,
    ) -> Script[None]:
        """Writes all of these, and `entries` as a row of the journal."""


def write_nothing() -> Script[list[Outcome]]:
    """Returns the outcomes of a batch without drafts."""
    return []
    yield


def write_batch(
    sql: HotSql,
    new_ids: IdGenerator,
    drafts: Sequence[Draft],
    stored: list[Stored],
    *,
    wait: bool,
    uncertain: Set[int],
    look_first: bool,
    contacts_only: bool = False,
) -> Script[list[Outcome]]:
    """Stores the drafts that can be stored. Returns one outcome per draft, in order.

    `uncertain`: the positions of drafts that an earlier attempt may have committed; rows found for them count as
    fresh. Without `look_first` a retry among the drafts is a `Conflict`. What is written is added to `stored`. With
    `contacts_only` users without a contact may not send to each other.
    """
    outcomes: list[Outcome | None] = [None] * len(drafts)
    followers: list[tuple[int, int]] = []
    first: dict[SentKey, int] = {}
    held: set[tuple[str, str]] = set()  # sender and conversation: nothing may overtake a draft that comes again
    is_fenced = False
    for i, draft in enumerate(drafts):
        if draft.fence is not None:
            is_fenced = True
        if held and (draft.sender_id, draft.conversation_id) in held:
            outcomes[i] = SkipReason.AGAIN
            continue
        leader = first.setdefault((draft.sender_id, draft.client_msg_id), i)
        if leader != i:
            if drafts[leader].request_hash == draft.request_hash:
                followers.append((i, leader))
            else:
                outcomes[i] = SkipReason.AGAIN
                held.add((draft.sender_id, draft.conversation_id))

    if is_fenced:
        yield from _refuse_fenced(sql, drafts, outcomes, first)

    now_ms, conversations, busy = yield from sql.lock_conversations(
        sorted({drafts[i].conversation_id for i in first.values()}), wait
    )
    if busy:
        for i in first.values():
            if outcomes[i] is None and drafts[i].conversation_id in busy:
                outcomes[i] = SkipReason.LOCKED
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
            outcomes[i] = _answer_again(draft, found[key], conversation, i in uncertain, now_ms)
        elif conversation is not None:
            open_drafts.append((i, draft, conversation))
        else:
            outcomes[i] = SkipReason.MISSING if draft.kind == Kind.SINGLE else NexoError("group_not_found")

    if open_drafts:
        refused = yield from _store_open(sql, new_ids, open_drafts, outcomes, now_ms, stored, contacts_only)
        if refused and not look_first:
            yield from _answer_refused(sql, refused, outcomes, now_ms)
    for i, leader in followers:
        outcomes[i] = _follow(outcomes[leader])
    return outcomes  # type: ignore[return-value]


def _refuse_fenced(
    sql: HotSql, drafts: Sequence[Draft], outcomes: list[Outcome | None], first: dict[SentKey, int]
) -> Script[None]:
    """Refuses accepted messages whose shard has another owner now: an owner that was paused would store them a second
    time, or in another order."""
    epochs = yield from sql.lock_epochs(sorted({draft.fence[0] for draft in drafts if draft.fence is not None}))
    for i in first.values():
        fence = drafts[i].fence
        if fence is not None and epochs.get(fence[0]) != fence[1]:
            outcomes[i] = NexoError("server_busy", "Another instance saves these messages now")


def _answer_refused(
    sql: HotSql, refused: list[tuple[int, Draft, Conversation]], outcomes: list[Outcome | None], now_ms: int
) -> Script[None]:
    """Answers refused retries from their rows: a stored message stays accepted, even if it would be refused now."""
    found = yield from sql.find_sent([(draft.sender_id, draft.client_msg_id) for _, draft, _ in refused])
    for i, draft, conversation in refused:
        row = found.get((draft.sender_id, draft.client_msg_id))
        if row is not None:
            outcomes[i] = _answer_again(draft, row, conversation, False, now_ms)


def _follow(outcome: Outcome | None) -> Outcome:
    assert outcome is not None
    if isinstance(outcome, Sent):
        return structs.replace(outcome, fresh=False)
    return outcome


def _answer_again(
    draft: Draft, row: SentRow, conversation: Conversation | None, uncertain: bool, now_ms: int
) -> Outcome:
    if bytes(row.request_hash) != draft.request_hash:
        return NexoError("client_msg_id_reused")
    message = rows.message(row.message, draft.conversation_id)
    message.number = row.number
    message.reactions = None  # not looked up: neither the ACK nor another push needs them
    if expiry.is_over(message, now_ms):
        expiry.blank(message)
    # stored by an owner that was killed before it could publish it
    uncertain = uncertain or message.server_msg_id == draft.server_msg_id
    # compared with the row: the word list may have changed since
    changed = message.status == MessageStatus.NORMAL and (draft.filtered or message.content != draft.content)
    epoch = conversation.member_epoch if conversation is not None else 0
    return Sent(message, uncertain, None, changed, epoch)


def _store_open(
    sql: HotSql,
    new_ids: IdGenerator,
    open_drafts: list[tuple[int, Draft, Conversation]],
    outcomes: list[Outcome | None],
    now_ms: int,
    stored: list[Stored],
    contacts_only: bool,
) -> Script[list[tuple[int, Draft, Conversation]]]:
    """Stores drafts of locked conversations. Returns the refused drafts."""
    refused: list[tuple[int, Draft, Conversation]] = []
    wanted: set[MemberKey] = set()
    reply_ids: set[int] = set()
    named: list[FileKey] = []
    keys: list[MemberKey] = []  # of the senders
    for _, draft, conversation in open_drafts:
        keys.append((conversation.id, draft.sender_id))
        if draft.mentions and draft.mentions[0] != AT_ALL:
            wanted.update((conversation.id, user_id) for user_id in draft.mentions)
        if draft.reply_to is not None:
            reply_ids.add(draft.reply_to)
        if draft.msg_type in FILE_TYPES:
            named += [(draft.sender_id, file_id) for file_id in _files_of(draft)]
    wanted.update(keys)
    members = yield from sql.lock_members(sorted(wanted))
    targets: dict[int, Target] = {}
    past: dict[MemberKey, list[tuple[int, int]]] = {}
    deleters: dict[SeqKey, tuple[str, ...]] = {}
    if reply_ids:
        targets = yield from sql.find_targets(sorted(reply_ids))
        deleters = yield from deleters_of((target.conv, target.seq) for target in targets.values())
        with_past = sorted(key for key, member in members.items() if member.has_past)
        if with_past:
            past = yield from sql.find_past(with_past)

    files = (yield from _find_files(sql, named)) if named else {}
    uses: list[NewUse] = []

    messages: list[rows.NewMessage] = []
    touched: dict[MemberKey, Member] = {}
    grown: dict[int, Conversation] = {}
    first_seqs: dict[int, int] = {}
    mention_rows: list[tuple[Any, ...]] = []
    expiring: list[tuple[Message, int]] = []
    ids = iter(new_ids.take(len(open_drafts)))
    for key, (i, draft, conversation) in zip(keys, open_drafts, strict=True):
        member = members.get(key)
        quote = quoted_seq = edit_seq = None
        try:
            policy.check_may_send(conversation, member, now_ms, contacts_only=contacts_only)
            assert member is not None
            if draft.mentions and draft.mentions[0] == AT_ALL:
                policy.check_may_mention_all(conversation, member)
            if draft.reply_to is not None:
                quote, quoted_seq, edit_seq = _quote(
                    draft.reply_to, targets, member, conversation, past.get(key, ()), now_ms
                )
            if draft.rejected:
                raise NexoError("content_rejected")
            carried: list[StoredFile] = []
            if named and draft.msg_type in FILE_TYPES:
                carried = _carried(draft, files)
        except NexoError as error:
            outcomes[i] = error
            refused.append((i, draft, conversation))
            continue

        seq = conversation.head_seq + 1
        conversation.head_seq = seq
        conversation.countable = countable = conversation.countable + 1
        send_at = conversation.last_send_at + 1
        moment = draft.accepted_at if 0 < draft.accepted_at < now_ms else now_ms
        if moment > send_at:
            send_at = moment
        conversation.last_send_at = send_at
        mentions: tuple[str, ...] = ()
        at_all = False
        if draft.mentions:
            mentions, at_all = _mark_mentions(draft, conversation, members, touched, mention_rows)
        step_over_own(member, seq, countable, at_all)
        server_msg_id = next(ids) if draft.server_msg_id is None else draft.server_msg_id
        message = draft.message(server_msg_id, seq, send_at, mentions, quote)
        message.number = countable
        is_filled = False
        if carried:
            uses += [NewUse(server_msg_id, file.file_id, conversation.id, seq) for file in carried]
            is_filled = draft.msg_type in MEDIA_TYPES  # items of a merged message are complete already
            if is_filled:
                message.content = filled_content(draft.content, carried[0])
        if draft.expires_s or conversation.message_ttl_s:
            message.expires_at = expiry.expires_at(send_at, draft.expires_s, conversation.message_ttl_s)
            expiring.append((message, key[0]))
        messages.append((message, key[0], draft.request_hash, countable))
        touched[key] = member
        if conversation.id not in grown:
            grown[conversation.id] = conversation
            first_seqs[conversation.id] = seq
        changed = draft.filtered or is_filled
        sent = outcomes[i] = Sent(message, True, quoted_seq, changed, conversation.member_epoch, edit_seq)
        if quoted_seq is not None and deleters:
            sent.unquoted_for = deleters.get((conversation.id, quoted_seq), ())
    if messages:
        in_order = [touched[key] for key in sorted(touched)]
        entries = writing.changed(first_seqs, grown)
        stored.append((entries, messages))
        yield from sql.store(rows.new_rows(messages), list(grown.values()), in_order, mention_rows, entries, now_ms)
        if uses:
            yield from sql.beside(add_uses(uses))
        if expiring:
            yield from sql.beside(expiry.schedule(expiring))
    return refused


def _files_of(draft: Draft) -> list[str]:
    """Returns the files that a draft names."""
    if draft.msg_type not in MEDIA_TYPES:
        return files_in_items(draft.content)
    file_id = file_named_by(draft.content)
    return [file_id] if file_id else []


def _carried(draft: Draft, files: dict[FileKey, StoredFile]) -> list[StoredFile]:
    found = [files.get((draft.sender_id, file_id)) for file_id in _files_of(draft)]
    if None in found:
        raise NexoError("file_not_found")
    return [file for file in found if file is not None]


def _find_files(sql: HotSql, named: list[FileKey]) -> Script[dict[FileKey, StoredFile]]:
    """Returns the files that these senders may name: their own ones, and those of messages that they may see."""
    locked = yield from sql.lock_files(sorted({file_id for _, file_id in named}))
    found: dict[FileKey, StoredFile] = {}
    for sender_id, file_id in named:
        file = locked.get(file_id)
        if file is not None and (file.owner_id == sender_id or (yield from is_seen(sender_id, file_id))):
            found[sender_id, file_id] = file
    return found


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
    now_ms: int,
) -> tuple[Quote | None, int | None, int | None]:
    """Returns the quote, and the seqs of its target and of the target's last edit."""
    target = targets.get(reply_to)
    ranges = visible_ranges(member, conversation, past)
    if target is None or target.conv != conversation.id or not is_visible(ranges, target.seq):
        raise NexoError("message_not_found", "reply_to names no message of this conversation that you may see")
    # a sender who may not see the last edit quotes an earlier version, which is looked up when the message is read
    is_newer = target.edit_seq is not None and not is_visible(ranges, target.edit_seq)
    is_over = target.expires_at is not None and target.expires_at <= now_ms
    if target.status != MessageStatus.NORMAL or is_newer or is_over:
        return None, None, None
    text = quote_text(target.msg_type, target.content)
    return Quote(reply_to, target.sender_id, target.msg_type, text), target.seq, target.edit_seq

"""Cursors: advanced in memory, written in batches; forward only, and never beyond the visible head.

Advances that are lost in a crash only repeat deliveries. `mark_read` writes at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from nexo.background import Background
from nexo.core.model import Conversation, CursorChange, Member
from nexo.core.unread import countable_sql, move_read, own_sql, unread, visible_at_all
from nexo.core.visibility import visible_head
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import SIZES, Buckets
from nexo.store.batch import HotSql, MemberKey
from nexo.store.database import Database
from nexo.store.deletions import counted_above
from nexo.store.engine import Script, StoreError, do, many
from nexo.store.engine import rows as query
from nexo.store.hiding import not_deleted_by
from nexo.store.journal import writing

log = structlog.get_logger()

PENDING_MAX = 100_000
FLUSH_MAX = 2_000


class Advance(NamedTuple):
    """Move a user's cursors in a conversation up to these seqs (0: leave it)."""

    conversation_id: str
    user_id: str
    delivered_seq: int
    read_seq: int


class Advanced(NamedTuple):
    """Rows as written. To be read inside the transaction only: the next one may change them."""

    changes: list[CursorChange]
    members: dict[MemberKey, Member]
    conversations: dict[str, Conversation]


class ReadMark(NamedTuple):
    changes: list[CursorChange]
    read_seq: int
    unread: int


def advance(sql: HotSql, wanted: Sequence[Advance], earlier: dict[MemberKey, CursorChange]) -> Script[Advanced]:
    """Advances the cursors of many members in one transaction. Rows are locked in the order of the committer.

    `earlier` keeps what moved over all attempts: after a commit without an answer the next attempt finds nothing to
    move, and the change must be published all the same.
    """
    conversations = yield from sql.find_conversations(sorted({item.conversation_id for item in wanted}))
    keys = {
        (conversations[item.conversation_id].id, item.user_id): item
        for item in wanted
        if item.conversation_id in conversations
    }
    locked = yield from sql.lock_members(sorted(keys))
    if not sql.exclusive:
        # Own sends of these members may have been committed meanwhile; from here on they wait for this lock.
        conversations = yield from sql.find_conversations(sorted(conversations))
    countable = yield from _countable(sql, keys, locked, conversations)
    changed: list[Member] = []
    beside: list[Member] = []  # with columns that the common statement does not write
    read: list[MemberKey] = []
    changes: list[CursorChange] = []
    for key, member in locked.items():
        item = keys[key]
        conversation = conversations[item.conversation_id]
        before = (member.delivered_seq, member.read_seq)
        upper = visible_head(member, conversation)
        read_seq = max(member.read_seq, min(item.read_seq, upper))
        delivered_seq = max(member.delivered_seq, min(item.delivered_seq, upper), read_seq)
        if (delivered_seq, read_seq) == before:
            if key in earlier:
                changes.append(earlier[key])
            continue
        if member.last_own_seq > member.read_seq:
            if read_seq > member.read_seq:
                read_seq = yield from _step_over_own(member, read_seq, upper)
            delivered_seq = yield from _step_over_own(member, max(delivered_seq, read_seq), upper)
        if read_seq > member.read_seq:
            number = countable.get((member.conv, read_seq))
            if number is None:
                number = (yield from sql.find_countable([(member.conv, read_seq)]))[member.conv, read_seq]
            if member.deleted_above or member.marked_unread:
                beside.append(member)
            yield from _move_read(member, conversation, read_seq, number)
            read.append(key)
        member.delivered_seq = delivered_seq
        changed.append(member)
        earlier[key] = CursorChange(item.conversation_id, item.user_id, before[0], delivered_seq, before[1], read_seq)
        changes.append(earlier[key])
    if beside:
        values = [(member.deleted_above, member.conv, member.user_id) for member in beside]
        yield many("UPDATE members SET deleted_above=?,marked_unread=0 WHERE conv=? AND user_id=?", values)
    if changed:
        yield from sql.save_members(changed, writing.reads(read) if read else None)
    return Advanced(changes, locked, conversations)


def mark_read(sql: HotSql, item: Advance, earlier: dict[MemberKey, CursorChange]) -> Script[ReadMark | None]:
    """Moves one read cursor. Returns None for a user who never was a member."""
    advanced = yield from advance(sql, [item], earlier)
    conversation = advanced.conversations.get(item.conversation_id)
    member = advanced.members.get((conversation.id, item.user_id)) if conversation is not None else None
    if conversation is None or member is None:
        return None
    if member.marked_unread:
        member.marked_unread = 0
        yield do("UPDATE members SET marked_unread=0 WHERE conv=? AND user_id=?", member.conv, member.user_id)
    return ReadMark(advanced.changes, member.read_seq, unread(member, conversation))


def _countable(
    sql: HotSql,
    keys: dict[tuple[int, str], Advance],
    locked: dict[tuple[int, str], Member],
    conversations: dict[str, Conversation],
) -> Script[dict[tuple[int, int], int]]:
    """Returns the running numbers of the seqs to which read cursors will move. Those of heads are known."""
    known: dict[tuple[int, int], int] = {}
    wanted: set[tuple[int, int]] = set()
    for key, member in locked.items():
        item = keys[key]
        conversation = conversations[item.conversation_id]
        known[conversation.id, conversation.head_seq] = conversation.countable
        if member.to_seq is not None and member.to_countable is not None:
            known[conversation.id, member.to_seq] = member.to_countable
        read_seq = min(item.read_seq, visible_head(member, conversation))
        if read_seq > member.read_seq:
            wanted.add((conversation.id, read_seq))
    if missing := sorted(wanted - known.keys()):
        known |= yield from sql.find_countable(missing)
    return known


def _step_over_own(member: Member, seq: int, upper: int) -> Script[int]:
    """Returns the seq after stepping over own messages directly above `seq`: these need no acknowledgement."""
    if member.last_own_seq <= seq or seq >= upper:
        return seq
    found = yield query(
        "SELECT seq FROM messages WHERE conv=? AND seq>? AND seq<=? "
        f"AND NOT (sender_id=? AND {own_sql()}) ORDER BY seq LIMIT 1",
        member.conv,
        seq,
        member.last_own_seq,
        member.user_id,
    )
    return min(upper, found[0][0] - 1 if found else member.last_own_seq)


def _move_read(member: Member, conversation: Conversation, read_seq: int, countable_no: int) -> Script[None]:
    """Moves the read cursor, and counts what it passes. A deleted message does not count as a mention any more."""
    passed = (member.conv, member.read_seq, read_seq)
    own = deleted = mentions = at_alls = 0
    if member.own_above:
        if read_seq >= member.last_own_seq:
            own = member.own_above
        else:
            # Own messages on both sides of the new place: count the passed ones. Rare, and each is passed once.
            ((own,),) = yield query(
                "SELECT count(*) FROM messages WHERE conv=? AND seq>? AND seq<=? AND sender_id=? "
                f"AND {countable_sql()}",
                *passed,
                member.user_id,
            )
    if member.deleted_above:
        left = yield from counted_above(member, read_seq, countable_no, member.own_above - own)
        deleted = member.deleted_above - left
    kept = not_deleted_by(member, "mentions.seq")
    named = (member.conv, max(member.read_seq, member.cleared_seq), read_seq)
    if member.mention_unread:
        ((mentions,),) = yield query(
            f"SELECT count(*) FROM mentions WHERE conv=? AND seq>? AND seq<=? AND user_id=? AND {kept.sql}",
            *named,
            member.user_id,
            *kept.params,
        )
    if visible_at_all(member, conversation) > member.at_all_base:
        ((at_alls,),) = yield query(
            "SELECT count(*) FROM mentions WHERE conv=? AND seq>? AND seq<=? AND user_id=? AND sender_id<>? "
            f"AND {kept.sql}",
            *named,
            AT_ALL,
            member.user_id,
            *kept.params,
        )
    member.marked_unread = 0
    move_read(member, read_seq, countable_no, own=own, deleted=deleted, mentions=mentions, at_alls=at_alls)


class CursorWriter:
    """Collects advances and writes them `flush_s` after the first; `on_moved` gets the changes after the commit."""

    def __init__(
        self,
        database: Database,
        sql: HotSql,
        flush_s: float,
        on_moved: Callable[[list[CursorChange]], None],
        background: Background,
    ) -> None:
        self._database = database
        self._sql = sql
        self.flush_s = flush_s
        self.on_moved = on_moved
        self._background = background.branch()
        self._pending: dict[tuple[str, str], tuple[int, int]] = {}  # conversation, user: delivered and read up to
        self._timer: asyncio.TimerHandle | None = None
        self._flushing = asyncio.Lock()
        self._sizes = Buckets(SIZES)
        self._taken = Buckets()
        self._failures = 0

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int = 0, read_seq: int = 0) -> None:
        """Queues an acknowledgement. The caller has checked the visibility before."""
        key = (conversation_id, user_id)
        old = self._pending.get(key)
        if old is not None:
            delivered, read = old
            if delivered_seq > delivered or read_seq > read:
                self._pending[key] = (max(delivered, delivered_seq), max(read, read_seq))
            return
        if len(self._pending) >= PENDING_MAX:
            raise NexoError("server_busy", "Too many acknowledgements are waiting to be written", retry_after_ms=1000)
        self._pending[key] = (delivered_seq, read_seq)
        self._set_timer()

    def _keep(self, item: Advance) -> None:
        """Queue an advance again that could not be written, even above the limit."""
        delivered, read = self._pending.get(item[:2], (0, 0))
        self._pending[item[:2]] = (max(delivered, item.delivered_seq), max(read, item.read_seq))

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.flush_s, self._start_flush)

    def _start_flush(self) -> None:
        self._timer = None
        self._background.start("cursor_flush", self.flush(), detached=True)  # of many requests

    @property
    def pending(self) -> int:
        return len(self._pending)

    def samples(self) -> Iterable[Sample]:
        yield f.QUEUE(len(self._pending), "cursors")
        yield f.QUEUE_LIMIT(PENDING_MAX, "cursors")
        yield f.CURSOR_BATCH(self._sizes)
        yield f.CURSOR_FLUSH(self._taken)
        yield f.CURSOR_FAILURES(self._failures)

    async def flush(self) -> None:
        """Writes the advances that wait now. What could not be written is kept."""
        async with self._flushing:
            try:
                await self._flush()
            finally:
                if self._pending:  # what was not written, or arrived meanwhile
                    self._set_timer()

    async def _flush(self) -> None:
        waiting = list(self._pending)
        for start in range(0, len(waiting), FLUSH_MAX):
            items = [Advance(*key, *self._pending.pop(key)) for key in waiting[start : start + FLUSH_MAX]]
            started = time.monotonic()
            try:
                advanced = await self._database.write(partial(advance, self._sql, items, {}))
            except Exception as error:  # whatever it is, the advances are not lost
                unexpected = None if isinstance(error, StoreError) else error
                log.warning("cursors_not_written", error=str(error), count=len(items), exc_info=unexpected)
                self._failures += 1
                for item in items:
                    self._keep(item)
                return
            self._sizes.observe(len(items))
            self._taken.observe(time.monotonic() - started)
            self.on_moved(advanced.changes)

    async def mark_read(self, user_id: str, conversation_id: str, seq: int) -> tuple[int, int]:
        """Moves the read cursor at once. Returns the committed cursor and unread count."""
        item = Advance(conversation_id, user_id, seq, seq)
        marked = await self._database.change_and_publish(partial(mark_read, self._sql, item, {}), self._marked)
        if marked is None:
            raise NexoError("conversation_not_found")
        return marked.read_seq, marked.unread

    def _marked(self, marked: ReadMark | None) -> None:
        if marked is not None:
            self.on_moved(marked.changes)

    async def stop(self) -> None:
        await self.flush()
        async with self._flushing:  # so no job is writing
            if self._timer is not None:
                self._timer.cancel()
            await self._background.stop()

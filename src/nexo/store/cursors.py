"""Cursors: advanced in memory, written in batches; forward only, and never beyond what is visible.

Losing what waits here in a crash only repeats deliveries. `mark_read` writes through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import structlog

from nexo.core.model import Conversation, CursorChange, Member
from nexo.core.unread import unread
from nexo.core.visibility import visible_head
from nexo.errors import NexoError
from nexo.ids import AT_ALL
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import SIZES, Buckets
from nexo.store.batch import HotSql, MemberKey
from nexo.store.database import Database
from nexo.store.engine import Script, StoreError
from nexo.store.engine import rows as query

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
    """Rows as they are now. Look at them in the transaction only: the next one may change them."""

    changes: list[CursorChange]
    members: dict[MemberKey, Member]
    conversations: dict[str, Conversation]


class MarkedRead(NamedTuple):
    changes: list[CursorChange]
    read_seq: int
    unread: int


def advance(sql: HotSql, wanted: Sequence[Advance], earlier: dict[MemberKey, CursorChange]) -> Script[Advanced]:
    """One transaction for many members. Rows are locked in the order in which the committer locks them.

    `earlier` holds, over all attempts at the same thing, what moved: when an attempt was committed unheard,
    the next one finds nothing to move, and what moved has to be told all the same.
    """
    conversations = yield from sql.find_conversations(sorted({item.conversation_id for item in wanted}))
    keys = {
        (conversations[item.conversation_id].id, item.user_id): item
        for item in wanted
        if item.conversation_id in conversations
    }
    locked = yield from sql.lock_members(sorted(keys))
    if not sql.exclusive:
        # Their own sends may have been committed meanwhile; from here on they wait for us.
        conversations = yield from sql.find_conversations(sorted(conversations))
    countable = yield from _countable(sql, keys, locked, conversations)
    changed: list[Member] = []
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
        if member.own_above:
            if read_seq > member.read_seq:
                read_seq = yield from _step_over_own(member, read_seq, upper)
            delivered_seq = yield from _step_over_own(member, max(delivered_seq, read_seq), upper)
        if read_seq > member.read_seq:
            number = countable.get((member.conv, read_seq))
            if number is None:
                number = (yield from sql.find_countable([(member.conv, read_seq)]))[member.conv, read_seq]
            yield from _move_read(member, conversation, read_seq, number)
        member.delivered_seq = delivered_seq
        changed.append(member)
        earlier[key] = CursorChange(item.conversation_id, item.user_id, before[0], delivered_seq, before[1], read_seq)
        changes.append(earlier[key])
    if changed:
        yield from sql.save_members(changed)
    return Advanced(changes, locked, conversations)


def mark_read(sql: HotSql, item: Advance, earlier: dict[MemberKey, CursorChange]) -> Script[MarkedRead | None]:
    """Move one read cursor; None for one who never was a member."""
    advanced = yield from advance(sql, [item], earlier)
    conversation = advanced.conversations.get(item.conversation_id)
    member = advanced.members.get((conversation.id, item.user_id)) if conversation is not None else None
    if conversation is None or member is None:
        return None
    return MarkedRead(advanced.changes, member.read_seq, unread(member, conversation))


def _countable(
    sql: HotSql,
    keys: dict[tuple[int, str], Advance],
    locked: dict[tuple[int, str], Member],
    conversations: dict[str, Conversation],
) -> Script[dict[tuple[int, int], int]]:
    """The running numbers at the places where read cursors will stop. Heads are known already."""
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
    """Go on over one's own messages that follow right after `seq`: there is nothing to acknowledge."""
    if member.last_own_seq <= seq or seq >= upper:
        return seq
    found = yield query(
        "SELECT seq FROM messages WHERE conv=? AND seq>? AND seq<=? AND (sender_id<>? OR msg_type>=100) "
        "ORDER BY seq LIMIT 1",
        member.conv,
        seq,
        member.last_own_seq,
        member.user_id,
    )
    return min(upper, found[0][0] - 1 if found else member.last_own_seq)


def _move_read(member: Member, conversation: Conversation, read_seq: int, countable_no: int) -> Script[None]:
    """Move the read cursor and take what it passes out of the counters."""
    passed = (member.conv, member.read_seq, read_seq)
    if member.own_above:
        if read_seq >= member.last_own_seq:
            member.own_above = 0
        else:
            # Own messages on both sides of the new place: count the passed ones. Rare, and each is passed once.
            ((own,),) = yield query(
                "SELECT count(*) FROM messages WHERE conv=? AND seq>? AND seq<=? AND sender_id=? AND msg_type<100",
                *passed,
                member.user_id,
            )
            member.own_above -= own
    if member.mention_unread:
        ((mine,),) = yield query(
            "SELECT count(*) FROM mentions WHERE conv=? AND seq>? AND seq<=? AND user_id=?", *passed, member.user_id
        )
        member.mention_unread -= mine
    at_all = conversation.at_all_count if member.to_at_all is None else member.to_at_all
    if at_all > member.at_all_base:
        ((others,),) = yield query(
            "SELECT count(*) FROM mentions WHERE conv=? AND seq>? AND seq<=? AND user_id=? AND sender_id<>?",
            *passed,
            AT_ALL,
            member.user_id,
        )
        member.at_all_base += others
    member.read_seq = read_seq
    member.read_countable = countable_no


class CursorWriter:
    """Collects advances and writes them `flush_s` after the first; `tell` learns what moved, after it is committed."""

    def __init__(
        self, database: Database, sql: HotSql, flush_s: float, tell: Callable[[list[CursorChange]], None] | None = None
    ) -> None:
        self._database = database
        self._sql = sql
        self.flush_s = flush_s
        self.tell = tell
        self._pending: dict[tuple[str, str], tuple[int, int]] = {}  # conversation, user: delivered and read up to
        self._timer: asyncio.TimerHandle | None = None
        self._flushing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sizes = Buckets(SIZES)
        self._taken = Buckets()
        self._failures = 0

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int = 0, read_seq: int = 0) -> None:
        """Note that a user has acknowledged. The caller has asked the visibility gate before."""
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
        """It could not be written: it waits again, beside what came meanwhile, however much that is."""
        delivered, read = self._pending.get(item[:2], (0, 0))
        self._pending[item[:2]] = (max(delivered, item.delivered_seq), max(read, item.read_seq))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.flush_s, self._start_flush)

    def _start_flush(self) -> None:
        self._timer = None
        task = asyncio.get_running_loop().create_task(self.flush())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        """Write what waits now; what comes meanwhile has its own time. What the database does not take is kept."""
        async with self._flushing:
            waiting = list(self._pending)
            for start in range(0, len(waiting), FLUSH_MAX):
                items = [Advance(*key, *self._pending.pop(key)) for key in waiting[start : start + FLUSH_MAX]]
                started = time.monotonic()
                try:
                    advanced = await self._database.write(partial(advance, self._sql, items, {}))
                except StoreError as error:
                    log.warning("cursors_not_written", error=str(error), count=len(items))
                    self._failures += 1
                    for item in items:
                        self._keep(item)
                    return
                self._sizes.observe(len(items))
                self._taken.observe(time.monotonic() - started)
                if self.tell is not None and advanced.changes:
                    self.tell(advanced.changes)

    async def mark_read(self, user_id: str, conversation_id: str, seq: int) -> tuple[int, int]:
        """Move the read cursor now; where it is and how much is unread, as committed."""
        item = Advance(conversation_id, user_id, seq, seq)
        marked = await self._database.change(partial(mark_read, self._sql, item, {}))
        if marked is None:
            raise NexoError("conversation_not_found")
        if self.tell is not None and marked.changes:
            self.tell(marked.changes)
        return marked.read_seq, marked.unread

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.flush()
        await asyncio.gather(*self._tasks, return_exceptions=True)

"""Random histories of a group and a single chat, compared step by step with a model that recounts everything."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core import add_users, expire_now, found_group, fresh_id, open_test_core, say
from harness.model import Chat
from nexo.assembly.core import Core
from nexo.config import parse_store_url
from nexo.core.model import ConversationEntry
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.store.check import check as check_store

USERS = range(5)
GROUP, SINGLE = "group", "single"
NEVER_S = 86_400.0
LAST = -1  # in place of a seq
EXAMPLES = {"sqlite": 200, "mariadb": 40, "postgresql": 35}

user = st.integers(0, 4)
# those who may do something, and those to whom something can happen, come up more often
speaker = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3, 4])
mover = st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4])
peer = st.integers(0, 1)
place = st.integers(0, 40)
mentions = st.one_of(st.just(()), st.lists(user, min_size=1, max_size=2).map(tuple), st.just(("@all",)))
operation = st.one_of(
    st.tuples(st.just("send"), st.just(GROUP), speaker, mentions, st.none()),
    st.tuples(st.just("send"), st.just(GROUP), speaker, mentions, place),
    st.tuples(st.just("send"), st.just(SINGLE), peer, mentions, st.none() | place),
    st.tuples(st.just("recall"), st.sampled_from([GROUP, SINGLE]), user, place),
    st.tuples(st.just("ack"), st.sampled_from([GROUP, SINGLE]), mover, st.sampled_from(["delivered", "read"]), place),
    st.tuples(st.just("mark_read"), st.sampled_from([GROUP, SINGLE]), mover, place),
    st.just(("flush",)),
    st.tuples(st.just("delete"), st.sampled_from([GROUP, SINGLE]), mover, st.lists(place, min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.sampled_from([GROUP, SINGLE]), mover, st.just([LAST])),
    st.tuples(st.just("clear"), st.sampled_from([GROUP, SINGLE]), mover),
    st.tuples(st.just("expire"), st.sampled_from([GROUP, SINGLE]), place, st.booleans()),
    st.tuples(st.just("join"), mover),
    st.tuples(st.just("leave"), mover),
    st.tuples(st.just("remove"), speaker, mover),
    st.tuples(st.just("invite"), speaker, st.lists(user, min_size=1, max_size=3)),
    st.tuples(st.just("set_role"), speaker, mover, st.sampled_from(["admin", "member"])),
)
_examples = itertools.count()


class History:
    """One group and one single chat among five people, in Nexo and in the model at the same time."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.users = [f"u{n}.{next(_examples)}" for n in USERS]
        self.chats = {GROUP: Chat(), SINGLE: Chat()}
        self.names = {SINGLE: single_conversation_id(*self.users[:2])}
        self.ids: dict[tuple[str, int], int] = {}
        self.group_id = ""

    async def begin(self) -> None:
        await add_users(self.core, self.users)
        self.group_id, self.names[GROUP] = await found_group(self.core, *self.users[:3])
        group, single = self.chats[GROUP], self.chats[SINGLE]
        group.add(self.users[0], 101)
        for n, one in enumerate(self.users[:3]):
            group.let_in(one, 1, role=2 if n == 0 else 0)
        for one in self.users[:2]:
            single.let_in(one, 1)
        ((event,), *_) = [(await self.core.conversations.pull(self.users[0], self.names[GROUP])).messages]
        self.ids[GROUP, 1] = event.server_msg_id

    async def attempt(self, work: Any, expected: str | None) -> Any:
        """Run it; it must be refused for the expected reason, or not at all."""
        result, reason = None, None
        try:
            result = await work
        except NexoError as error:
            reason = error.name
        assert reason == expected
        return result

    # -- the operations --------------------------------------------------------------------------------

    async def send(self, where: str, number: int, named: tuple[Any, ...], target: int | None) -> None:
        chat, sender = self.chats[where], self.users[number]
        wanted = tuple("@all" if one == "@all" else self.users[one] for one in dict.fromkeys(named))
        person = chat.people.get(sender)
        expected = None
        if person is None:
            expected = "not_group_member"
        elif not person.active:
            expected = "member_not_active"
        elif "@all" in wanted and (where == SINGLE or person.role == 0):
            expected = "no_permission"
        elif target is not None and not chat.sees(sender, target):
            expected = "message_not_found"
        fields: dict[str, Any] = {"client_msg_id": fresh_id(), "mentions": list(wanted)}
        if target is not None:
            fields["reply_to"] = self.ids.get((where, target), 1)
        to = self.group_id if where == GROUP else self.users[1 - number]
        content = fields["client_msg_id"]
        message = await self.attempt(say(self.core, sender, to, content, **fields), expected)
        if message is None:
            return
        kept = tuple(one for one in wanted if one == "@all" or (one in chat.people and chat.people[one].active))
        entry = chat.add(sender, 1, content, mentions=kept, reply_to=target)
        assert (message.seq, message.mentions) == (entry.seq, kept)
        self.ids[where, entry.seq] = message.server_msg_id
        again = await say(self.core, sender, to, content, **fields)
        assert (again.server_msg_id, again.seq) == (message.server_msg_id, message.seq)

    async def recall(self, where: str, number: int, seq: int) -> None:
        chat, actor = self.chats[where], self.users[number]
        server_msg_id = self.ids.get((where, seq), 1)
        person = chat.people.get(actor)
        expected = None
        if person is None or not chat.sees(actor, seq):
            expected = "message_not_found"
        elif not person.active:
            expected = "member_not_active"
        elif not chat.log[seq - 1].countable or chat.log[seq - 1].expired:
            expected = "message_not_found"
        elif chat.log[seq - 1].sender != actor and (where == SINGLE or person.role == 0):
            expected = "not_message_sender"
        done = await self.attempt(self.core.conversations.recall(actor, server_msg_id), expected)
        if done is None:
            return
        if not chat.log[seq - 1].recalled:
            chat.log[seq - 1].recalled = True
            event = chat.add(actor, 100)
            assert done.seq == event.seq
            self.ids[where, event.seq] = done.event.server_msg_id

    async def ack(self, where: str, number: int, kind: str, seq: int) -> None:
        chat, actor = self.chats[where], self.users[number]
        work = self.core.acknowledging.ack_seq(actor, kind, self.names[where], seq)
        allowed = actor in chat.people and chat.last_visible(actor) > 0
        if allowed:
            seq = min(seq, chat.last_visible(actor))
        allowed = allowed and chat.sees(actor, seq)
        if await self.attempt(work, None if allowed else "ack_not_allowed") is not None:
            chat.note(actor, seq, seq if kind == "read" else 0)

    async def mark_read(self, where: str, number: int, seq: int) -> None:
        chat, actor = self.chats[where], self.users[number]
        expected = None
        if actor not in chat.people:
            expected = "not_group_member" if where == GROUP else "conversation_not_found"
        work = self.core.acknowledging.mark_read(actor, self.names[where], seq=seq)
        answer = await self.attempt(work, expected)
        if answer is not None and chat.head:
            chat.advance(actor, seq, seq)
            assert answer == (chat.people[actor].read, chat.unread(actor))

    async def delete(self, where: str, number: int, seqs: list[int]) -> None:
        chat, actor = self.chats[where], self.users[number]
        seqs = [chat.head if seq == LAST else seq for seq in seqs]
        expected = None
        if not all(chat.sees(actor, seq) and chat.log[seq - 1].countable for seq in seqs):
            expected = "message_not_found"
        ids = [self.ids.get((where, seq), 1) for seq in seqs]
        done = await self.attempt(self.core.conversations.delete_messages(actor, ids), expected)
        if done is None:
            return
        person = chat.people[actor]
        fresh = {seq for seq in seqs if chat.shows(actor, seq)}
        person.deleted |= fresh
        changed = [(set(one.server_msg_ids), one.unread) for one in done]
        assert changed == ([({self.ids[where, seq] for seq in fresh}, chat.unread(actor))] if fresh else [])
        await self.compare_deletions(where, actor)

    async def clear(self, where: str, number: int) -> None:
        chat, actor = self.chats[where], self.users[number]
        expected = None
        if actor not in chat.people:
            expected = "not_group_member" if where == GROUP else "conversation_not_found"
        elif not chat.head:
            expected = "conversation_not_found"
        done = await self.attempt(self.core.conversations.clear(actor, self.names[where]), expected)
        if done is None:
            return
        person, last = chat.people[actor], chat.last_visible(actor)
        assert done.up_to_seq == (last if last > person.cleared else None)
        person.cleared = max(last, person.cleared)
        person.deleted.clear()
        assert done.unread == chat.unread(actor) == 0
        await self.compare_deletions(where, actor)

    async def compare_deletions(self, where: str, actor: str) -> None:
        """What a device learns that was away, of all changes and page by page."""
        chat, name = self.chats[where], self.names[where]
        ids: set[int] = set()
        after, has_more, up_to_seq = 0, True, None
        while has_more:
            page = await self.core.conversations.deleted_since(actor, name, after, 2)
            ids |= set(page.server_msg_ids)
            after, has_more, up_to_seq = page.deleted_rev, page.has_more, up_to_seq or page.up_to_seq
        person = chat.people[actor]
        assert ids == {self.ids[where, seq] for seq in person.deleted}
        assert (up_to_seq or 0) == person.cleared
        (head,) = await self.core.conversations.heads(actor, [name])
        assert (head.deleted_rev, head.unread) == (after, chat.unread(actor))

    async def expire(self, where: str, seq: int, erased: bool) -> None:
        """The time of a message is over, and its content is erased, or not yet."""
        chat = self.chats[where]
        if not 1 <= seq <= chat.head or not chat.log[seq - 1].countable or chat.log[seq - 1].recalled:
            return
        await expire_now(self.core, self.ids[where, seq])
        chat.log[seq - 1].expired = True
        if erased:
            await self.core.store.expiry.erase_some()

    async def flush(self) -> None:
        await self.core.store.cursors.flush()
        for chat in self.chats.values():
            chat.write_noted()

    async def join(self, number: int) -> None:
        chat, actor = self.chats[GROUP], self.users[number]
        status, change = await self.core.groups.join(actor, self.group_id)
        assert status == "joined"
        if actor in chat.people and chat.people[actor].active:
            assert change.event is None
        else:
            self._let_in([actor], actor, change)

    async def invite(self, number: int, others: list[int]) -> None:
        chat, actor = self.chats[GROUP], self.users[number]
        wanted = [self.users[one] for one in dict.fromkeys(others)]
        active = actor in chat.people and chat.people[actor].active
        work = self.core.groups.invite(actor, self.group_id, wanted)
        change = await self.attempt(work, None if active else "not_group_member")
        if change is None:
            return
        added = [one for one in wanted if one not in chat.people or not chat.people[one].active]
        assert change.added == added
        if added:
            self._let_in(added, actor, change)

    def _let_in(self, users: list[str], actor: str, change: Any) -> None:
        chat = self.chats[GROUP]
        event = chat.add(actor, 102)
        assert change.event.seq == event.seq
        self.ids[GROUP, event.seq] = change.event.server_msg_id
        for one in users:
            chat.let_in(one, event.seq)

    async def leave(self, number: int) -> None:
        chat, actor = self.chats[GROUP], self.users[number]
        person = chat.people.get(actor)
        expected = None
        if person is None or not person.active:
            expected = "not_group_member"
        elif person.role == 2:
            expected = "owner_cannot_leave"
        change = await self.attempt(self.core.groups.leave(actor, self.group_id), expected)
        if change is not None:
            self._see_out(actor, actor, 103, change)

    async def remove(self, number: int, other: int) -> None:
        chat, actor, target = self.chats[GROUP], self.users[number], self.users[other]
        one, two = chat.people.get(actor), chat.people.get(target)
        expected = None
        if one is None or not one.active or two is None or not two.active:
            expected = "not_group_member"
        elif one.role == 0 or actor == target or two.role >= one.role:
            expected = "no_permission"
        change = await self.attempt(self.core.groups.remove(actor, self.group_id, target), expected)
        if change is not None:
            self._see_out(target, actor, 104, change)

    def _see_out(self, user: str, actor: str, msg_type: int, change: Any) -> None:
        chat = self.chats[GROUP]
        event = chat.add(actor, msg_type)
        assert change.event.seq == event.seq
        self.ids[GROUP, event.seq] = change.event.server_msg_id
        chat.see_out(user, event.seq)

    async def set_role(self, number: int, other: int, role: str) -> None:
        chat, actor, target = self.chats[GROUP], self.users[number], self.users[other]
        one, two = chat.people.get(actor), chat.people.get(target)
        expected = None
        if one is None or not one.active or two is None or not two.active:
            expected = "not_group_member"
        elif one.role != 2 or actor == target:
            expected = "no_permission"
        change = await self.attempt(self.core.groups.set_role(actor, self.group_id, target, role), expected)
        if change is not None and change.event is not None:
            assert two is not None
            two.role = {"member": 0, "admin": 1}[role]
            event = chat.add(actor, 106)
            self.ids[GROUP, event.seq] = change.event.server_msg_id

    # -- the comparison --------------------------------------------------------------------------------

    async def compare_lists(self) -> None:
        """Everybody's list: heads, cursors and counts."""
        lists = await asyncio.gather(*(self.core.conversations.entries(one) for one in self.users))
        for one, (entries, _, _) in zip(self.users, lists, strict=True):
            found = {entry.conversation_id: _numbers(entry) for entry in entries}
            wanted = {}
            for where, chat in self.chats.items():
                if one in chat.people and chat.head:
                    person = chat.people[one]
                    wanted[self.names[where]] = (
                        chat.last_visible(one),
                        person.spans[-1].low,
                        person.read,
                        person.delivered,
                        chat.unread(one),
                        chat.unread_mentions(one),
                    )
            assert found == wanted
            for entry in entries:
                self.compare_last(one, entry)

    def compare_last(self, one: str, entry: ConversationEntry) -> None:
        """The last message of the list: the last that is shown of the present span."""
        where = next(where for where, name in self.names.items() if name == entry.conversation_id)
        shown = [e.seq for e in self.chats[where].shown(one) if e.seq >= entry.min_seq]
        assert (entry.last_message.seq if entry.last_message else None) == (shown[-1] if shown else None)

    async def compare_messages(self) -> None:
        """Everything that everybody can read, and what was not delivered."""
        for one in self.users:
            missing = set()
            for where, chat in self.chats.items():
                if one not in chat.people:
                    continue
                name = self.names[where]
                page = await self.core.conversations.pull(one, name)
                found = [
                    (m.seq, m.sender_id, m.msg_type, m.status, m.mentions, m.quote is not None) for m in page.messages
                ]
                wanted = []
                for e in chat.shown(one):
                    named = () if e.recalled or e.expired else e.mentions
                    status = 2 if e.expired else int(e.recalled)
                    wanted.append((e.seq, e.sender, e.msg_type, status, named, chat.quoted(one, e)))
                assert found == wanted
                assert page.head_seq == (chat.last_visible(one) if chat.head else 0)
                assert page.next_seq == page.head_seq + 1
                texts = [msgspec.json.decode(m.content) for m in page.messages if not m.is_event]
                assert texts == ["" if e.recalled or e.expired else e.content for e in chat.shown(one) if e.countable]
                past = await self.core.conversations.history(one, name)
                assert [m.seq for m in past.messages] == [e.seq for e in reversed(chat.shown(one))]
                if chat.head:
                    missing |= {(name, seq) for seq in chat.undelivered(one)}
            offline = await self.core.conversations.offline(one)
            assert {(m.conversation_id, m.seq) for m in offline.messages} == missing
            assert not offline.has_more
            again, has_more = await self.core.conversations.resend(one)
            assert {(m.conversation_id, m.seq) for m in again} == missing
            assert not has_more


def _numbers(entry: ConversationEntry) -> tuple[int, ...]:
    return (
        entry.head_seq,
        entry.min_seq,
        entry.read_seq,
        entry.delivered_seq,
        entry.unread,
        entry.unread_mentions,
    )


async def play(core: Core, operations: list[tuple[Any, ...]]) -> None:
    history = History(core)
    await history.begin()
    for name, *arguments in operations:
        await getattr(history, name)(*arguments)
        await history.compare_lists()
    await history.compare_messages()
    await history.flush()
    await history.compare_lists()
    await history.compare_messages()


def test_any_history_ends_where_a_recount_says(core_url: str, engine_name: str) -> None:
    # one core for all examples, each of which has its own people: opening one costs more than a history
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        stack = AsyncExitStack()
        core = runner.run(stack.enter_async_context(open_test_core(core_url)))
        # Cursors are written when a history says so, never by the clock: examples may take any time together.
        core.store.cursors.flush_s = NEVER_S

        @settings(
            max_examples=EXAMPLES[engine_name],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(st.lists(operation, min_size=10, max_size=40))
        def check(operations: list[tuple[Any, ...]]) -> None:
            runner.run(play(core, operations))

        try:
            check()
            report = runner.run(check_store(parse_store_url(core_url)))
            assert report.counts == {}
        finally:
            runner.run(stack.aclose())

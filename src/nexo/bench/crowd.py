"""The people of a run: signed up, connected, waited for, counted, and asked for their histories."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter

import msgspec

from nexo.bench.api_requests import TRIES, TRIES_OVER_RESTARTS, HttpCaller, few_at_a_time
from nexo.bench.counts import Proof
from nexo.bench.http_sender import HttpSender
from nexo.bench.numbering import client_msg_id_of
from nexo.bench.person import Person, SendTarget, Stage
from nexo.bench.plan import CLIENTS_PER_SENDER, COMING_BACK, Account, Scenario
from nexo.bench.tokens import LoginReply, Tokens
from nexo.bench.track import Track, digest_of
from nexo.bench.verdict import Acknowledged, Comparison, Expectation, StoredRow
from nexo.ids import single_conversation_id

PASSWORD = "benchmark of Nexo"
AT_ONCE = 32
SAMPLE_MEMBERS = 16  # of each conversation, when not all histories are pulled
PAGE = 200


class _Group(msgspec.Struct):
    group_id: str
    conversation_id: str


class _Head(msgspec.Struct):
    conversation_id: str
    head_seq: int


class _Heads(msgspec.Struct):
    conversations: list[_Head]


class _Page(msgspec.Struct):
    messages: list[StoredRow]
    next_seq: int
    has_more: bool


class CrowdChat(msgspec.Struct):
    """One conversation of the run."""

    conversation_id: str
    members: list[Person]
    senders: list[Person]
    is_group: bool
    base_seq: int = 0

    @property
    def head(self) -> int:
        """Returns the highest seq that any person has received."""
        tracks = (sender.tracks[self.conversation_id] for sender in self.senders)
        return max((max(track.contiguous, *track.ahead, 0) for track in tracks), default=self.base_seq)


class Crowd:
    def __init__(self, stage: Stage, report: Callable[[str, float], None]) -> None:
        self.stage = stage
        self.report = report
        self.people: list[Person] = []
        self.singles: list[CrowdChat] = []
        self.rooms: list[CrowdChat] = []
        self.proof = Proof()
        tries = TRIES_OVER_RESTARTS if stage.plan.allow_restarts else TRIES
        self.caller = HttpCaller(stage.addresses, tries=tries)
        self.tokens = Tokens(stage, self.caller)

    @property
    def chats(self) -> list[CrowdChat]:
        return self.singles + self.rooms

    # -- getting together ------------------------------------------------------------------------------

    async def sign_up(self) -> None:
        """All persons of the plan, and their conversations."""
        plan = self.stage.plan
        accounts = plan.accounts or [
            Account(f"b{plan.run_id}-{plan.first_user + i}", PASSWORD) for i in range(plan.users)
        ]
        people: list[Person | None] = [None] * len(accounts)
        sharing: list[list[Person]] = [[] for _ in accounts]  # a login
        done = 0

        async def one(place: int) -> None:
            nonlocal done
            account = accounts[place]
            if not plan.accounts:
                await self.caller.call("POST", "/user/register", body=account)
            answer = await self.caller.call("POST", "/auth/login", body=account)
            login = msgspec.json.decode(answer, type=LoginReply)
            by_http = plan.scenario is Scenario.http_send and place % 2 == 0  # of a pair the first one sends
            kind = HttpSender if by_http else Person
            person = people[place] = kind(self.stage, plan.first_user + place, account.user_id, login.access_token)
            sharing[place].append(person)
            self.tokens.keep_fresh(login, sharing[place])
            done += 1
            self.report("signing up", done / len(accounts))

        await few_at_a_time(one, range(len(accounts)))
        self.people = [person for person in people if person is not None]
        for i in range(plan.connections - len(self.people)):  # users may have many connections
            twin = self.people[i % len(accounts)]
            person = Person(self.stage, plan.first_user + len(self.people), twin.user_id, twin.token)
            self.people.append(person)
            sharing[i % len(accounts)].append(person)
        await self._pair_up()
        await self._found_groups()

    async def _pair_up(self) -> None:
        plan = self.stage.plan
        for i in range(plan.pairs):
            if plan.scenario in COMING_BACK:
                receiver, sender = self.people[i], self.people[plan.pairs + i // CLIENTS_PER_SENDER]
            else:
                sender, receiver = self.people[2 * i : 2 * i + 2]
            name = single_conversation_id(sender.user_id, receiver.user_id)
            base = await self._head(sender, name) if plan.accounts else 0
            chat = CrowdChat(name, [sender, receiver], [sender], False, base)
            self._join(chat, receiver.user_id)
            self.singles.append(chat)

    async def _found_groups(self) -> None:
        plan = self.stage.plan
        for i in range(plan.groups):
            first = 2 * plan.pairs + i * plan.members
            members = self.people[first : first + plan.members]
            body = {"name": f"bench {i}", "member_ids": [person.user_id for person in members[1:]]}
            answer = await self.caller.call("POST", "/group/create", members[0].token, body)
            group = msgspec.json.decode(answer, type=_Group)
            chat = CrowdChat(group.conversation_id, members, members[: plan.senders], True)
            self._join(chat, group.group_id)
            self.rooms.append(chat)
            self.report("founding groups", (i + 1) / plan.groups)

    def _join(self, chat: CrowdChat, to: str) -> None:
        self.stage.dialect.know(chat.conversation_id)
        for member in chat.members:
            track = Track(chat.conversation_id, chat.base_seq)
            member.tracks[chat.conversation_id] = track
            self.stage.tracks.setdefault(chat.conversation_id, []).append(track)
            if member in chat.senders:
                member.targets.append(SendTarget(track, to, chat.is_group, len(member.targets)))

    async def _head(self, person: Person, name: str) -> int:
        answer = await self.caller.call("GET", "/conversation/newest_seq", person.token, conversation_ids=name)
        heads = msgspec.json.decode(answer, type=_Heads).conversations
        return next((head.head_seq for head in heads if head.conversation_id == name), 0)

    async def connect(self, people: Sequence[Person], at_once: int = AT_ONCE) -> None:
        done = 0

        async def one(person: Person) -> None:
            nonlocal done
            await person.connect()
            done += 1
            self.report("connecting", done / len(people))

        await few_at_a_time(one, people, at_once)
        await self.settle(people)

    async def settle(self, people: Sequence[Person], timeout_s: float = 30.0) -> None:
        """Waits until every person holds all messages that the server reported."""
        deadline = perf_counter() + timeout_s
        while not all(person.is_caught_up for person in people) and perf_counter() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    # -- the end ---------------------------------------------------------------------------------------

    async def drain(self) -> None:
        """Wait for the answers and deliveries that are still on their way, as long as there is any hope."""
        stage = self.stage
        deadline = perf_counter() + stage.plan.drain_s
        asked = perf_counter()
        while perf_counter() < deadline:
            stage.flush_acknowledgements()
            left = sum(len(person.pending) for person in self.people)
            if not left and not self._awaited():
                break
            self.report("waiting for the last deliveries", 0.0)
            await asyncio.sleep(0.02)
            if perf_counter() - asked > 1:
                asked = perf_counter()
                for person in self.people:
                    person.ask_again()

    def _awaited(self) -> bool:
        for chat in self.chats:
            head = chat.head
            name = chat.conversation_id
            if any(member.wanted and member.tracks[name].contiguous < head for member in chat.members):
                return True
            if self._wants_receipts(chat) and any(
                sender.tracks[name].receipt < sender.tracks[name].contiguous
                for sender in chat.senders
                if sender.tracks[name].mine
            ):
                return True
        return False

    def _wants_receipts(self, chat: CrowdChat) -> bool:
        """Receipts of single chats reach the author; those of groups are coalesced, capped, and not followed."""
        steady = not any(person.flapping or person.slow or not person.wanted for person in chat.members)
        return not chat.is_group and self.stage.plan.acks != "none" and steady

    def count_up(self) -> None:
        """Compares what every person holds with the stored histories."""
        counts = self.stage.counts
        counts.unanswered = sum(len(person.pending) for person in self.people)
        for chat in self.chats:
            head, name = chat.head, chat.conversation_id
            saved = sum(sender.tracks[name].mine for sender in chat.senders)
            for member in chat.members:
                if not member.wanted:
                    continue
                track = member.tracks[name]
                counts.expected += saved - track.mine
                counts.missing += track.missing_below(head)
            if self._wants_receipts(chat):
                counts.receipts_due += saved
                counts.delivered += sum(
                    min(sender.tracks[name].receipt - chat.base_seq, sender.tracks[name].mine)
                    for sender in chat.senders
                    if sender.tracks[name].receipt
                )

    async def prove(self) -> None:
        """Pull the whole history of every conversation, as every participant, and compare."""
        done = 0
        chats = self.chats

        async def one(chat: CrowdChat) -> None:
            nonlocal done
            comparison = Comparison(self._expectation(chat), self.proof)
            for member in self._witnesses(chat):
                rows = await self._pull(chat, member)
                comparison.see(member.user_id, rows)
                self._check_held(chat, member, rows)
            self.proof.histories_of += len(chat.members)
            done += 1
            self.report("comparing histories", done / len(chats))

        await few_at_a_time(one, chats, 8)

    def _witnesses(self, chat: CrowdChat) -> list[Person]:
        if self.stage.plan.verify == "all" or len(chat.members) <= SAMPLE_MEMBERS:
            return chat.members
        step = len(chat.members) / SAMPLE_MEMBERS
        return [chat.members[int(i * step)] for i in range(SAMPLE_MEMBERS)]

    async def _pull(self, chat: CrowdChat, member: Person) -> list[StoredRow]:
        rows: list[StoredRow] = []
        begin = chat.base_seq + 1
        while True:
            answer = await self.caller.call(
                "GET", "/msg/pull", member.token, conversation_id=chat.conversation_id, begin_seq=begin, limit=PAGE
            )
            page = msgspec.json.decode(answer, type=_Page)
            rows += page.messages
            if not page.has_more or page.next_seq <= begin:
                return rows
            begin = page.next_seq

    def _expectation(self, chat: CrowdChat) -> Expectation:
        seed = self.stage.plan.seed
        expected = Expectation(
            chat.conversation_id, seed, chat.base_seq, {}, set(), set(), conflicts=[], is_group=chat.is_group
        )
        for sender in chat.senders:
            place = next(i for i, t in enumerate(sender.targets) if t.track.conversation_id == chat.conversation_id)
            acks = zip(sender.acks_number, sender.acks_seq, sender.acks_id, sender.acks_target, strict=True)
            for number, seq, server_msg_id, target in acks:
                if target != place:
                    continue
                client_msg_id = client_msg_id_of(seed, sender.number, number)
                if seq in expected.acknowledged:
                    other = expected.acknowledged[seq].client_msg_id
                    expected.conflicts.append(f"seq {seq} to {other} and {client_msg_id}")
                expected.acknowledged[seq] = Acknowledged(client_msg_id, str(server_msg_id), sender.user_id)
            mine = sender.targets[place]
            expected.refused |= {client_msg_id_of(seed, sender.number, n) for n, t in sender.refused if t is mine}
            expected.in_doubt |= {
                client_msg_id_of(seed, sender.number, n) for n, (_, t) in sender.pending.items() if t is mine
            }
        return expected

    def _check_held(self, chat: CrowdChat, member: Person, rows: Sequence[StoredRow]) -> None:
        """Check that what was pushed to this member equals what is stored: the same messages, ids and bodies."""
        track = member.tracks[chat.conversation_id]
        digest = 0
        for row in rows:
            if row.client_msg_id is not None and row.sender_id != member.user_id and track.holds(row.seq):
                digest ^= digest_of(row.seq, row.server_msg_id, row.client_msg_id, row.content)
        if digest != track.digest:
            self.proof.note("received is not stored", f"{chat.conversation_id}: what {member.user_id} got differs")

    async def close(self) -> None:
        self.stage.settled = False
        self.tokens.stop()
        for person in self.people:
            person.leave()
        for task in list(self.stage.tasks):
            task.cancel()
        await asyncio.gather(*self.stage.tasks, return_exceptions=True)
        self.caller.close()

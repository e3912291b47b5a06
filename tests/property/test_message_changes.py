"""Random histories with edits, reactions, pins, recalls, deletions, clears, expiry, joins and leaves: what a client
makes of the events that it pulls is what it would fetch anew, and unread counts are what a recount gives."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from harness.core import expire_now, found_group, fresh_id, open_test_core, run, say
from nexo.assembly.core import Core
from nexo.core.model import QUIET_TYPES, Message, MessageStatus
from nexo.errors import NexoError
from nexo.store.check import check

PEOPLE = ["ann", "bob", "cy", "dee", "eve"]
EMOJIS = ["👍", "❤️", "🎉", "👩‍💻"]
STEPS = 140

View = dict[int, tuple[Any, ...]]  # by message: what a client shows of it


def shown(message: Message) -> tuple[Any, ...]:
    counts = {one.emoji: one.count for one in message.reactions or ()}
    return (message.status, json.loads(message.content), message.mentions, message.edited_at, counts)


class Client:
    """A client that pulls from where it is, and applies events to what it has."""

    def __init__(self, core: Core, user_id: str, name: str) -> None:
        self.core = core
        self.user_id = user_id
        self.name = name
        self.next_seq = 1
        self.deleted_rev = 0
        self.messages: View = {}
        self.seqs: dict[int, int] = {}
        self.pins: set[int] = set()

    async def forget(self) -> None:
        """Begin anew, as a client does that joins again."""
        self.next_seq, self.messages = 1, {}
        self.pins = {one.server_msg_id for one in await self.core.changes.pins(self.user_id, self.name)}

    async def pull(self) -> None:
        page = await self.core.conversations.pull(self.user_id, self.name, self.next_seq, None, None)
        assert not page.has_more
        for message in page.messages:
            self.take(message)
        self.next_seq = page.next_seq or self.next_seq
        gone = await self.core.conversations.deleted_since(self.user_id, self.name, self.deleted_rev, None)
        self.deleted_rev = gone.deleted_rev
        for one in {one for one in self.messages if one in gone.server_msg_ids or self.is_cleared(one, gone.up_to_seq)}:
            del self.messages[one]
            self.pins.discard(one)

    def is_cleared(self, server_msg_id: int, up_to_seq: int | None) -> bool:
        return up_to_seq is not None and self.seqs[server_msg_id] <= up_to_seq

    def take(self, message: Message) -> None:
        if message.msg_type < 100:
            self.messages[message.server_msg_id] = shown(message)
            self.seqs[message.server_msg_id] = message.seq
            return
        content = json.loads(message.content)
        known = self.messages.get(int(content.get("server_msg_id", 0)))
        if message.msg_type == 100 and known is not None:
            self.messages[int(content["server_msg_id"])] = (1, "", (), None, {})
            self.pins.discard(int(content["server_msg_id"]))
        if message.msg_type not in QUIET_TYPES:
            return
        is_bare = not {"content", "reactions", "on"} & content.keys()
        if known is None and not is_bare and message.msg_type != 112:
            assert int(content["server_msg_id"]) in self.seqs, "of a message that the reader may not see"
        if known is None or known[0] != MessageStatus.NORMAL or is_bare:  # recalled since: its event follows
            return
        status, text, mentions, edited_at, counts = known
        if message.msg_type == 110:
            text, mentions, edited_at = content["content"], tuple(content["mentions"]), content["edited_at"]
        elif message.msg_type == 111:
            counts = {one["emoji"]: one["count"] for one in content["reactions"]}
        elif content["on"]:
            self.pins.add(int(content["server_msg_id"]))
        else:
            self.pins.discard(int(content["server_msg_id"]))
        self.messages[int(content["server_msg_id"])] = (status, text, mentions, edited_at, counts)


class Story:
    def __init__(self, core: Core, seed: int) -> None:
        self.core = core
        self.random = random.Random(seed)
        self.sent: list[int] = []
        self.mentioned: list[tuple[str, int, str]] = []  # who, at which seq, by whom
        self.clients: dict[str, Client] = {}
        self.left: set[str] = set()
        self.expired: set[int] = set()

    async def begin(self) -> None:
        self.group_id, self.name = await found_group(self.core, *PEOPLE[:4])
        self.clients = {user_id: Client(self.core, user_id, self.name) for user_id in PEOPLE}

    async def step(self) -> None:
        acts = {
            self.send: 9,
            self.edit: 9,
            self.react: 12,
            self.announce: 5,
            self.pin: 3,
            self.recall: 2,
            self.delete: 4,
            self.clear: 1,
            self.expire: 2,
            self.leave: 1,
            self.join: 2,
            self.read: 3,
            self.pull: 8,
        }
        (act,) = self.random.choices(list(acts), list(acts.values()))
        try:
            await act()
        except NexoError as error:
            if error.row.number >= 5000:  # not a refusal: the server failed
                raise

    def person(self) -> str:
        return self.random.choice(PEOPLE)

    def message(self) -> int:
        return self.random.choice(self.sent[-10:]) if self.sent else 1

    async def send(self) -> None:
        sender = self.person()
        named = self.random.sample(PEOPLE, self.random.randint(0, 2))
        fields: dict[str, Any] = {"mentions": named}
        if self.sent and self.random.random() < 0.4:
            fields["reply_to"] = self.message()
        message = await say(self.core, sender, self.group_id, fresh_id(), **fields)
        self.sent.append(message.server_msg_id)
        self.mentioned += [(one, message.seq, sender) for one in message.mentions if one != sender]

    async def edit(self) -> None:
        target = self.message()
        named = self.random.choice([None, self.random.sample(PEOPLE, self.random.randint(0, 3))])
        sender = await self.core.store.messages.locate(target)
        actor = self.person() if sender is None or self.random.random() < 0.1 else sender.sender_id
        done, _ = await self.core.changes.edit(actor, target, f"edited {fresh_id()}", fresh_id(), named)
        if done.published is not None:
            event = done.published.event
            self.mentioned += [(one, event.seq, actor) for one in event.mentions]

    async def react(self) -> None:
        emoji = self.random.choice(EMOJIS)
        await self.core.changes.react(self.person(), self.message(), emoji, self.random.random() < 0.7)

    async def announce(self) -> None:
        await run(self.core, "UPDATE reaction_changes SET at=at-1000")
        for server_msg_id in await self.core.store.message_changes.marked(0, 100):
            await self.core.store.message_changes.announce(server_msg_id)

    async def pin(self) -> None:
        await self.core.changes.pin(PEOPLE[0], self.message(), self.random.random() < 0.6)

    async def recall(self) -> None:
        await self.core.conversations.recall(PEOPLE[0], self.message())

    async def delete(self) -> None:
        await self.core.conversations.delete_messages(self.person(), [self.message(), self.message()])

    async def clear(self) -> None:
        await self.core.conversations.clear(self.person(), self.name)

    async def expire(self) -> None:
        """The time of a message is over; every other time its content is erased, too."""
        if not self.sent:
            return
        target = self.message()
        self.expired.add(target)
        await expire_now(self.core, target)
        if self.random.random() < 0.5:
            await self.core.store.expiry.erase_some()

    async def leave(self) -> None:
        user_id = self.random.choice(PEOPLE[1:])
        await self.announce()
        await self.core.groups.leave(user_id, self.group_id)
        self.left.add(user_id)

    async def join(self) -> None:
        user_id = self.person()
        _, change = await self.core.groups.join(user_id, self.group_id)
        if change.event is not None:
            self.left.discard(user_id)
            await self.clients[user_id].forget()

    async def read(self) -> None:
        await self.core.acknowledging.mark_read(self.person(), self.name, seq=self.random.randint(1, 60))

    async def pull(self) -> None:
        await self.clients[self.person()].pull()

    # -- the end -------------------------------------------------------------------------------------------

    async def compare(self, user_id: str) -> None:
        client = self.clients[user_id]
        await client.pull()
        fresh = Client(self.core, user_id, self.name)
        page = await self.core.conversations.pull(user_id, self.name, 1, None, None)
        fresh.messages = {one.server_msg_id: shown(one) for one in page.messages if one.msg_type < 100}
        for one in self.expired & fresh.messages.keys():  # a client blanks them by its own clock
            assert fresh.messages[one][:2] in ((1, ""), (2, ""))
            assert not fresh.messages[one][4]
            client.messages[one] = fresh.messages[one]
        if user_id in self.left:  # a recall blanks for members who left, too, and they get no event of it
            gone = {one for one, view in fresh.messages.items() if view[0] != MessageStatus.NORMAL}
            for view in (client.messages, fresh.messages):
                for one in gone:
                    view.pop(one, None)
        assert client.messages == fresh.messages, user_id
        self.compare_quotes(page.messages, fresh.messages)
        (entry,) = [
            one
            for one in (await self.core.conversations.entries(user_id, None, None))[0]
            if one.conversation_id == self.name
        ]
        loud = [one for one in page.messages if one.msg_type not in QUIET_TYPES]
        newest = [one for one in loud if one.seq >= entry.min_seq]
        assert (entry.last_message.seq if entry.last_message else None) == (newest[-1].seq if newest else None)
        above = [one for one in page.messages if one.seq > entry.read_seq and one.seq >= entry.min_seq]
        assert entry.unread == sum(one.msg_type < 100 and one.sender_id != user_id for one in above)
        seen = {one.seq for one in above}
        assert entry.unread_mentions == sum(who == user_id and seq in seen for who, seq, _ in self.mentioned)
        if user_id not in self.left:
            pins = {one.server_msg_id for one in await self.core.changes.pins(user_id, self.name)}
            assert pins == client.pins - self.expired, user_id

    def compare_quotes(self, messages: list[Message], views: View) -> None:
        for message in messages:
            if message.quote is not None and message.reply_to in views:
                assert message.quote.text == views[message.reply_to][1][:200]


@pytest.mark.parametrize("seed", range(6))
async def test_pulled_events_lead_to_what_is_fetched_anew(core_url: str, seed: int) -> None:
    async with open_test_core(core_url, PEOPLE) as core:
        story = Story(core, seed)
        await story.begin()
        for _ in range(STEPS):
            await story.step()
        await story.announce()
        for user_id in PEOPLE:
            if user_id in story.clients and (user_id in PEOPLE[:4] or user_id in await members(core, story)):
                await story.compare(user_id)
        assert (await check(core.store.url)).findings == []


async def members(core: Core, story: Story) -> set[str]:
    found = await core.store.groups.audience(story.name)
    return set(found.listeners) | story.left

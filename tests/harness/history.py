"""A lively random history: everything that people do in a chat, in one database, from one seed."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from harness.core import fresh_id
from nexo.assembly.core import Core
from nexo.errors import NexoError
from nexo.ids import single_conversation_id
from nexo.service.forwarding import ForwardTarget
from nexo.store.accounts import write_block
from nexo.store.conversations import create_singles

PEOPLE = [f"user{i}" for i in range(8)]


class History:
    """Acts on a core at random. Refusals are part of life; anything else is a failure."""

    def __init__(self, core: Core, seed: int) -> None:
        self.random = random.Random(seed)
        self.core = core
        self.groups: list[str] = []
        self.sent: list[tuple[str, int]] = []  # sender, server_msg_id
        self.refusals: dict[str, int] = {}

    async def live(self, steps: int, *, changes: bool = True) -> None:
        """Without `changes` nothing happens that the tables of the first release cannot hold."""
        actions: dict[Callable[[], Awaitable[Any]], int] = {
            self.send: 50,
            self.send_again: 3,
            self.acknowledge: 25,
            self.mark_read: 8,
            self.recall: 5,
            self.found_group: 1,
            self.join: 5,
            self.leave: 4,
            self.remove: 3,
            self.transfer: 1,
            self.set_role: 2,
            self.mute: 1,
            self.block: 2,
            self.settings: 2,
            self.dismiss: 1,
        }
        if changes:
            actions |= {self.edit: 6, self.react: 8, self.announce: 3, self.pin: 3, self.forward: 2}
        await self.found_group()
        await self.found_group()
        chosen = self.random.choices(list(actions), list(actions.values()), k=steps)
        for action in chosen:
            try:
                await action()
            except NexoError as error:
                if error.row.number >= 5000:  # not a refusal: the server failed
                    raise
                self.refusals[error.name] = self.refusals.get(error.name, 0) + 1
        await self.core.store.cursors.flush()

    def person(self) -> str:
        return self.random.choice(PEOPLE)

    def group(self) -> str:
        return self.random.choice(self.groups)

    def conversation(self) -> str:
        if self.random.random() < 0.5:
            return f"sg_{self.group()}"
        return single_conversation_id(*self.random.sample(PEOPLE, 2))

    async def send(self) -> None:
        sender = self.person()
        fields: dict[str, Any] = {"client_msg_id": fresh_id(), "content": "hello"}
        if self.random.random() < 0.3:
            fields["recv_id"] = self.person()
        else:
            fields["group_id"] = self.group()
            if self.random.random() < 0.4:
                some = self.random.sample(PEOPLE, self.random.randint(1, 3))
                fields["mentions"] = self.random.choice([["@all"], some])
        if self.sent and self.random.random() < 0.1:
            fields["reply_to"] = self.random.choice(self.sent[-20:])[1]
        if self.random.random() < 0.2:
            fields |= {"msg_type": 6, "content": {"a": 1}, "extra": {"b": 2}}
        sent = await self.core.sending.send(sender, **fields)
        self.sent.append((sender, sent.message.server_msg_id))
        self.last = (sender, fields)

    async def send_again(self) -> None:
        if self.sent:
            sender, fields = self.last
            await self.core.sending.send(sender, **fields)

    async def acknowledge(self) -> None:
        if not self.sent:
            return
        kind = self.random.choice(["delivered", "delivered", "read"])
        recent = self.random.choice(self.sent[-12:])[1]
        await self.core.acknowledging.ack_message(self.person(), kind, recent)
        if self.random.random() < 0.5:
            await self.core.store.cursors.flush()

    async def mark_read(self) -> None:
        seq = self.random.choice([1, 5, 20, 10_000])
        await self.core.acknowledging.mark_read(self.person(), self.conversation(), seq=seq)

    async def recall(self) -> None:
        if self.sent:
            sender, server_msg_id = self.random.choice(self.sent[-30:])
            await self.core.conversations.recall(sender, server_msg_id)

    async def edit(self) -> None:
        if self.sent:
            sender, server_msg_id = self.random.choice(self.sent[-30:])
            named = self.random.choice([None, self.random.sample(PEOPLE, 2)])
            await self.core.changes.edit(sender, server_msg_id, f"edited {fresh_id()}", fresh_id(), named)

    async def react(self) -> None:
        if self.sent:
            _, server_msg_id = self.random.choice(self.sent[-10:])
            emoji = self.random.choice(["👍", "❤️", "🎉"])
            await self.core.changes.react(self.person(), server_msg_id, emoji, self.random.random() < 0.7)

    async def announce(self) -> None:
        for server_msg_id in await self.core.store.message_changes.marked(0, 10):
            await self.core.store.message_changes.announce(server_msg_id)

    async def pin(self) -> None:
        if self.sent:
            sender, server_msg_id = self.random.choice(self.sent[-10:])
            await self.core.changes.pin(sender, server_msg_id, self.random.random() < 0.7)

    async def forward(self) -> None:
        if self.sent:
            sender, server_msg_id = self.random.choice(self.sent[-10:])
            forwarding = self.core.forwarding
            plan = forwarding.plan(fresh_id(), [server_msg_id], [ForwardTarget(None, self.group())])
            await forwarding.forward(sender, plan)

    async def found_group(self) -> None:
        creator, *others = self.random.sample(PEOPLE, self.random.randint(3, 6))
        policy = self.random.choice(["open", "open", "approval"])
        group = await self.core.groups.create(creator, name="team", member_ids=others, join_policy=policy)
        self.groups.append(group.group_id)

    async def join(self) -> None:
        if self.random.random() < 0.5:
            await self.core.groups.join(self.person(), self.group())
        else:
            await self.core.groups.invite(self.person(), self.group(), self.random.sample(PEOPLE, 2))

    async def leave(self) -> None:
        await self.core.groups.leave(self.person(), self.group())

    async def remove(self) -> None:
        group = self.group()
        owner = (await self.core.groups.info(group)).owner_id
        await self.core.groups.remove(owner, group, self.person())

    async def transfer(self) -> None:
        group = self.group()
        owner = (await self.core.groups.info(group)).owner_id
        await self.core.groups.transfer(owner, group, self.person())

    async def set_role(self) -> None:
        group = self.group()
        owner = (await self.core.groups.info(group)).owner_id
        await self.core.groups.set_role(owner, group, self.person(), self.random.choice(["admin", "member"]))

    async def mute(self) -> None:
        group = self.group()
        owner = (await self.core.groups.info(group)).owner_id
        await self.core.groups.mute(owner, group, self.person(), self.random.choice([0, 60]))

    async def block(self) -> None:
        a, b = self.random.sample(PEOPLE, 2)
        on = self.random.random() < 0.5
        database = self.core.store.database
        await database.write(lambda: create_singles(database.sql, [single_conversation_id(a, b)]))
        await database.write(lambda: write_block(database.sql, a, b, on))

    async def settings(self) -> None:
        await self.core.conversations.change_settings(
            self.person(), self.conversation(), pinned=True, hidden=self.random.random() < 0.5
        )

    async def dismiss(self) -> None:
        if len(self.groups) > 3:
            group = self.group()
            owner = (await self.core.groups.info(group)).owner_id
            await self.core.groups.dismiss(owner, group, delete=self.random.random() < 0.5)

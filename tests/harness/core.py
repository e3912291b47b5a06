"""An open message core for tests, and short words for what most of them do with it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from nexo.assembly.core import Core, open_core
from nexo.background import Background
from nexo.config import load
from nexo.core.model import Message
from nexo.errors import NexoError
from nexo.store.engine import Script, do, rows

_numbers = itertools.count(1)


@asynccontextmanager
async def open_test_core(
    url: str, users: Iterable[str] = (), *, background: Background | None = None, **flags: Any
) -> AsyncIterator[Core]:
    """A core on a migrated database (`core_url`) with these users; flags as `send__deadline_ms=300`."""
    chosen = {name.replace("__", "."): value for name, value in flags.items()}
    async with open_core(load(env={}, flags={"store.url": url, **chosen}), background or Background()) as core:
        await add_users(core, users)
        yield core


async def add_users(core: Core, users: Iterable[str]) -> None:
    """By SQL: registering would hash a password for each."""

    def insert() -> Script[None]:
        for user_id in users:
            yield do("INSERT INTO users (user_id,password_hash,nickname) VALUES (?,?,?)", user_id, "-", user_id)

    await core.store.database.write(insert)


async def look(core: Core, statement: str, *params: Any) -> list[tuple[Any, ...]]:
    """What a statement finds, as plain rows."""

    def read() -> Script[list[tuple[Any, ...]]]:
        return [tuple(row) for row in (yield rows(statement, *params))]

    return await core.store.database.read(read)


async def run(core: Core, statement: str, *params: Any) -> None:
    """One statement in a transaction of its own."""

    def change() -> Script[None]:
        yield do(statement, *params)

    await core.store.database.write(change)


async def expire_now(core: Core, server_msg_id: int) -> None:
    """The time of this message is over from now on."""

    def change() -> Script[None]:
        ((conv,),) = yield rows("SELECT conv FROM messages WHERE server_msg_id=?", server_msg_id)
        yield do("UPDATE messages SET expires_at=1 WHERE server_msg_id=?", server_msg_id)
        yield do("DELETE FROM message_expiries WHERE server_msg_id=?", server_msg_id)
        yield do("INSERT INTO message_expiries (server_msg_id,conv,expires_at) VALUES (?,?,1)", server_msg_id, conv)

    await core.store.database.write(change)


def fresh_id() -> str:
    return f"c{next(_numbers)}"


async def say(core: Core, sender: str, target: str, content: Any = "hello", **fields: Any) -> Message:
    """Send to a user, or to a group (its id tells), under a new client_msg_id unless one is given."""
    sent = await core.sending.send(sender, **draft_fields(target, content, fields))
    return sent.message


def draft_fields(target: str, content: Any, fields: dict[str, Any]) -> dict[str, Any]:
    where = "group_id" if target.startswith("g_") else "recv_id"
    return {"client_msg_id": fresh_id(), where: target, "content": content, **fields}


async def found_group(core: Core, owner: str, *members: str, **fields: Any) -> tuple[str, str]:
    """A new group's id and its conversation's."""
    group = await core.groups.create(owner, name="team", member_ids=list(members), **fields)
    return group.group_id, group.conversation_id


@contextmanager
def refused(name: str) -> Iterator[pytest.ExceptionInfo[NexoError]]:
    """The block must raise this error of the table."""
    with pytest.raises(NexoError) as caught:
        yield caught
    assert caught.value.name == name, f"{caught.value!r}, expected {name}"

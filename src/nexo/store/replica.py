"""Pages of history from a replica of the database (`store.read_url`), never older than what a client can know.

The primary is asked for two rows, the conversation and the member; the replica for the page, if the same two rows there
are as new. Whatever changes what a member sees of a conversation changes one of them in the same transaction, and a
replica applies transactions in their order.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import TypeVar

import msgspec
import structlog

from nexo.config import Config, StoreUrl, parse_store_url
from nexo.core.model import Conversation, Member
from nexo.errors import StartupError
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Tally
from nexo.store.conversations import read_member
from nexo.store.database import Database
from nexo.store.engine import MakeScript, Script, StoreError
from nexo.store.engines.registry import engine_kind

log = structlog.get_logger()
T = TypeVar("T")

READ_S = 2.0  # a replica that takes longer is not used
AVOIDED_S = 5.0  # after a failure

Rows = tuple[Conversation | None, Member | None]


class Replica:
    def __init__(self, primary: Database, url: StoreUrl, config: Config) -> None:
        self._primary = primary
        self._engine = engine_kind(url).make_engine(url, config)  # connects when it is first asked
        self._avoided_until = 0.0
        self._results = Tally()

    async def look(self, user_id: str, conversation_id: str, make: MakeScript[T]) -> T:
        """Returns what a script reads of one conversation, from the replica if it is new enough."""
        if time.monotonic() >= self._avoided_until:
            known = await self._primary.look(lambda: read_member(conversation_id, user_id))
            try:
                async with asyncio.timeout(READ_S):
                    found = await self._engine.read(lambda: _read(user_id, conversation_id, known, make))
            except (StoreError, TimeoutError) as error:
                self._avoided_until = time.monotonic() + AVOIDED_S
                self._results.add("failed")
                log.warning("replica_failed", error=str(error))
            else:
                self._results.add("behind" if found is None else "used")
                if found is not None:
                    return found[0]
        return await self._primary.look(make)

    async def close(self) -> None:
        await self._engine.stop()

    def samples(self) -> Iterable[Sample]:
        yield from f.REPLICA_READS.each(self._results)


def open_replica(primary: Database, config: Config) -> Replica | None:
    """Returns the replica of `store.read_url`; None without one."""
    if not config.store.read_url:
        return None
    url = parse_store_url(config.store.read_url)
    if url.is_embedded or url.engine != primary.url.engine:
        raise StartupError("store.read_url is a replica of the database server in store.url: the same kind of URL")
    return Replica(primary, msgspec.structs.replace(url, needs_primary=False), config)


def _read(user_id: str, conversation_id: str, known: Rows, make: MakeScript[T]) -> Script[tuple[T] | None]:
    """Returns what the script reads, or None where this database is older than what is known."""
    if not _is_new_enough((yield from read_member(conversation_id, user_id)), known):
        return None
    return ((yield from make()),)


def _is_new_enough(found: Rows, known: Rows) -> bool:
    (conversation, member), (known_conversation, known_member) = found, known
    if conversation is None or known_conversation is None or member is None or known_member is None:
        return False  # what does not exist yet, or for strangers: the primary decides
    return (
        conversation.head_seq >= known_conversation.head_seq
        and conversation.member_epoch >= known_conversation.member_epoch
        and (member.status, member.cleared_seq, member.deleted_count)
        == (known_member.status, known_member.cleared_seq, known_member.deleted_count)
    )

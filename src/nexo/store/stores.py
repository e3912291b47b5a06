"""The store as the rest of Nexo knows it: the ports, each method one script on one database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from nexo.config import Config, StoreUrl, resolve_store_url
from nexo.core.model import (
    ConversationEntry,
    CursorChange,
    Draft,
    Group,
    GroupMember,
    Head,
    JoinRequest,
    Message,
    OfflinePage,
    Page,
    Receipts,
    Role,
    Sent,
)
from nexo.core.visibility import Ranges, visible_head
from nexo.errors import NexoError
from nexo.ids import is_user_id, new_group_id
from nexo.metrics.families import Sample
from nexo.ports import ActiveSince, Audience, GroupChange, GroupDraft, Located, Permission, Recall, Settings
from nexo.store import canary, groups, history, listing, owners, permission, recall
from nexo.store.committer import Committer
from nexo.store.committer import Settings as CommitterSettings
from nexo.store.conversations import change_settings
from nexo.store.cursors import CursorWriter
from nexo.store.database import Database
from nexo.store.engine import Conflict, Script, Stmt
from nexo.store.history import clamp_limit
from nexo.store.hot_sql import HOT_SQL
from nexo.store.paging import decode_cursor, encode_cursor


class SqlMessages:
    def __init__(self, database: Database, committer: Committer, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._committer = committer
        self._recall = config.recall
        self._max_bytes = config.pull.max_bytes

    async def may_send(self, drafts: Sequence[Draft]) -> list[Permission]:
        return await self._database.look(lambda: permission.may_send(self._sql, drafts))

    def submit(self, draft: Draft, answer: Callable[[Sent | NexoError], None]) -> None:
        self._committer.submit(draft, answer)

    async def send(self, draft: Draft) -> Sent:
        return await self._committer.send(draft)

    async def pull(
        self, user_id: str, conversation_id: str, begin_seq: int, end_seq: int | None, limit: int | None
    ) -> Page:
        count = clamp_limit(limit)
        return await self._database.look(
            lambda: history.pull(self._sql, user_id, conversation_id, begin_seq, end_seq, count, self._max_bytes)
        )

    async def pull_seqs(self, user_id: str, conversation_id: str, seqs: Sequence[int]) -> Page:
        return await self._database.look(
            lambda: history.pull_seqs(self._sql, user_id, conversation_id, seqs, self._max_bytes)
        )

    async def history(self, user_id: str, conversation_id: str, before_seq: int | None, limit: int | None) -> Page:
        count = clamp_limit(limit)
        return await self._database.look(
            lambda: history.history(self._sql, user_id, conversation_id, before_seq, count, self._max_bytes)
        )

    async def last_messages(self, user_id: str, conversation_ids: Sequence[str]) -> tuple[list[Message], bool]:
        return await self._database.look(
            lambda: listing.last_messages(self._sql, user_id, conversation_ids, self._max_bytes)
        )

    async def offline(
        self, user_id: str, cursor: str | None, limit: int | None, baselines: Mapping[str, int]
    ) -> OfflinePage:
        count = clamp_limit(limit)
        return await self._database.look(
            lambda: listing.offline(self._sql, user_id, cursor, count, baselines, self._max_bytes)
        )

    async def resend(
        self, user_id: str, kind: int, limit: int, baselines: Mapping[str, int]
    ) -> tuple[list[Message], bool]:
        return await self._database.look(lambda: listing.resend(self._sql, user_id, kind, limit, baselines))

    async def locate(self, server_msg_id: int) -> Located | None:
        found = await self._database.look(lambda: history.locate(server_msg_id))
        return None if found is None else Located(*found)

    async def last_by_author(self, conversation_id: str, low: int, high: int) -> dict[str, tuple[int, int]]:
        return await self._database.look(lambda: history.last_by_author(conversation_id, low, high))

    async def find(self, user_id: str, server_msg_id: int) -> Message:
        return await self._database.look(lambda: self._find(user_id, server_msg_id))

    def _find(self, user_id: str, server_msg_id: int) -> Script[Message]:
        message, view = yield from history.find_message(user_id, server_msg_id)
        yield from history.attach_quotes(self._sql, [message], {message.conversation_id: view.ranges})
        return message

    async def receipts(self, user_id: str, server_msg_id: int) -> Receipts:
        return await self._database.look(lambda: history.receipts(user_id, server_msg_id))

    async def recall(self, user_id: str, server_msg_id: int) -> Recall:
        (event_id,) = self._database.ids.take(1)
        rules = self._recall
        done = await self._database.change(
            lambda: recall.recall(self._sql, user_id, server_msg_id, event_id, rules.window_s, rules.admin)
        )
        return Recall(*done)


class SqlConversations:
    def __init__(self, database: Database, cursors: CursorWriter) -> None:
        self._database = database
        self._sql = database.sql
        self._cursors = cursors

    async def visible_ranges(self, user_id: str, conversation_id: str) -> Ranges:
        view = await self._database.look(lambda: history.open_view(user_id, conversation_id))
        return view.ranges

    async def entries(
        self, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[ConversationEntry], str, bool]:
        count = clamp_limit(limit)
        return await self._database.look(lambda: listing.entries(self._sql, user_id, cursor, count))

    async def sync(self, user_id: str, cursor: str | None, limit: int | None) -> tuple[list[Head], str, bool]:
        count = clamp_limit(limit)
        return await self._database.look(lambda: listing.sync(user_id, cursor, count))

    async def heads(self, user_id: str, conversation_ids: Sequence[str] | None) -> list[Head]:
        return await self._database.look(lambda: listing.heads(self._sql, user_id, conversation_ids))

    async def silenced(self, user_id: str) -> set[str]:
        return await self._database.look(lambda: listing.silenced(user_id))

    async def change_settings(self, user_id: str, conversation_id: str, settings: Settings) -> ConversationEntry:
        return await self._database.change(lambda: self._change_settings(user_id, conversation_id, settings))

    def _change_settings(self, user_id: str, conversation_id: str, settings: Settings) -> Script[ConversationEntry]:
        view = yield from history.open_view(user_id, conversation_id)
        if view.conversation is None or view.member is None:
            raise NexoError("conversation_not_found")
        head = visible_head(view.member, view.conversation)
        yield from change_settings(view.conversation.id, user_id, head, settings)
        page = yield from listing.entries(self._sql, user_id, None, 1, conversation_id)
        if not page.entries:
            raise NexoError("conversation_not_found")
        return page.entries[0]

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int = 0, read_seq: int = 0) -> None:
        self._cursors.advance(user_id, conversation_id, delivered_seq=delivered_seq, read_seq=read_seq)

    async def mark_read(self, user_id: str, conversation_id: str, seq: int) -> tuple[int, int]:
        return await self._cursors.mark_read(user_id, conversation_id, seq)

    async def active_since(self, user_ids: Sequence[str], since_ms: int | None) -> ActiveSince:
        return await self._database.look(lambda: listing.active_since(self._sql, user_ids, since_ms))

    def on_advance(self, tell: Callable[[list[CursorChange]], None]) -> None:
        self._cursors.tell = tell


class SqlOwners:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def free(self, shards: int) -> list[int]:
        return await self._database.look(lambda: owners.free(shards))

    async def take(self, owner: str, shards: Collection[int], ttl_s: float, at_most: int) -> dict[int, int]:
        while True:
            try:
                return await self._database.change(
                    lambda: owners.take(self._database.sql, owner, shards, int(ttl_s * 1000), at_most)
                )
            except Conflict:  # another instance that takes its first ones at the same moment
                continue

    async def renew(self, owner: str, held: Mapping[int, int], ttl_s: float) -> set[int]:
        return await self._database.change(lambda: owners.renew(self._database.sql, owner, held, int(ttl_s * 1000)))

    async def release(self, owner: str, held: Mapping[int, int]) -> None:
        await self._database.change(lambda: owners.release(owner, held))


class SqlGroups:
    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._sql = database.sql
        self._max_members = config.group.max_members

    async def create(self, draft: GroupDraft) -> tuple[str, Message]:
        (event_id,) = self._database.ids.take(1)
        while True:
            new = groups.NewGroup(new_group_id(), *draft, event_id)
            try:
                return new.group_id, await self._database.change(partial(groups.create, self._sql, new))
            except Conflict:  # the id was taken, once in 10²¹
                continue

    async def _change(
        self, group_id: str, actor_id: str, script: Callable[[groups.Change], Generator[Stmt, Any, groups.Changed]]
    ) -> GroupChange:
        change = self._begin(group_id, actor_id)
        return GroupChange(*await self._database.change(lambda: script(change)))

    def _begin(self, group_id: str, actor_id: str) -> groups.Change:
        (event_id,) = self._database.ids.take(1)
        return groups.Change(self._sql, group_id, actor_id, event_id)

    async def join(self, group_id: str, user_id: str, message: str) -> tuple[str, GroupChange]:
        change = self._begin(group_id, user_id)
        joined = await self._database.change(lambda: groups.join(change, message, self._max_members))
        return joined.status, GroupChange(*joined.changed)

    async def decide_join(self, group_id: str, actor_id: str, user_id: str, accept: bool) -> GroupChange:
        limit = self._max_members
        return await self._change(group_id, actor_id, lambda change: groups.decide_join(change, user_id, accept, limit))

    async def invite(self, group_id: str, actor_id: str, user_ids: list[str]) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.invite(change, user_ids, self._max_members))

    async def leave(self, group_id: str, user_id: str) -> GroupChange:
        return await self._change(group_id, user_id, groups.leave)

    async def remove(self, group_id: str, actor_id: str, user_id: str) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.remove(change, user_id))

    async def transfer(self, group_id: str, actor_id: str, user_id: str) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.transfer(change, user_id))

    async def set_role(self, group_id: str, actor_id: str, user_id: str, role: Role) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.set_role(change, user_id, role))

    async def mute(self, group_id: str, actor_id: str, user_id: str | None, duration_s: int) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.mute(change, user_id, duration_s))

    async def update(self, group_id: str, actor_id: str, changes: dict[str, str]) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.update(change, changes))

    async def dismiss(self, group_id: str, actor_id: str, *, delete: bool) -> GroupChange:
        return await self._change(group_id, actor_id, lambda change: groups.dismiss(change, delete=delete))

    async def info(self, group_id: str) -> Group:
        return await self._database.look(lambda: groups.read_group(group_id))

    async def groups_of(self, user_id: str) -> list[Group]:
        return await self._database.look(lambda: groups.groups_of(user_id))

    async def members(
        self, group_id: str, user_id: str, cursor: str | None, limit: int | None
    ) -> tuple[list[GroupMember], str, bool]:
        after = decode_cursor(cursor, str) if cursor else ""
        if after and not is_user_id(after):
            raise NexoError("bad_cursor", "Use the cursor as it was given, or none")
        count = clamp_limit(limit)
        found, has_more = await self._database.look(lambda: groups.read_members(group_id, user_id, after, count))
        return found, encode_cursor(found[-1].user_id) if has_more else "", has_more

    async def join_requests(self, group_id: str, user_id: str) -> list[JoinRequest]:
        return await self._database.look(lambda: groups.read_join_requests(group_id, user_id))

    async def audience(self, conversation_id: str) -> Audience:
        return await self._database.look(lambda: groups.audience(conversation_id))


class Store:
    """An open store: its parts, and their life."""

    def __init__(self, config: Config, url: StoreUrl | None = None) -> None:
        self.url = url or resolve_store_url(config)
        self._config = config
        self.database = Database(self.url, config)

    async def open(self) -> None:
        config, database = self._config, self.database
        await database.open()
        hot = HOT_SQL[database.engine.name]()
        settings = CommitterSettings(
            batch_max=config.store.batch_max,
            queue_max=config.store.queue_max,
            deadline_s=config.send.deadline_ms / 1000,
            linger_s=config.store.linger_ms / 1000,
        )
        self.committer = Committer(database.engine, database.sql, hot, database.ids, settings)
        self.committer.start()
        self.cursors = CursorWriter(database, hot, config.receipts.flush_ms / 1000)
        self.messages = SqlMessages(database, self.committer, config)
        self.conversations = SqlConversations(database, self.cursors)
        self.groups = SqlGroups(database, config)
        self.owners = SqlOwners(database)

    def samples(self) -> Iterable[Sample]:
        yield from self.committer.samples()
        yield from self.cursors.samples()
        yield from self.database.engine.samples()

    async def beat(self) -> None:
        """Commit something small: the database takes writes."""
        await self.database.change(lambda: canary.beat(self.database.sql))

    async def close(self) -> None:
        """Finish what was taken, write what waits, let go of the database."""
        await self.committer.stop()
        await self.cursors.stop()
        await self.database.close()

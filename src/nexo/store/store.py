"""The open store: its parts, started and stopped together."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from nexo.background import Background
from nexo.config import Config, StoreUrl, resolve_store_url
from nexo.metrics.families import Sample
from nexo.store import canary
from nexo.store.committer import Committer
from nexo.store.cursors import CursorWriter
from nexo.store.database import Database
from nexo.store.files.sql_files import SqlFiles
from nexo.store.instances import SqlInstances
from nexo.store.journal.sql_journal import SqlJournal
from nexo.store.moderation import SqlModeration
from nexo.store.pending import CommitterSettings
from nexo.store.publish_seam import PublishSeam
from nexo.store.push.sql_push import SqlPush
from nexo.store.sql_conversations import SqlConversations
from nexo.store.sql_expiry import SqlExpiry
from nexo.store.sql_groups import SqlGroups
from nexo.store.sql_message_changes import SqlMessageChanges
from nexo.store.sql_messages import SqlMessages
from nexo.store.sql_owners import SqlOwners

log = structlog.get_logger()

DAY_MS = 86_400_000


class Store:
    """An open store: its parts, started and stopped together."""

    def __init__(self, config: Config, background: Background, url: StoreUrl | None = None) -> None:
        self.url = url or resolve_store_url(config)
        self._config = config
        self._background = background
        self.database = Database(self.url, config, background)
        self.seam = PublishSeam()

    async def open(self) -> None:
        config, database = self._config, self.database
        await database.open()
        hot = database.kind.make_hot_sql()
        settings = CommitterSettings(
            batch_max=config.store.batch_max,
            queue_max=config.store.queue_max,
            deadline_s=config.send.deadline_ms / 1000,
            linger_s=config.store.linger_ms / 1000,
            contacts_only=config.policy.single_chat == "contacts",
        )
        self.committer = Committer(
            database.engine, database.sql, hot, database.ids, settings, self.seam, self._background
        )
        self.committer.start()
        flush_s = config.receipts.flush_ms / 1000
        self.cursors = CursorWriter(database, hot, flush_s, self.seam.cursors_moved, self._background)
        retention_ms = config.retention.days * DAY_MS
        self.messages = SqlMessages(database, self.committer, self.seam, config, retention_ms)
        self.message_changes = SqlMessageChanges(database, hot, self.seam, config, retention_ms, self._background)
        self.conversations = SqlConversations(database, self.cursors, self.seam, retention_ms)
        self.expiry = SqlExpiry(database, retention_ms)
        self.groups = SqlGroups(database, self.seam, config)
        self.owners = SqlOwners(database)
        self.instances = SqlInstances(database)
        self.moderation = SqlModeration(database, self.seam, keeps_originals=config.recall.keep_days > 0)
        self.journal = SqlJournal(database, hot, self.committer.recent)
        self.files = SqlFiles(database)
        self.push = SqlPush(database, hot, self.journal)

    def samples(self) -> Iterable[Sample]:
        yield from self.committer.samples()
        yield from self.cursors.samples()
        yield from self.database.engine.samples()
        yield from self.journal.samples()
        yield from self.messages.samples()
        yield from self.message_changes.writer.samples()

    async def beat(self) -> None:
        """Commit a small write, which proves that the database takes writes."""
        await self.database.change(lambda: canary.beat(self.database.sql))

    async def claim_canary(self) -> None:
        """Make sure that the users of the canary belong to the server."""
        taken = await self.database.change(lambda: canary.claim(self.database.sql))
        if taken:
            log.warning("reserved_users_taken", users=taken)
            await self.database.change(lambda: canary.unblock(self.database.sql))

    async def close(self) -> None:
        """Finish the sends and reactions in progress, write waiting cursors, and close the database."""
        await self.committer.stop()
        await self.message_changes.writer.stop()
        await self.cursors.stop()
        await self.messages.close()
        await self.database.close()

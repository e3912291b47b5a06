"""What the statements of all engines share (see `batch.HotSql`): columns, values of rows, and rows read back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from nexo.core.files import StoredFile
from nexo.core.model import Conversation, Member
from nexo.store import rows
from nexo.store.batch import Locked, MemberKey, Target
from nexo.store.engine import NOW, Script
from nexo.store.engine import rows as query
from nexo.store.files.reading import SELECT_FILES, file_of

T = TypeVar("T")

CONVERSATION = rows.columns(rows.CONVERSATION)
MEMBER = rows.columns(rows.MEMBER)
SENT_ROW = f"request_hash,{rows.columns(rows.MESSAGE)},countable_no"
TARGET = "server_msg_id,conv,seq,sender_id,msg_type,content,status,edit_seq,expires_at"
INSERT_MESSAGE = f"INSERT INTO messages ({rows.columns(rows.NEW_MESSAGE)}) VALUES "
INSERT_MENTION = "INSERT INTO mentions (conv,user_id,seq,sender_id) VALUES "


# Values in the order in which the statements name them. Not functions: these are called for every row.
conversation_values: Callable[[Conversation], tuple[Any, ...]] = attrgetter(*rows.CONVERSATION_SENT, "id")
member_values: Callable[[Member], tuple[Any, ...]] = attrgetter(*rows.MEMBER_SENT, "conv", "user_id")


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def assignments(names: Sequence[str], source: str = "?") -> str:
    return ",".join(f"{name}={source if source == '?' else f'{source}.{name}'}" for name in names)


def targets_of(found: Sequence[Any]) -> dict[int, Target]:
    return {row[0]: Target(*row[1:]) for row in found}


def past_of(found: Sequence[Any]) -> dict[MemberKey, list[tuple[int, int]]]:
    spans: dict[MemberKey, list[tuple[int, int]]] = {}
    for conv, user_id, from_seq, to_seq in found:
        spans.setdefault((conv, user_id), []).append((from_seq, to_seq))
    return spans


def epochs_of(shards: list[int], lock: str) -> Script[dict[int, int]]:
    marks = ",".join("?" * len(shards))
    found = yield query(f"SELECT shard,epoch FROM stream_owners WHERE shard IN ({marks}) ORDER BY shard{lock}", *shards)
    return {row[0]: row[1] for row in found}


def files_of(file_ids: list[str], lock: str) -> Script[dict[str, StoredFile]]:
    marks = ",".join("?" * len(file_ids))
    if lock:  # only the rows of files, whatever a join would lock
        yield query(f"SELECT file_id FROM files WHERE file_id IN ({marks}) ORDER BY file_id{lock}", *file_ids)
    found = yield query(f"{SELECT_FILES} WHERE f.file_id IN ({marks})", *file_ids)
    return {row[0]: file_of(row) for row in found}


class ServerStatements(ABC):
    """What the database servers share: a skipped conversation is distinguished from a missing one."""

    exclusive = False

    def beside(self, script: Script[T]) -> Script[T]:
        return script

    def lock_files(self, file_ids: list[str]) -> Script[dict[str, StoredFile]]:
        return (yield from files_of(file_ids, " FOR UPDATE"))

    def _locked(self, names: list[str], found: Sequence[Any]) -> Script[Locked]:
        conversations = {row[1]: Conversation(*row[:-1]) for row in found}
        now_ms = found[0][-1] if found else (yield NOW)
        missing = [name for name in names if name not in conversations]
        busy: set[str] = set()
        if missing:
            busy = yield from self._existing(missing)
        return Locked(now_ms, conversations, busy)

    @abstractmethod
    def _existing(self, names: list[str]) -> Script[set[str]]:
        """Returns those that exist, locked by another transaction or not."""

"""The streams and claims of two-phase acknowledgement in Redis: their names and commands.

A conversation's messages are in one shard, in the order in which they were accepted. All keys of a shard have the same
hash tag, so one script can use them all, also in a Redis Cluster. There a claim belongs to its shard; in a single Redis
it belongs to the sender, and a client_msg_id that is used for two conversations is refused at once instead of when it
is saved.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nexo.bus.redis_client import NoGroup, RedisClient, RedisCommand, Script
from nexo.config.tree import TwoPhaseConfig
from nexo.core.model import Draft
from nexo.ports import Address
from nexo.two_phase.coalesce import Coalescer
from nexo.two_phase.entries import StreamEntry, decode_address, encode_address, encode_entry

_LUA = Path(__file__).parent / "lua"
ACCEPT, FINISH, MOVE, BURY, REPLAY, MAKE_GROUP, JOIN, FORGET_CONSUMERS, BACKLOG = (
    Script(name, _LUA)
    for name in ("accept", "finish", "move", "bury", "replay", "make_group", "join", "forget_consumers", "backlog")
)

SETTLED_TTL_MS = 600_000  # after that the database answers a retry
TAKEN_AT_ONCE = 1000
CONSUMER_TTL_MS = 3_600_000


class Stream(NamedTuple):
    name: str
    group: str  # the consumer group of all instances


class Raw(NamedTuple):
    """An entry as it is in a stream, not decoded."""

    entry_id: str
    fields: Mapping[bytes, bytes]


class Fate(NamedTuple):
    """The result of an attempt to accept a message."""

    state: str  # accepted, known (accepted before), saved, refused, reused, busy, direct or lost
    server_msg_id: int = 0
    refusal: str = ""


class Claim(NamedTuple):
    """What Redis remembers of an accepted send."""

    request_hash: bytes
    server_msg_id: int


class Run(NamedTuple):
    """Sends of one connection to one conversation, in order."""

    entries: Sequence[StreamEntry]
    address: Address
    earlier: Draft | None = None  # its last accepted send that is not known to be saved: Redis must still have it


class ShardBacklog(NamedTuple):
    """What waits in a shard."""

    accepted: int
    to_save: int
    dead: int
    oldest_age_ms: int  # of the oldest entry that is not saved, by the clock of Redis
    oldest_id: str  # empty: there is none


class Streams:
    def __init__(self, link: RedisClient, settings: TwoPhaseConfig, prefix: str, consumer: str) -> None:
        self.link = link
        self.settings = settings
        self._prefix = prefix
        self._consumer = consumer
        self._finishing: Coalescer[RedisCommand, Any] = Coalescer(link.run)  # of all shards in one round trip

    # -- names -----------------------------------------------------------------------------------------------

    def shard_of(self, conversation_id: str) -> int:
        return zlib.crc32(conversation_id.encode()) % self.settings.shards

    def accepted(self, shard: int) -> Stream:
        return Stream(self._name(self.settings.accepted_stream, shard), self.settings.deliver_group)

    def to_save(self, shard: int) -> Stream:
        return Stream(self._name(self.settings.to_save_stream, shard), self.settings.save_group)

    def dead(self, shard: int) -> str:
        return self._name(self.settings.dead_stream, shard)

    def _name(self, pattern: str, shard: int) -> str:
        return self._prefix + pattern.replace("{shard}", f"{{{shard}}}")

    def _unsaved(self, shard: int) -> str:
        return f"{self._prefix}nexo:unsaved:{{{shard}}}"

    def _claim(self, shard: int, draft: Draft) -> str:
        where = f"{{{shard}}}:" if self.link.is_cluster else ""
        return f"{self._prefix}nexo:claim:{where}{draft.sender_id}:{draft.client_msg_id}"

    # -- accepting -------------------------------------------------------------------------------------------

    async def accept(self, runs: Sequence[Run], closed: Collection[int] = ()) -> list[list[Fate]]:
        """Accept all runs in one round trip, each run atomically. Returns one result per send. Raises BusDown: some
        may have been accepted then. `closed` shards take nothing new, as if they were full."""
        answers = await self.link.run([self._accept(run, closed) for run in runs])
        return [[_fate(answer) for answer in answers_of_run] for answers_of_run in answers]

    def _accept(self, run: Run, closed: Collection[int]) -> RedisCommand:
        conversation_id = run.entries[0].draft.conversation_id
        shard = self.shard_of(conversation_id)
        keys = [self.accepted(shard).name, self.to_save(shard).name, self._unsaved(shard)]
        words: list[str | int] = []
        for entry in run.entries:
            fields = encode_entry(entry)
            keys.append(self._claim(shard, entry.draft))
            words += [entry.draft.request_hash.hex(), str(entry.draft.server_msg_id), len(fields), *fields]
        if run.earlier is not None:
            keys.append(self._claim(shard, run.earlier))
        return ACCEPT.call(
            keys,
            conversation_id,
            encode_address(run.address),
            0 if shard in closed else -(-self.settings.max_backlog // self.settings.shards),
            self.settings.claim_ttl_s * 1000,
            0 if run.earlier is None else 1,
            *words,
        )

    async def claims(self, drafts: Sequence[Draft]) -> list[Claim | None]:
        """Returns what is known of each send, in one round trip, and accepts nothing. Raises BusDown."""
        keys = [self._claim(self.shard_of(draft.conversation_id), draft) for draft in drafts]
        answers = await self.link.run([RedisCommand(("HMGET", key, "hash", "id")) for key in keys])
        return [
            Claim(bytes.fromhex(request_hash.decode()), int(server_msg_id)) if request_hash else None
            for request_hash, server_msg_id in answers
        ]

    # -- reading ---------------------------------------------------------------------------------------------

    async def take_over(self, stream: Stream) -> list[Raw]:
        """Take over and return all entries that any consumer took from the stream and did not finish, in order."""
        taken: list[Raw] = []
        start = "0-0"
        while True:
            words = ("XAUTOCLAIM", stream.name, stream.group, self._consumer, 0, start, "COUNT", TAKEN_AT_ONCE)
            (answer,) = await self.link.run([RedisCommand(words)])
            taken += _raw(answer[1])
            start = answer[0].decode()
            if start == "0-0":
                break
        await self.link.run([FORGET_CONSUMERS.call([stream.name], stream.group, CONSUMER_TTL_MS)])
        return taken

    async def has_strays(self, streams: Sequence[Stream]) -> bool:
        """Returns whether an earlier owner has taken entries from these streams after it lost the shard."""
        answers = await self.link.run([RedisCommand(("XPENDING", stream.name, stream.group)) for stream in streams])
        return any(name != self._consumer.encode() for answer in answers for name in _consumers(answer))

    async def read(self, streams: Sequence[Stream], count: int, block_ms: int | None) -> list[list[Raw]]:
        """Returns new entries of each stream, in order, at most `count` of each. With `block_ms` it waits for the first
        entry, of the streams in the last one's group. Raises NoGroup: entries of other streams may be taken then."""
        groups: dict[str, list[str]] = {}
        for stream in streams:
            groups.setdefault(stream.group, []).append(stream.name)
        commands = []
        for group, names in groups.items():
            words: list[Any] = ["XREADGROUP", "GROUP", group, self._consumer, "COUNT", count]
            if block_ms is not None and group == streams[-1].group:
                words += ["BLOCK", block_ms]
            commands.append(RedisCommand((*words, "STREAMS", *names, *(">" for _ in names))))
        answers = await self.link.run(commands)
        found = {name.decode(): _raw(entries) for answer in answers for name, entries in answer or ()}
        return [found.get(stream.name, []) for stream in streams]

    async def make_groups(self, streams: Sequence[Stream]) -> None:
        """Create the consumer groups: the first time, or after Redis lost its data."""
        await self.link.run([MAKE_GROUP.call([stream.name], stream.group) for stream in streams])

    async def lengths(self, shards: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Returns per shard how many entries are accepted, to be saved, dead."""
        names = [(self.accepted(shard).name, self.to_save(shard).name, self.dead(shard)) for shard in shards]
        answers = await self.link.run([RedisCommand(("XLEN", name)) for three in names for name in three])
        return {shard: (*answers[3 * i : 3 * i + 3],) for i, shard in enumerate(shards)}

    async def backlog(self) -> list[ShardBacklog]:
        """Returns the backlog of all shards, in one round trip. Raises BusDown."""
        shards = range(self.settings.shards)
        names = [[self.accepted(shard).name, self.to_save(shard).name, self.dead(shard)] for shard in shards]
        answers = await self.link.run([BACKLOG.call(three) for three in names])
        return [
            ShardBacklog(accepted, to_save, dead, age_ms, oldest_id.decode())
            for accepted, to_save, dead, age_ms, oldest_id in answers
        ]

    async def pending(self, shards: Sequence[int]) -> tuple[int, int]:
        """Returns how many entries of these shards were taken and not finished: accepted, to be saved."""
        streams = [stream for shard in shards for stream in (self.accepted(shard), self.to_save(shard))]
        try:
            answers = await self.link.run([RedisCommand(("XPENDING", stream.name, stream.group)) for stream in streams])
        except NoGroup:
            return 0, 0
        counts = [_pending(answer) for answer in answers]
        return sum(counts[::2]), sum(counts[1::2])

    async def join(self, ttl_s: float, stay: bool = True) -> int:
        """List this instance among those that save, or remove it. Returns how many there are."""
        command = JOIN.call([f"{self._prefix}nexo:workers"], self._consumer, int(ttl_s * 1000), int(stay))
        (count,) = await self.link.run([command])
        return int(count)

    # -- finishing -------------------------------------------------------------------------------------------

    async def finish(self, stream: Stream, outcomes: Sequence[tuple[StreamEntry, str, str]]) -> list[Address | None]:
        """Remove entries from the stream and note their state and refusal. Returns the connection that waits for each
        outcome."""
        if not outcomes:
            return []
        shard = self.shard_of(outcomes[0][0].draft.conversation_id)
        keys = [stream.name, self._unsaved(shard)]
        words: list[str | int] = []
        for entry, state, refusal in outcomes:
            draft = entry.draft
            keys.append(self._claim(shard, draft))
            words += [entry.entry_id, draft.conversation_id, str(draft.server_msg_id), state, refusal]
        (answers,) = await self._finishing.ask([FINISH.call(keys, stream.group, SETTLED_TTL_MS, *words)])
        return [decode_address(answer.decode()) if answer else None for answer in answers]

    async def move(self, shard: int, entries: Sequence[StreamEntry]) -> list[Raw]:
        """Move delivered entries to the stream of entries to be saved. Returns all new entries there, in order: also
        those that an earlier owner has moved. Raises NoGroup: they may have been moved then."""
        accepted, to_save = self.accepted(shard), self.to_save(shard)
        words: list[str | int] = []
        for entry in entries:
            fields = encode_entry(entry)
            words += [entry.entry_id, len(fields), *fields]
        command = MOVE.call(
            [accepted.name, to_save.name],
            accepted.group,
            to_save.group,
            self._consumer,
            max(self.settings.batch_size, len(entries)),
            *words,
        )
        (found,) = await self.link.run([command])
        return [Raw(entry_id.decode(), dict(zip(fields[::2], fields[1::2], strict=True))) for entry_id, fields in found]

    async def bury(self, stream: Stream, shard: int, raw: Raw, draft: Draft | None, reason: str) -> Address | None:
        """Move an entry to the dead letters, with the reason why it was not saved. Returns the connection that waits
        for the outcome. `draft` is None for an entry that cannot be decoded."""
        keys = [stream.name, self.dead(shard), self._unsaved(shard)]
        if draft is not None:
            keys.append(self._claim(shard, draft))
            named = (draft.conversation_id, str(draft.server_msg_id))
        else:
            named = (raw.fields.get(b"conversation_id", b"").decode(errors="replace"), "")
        fields = _flat({**raw.fields, b"reason": reason.encode()})
        kept = self.settings.dead_max
        command = BURY.call(keys, stream.group, raw.entry_id, *named, "internal_error", SETTLED_TTL_MS, kept, *fields)
        (answer,) = await self.link.run([command])
        return decode_address(answer.decode()) if answer else None

    async def remove(self, shards: Collection[int]) -> None:
        """Remove what was accepted into these shards, unread. For streams that no worker reads."""
        names = [(self.accepted(shard).name, self._unsaved(shard)) for shard in shards]
        await self.link.run([RedisCommand(("UNLINK", *two)) for two in names])

    # -- dead letters ----------------------------------------------------------------------------------------

    async def dead_letters(self, shard: int, count: int) -> list[Raw]:
        (answer,) = await self.link.run([RedisCommand(("XRANGE", self.dead(shard), "-", "+", "COUNT", count))])
        return _raw(answer)

    async def replay(self, shard: int, letter: Raw, conversation_id: str) -> bool:
        """Move a dead letter to the end of its shard. Returns False when it is no longer there."""
        keys = [self.dead(shard), self.accepted(shard).name, self._unsaved(shard)]
        fields = {name: value for name, value in letter.fields.items() if name != b"reason"}
        (answer,) = await self.link.run([REPLAY.call(keys, letter.entry_id, conversation_id, *_flat(fields))])
        return bool(answer)

    async def drop_dead(self, shard: int, entry_id: str) -> bool:
        (answer,) = await self.link.run([RedisCommand(("XDEL", self.dead(shard), entry_id))])
        return bool(answer)


def _raw(found: Sequence[tuple[bytes | None, Mapping[bytes, bytes]]]) -> list[Raw]:
    # an entry that was removed meanwhile has no id
    return [Raw(entry_id.decode(), fields) for entry_id, fields in found if entry_id is not None]


def _flat(fields: Mapping[bytes, bytes]) -> list[bytes]:
    return [part for pair in fields.items() for part in pair]


def _pending(answer: Any) -> int:
    return int(answer["pending"] if isinstance(answer, dict) else answer[0])


def _consumers(answer: Any) -> list[bytes]:
    if isinstance(answer, dict):
        return [consumer["name"] for consumer in answer["consumers"]]
    return [consumer[0] for consumer in answer[3] or ()]


def _fate(answer: list[bytes]) -> Fate:
    if len(answer) == 1:
        return Fate(answer[0].decode())
    return Fate(answer[0].decode(), int(answer[1]), answer[2].decode())

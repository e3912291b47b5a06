"""The streams and claims of two-phase acknowledgement in Redis: their names, and what is done with them.

A conversation's messages are in one shard, in the order in which they were accepted. Everything of a shard has
the same hash tag, so one script can touch it all, also in a Redis Cluster. There a claim is its shard's; in a
single Redis it is the sender's, and a client_msg_id that is used for two conversations is refused at once
instead of when it is saved.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nexo.bus.redis_link import Command, NoGroup, RedisLink, Script
from nexo.config.tree import TwoPhase
from nexo.core.model import Draft
from nexo.pipeline.entries import Entry, decode_address, encode_address, encode_entry
from nexo.pipeline.together import Together
from nexo.ports import Address

_LUA = Path(__file__).parent / "lua"
ACCEPT, FINISH, MOVE, BURY, REPLAY, MAKE_GROUP, JOIN, FORGET_CONSUMERS = (
    Script(name, _LUA)
    for name in ("accept", "finish", "move", "bury", "replay", "make_group", "join", "forget_consumers")
)

SETTLED_TTL_MS = 600_000  # after that the database answers a retry
TAKEN_AT_ONCE = 1000
CONSUMER_TTL_MS = 3_600_000


class Stream(NamedTuple):
    name: str
    group: str  # of those who take from it, on all instances


class Raw(NamedTuple):
    """An entry as it is in a stream, not looked into yet."""

    entry_id: str
    fields: Mapping[bytes, bytes]


class Fate(NamedTuple):
    """What became of a message that was to be accepted."""

    state: str  # accepted, known (accepted before), saved, refused, reused, busy, direct or lost
    server_msg_id: int = 0
    refusal: str = ""


class Run(NamedTuple):
    """What one connection sends to one conversation, in order."""

    entries: Sequence[Entry]
    address: Address
    earlier: Draft | None = None  # accepted there before, and not known to be saved: it must not be lost


class Streams:
    def __init__(self, link: RedisLink, settings: TwoPhase, prefix: str, consumer: str) -> None:
        self.link = link
        self.settings = settings
        self._prefix = prefix
        self._consumer = consumer
        self._finishing: Together[Command, Any] = Together(link.run)  # of all shards in one round trip

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

    async def accept(self, runs: Sequence[Run]) -> list[list[Fate]]:
        """All of them in one round trip, each run in one piece. Raises BusDown: then some may have been accepted."""
        answers = await self.link.run([self._accept(run) for run in runs])
        return [[_fate(answer) for answer in answers_of_run] for answers_of_run in answers]

    def _accept(self, run: Run) -> Command:
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
            -(-self.settings.max_backlog // self.settings.shards),
            self.settings.claim_ttl_s * 1000,
            0 if run.earlier is None else 1,
            *words,
        )

    # -- reading ---------------------------------------------------------------------------------------------

    async def take_over(self, stream: Stream) -> list[Raw]:
        """Everything that others took from the stream and did not finish, in order, whoever has it now."""
        taken: list[Raw] = []
        start = "0-0"
        while True:
            words = ("XAUTOCLAIM", stream.name, stream.group, self._consumer, 0, start, "COUNT", TAKEN_AT_ONCE)
            (answer,) = await self.link.run([Command(words)])
            taken += _raw(answer[1])
            start = answer[0].decode()
            if start == "0-0":
                break
        await self.link.run([FORGET_CONSUMERS.call([stream.name], stream.group, CONSUMER_TTL_MS)])
        return taken

    async def has_strays(self, streams: Sequence[Stream]) -> bool:
        """Whether another one has taken something from these: an earlier owner, that did not know better."""
        answers = await self.link.run([Command(("XPENDING", stream.name, stream.group)) for stream in streams])
        return any(name != self._consumer.encode() for answer in answers for name in _consumers(answer))

    async def read(self, streams: Sequence[Stream], count: int, block_ms: int | None) -> list[list[Raw]]:
        """New entries of each, in order, as many of each. Waits for the first one of those that have the last one's
        group, unless there is no `block_ms`. Raises NoGroup: some may have been taken from the others then."""
        groups: dict[str, list[str]] = {}
        for stream in streams:
            groups.setdefault(stream.group, []).append(stream.name)
        commands = []
        for group, names in groups.items():
            words: list[Any] = ["XREADGROUP", "GROUP", group, self._consumer, "COUNT", count]
            if block_ms is not None and group == streams[-1].group:
                words += ["BLOCK", block_ms]
            commands.append(Command((*words, "STREAMS", *names, *(">" for _ in names))))
        answers = await self.link.run(commands)
        found = {name.decode(): _raw(entries) for answer in answers for name, entries in answer or ()}
        return [found.get(stream.name, []) for stream in streams]

    async def make_groups(self, streams: Sequence[Stream]) -> None:
        """The first time, or after Redis lost everything."""
        await self.link.run([MAKE_GROUP.call([stream.name], stream.group) for stream in streams])

    async def lengths(self, shards: Sequence[int]) -> dict[int, tuple[int, int, int]]:
        """Per shard: how many are accepted, to be saved, dead."""
        names = [(self.accepted(shard).name, self.to_save(shard).name, self.dead(shard)) for shard in shards]
        answers = await self.link.run([Command(("XLEN", name)) for three in names for name in three])
        return {shard: (*answers[3 * i : 3 * i + 3],) for i, shard in enumerate(shards)}

    async def pending(self, shards: Sequence[int]) -> tuple[int, int]:
        """How many entries of these shards were taken and not finished: accepted, to be saved."""
        streams = [stream for shard in shards for stream in (self.accepted(shard), self.to_save(shard))]
        try:
            answers = await self.link.run([Command(("XPENDING", stream.name, stream.group)) for stream in streams])
        except NoGroup:
            return 0, 0
        counts = [_pending(answer) for answer in answers]
        return sum(counts[::2]), sum(counts[1::2])

    async def join(self, ttl_s: float, stay: bool = True) -> int:
        """Say that this instance saves (or does no longer); how many do."""
        command = JOIN.call([f"{self._prefix}nexo:workers"], self._consumer, int(ttl_s * 1000), int(stay))
        (count,) = await self.link.run([command])
        return int(count)

    # -- finishing -------------------------------------------------------------------------------------------

    async def finish(self, stream: Stream, outcomes: Sequence[tuple[Entry, str, str]]) -> list[Address | None]:
        """Entries with the state they have now and the refusal, if it is one; who is to be told of each."""
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

    async def move(self, shard: int, entries: Sequence[Entry]) -> list[Raw]:
        """Delivered: on to be saved. Returns what is there to be saved now, in order: these, and whatever another
        one has moved there before. Raises NoGroup: they may have been moved then."""
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
        """An entry goes from its stream to the dead letters, with the reason why it was not saved; who is to be
        told. Without a draft nobody could read it."""
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

    # -- dead letters ----------------------------------------------------------------------------------------

    async def dead_letters(self, shard: int, count: int) -> list[Raw]:
        (answer,) = await self.link.run([Command(("XRANGE", self.dead(shard), "-", "+", "COUNT", count))])
        return _raw(answer)

    async def replay(self, shard: int, letter: Raw, conversation_id: str) -> bool:
        """To the end of its shard, once; False when it is no longer there."""
        keys = [self.dead(shard), self.accepted(shard).name, self._unsaved(shard)]
        fields = {name: value for name, value in letter.fields.items() if name != b"reason"}
        (answer,) = await self.link.run([REPLAY.call(keys, letter.entry_id, conversation_id, *_flat(fields))])
        return bool(answer)

    async def drop_dead(self, shard: int, entry_id: str) -> bool:
        (answer,) = await self.link.run([Command(("XDEL", self.dead(shard), entry_id))])
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

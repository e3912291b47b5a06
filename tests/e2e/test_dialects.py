"""People on different dialects chat with each other: one suite over every pair."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from harness.chat import Person, World, world
from harness.dialects import (
    SPEAKERS,
    GroupEvent,
    Heads,
    Joined,
    Notice,
    Presence,
    Problem,
    Recalled,
    Receipt,
    Refused,
    Resync,
    Said,
    Speaker,
    Typing,
)
from harness.server_process import ServerProcess
from nexo.wire.registry import DIALECTS

PAIRS = list(itertools.product(SPEAKERS, repeat=2))
IOS = 1


def test_every_dialect_has_a_speaker() -> None:
    assert set(SPEAKERS) == set(DIALECTS)


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(name.split(".")[1] for name in pair))
def pair(request: pytest.FixtureRequest) -> Pair:
    first, second = request.param
    return SPEAKERS[first], SPEAKERS[second]


@pytest.fixture(scope="module")
def single_server() -> Iterator[ServerProcess]:
    """One connection per user."""
    with ServerProcess(session__policy="single") as running:
        yield running


@pytest.fixture(scope="module")
def narrow_server() -> Iterator[ServerProcess]:
    """Little fits into a connection, and a slow one is not given up."""
    water = {"backpressure__high_water_bytes": 4096, "backpressure__low_water_bytes": 1024}
    with ServerProcess(**water, backpressure__close_after_ms=120_000) as running:
        yield running


class Scene:
    """Ann and Ben, each in a dialect of their own; Cy only reads his mail."""

    ann: Speaker
    ben: Speaker
    cy: Person

    def __init__(self, here: World) -> None:
        self.here = here
        self._speakers: list[Speaker] = []

    async def connect(self, kind: type[Speaker], person: Person, *args: Any, **options: Any) -> Speaker:
        speaker = await kind.connect(person, *args, **options)
        self._speakers.append(speaker)
        return speaker

    async def close(self) -> None:
        await asyncio.gather(*(speaker.close() for speaker in self._speakers))

    async def found_group(self) -> str:
        """Ann's group of the three. Both know of it."""
        group_id = await self.ann.person.found_group(self.ben.person, self.cy)
        for speaker in (self.ann, self.ben):
            assert (await speaker.expect(Joined, chat=group_id)).min_seq == 1
            assert (await speaker.expect(GroupEvent, chat=group_id, msg_type=101)).seq == 1
        return group_id


Pair = tuple[type[Speaker], type[Speaker]]


@contextlib.asynccontextmanager
async def meeting(server: ServerProcess, pair: Pair) -> AsyncIterator[Scene]:
    async with world(server, check_pushes=False) as here:
        scene = Scene(here)
        # underscores in ids must not confuse anybody
        ann, ben, scene.cy = await here.people("a_nn", "b_en", "cy")
        try:
            scene.ann = await scene.connect(pair[0], ann)
            scene.ben = await scene.connect(pair[1], ben)
            yield scene
        finally:
            await scene.close()


async def test_single_chat_both_ways(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        first = await ann.say(ben.me, "hello")
        said = await ben.expect(Said, msg_id=first.msg_id)
        assert said == Said(first.msg_id, ann.me, 1, ann.me, "hello")
        second = await ben.say(ann.me, "hello yourself")
        assert await ann.expect(Said) == Said(second.msg_id, ben.me, 2, ben.me, "hello yourself")
        assert await ann.history(ben.me) == [
            said._replace(chat=ben.me),
            Said(second.msg_id, ben.me, 2, ben.me, "hello yourself"),
        ]
        assert await ben.history(ann.me) == [said, Said(second.msg_id, ann.me, 2, ben.me, "hello yourself")]


async def test_the_senders_other_devices_get_it_too(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        other = await scene.connect(type(ben), ann.person)
        sent = await ann.say(ben.me, "from my phone")
        assert await other.expect(Said) == Said(sent.msg_id, ben.me, 1, ann.me, "from my phone")


async def test_group_chat(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        group_id = await scene.found_group()
        first = await ann.say(group_id, "all here?")
        assert await ben.expect(Said) == Said(first.msg_id, group_id, 2, ann.me, "all here?")
        second = await ben.say(group_id, "yes")
        assert await ann.expect(Said) == Said(second.msg_id, group_id, 3, ben.me, "yes")
        await scene.cy.post("/group/quit", group_id=group_id)
        for speaker in (ann, ben):
            left = await speaker.expect(GroupEvent, chat=group_id, msg_type=103)
            assert (left.seq, left.content) == (4, {"user_id": scene.cy.user_id})
        history = await ann.history(group_id)
        assert [note.seq for note in history if isinstance(note, Said | GroupEvent)] == [1, 2, 3, 4]


async def test_mentions_are_important_to_those_mentioned(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        group_id = await scene.found_group()
        await ann.say(group_id, "ben?", mentions=(ben.me,))
        said = await ben.expect(Said)
        assert (said.mentions, said.important) == ((ben.me,), True)
        await ann.say(group_id, "cy?", mentions=(scene.cy.user_id,))
        said = await ben.expect(Said)
        assert (said.mentions, said.important) == ((scene.cy.user_id,), False)
        await ann.say(group_id, "everybody!", mentions=("@all",))
        said = await ben.expect(Said)
        assert (said.mentions, said.important) == (("@all",), True)
        with pytest.raises(Refused, match="no_permission"):
            await ben.say(group_id, "everybody!", mentions=("@all",))


async def test_a_reply_shows_what_it_replies_to(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        question = await ann.say(ben.me, "tea or coffee?")
        await ben.say(ann.me, "tea", reply_to=question.msg_id)
        said = await ann.expect(Said, content="tea")
        assert (said.reply_to, said.quote) == (question.msg_id, "tea or coffee?")
        assert (await ben.history(ann.me))[-1] == said._replace(chat=ann.me)
        with pytest.raises(Refused, match="message_not_found"):
            await ben.say(ann.me, "what?", reply_to="12345")


async def test_recall(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        sent = await ann.say(ben.me, "oops")
        await ben.expect(Said, content="oops")
        with pytest.raises(Refused, match="not_message_sender"):
            await ben.recall(sent.msg_id)
        assert await ann.recall(sent.msg_id) == 2
        assert await ann.recall(sent.msg_id) == 2, "again is the same"
        for me, peer in ((ann, ben), (ben, ann)):
            recalled = Recalled(sent.msg_id, peer.me, 2, ann.me)
            assert await me.expect(Recalled) == recalled
            assert await me.history(peer.me) == [
                Said(sent.msg_id, peer.me, 1, ann.me, "", recalled=True),
                recalled,
            ]


async def test_delivered_and_read_receipts(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        first, second = await ann.say(ben.me, "one"), await ann.say(ben.me, "two")
        await ben.delivered(await ben.expect(Said, content="one"))
        assert await ann.expect(Receipt) == Receipt("delivered", ben.me, first.msg_id, 1, ben.me)
        await ben.read(await ben.expect(Said, content="two"))
        assert await ann.expect(Receipt, ack_type="delivered") == Receipt("delivered", ben.me, second.msg_id, 2, ben.me)
        assert await ann.expect(Receipt, ack_type="read") == Receipt("read", ben.me, second.msg_id, 2, ben.me)
        assert [note for note in ben.notes if isinstance(note, Receipt)] == [], "who reads need not be told"


async def test_a_group_receipt_reaches_the_author(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        group_id = await scene.found_group()
        sent = await ann.say(group_id, "read this")
        await ben.read(await ben.expect(Said))
        assert await ann.expect(Receipt, ack_type="read") == Receipt("read", group_id, sent.msg_id, 2, ben.me)


async def test_typing_and_presence(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        await ann.watch(ben.me)
        assert await ann.expect(Presence) == Presence(((ben.me, True),))
        await ann.say(ben.me, "hi")
        await ben.typing(ann.me, True)
        assert await ann.expect(Typing) == Typing(ben.me, ben.me, True)
        await ben.close()
        # that he is online may have been told once more: his arrival, and her question, were under way together
        await ann.expect(Presence, users=((ben.me, False),))


async def test_a_newcomer_kicks_whoever_was_there(single_server: ServerProcess, pair: Pair) -> None:
    async with meeting(single_server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        tokens = await ann.person.log_in(IOS, "phone")
        newcomer = await scene.connect(type(ben), ann.person, tokens)
        await ann.expect(Problem, reason="kicked")
        assert await ann.closed() == 4107
        sent = await ben.say(ann.me, "where are you?")
        await newcomer.expect(Said, msg_id=sent.msg_id)


async def test_whoever_could_not_take_everything_is_told_to_resync(narrow_server: ServerProcess, pair: Pair) -> None:
    async with meeting(narrow_server, pair) as scene:
        ann = scene.ann
        (dan,) = await scene.here.people("dan")
        slow = await scene.connect(pair[1], dan, max_queue=1)
        slow.pause()
        sent = [await ann.say(dan.user_id, f"{i} " + "x" * 4000) for i in range(200)]
        slow.resume()
        assert (await slow.expect(Resync)).reason == "slow_consumer"
        got = [note for note in slow.notes if isinstance(note, Said)]
        assert [said.seq for said in got] == list(range(1, len(got) + 1))
        assert len(got) < len(sent)
        again = await scene.connect(pair[1], dan, have={ann.me: len(got)})
        rest = [note.msg_id for note in again.notes if isinstance(note, Said)]
        assert [said.msg_id for said in got] + rest == [each.msg_id for each in sent]


async def test_who_was_away_catches_up(server: ServerProcess, pair: Pair) -> None:
    async with meeting(server, pair) as scene:
        ann, ben = scene.ann, scene.ben
        group_id = await scene.found_group()
        seen = await ann.say(ben.me, "seen")
        await ben.expect(Said, msg_id=seen.msg_id)
        await ben.close()
        missed = await ann.say(ben.me, "missed")
        gone = await ann.say(ben.me, "gone before it was seen")
        await ann.recall(gone.msg_id)
        in_group = await ann.say(group_id, "missed too")
        back = await scene.connect(type(ben), ben.person, have={ann.me: 1, group_id: 1})
        single = [note for note in back.notes if isinstance(note, Said | Recalled) and note.chat == ann.me]
        assert single == [
            Said(missed.msg_id, ann.me, 2, ann.me, "missed"),
            Said(gone.msg_id, ann.me, 3, ann.me, "", recalled=True),
            Recalled(gone.msg_id, ann.me, 4, ann.me),
        ]
        assert [note for note in back.notes if isinstance(note, Said) and note.chat == group_id] == [
            Said(in_group.msg_id, group_id, 2, ann.me, "missed too")
        ]
        live = await ann.say(ben.me, "and now live")
        assert (await back.expect(Said, msg_id=live.msg_id)).seq == 5


# -- events that do not depend on the other's dialect --------------------------------------------------------


@pytest.fixture(params=list(SPEAKERS), ids=lambda name: name.split(".")[1])
def kind(request: pytest.FixtureRequest) -> type[Speaker]:
    return SPEAKERS[request.param]


async def test_a_notice_comes_instead_of_the_message_under_notify(kind: type[Speaker]) -> None:
    with ServerProcess(group__strategy__mode="notify") as server:
        async with meeting(server, (kind, kind)) as scene:
            group_id = await scene.found_group()
            await scene.ann.say(group_id, "look", mentions=(scene.ben.me,))
            assert await scene.ben.expect(Notice) == Notice(group_id, 2, True)
            assert not [note for note in scene.ben.notes if isinstance(note, Said)]


async def test_changed_heads_come_together_under_none(kind: type[Speaker]) -> None:
    with ServerProcess(group__strategy__mode="none", sync__heads_s=1) as server:
        async with meeting(server, (kind, kind)) as scene:
            group_id = await scene.found_group()
            await scene.ann.say(group_id, "one")
            await scene.ann.say(group_id, "two")
            assert await scene.ben.expect(Heads) == Heads(((group_id, 3),))


async def test_a_stopping_server_says_so(kind: type[Speaker]) -> None:
    with ServerProcess() as server:
        async with meeting(server, (kind, kind)) as scene:
            stopping = asyncio.create_task(asyncio.to_thread(server.stop))
            await scene.ann.expect(Problem, reason="server_shutdown")
            assert await scene.ann.closed() == 4905
            assert await stopping == 0

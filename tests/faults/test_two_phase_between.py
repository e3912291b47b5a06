"""What happens between accepted and saved: somebody is blocked or removed, a request does not wait, the server that
accepted it is killed. Saving is held up meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from harness.chat import Person, meet, world
from harness.cluster import Cluster
from harness.dialects import SPEAKERS, Accepted, Provisional, Refused, Said, Speaker, Withdrawn
from harness.two_phase import LONG, engines, held_saves, two_phase_cluster
from harness.two_phase_talk import talking

pytestmark = pytest.mark.servers

# an owner that cannot renew its hold must not lose it while saving is held up
PATIENT: dict[str, Any] = {"two_phase__owner_ttl_s": 120, "two_phase__deliver_before_saved": True}
KINDS = list(SPEAKERS.values())
PAIRS = [(one, two) for one in KINDS for two in KINDS] if LONG else list(zip(KINDS, KINDS[1:] + KINDS[:1], strict=True))


@pytest.fixture(scope="module", params=engines("postgresql"))
def two(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with two_phase_cluster(request.param, **PATIENT, send__deadline_ms=1500) as running:
        yield running


Pair = tuple[type[Speaker], type[Speaker]]


@contextlib.asynccontextmanager
async def two_speakers(two: Cluster, pair: Pair) -> AsyncIterator[tuple[Speaker, Speaker, Person]]:
    async with world(two, check_pushes=False) as here, contextlib.AsyncExitStack() as stack:
        speakers = []
        *two_people, third = await here.people("ann", "ben", "cy")
        for kind, person in zip(pair, two_people, strict=True):
            speakers.append(await kind.connect(person))
            stack.push_async_callback(speakers[-1].close)
        yield speakers[0], speakers[1], third


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(kind.dialect.split(".")[1] for kind in pair))
def pair(request: pytest.FixtureRequest) -> Pair:
    return request.param  # type: ignore[no-any-return]


async def test_a_blocked_sender_is_told_and_the_provisional_copy_is_withdrawn(two: Cluster, pair: Pair) -> None:
    async with two_speakers(two, pair) as (ann, ben, _):
        first = await ann.say(ben.me, "so that the chat exists")
        await ben.expect(Said, msg_id=first.msg_id)
        ben.early.clear()
        async with held_saves(two.store_url):
            name = await ann.offer(ben.me, "too late")
            accepted = await ann.expect(Accepted, client_msg_id=name)
            assert await ben.expect(Provisional) == Provisional(accepted.msg_id, ann.me, ann.me, "too late")
            await ben.person.post("/user/block", user_id=ann.me)
        with pytest.raises(Refused, match=r"^blocked$"):
            await ann.outcome(name)
        assert await ben.expect(Withdrawn) == Withdrawn(accepted.msg_id, ann.me, "blocked")
        assert [note.content for note in await ben.history(ann.me) if isinstance(note, Said)] == [
            "so that the chat exists"
        ]


async def test_a_removed_member_is_told_and_the_provisional_copy_is_withdrawn(two: Cluster, pair: Pair) -> None:
    async with two_speakers(two, pair) as (ann, ben, cy):
        group = await ben.person.found_group(ann.person, cy)
        first = await ann.say(group, "here I am")
        await ben.expect(Said, msg_id=first.msg_id)
        ben.early.clear()
        async with held_saves(two.store_url):
            name = await ann.offer(group, "and still here")
            accepted = await ann.expect(Accepted, client_msg_id=name)
            assert await ben.expect(Provisional) == Provisional(accepted.msg_id, group, ann.me, "and still here")
            await ben.person.post("/group/remove_member", group_id=group, user_id=ann.me)
        with pytest.raises(Refused) as refused:
            await ann.outcome(name)
        assert await ben.expect(Withdrawn) == Withdrawn(accepted.msg_id, group, refused.value.name)
        assert [note.content for note in await ben.history(group) if isinstance(note, Said)] == ["here I am"]


async def test_a_request_that_waits_too_long_is_answered_202_and_a_retry_with_what_became_of_it(two: Cluster) -> None:
    async with meet(two, "ann", "ben", check_pushes=False) as (ann, ben):
        await ann.say(ben, "so that the chat exists")
        body = {"recv_id": ben.user_id, "content": "later", "client_msg_id": "http-1"}
        headers = {"Authorization": f"Bearer {ann.me.tokens.access}"}
        async with httpx.AsyncClient(timeout=60, trust_env=False) as http:

            async def send() -> httpx.Response:
                return await http.post(f"{two.address}/msg/send", json=body, headers=headers)

            async with held_saves(two.store_url):
                first = await send()
                assert (first.status_code, first.json()["data"]["status"]) == (202, "accepted")
                again = await send()
                assert (again.status_code, again.json()["data"]) == (202, first.json()["data"])
            saved = await ben.expect("SINGLE_CHAT", body="later")
            assert saved["serverMsgId"] == first.json()["data"]["server_msg_id"]
            last = await send()
            told = last.json()["data"]
            assert (last.status_code, told["status"], told["seq"]) == (200, "saved", saved["msgSeq"])


@pytest.mark.parametrize("engine", engines("mariadb"))
async def test_a_server_that_is_killed_between_accepted_and_saved_loses_nothing(engine: str) -> None:
    """It took the messages and holds half of the shards. Others save what it accepted, its clients go elsewhere."""
    with two_phase_cluster(engine, two_phase__owner_ttl_s=4) as two:
        async with talking(two) as talk:
            for number in range(4 if LONG else 1):
                victim = two[number % 2]
                async with held_saves(two.store_url):
                    await talk.until(lambda: all(t.is_waiting for t in talk.talkers), "all wait for saved")
                    victim.kill()
                await asyncio.to_thread(victim.start)
                await talk.until_more()
        two.check()

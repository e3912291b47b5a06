"""Random histories of a group: a member finds what was said while being one, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.core import found_group, open_test_core, say
from harness.migrated import migrated_database
from harness.searching import open_search

PEOPLE = ("ann", "bob", "cid", "dot")


@pytest.mark.parametrize("seed", range(6))
async def test_no_hit_is_outside_the_spans_of_the_asker(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    with migrated_database("sqlite", tmp_path) as url:
        async with open_test_core(url, PEOPLE) as core, open_search(core) as search:
            group_id, name = await found_group(core, "ann", "bob", "cid")
            members = {"ann", "bob", "cid"}
            said: dict[str, list[int]] = {user: [] for user in PEOPLE}
            recalled: set[int] = set()
            for _ in range(120):
                roll = rng.random()
                user = rng.choice(PEOPLE[1:])
                if roll < 0.1 and user in members:
                    await core.groups.leave(user, group_id=group_id)
                    members.discard(user)
                elif roll < 0.2 and user not in members:
                    await core.groups.invite("ann", group_id=group_id, user_ids=[user])
                    members.add(user)
                elif roll < 0.25:
                    await search.indexer.catch_up()
                elif roll < 0.3 and said["ann"]:
                    seq = rng.choice(said["ann"])
                    (message,) = [one for one in await search.read("ann", name) if one.seq == seq]
                    if message.sender_id == "ann" and seq not in recalled:
                        await core.conversations.recall("ann", message.server_msg_id)
                        recalled.add(seq)
                else:
                    sender = rng.choice(sorted(members))
                    message = await say(core, sender, group_id, f"common word {rng.randrange(9)}")
                    for member in members:
                        said[member].append(message.seq)
            await search.indexer.catch_up()
            for user in PEOPLE:
                found = await search.find(user, "common", limit=7)
                assert [one.seq for one in found] == [seq for seq in reversed(said[user]) if seq not in recalled]

"""Faults by the thousand: instances, Redis and a database of a chosen topology are killed, stopped, frozen, cut off and
restarted in random order while users chat; at the end every law is checked.

    .venv/bin/python bench/campaign.py --seconds 60
    .venv/bin/python bench/campaign.py --database galera --redis sentinel --seconds 900 --seed 7
    .venv/bin/python bench/campaign.py --faults 40 --record runs.jsonl
    .venv/bin/python bench/campaign_table.py runs.jsonl --markdown docs/benchmarks.md

A seed replays the schedule: which faults, in which order, how long each lasts and the pauses between them. One fault
at a time, as a machine that is lost: an acknowledged message must survive it. Users send to pairs and groups, repeat
under the same ids on other instances, edit, react, recall, read, upload, leave and join. What they received, what they
pull at the end from every instance, and `nexo check` have to agree: see `laws`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from campaign_disks import enter_namespace
from campaign_parts import DATABASES, REDIS, Fault, World, world
from campaign_table import Run, table
from campaign_users import PASSWORD, User
from harness import processes

STOPPED_S = 2.0
SETTLE_S = 60.0  # within this time after the last fault everything is saved and known


class Campaign:
    def __init__(self, made: World, seed: int, pairs: int, groups: int) -> None:
        self.world = made
        self.rng = random.Random(seed)
        self.seed = seed
        self.violations: list[str] = []
        self.addresses = [site.server.address for site in made.sites]
        self.users = [
            User(f"u{i}", self.addresses, random.Random(f"{seed}/{i}"), self.violations.append)
            for i in range(2 * pairs)
        ]
        self.group_count = groups
        self.pace = 1.0
        self.faults: list[tuple[str, float]] = []  # what, and the longest silence of any sender meanwhile
        self.stops: list[tuple[float, float]] = []
        self.rss_bytes = 0

    async def set_up(self) -> None:
        async with httpx.AsyncClient(base_url=self.addresses[0], timeout=60, trust_env=False) as http:
            for user in self.users:
                for path in ("/user/register", "/auth/login"):
                    answer = (await http.post(path, json={"user_id": user.user_id, "password": PASSWORD})).json()
                user.token = answer["data"]["access_token"]
            for i in range(0, len(self.users), 2):
                one, two = self.users[i : i + 2]
                one.targets.append(two.user_id)
                two.targets.append(one.user_id)
            for i in range(self.group_count):
                members = [user for j, user in enumerate(self.users) if j % self.group_count == i or j == i]
                owner = self.users[i]
                answer = await http.post(
                    "/group/create",
                    json={"name": f"group {i}", "member_ids": [user.user_id for user in members if user is not owner]},
                    headers={"Authorization": f"Bearer {owner.token}"},
                )
                for user in members:
                    user.targets.append(answer.json()["data"]["group_id"])

    # -- the faults ----------------------------------------------------------------------------------------

    async def run(self, seconds: float, count: int, pause_s: float, only: str) -> None:
        async with self.chatting(pause_s):
            ends = time.monotonic() + seconds
            while time.monotonic() < ends and len(self.faults) < count:
                fault = self.rng.choice(self.world.faults)(self.rng)
                if only in fault.name:
                    await self._suffer(fault)

    @contextlib.asynccontextmanager
    async def chatting(self, pause_s: float) -> AsyncIterator[None]:
        """Users chat meanwhile; then every law is checked."""
        await self.set_up()
        tasks = [asyncio.create_task(user.run()) for user in self.users]
        tasks.append(asyncio.create_task(self._notice_stops()))
        chats = [asyncio.create_task(user.live(pause_s)) for user in self.users]
        try:
            await asyncio.sleep(2)
            yield
            for user in self.users:
                user.stopping = True
            for chat in chats:  # what is under way ends by itself
                await chat
            await self._settle()
            await self.laws()
        finally:
            for task in (*chats, *tasks):
                task.cancel()
            await asyncio.gather(*chats, *tasks, return_exceptions=True)

    async def _suffer(self, fault: Fault) -> None:
        lasts_s, pause_s = self.rng.uniform(0.5, 4.0) * self.pace, self.rng.uniform(0.5, 2.5) * self.pace
        lasts_s = max(fault.at_least_s, lasts_s)
        began = time.monotonic()
        await asyncio.to_thread(fault.begin)
        await asyncio.sleep(lasts_s)
        await asyncio.to_thread(fault.end)
        await asyncio.sleep(pause_s)
        silence_s = self.longest_gap([at for user in self.users for at in user.ack_times], began, time.monotonic())
        self.faults.append((fault.name, silence_s))
        self._measure()
        print(
            f"{len(self.faults):5d}  {fault.name:40s} {lasts_s:4.1f} s, longest silence {silence_s:4.1f} s", flush=True
        )

    async def _notice_stops(self) -> None:
        """Note when this process, and with it the users, was stopped: that is no silence of a server."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.1)
            now = time.monotonic()
            if now - before > STOPPED_S:
                self.stops.append((before, now))

    def longest_gap(self, times: list[float], begin: float, end: float) -> float:
        marks = [begin, *sorted(at for at in times if begin <= at <= end), end]
        return max(after - before - self._stopped_s(before, after) for before, after in itertools.pairwise(marks))

    def _stopped_s(self, begin: float, end: float) -> float:
        return sum(max(0.0, min(end, after) - max(begin, before)) for before, after in self.stops)

    def _measure(self) -> None:
        for site in self.world.sites:
            with contextlib.suppress(AssertionError, OSError):
                self.rss_bytes = max(self.rss_bytes, site.server.rss_bytes)

    async def _settle(self) -> None:
        """Everything is whole again: what is unsaved is saved, and every user learns of everything."""
        for _ in range(int(SETTLE_S / 0.2)):  # not by the clock: all of it may be stopped meanwhile, clients too
            if all(user.socket is not None and not user.unsaved for user in self.users) and not self._behind():
                return
            await asyncio.sleep(0.2)
        for user in self.users:
            if user.unsaved or user.socket is None:
                self.violations.append(f"{user.user_id}: {len(user.unsaved)} sends are not saved; {user.errors}")
        self.violations += self._behind()

    def _behind(self) -> list[str]:
        """Law 6: users who do not know of what was acknowledged to another one in the same conversation."""
        heads: dict[str, int] = {}
        for user in self.users:
            for conversation_id, seq, _ in user.saved.values():
                heads[conversation_id] = max(heads.get(conversation_id, 0), seq)
        found = []
        for user in self.users:
            for conversation_id, head_seq in heads.items():
                known = user.heads.get(conversation_id)
                if known is not None and known < head_seq:
                    found.append(f"law 6: {user.user_id} knows {conversation_id} up to {known} of {head_seq}")
        return found

    # -- the laws ------------------------------------------------------------------------------------------

    async def laws(self) -> None:
        for user in self.users:
            for conversation_id in {place[0] for place in user.saved.values()}:
                stored = await user.pull(conversation_id)
                if stored is None:
                    self.violations.append(f"{user.user_id} cannot read {conversation_id}: {user.errors}")
                else:
                    self._compare(user, conversation_id, stored)
        complaints = await asyncio.to_thread(self.world.check)
        if complaints:
            self.violations.append(f"nexo check: {complaints}")
        for site in self.world.sites:
            if "Traceback" in site.server.output:
                at = site.server.output.index("Traceback")
                self.violations.append(f"an instance logged: {site.server.output[at - 300 : at + 6000]}")

    def _compare(self, user: User, conversation_id: str, stored: list[dict[str, Any]]) -> None:
        violate = self.violations.append
        by_seq = {int(message["seq"]): message for message in stored}
        if len(by_seq) != len(stored):
            violate(f"law 2: a seq twice in {conversation_id} for {user.user_id}")
        if conversation_id.startswith("si_") and sorted(by_seq) != list(range(1, len(stored) + 1)):
            violate(f"law 2: {conversation_id} has holes for {user.user_id}")
        for name, (where, seq, server_msg_id) in user.saved.items():
            if where == conversation_id:
                row = by_seq.get(seq)
                if row is None or (row["server_msg_id"], row["client_msg_id"]) != (server_msg_id, name):
                    violate(f"law 3: {name} was acknowledged at {seq} of {where}, and there is {row}")
                elif server_msg_id not in user.unsure:
                    self._compare_changes(user, row)
        names = [message["client_msg_id"] for message in stored if message.get("sender_id") == user.user_id]
        own = [name for name in names if name in user.saved]
        if len(set(own)) != len(own):
            violate(f"law 4: {user.user_id} has a message twice in {conversation_id}")
        for target in user.order.values():
            sent = [name for name in target if name in set(own)]
            if sent and [name for name in own if name in set(sent)] != sent:
                violate(f"law 5: the order of {user.user_id} in {conversation_id}: sent {sent}, stored {own}")
        for (where, seq), server_msg_id in user.seen.items():
            if where == conversation_id and seq in by_seq and by_seq[seq]["server_msg_id"] != server_msg_id:
                violate(f"law 3: {user.user_id} was pushed {server_msg_id} at {seq} of {where}, stored: {by_seq[seq]}")

    def _compare_changes(self, user: User, row: dict[str, Any]) -> None:
        server_msg_id = row["server_msg_id"]
        if server_msg_id in user.recalled:
            if row["status"] != 1:
                self.violations.append(f"law 10: the recall of {server_msg_id} was acknowledged: {row}")
        elif server_msg_id in user.edited and row["status"] == 0 and row["content"] != user.edited[server_msg_id]:
            self.violations.append(f"§25: {server_msg_id} was edited to {user.edited[server_msg_id]!r}: {row}")

    def result(self, topology: str) -> Run:
        return {
            "topology": topology,
            "seed": self.seed,
            "faults": self.faults,
            "sends": sum(len(user.saved) for user in self.users),
            "violations": self.violations,
            "rss_bytes": self.rss_bytes,
        }


async def campaign(args: argparse.Namespace, made: World) -> Campaign:
    running = Campaign(made, args.seed, args.pairs, args.groups)
    running.pace = args.pace
    await running.run(args.seconds, args.faults, args.pause, args.only)
    return running


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", choices=DATABASES, default="postgresql")
    parser.add_argument("--redis", choices=REDIS, default="single")
    parser.add_argument("--instances", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--faults", type=int, default=1_000_000, help="end after so many")
    parser.add_argument("--only", default="", help="faults whose name has these words")
    parser.add_argument("--pace", type=float, default=1.0, help="of faults and pauses: 0.5 is twice as fast")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.15, help="mean seconds between two acts of a user")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--two-phase", action="store_true")
    parser.add_argument("--record", type=Path, help="add the run to this file, for `bench/campaign_table.py`")
    args = parser.parse_args()
    enter_namespace()
    settings = {"two_phase__enabled": True, "two_phase__scope": "all"} if args.two_phase else {}
    print(f"seed {args.seed}", flush=True)
    with world(args.database, args.redis, args.instances, **settings) as made:
        done = asyncio.run(campaign(args, made))
        if done.violations:
            logs = processes.scratch_dir() / "campaign-violations.log"
            logs.write_text("\n".join(site.server.output for site in made.sites))
    topology = f"{args.database}, Redis {args.redis}, {args.instances} instances" + (", two-phase" * args.two_phase)
    result = done.result(topology)
    print("\n".join([*table([result]), *done.violations]))
    if args.record:
        with args.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
    return 1 if done.violations else 0


if __name__ == "__main__":
    sys.exit(main())

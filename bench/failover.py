"""How long nothing is acknowledged when a machine is lost (N1): the primary of PostgreSQL under Patroni, a node of
Galera, a Redis master, an instance.

    .venv/bin/python bench/failover.py
    .venv/bin/python bench/failover.py --only patroni --rounds 3
    .venv/bin/python bench/failover.py --markdown docs/benchmarks.md

Users of `bench/campaign.py` chat over two instances. Each loss is measured alone, `--rounds` times; the machine comes
back between two of them. Beside Nexo a probe writes into the same database by itself and says from when on it took
writes: what is longer is Nexo's own. At the end every law is checked; an acknowledged message that is not stored is
lost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from campaign import Campaign
from campaign_parts import World, world
from campaign_users import User
from harness import sql
from harness.waiting import until_blocking
from page import part, replace_part

SCRIPT = "failover.py"
HEADER = (
    "| lost | must | longest time without an acknowledged send | of it the database itself | one sender at most | "
    "pushes between instances back after | acknowledged messages lost |",
    "|---|---|---|---|---|---|---|",
)
QUIET_S = 3.0  # after a loss everything has to be quick for so long
WAIT_S = 90.0
QUICK_S = 1.5


class Loss(NamedTuple):
    name: str
    must_s: float
    begin: Callable[[], Any]
    end: Callable[[], Any]
    what: str  # which figure has the limit: `send` (of any sender), `client` (of each), `push`


class Found(NamedTuple):
    silence_s: float
    database_s: float | None
    client_s: float
    push_s: float | None


class Probe:
    """Writes one row after the other, on each host by itself."""

    def __init__(self, store_url: str) -> None:
        self.written: list[float] = []
        self._ending = threading.Event()
        account, _, rest = store_url.partition("?")[0].partition("@")
        hosts, _, database = rest.partition("/")
        self._urls = [f"{account}@{host}/{database}" for host in hosts.split(",")]

    def start(self) -> None:
        until_blocking(self._make_table, "the table of the probe", patience_s=30)
        for url in self._urls:
            threading.Thread(target=self._write, args=(url,), daemon=True).start()

    def _make_table(self) -> bool:
        for url in self._urls:
            with contextlib.suppress(Exception):  # not the primary
                sql.execute(url, "CREATE TABLE IF NOT EXISTS failover_probe (at_ms BIGINT)")
                return True
        return False

    def _write(self, url: str) -> None:
        while not self._ending.wait(0.1):
            with contextlib.suppress(Exception):  # it takes no writes now
                asyncio.run(self._write_until_it_fails(url))

    async def _write_until_it_fails(self, url: str) -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(1.5):
                run = await stack.enter_async_context(sql.connected(url))
            while not self._ending.is_set():
                async with asyncio.timeout(20):  # a COMMIT waits for the standby
                    await run("INSERT INTO failover_probe VALUES (1)")
                self.written.append(time.monotonic())
                await asyncio.sleep(0.05)

    def end(self) -> None:
        self._ending.set()


class Failover:
    def __init__(self, campaign: Campaign, probe: Probe | None) -> None:
        self._campaign = campaign
        self._probe = probe

    @property
    def _users(self) -> list[User]:
        return self._campaign.users

    async def suffer(self, loss: Loss) -> Found:
        """Lose it, wait until everything has been quick for a while, and bring it back."""
        began = time.monotonic()
        await asyncio.to_thread(loss.begin)
        while time.monotonic() < began + WAIT_S:
            await asyncio.sleep(0.2)
            now = time.monotonic()
            if now > began + QUIET_S and self._is_quick(now - QUIET_S, now, loss.what == "push"):
                break
        now = time.monotonic()
        acks = [at for user in self._users for at in user.ack_times]
        found = Found(
            self._campaign.longest_gap(acks, began, now),
            None if self._probe is None else self._campaign.longest_gap(list(self._probe.written), began, now),
            max(self._campaign.longest_gap(user.ack_times, began, now) for user in self._users),
            self._pushed_again(began) if loss.what == "push" else None,
        )
        await asyncio.to_thread(loss.end)
        await asyncio.sleep(QUIET_S)
        return found

    def _is_quick(self, begin: float, end: float, pushed: bool) -> bool:
        for user in self._users:
            if self._campaign.longest_gap(user.ack_times, begin, end) > QUICK_S:
                return False
            if pushed and self._campaign.longest_gap(user.push_times, begin, end) > QUICK_S:
                return False
        return True

    def _pushed_again(self, began: float) -> float:
        """When the last receiver got pushes from another instance again."""
        return max(self._campaign.longest_gap(user.push_times, began, time.monotonic()) for user in self._users)


# -- what is lost ---------------------------------------------------------------------------------------------


def _patroni(made: World) -> list[Loss]:
    servers = made.servers
    lost: list[Any] = []

    def lose(how: str) -> Callable[[], None]:
        def do() -> None:
            servers.wait_until_synchronous()
            lost.append(servers.primary())
            getattr(lost[-1], how)()

        return do

    def back(how: str) -> Callable[[], None]:
        def do() -> None:
            if how:
                getattr(lost[-1], how)()
            until_blocking(lost[-1].role, "it has a role again", patience_s=90)
            servers.wait_until_synchronous()

        return do

    return [
        Loss("primary's machine killed (Patroni)", 30, lose("kill"), back("start"), "send"),
        Loss("primary's machine frozen (Patroni)", 30, lose("pause"), back("resume"), "send"),
        Loss("primary's PostgreSQL killed (Patroni)", 30, lose("kill_database"), back(""), "send"),
    ]


def _galera(made: World) -> list[Loss]:
    servers = made.servers
    node = servers.nodes[0]  # the first in the URL: the one that is used until it is lost

    def back(again: Callable[[], Any]) -> Callable[[], None]:
        def do() -> None:
            again()
            servers.wait_for(3)

        return do

    def used() -> Any:
        """The node that the instances are connected to."""
        counts = {}
        for one in servers.nodes:
            found = sql.execute(
                one.url("mysql"), "SELECT count(*) FROM information_schema.processlist WHERE db<>'mysql'"
            )
            counts[one] = found[0][0]
        return max(counts, key=lambda one: counts[one])

    lost: list[Any] = [node]

    def lose(how: str) -> Callable[[], None]:
        def do() -> None:
            lost.append(used())
            getattr(lost[-1], how)()

        return do

    return [
        Loss("Galera node killed", 10, lose("kill"), back(lambda: lost[-1].start()), "send"),
        Loss("Galera node frozen", 10, lose("pause"), back(lambda: lost[-1].resume()), "send"),
    ]


def _redis(made: World) -> list[Loss]:
    servers = made.redis
    lost: list[Any] = []
    is_cluster = hasattr(servers, "nodes")

    def lose(how: str) -> Callable[[], None]:
        def do() -> None:
            lost.append(servers.master_of("{instances}:seen") if is_cluster else servers.master())
            getattr(lost[-1], how)()

        return do

    def back(how: str) -> Callable[[], None]:
        def do() -> None:
            getattr(lost[-1], how)()
            servers.wait_until_whole()

        return do

    kind = "Redis Cluster" if is_cluster else "Sentinel"
    losses = [
        Loss(f"Redis master killed ({kind})", 5, lose("kill"), back("start"), "push"),
        Loss(f"Redis master frozen ({kind})", 5, lose("pause"), back("resume"), "push"),
    ]
    if not is_cluster:

        def with_a_dead_sentinel() -> None:
            servers.sentinels[0].kill()
            lose("kill")()

        def all_back() -> None:
            servers.sentinels[0].start()
            back("start")()

        losses.append(Loss("Redis master killed, a sentinel dead", 5, with_a_dead_sentinel, all_back, "push"))
    return losses


def _instances(made: World) -> list[Loss]:
    server = made.sites[0].server
    return [Loss("instance killed", 5, server.kill, server.start, "client")]


RECIPES: dict[str, tuple[str, str, Callable[[World], list[Loss]]]] = {
    "patroni": ("patroni", "single", _patroni),
    "galera": ("galera", "single", _galera),
    "sentinel": ("postgresql", "sentinel", _redis),
    "cluster": ("postgresql", "cluster", _redis),
    "instance": ("postgresql", "single", _instances),
}


@contextlib.asynccontextmanager
async def _probing(made: World, wanted: bool) -> AsyncIterator[Probe | None]:
    if not wanted:
        yield None
        return
    probe = Probe(made.store_url)
    await asyncio.to_thread(probe.start)
    try:
        yield probe
    finally:
        probe.end()


async def measure(recipe: str, made: World, rounds: int) -> tuple[list[str], bool]:
    campaign = Campaign(made, 1, pairs=4, groups=2)
    for number, user in enumerate(campaign.users):
        user.home = number  # the two of a pair are connected to different instances
    rows, is_good = [], True
    found: dict[Loss, list[Found]] = {}
    async with (
        _probing(made, recipe in ("patroni", "galera")) as probe,
        campaign.chatting(0.15),
    ):
        failover = Failover(campaign, probe)
        for loss in RECIPES[recipe][2](made):
            for _ in range(rounds):
                one = await failover.suffer(loss)
                found.setdefault(loss, []).append(one)
                print(loss.name, one, flush=True)
    lost = sum("law 3" in words for words in campaign.violations)
    for loss, measured in found.items():
        value = {"send": "silence_s", "client": "client_s", "push": "push_s"}[loss.what]
        is_good &= max(getattr(one, value) for one in measured) <= loss.must_s
        columns = [_worst(measured, name) for name in ("silence_s", "database_s", "client_s", "push_s")]
        rows.append(f"| {loss.name} | {loss.must_s} s ({loss.what}) | {' | '.join(columns)} | {lost} |")
    print("\n".join(campaign.violations))
    return rows, is_good and not campaign.violations


def _worst(found: list[Found], name: str) -> str:
    values = [getattr(one, name) for one in found]
    if None in values:
        return "–"
    return f"{max(values):.1f} s" if len(values) == 1 else f"{min(values):.1f} to {max(values):.1f} s"


def _write(page: Path, rows: list[str]) -> None:
    """Replace the rows of what was measured; others stay."""
    names = {row.split(" | ")[0] for row in (*rows, *HEADER)}
    lines = part(page, SCRIPT).splitlines()
    kept = [line for line in lines if line.startswith("| ") and line.split(" | ")[0] not in names]
    replace_part(page, SCRIPT, "\n".join(["", *HEADER, *kept, *rows, ""]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--markdown", type=Path, help="write the rows into the table of this page")
    args = parser.parse_args()
    rows: list[str] = []
    is_good = True
    for recipe in args.only:
        database, redis, _ = RECIPES[recipe]
        with world(database, redis, 2) as made:
            found, good = asyncio.run(measure(recipe, made, args.rounds))
        rows += found
        is_good &= good
    print("\n".join([*HEADER, *rows]))
    if args.markdown:
        _write(args.markdown, rows)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Nexo and others under the same load, in one run: servers and their databases on one core, this script on another.

    .venv/bin/python bench/peers/compare.py --install                 everything, about ten minutes
    .venv/bin/python bench/peers/compare.py nexo:sqlite ejabberd:mariadb --rows durable
    .venv/bin/python bench/peers/compare.py --markdown docs/benchmarks.md

Prints a table in Markdown. What counts is messages per CPU-second of all server processes, database included; it
is steadier than messages per second on a machine that has other things to do. Every run is checked: each message
arrived exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import uvloop
from clients import Client
from servers import KINDS, Peer

sys.path.insert(0, str(Path(__file__).parent.parent))

from page import replace_part

ALL = (
    "nexo:sqlite", "nexo:mariadb", "nexo:postgresql", "ejabberd:sqlite", "ejabberd:mariadb", "ejabberd:postgresql",
    "python-socketio:sqlite", "python-socketio:postgresql", "socket.io:sqlite", "socket.io:postgresql",
)  # fmt: skip
ROWS = ("durable", "room", "missed", "idle")
FILL = "x" * 88


def text_of(number: int) -> str:
    return f"{number:012d}{FILL}"


class Checked:
    """Every message exactly once."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.count = 0

    def take(self, text: str) -> None:
        self.seen.add(text[:12])
        self.count += 1

    def check(self, expected: int) -> None:
        if self.count != expected or len(self.seen) != expected:
            raise AssertionError(f"{expected} sent, {self.count} received, {len(self.seen)} different ones")


async def clients_of(peer: Peer, names: list[str], tokens: dict[str, str]) -> list[Client]:
    made = [peer.make(peer.port, name, tokens[name]) for name in names]
    for start in range(0, len(made), 25):
        await asyncio.gather(*(client.connect() for client in made[start : start + 25]))
    return made


async def durable(peer: Peer, seconds: float, pairs: int = 100, window: int = 8) -> dict[str, float]:
    """Pairs of a sender and a receiver, `window` messages under way each, every message stored."""
    senders, receivers = [f"ds{i}" for i in range(pairs)], [f"dr{i}" for i in range(pairs)]
    tokens = await peer.sign_up(senders + receivers)
    everybody = await clients_of(peer, senders + receivers, tokens)
    checked = Checked()
    sent = 0
    running = True

    def next_one(place: int) -> None:
        nonlocal sent
        if running:
            sent += 1
            everybody[place].say(receivers[place], text_of(sent))

    def receive(place: int, text: str) -> None:
        checked.take(text)
        if not peer.make.answers:
            next_one(place)

    for i in range(pairs):
        everybody[i].on_stored = lambda i=i: next_one(i)  # type: ignore[misc]
        everybody[pairs + i].on_text = lambda text, i=i: receive(i, text)  # type: ignore[misc]
        for _ in range(window):
            next_one(i)
    await asyncio.sleep(min(2.0, seconds / 3))
    before, cpu, own, began = checked.count, peer.usage().cpu_s, time.process_time(), time.perf_counter()
    await asyncio.sleep(seconds)
    done, wall = checked.count - before, time.perf_counter() - began
    used, own = peer.usage().cpu_s - cpu, time.process_time() - own
    running = False
    for _ in range(600):
        await asyncio.sleep(0.1)
        if checked.count >= sent:
            break
    checked.check(sent)
    for client in everybody:
        client.close()
    return {"msg/s": done / wall, "msg per CPU-s": done / used, "generator busy": own / wall}


async def room(peer: Peer, seconds: float, members: int = 500) -> dict[str, float]:
    """Deliveries to all members of one room; three messages are under way."""
    names = [f"rm{i}" for i in range(members)]
    tokens = await peer.sign_up(names)
    everybody = await clients_of(peer, names, tokens)
    place = await peer.make_room(everybody[0], everybody[1:], "hall")
    received = 0

    def take(text: str) -> None:
        nonlocal received
        received += 1

    # a room sends its author a copy as well, except in Nexo, which answers
    listeners = members if peer.make.__name__ != "NexoClient" else members - 1
    for client in everybody:
        client.on_text = take
    sent = 0
    cpu, began = peer.usage().cpu_s, time.perf_counter()
    while time.perf_counter() - began < seconds:
        everybody[0].say_to_room(place, text_of(sent))
        sent += 1
        while received < (sent - 3) * listeners:
            await asyncio.sleep(0.001)
            if time.perf_counter() - began > seconds + 60:
                raise TimeoutError(f"{received} of {sent * listeners} deliveries")
    for _ in range(400):
        if received >= sent * listeners:
            break
        await asyncio.sleep(0.025)
    wall, used = time.perf_counter() - began, peer.usage().cpu_s - cpu
    if received != sent * listeners:
        raise AssertionError(f"{received} of {sent * listeners} deliveries")
    for client in everybody:
        client.close()
    return {"deliveries/s": received / wall, "deliveries per CPU-s": received / used}


async def missed(peer: Peer, seconds: float, count: int = 1000) -> dict[str, float]:
    """A client that missed a thousand messages reconnects; the median of five."""
    walls, cpus = [], []
    for turn in range(5):
        author, reader = f"ma{turn}", f"mr{turn}"
        tokens = await peer.sign_up([author, reader])
        # a first visit, so that the account exists everywhere
        (first,) = await clients_of(peer, [reader], tokens)
        first.close()
        (writer,) = await clients_of(peer, [author], tokens)
        stored = 0

        def count_stored() -> None:
            nonlocal stored
            stored += 1

        writer.on_stored = count_stored
        for number in range(count):
            writer.say(reader, text_of(number))
            if number % 20 == 19:
                await asyncio.sleep(0.02)
        while peer.make.answers and stored < count:
            await asyncio.sleep(0.05)
        await writer.settle()
        await asyncio.sleep(1)
        cpu, began = peer.usage().cpu_s, time.perf_counter()
        checked = Checked()
        client = peer.make(peer.port, reader, tokens[reader])
        client.on_text = checked.take
        await client.connect()
        client.ask_for_missed()
        while len(checked.seen) < count:
            await asyncio.sleep(0.0005)
            if time.perf_counter() - began > 60:
                raise TimeoutError(f"{len(checked.seen)} of {count} came back")
        walls.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.3)
        cpus.append((peer.usage().cpu_s - cpu) * 1000)
        client.close()
        writer.close()
    return {"1,000 missed, ms": sorted(walls)[2], "1,000 missed, CPU ms": sorted(cpus)[2]}


async def idle(peer: Peer, seconds: float, connections: int = 3000) -> dict[str, float]:
    """Memory that each further connection takes."""
    names = [f"id{i}" for i in range(connections)]
    tokens = await peer.sign_up(names)
    first = await clients_of(peer, names[:100], tokens)
    await asyncio.sleep(2)
    before = peer.usage().rss_bytes
    rest = await clients_of(peer, names[100:], tokens)
    await asyncio.sleep(2)
    grown = peer.usage().rss_bytes - before
    for client in first + rest:
        client.close()
    return {"KiB/idle connection": grown / len(rest) / 1024}


ACTS = {"durable": durable, "room": room, "missed": missed, "idle": idle}
COLUMNS = ("msg/s", "msg per CPU-s", "deliveries/s", "deliveries per CPU-s", "1,000 missed, ms",
           "1,000 missed, CPU ms", "KiB/idle connection", "generator busy")  # fmt: skip


def install(work: Path) -> None:
    """Into a folder of its own; Debian packages where they belong."""
    work.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).parents[2]
    if not list(Path("/usr/lib/x86_64-linux-gnu").glob("ejabberd-*/ebin")):
        packages = ["ejabberd", "erlang-p1-mysql", "erlang-p1-pgsql", "erlang-p1-sqlite3"]
        subprocess.run([root / "scripts/apt-install.sh", *packages], check=True)
    if not (work / "py/bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", work / "py"], check=True)
        packages = ["python-socketio", "aiohttp", "uvloop", "asyncpg"]
        subprocess.run([work / "py/bin/pip", "install", "--quiet", *packages], check=True)
    if not (work / "node/node_modules/socket.io").exists():
        (work / "node").mkdir(exist_ok=True)
        (work / "node/package.json").write_text("{}")
        subprocess.run(["npm", "install", "socket.io", "pg", "better-sqlite3"], cwd=work / "node", check=True)


def versions(work: Path) -> dict[str, str]:
    found = {}
    commands: dict[str, list[str]] = {
        "nexo": [sys.executable, "-c", "import nexo; print(nexo.__version__)"],
        "ejabberd": ["dpkg-query", "-W", "-f=${Version}", "ejabberd"],
        "python-socketio": [
            str(work / "py/bin/python"), "-c", "import importlib.metadata as m; print(m.version('python-socketio'))",
        ],
        "socket.io": ["node", "-p", "require('./node_modules/socket.io/package.json').version"],
        "node": ["node", "--version"],
        "mariadb": ["mariadbd", "--version"],
        "postgresql": ["psql", "--version"],
    }  # fmt: skip
    for name, command in commands.items():
        try:
            done = subprocess.run(command, cwd=work / "node", capture_output=True, text=True, check=True)
            found[name] = done.stdout.strip().replace("mariadbd  Ver ", "").split(" for ")[0]
        except (OSError, subprocess.CalledProcessError):
            found[name] = "not there"
    return found


def markdown(results: dict[str, dict[str, Any]]) -> str:
    shown = [column for column in COLUMNS if any(column in figures for figures in results.values())]
    lines = ["| server | " + " | ".join(shown) + " | durability |", "|---|" + "--:|" * len(shown) + "---|"]
    for name, figures in results.items():
        cells = []
        for column in shown:
            value = figures.get(column)
            if value is None:
                cells.append("–")
            elif column == "generator busy":
                cells.append(f"{value:.0%}")
            else:
                cells.append(f"{value:,.0f}" if value >= 100 else f"{value:.1f}")
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {figures.get('durability', '')} |")
    return "\n".join(lines)


def measure(wanted: list[str], rows: list[str], seconds: float, work: Path) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {}
    for name in wanted:
        kind, _, database = name.partition(":")
        for row in rows:
            try:
                with KINDS[kind](database, work) as peer:
                    figures = results.setdefault(peer.name, {"durability": peer.durability})
                    figures |= uvloop.run(ACTS[row](peer, seconds))
            except Exception as error:  # one that does not run does not stop the rest
                sys.stderr.write(f"{name} {row}: {type(error).__name__}: {error}\n")
            else:
                sys.stderr.write(f"{name} {row}: {figures}\n")
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", default=list(ALL), metavar="SERVER:DATABASE", help=", ".join(ALL))
    parser.add_argument("--rows", default=",".join(ROWS), help=", ".join(ROWS))
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--work", type=Path, default=Path("/tmp/nexo-peers"), help="where the others are installed")
    parser.add_argument("--install", action="store_true", help="install what is missing (Debian, PyPI, npm)")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--markdown", type=Path, help="the page whose generated part is to be replaced")
    options = parser.parse_args()
    if options.install:
        install(options.work)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[1:]))
    results = measure(options.peers, options.rows.split(","), options.seconds, options.work)
    found = versions(options.work)
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    said = ", ".join(f"{name} {version}" for name, version in found.items())
    page = f"{markdown(results)}\n\nRecorded on {when}, {options.seconds:g} s each: {said}."
    print(page)
    if options.markdown:
        replace_part(options.markdown, "peers/compare.py", page)
    if options.json:
        options.json.write_text(json.dumps({"versions": found, "results": results}, indent=1))


if __name__ == "__main__":
    main()

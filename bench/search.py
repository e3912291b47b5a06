"""Search: how long questions take with a million messages (Q1), the lag of the index, and what it costs (J1).

    .venv/bin/python bench/search.py
    .venv/bin/python bench/search.py --engines sqlite,postgresql --messages 200000
    .venv/bin/python bench/search.py --only J1 --seconds 5 --rounds 3

Q1: half of the messages are English, half Chinese, words as frequent as in a language. The asker sees 600,000 of a
million: a group of 200,000 and 200 chats of 2,000. Questions have one or two words, rare and common ones. The lag is
the age of a message when it is indexed, at half of the rate that the server reaches. J1 is a full single chat (`nexo
bench single`) on a server without and one with search, in turns. The server has one core, the generator the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness import servers
from nexo import ids
from nexo.assembly.search import make_index
from nexo.background import Background
from nexo.bench.server import NEXO, OwnServer, own_server
from nexo.config import load, parse_store_url
from nexo.core.search_index import SearchFilter
from nexo.core.search_query import parse_question
from nexo.search.indexer import Indexer
from nexo.search.searching import Searching
from nexo.store import migrate
from nexo.store.engine import Script, do, many
from nexo.store.engine import rows as query
from nexo.store.search.sql_search import SqlSearch
from nexo.store.store import Store

ENGLISH = 20_000  # words
CHINESE = 3_000  # characters
PORTION = 2_000  # messages of a transaction
FOLDED = "bcdfghjklmnpqrstvwz"


class Language:
    """Texts whose words are as frequent as in a language: the n-th has the weight 1/n."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        words = set()
        while len(words) < ENGLISH:
            syllables = self._rng.randint(1, 4)
            words.add("".join(self._rng.choice(FOLDED) + self._rng.choice("aeiou") for _ in range(syllables)))
        self.words = sorted(words, key=len)
        self.characters = [chr(0x4E00 + i) for i in range(CHINESE)]
        self._word_weights = list(accumulate(1 / (i + 1) for i in range(ENGLISH)))
        self._character_weights = list(accumulate(1 / (i + 10) for i in range(CHINESE)))

    def english(self, count: int) -> list[str]:
        return self._rng.choices(self.words, cum_weights=self._word_weights, k=count)

    def chinese(self, count: int) -> str:
        return "".join(self._rng.choices(self.characters, cum_weights=self._character_weights, k=count))

    def text(self) -> str:
        if self._rng.random() < 0.5:
            return " ".join(self.english(self._rng.randint(3, 16)))
        return self.chinese(self._rng.randint(4, 25))

    def question(self) -> str:
        """Returns one or two words: any word as often as it is written, or as often as any other."""

        def word() -> str:
            if self._rng.random() < 0.5:
                is_common = self._rng.random() < 0.5
                chosen = self.english(1)[0] if is_common else self._rng.choice(self.words)
                return chosen[: self._rng.randint(2, len(chosen))]
            return self.chinese(self._rng.choice((1, 2, 2, 2, 3)))

        return " ".join(word() for _ in range(self._rng.choice((1, 2))))


@asynccontextmanager
async def filled(engine: str, messages: int, language: Language) -> AsyncIterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/nexo.db"
        if engine != "sqlite":
            server = servers.mariadb() if engine == "mariadb" else servers.postgres()
            url = server.create_database()
        await migrate.upgrade(parse_store_url(url))
        store = Store(load(env={}, flags={"store.url": url}), Background())
        await store.open()
        try:
            await _fill(store, messages, language)
            yield store
        finally:
            await store.close()


async def _fill(store: Store, messages: int, language: Language) -> None:
    fifth = messages // 5
    chats = [("sg_g_aaaaaaaaaaaa", ["me", *(f"m{i}" for i in range(20))], fifth)]
    chats += [(ids.single_conversation_id("me", f"p{i}"), ["me", f"p{i}"], messages // 500) for i in range(200)]
    chats += [(ids.single_conversation_id(f"x{i}", f"y{i}"), [f"x{i}", f"y{i}"], messages // 500) for i in range(200)]
    first = store.database.ids.take(1)[0] - (1 << 36)
    for number, (name, members, count) in enumerate(chats):
        conv = await store.database.write(partial(_chat, name, members, count))
        step = 10_000_000 // count << 10  # all conversations are spread over the same time: their ids alternate
        for start in range(0, count, PORTION):
            values = [
                (first + number + i * step, f"{conv}-{i}", i + 1, members[-1], 1,
                 json.dumps(language.text(), ensure_ascii=False), i + 1, conv, b"0" * 16, i + 1)
                for i in range(start, min(start + PORTION, count))
            ]  # fmt: skip
            await store.database.write(partial(_messages, store.url.is_embedded, values))


def _chat(name: str, members: list[str], count: int) -> Script[int]:
    kind = 2 if name.startswith("sg_") else 1
    yield do(
        "INSERT INTO conversations (conversation_id,kind,head_seq,countable,last_send_at,member_count,created_at) "
        "VALUES (?,?,?,?,1,?,1)",
        name, kind, count, count, len(members),
    )  # fmt: skip
    ((conv,),) = yield query("SELECT id FROM conversations WHERE conversation_id=?", name)
    for user_id in members:
        yield do("INSERT INTO members (conv,user_id) VALUES (?,?)", conv, user_id)
    return int(conv)


def _messages(is_embedded: bool, values: list[tuple[Any, ...]]) -> Script[None]:
    columns = "server_msg_id,client_msg_id,seq,sender_id,msg_type,content,send_at,conv,request_hash,countable_no"
    marks = "(" + ",".join("?" * 10) + ")"
    if is_embedded:
        yield many(f"INSERT INTO messages ({columns}) VALUES {marks}", values)
        return
    for start in range(0, len(values), 500):
        part = values[start : start + 500]
        listed = ",".join([marks] * len(part))
        yield do(f"INSERT INTO messages ({columns}) VALUES {listed}", *(value for row in part for value in row))


async def ask(engine: str, messages: int, questions: int, pause: bool) -> None:
    language = Language(1)
    async with filled(engine, messages, language) as store:
        index = make_index(store.database)
        await index.open()
        reader = SqlSearch(store.database, store.journal)
        began, cpu = time.perf_counter(), time.process_time()
        await Indexer(reader, index, store.journal, "bench", 10, 0.1).catch_up()
        taken, used = time.perf_counter() - began, time.process_time() - cpu
        entries = (await index.state()).entries
        size = ""
        if store.url.is_embedded:
            path = store.url.path.with_suffix(".search.db")
            size = f", {path.stat().st_size / entries:.0f} bytes a message"
        print(f"Q1  {engine}: {entries:,} messages indexed in {taken:.0f} s ({used / entries * 1e6:.0f} µs CPU{size})")
        if pause:
            print("    filled: press Enter for the questions", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        searching = Searching(reader, index)
        timed: dict[str, list[float]] = {}
        hits = 0
        for _ in range(questions):
            asked = language.question()
            started = time.perf_counter()
            page = await searching.search("me", parse_question(asked), SearchFilter(), None, 20, None)
            took = (time.perf_counter() - started) * 1000
            hits += len(page.hits)
            timed.setdefault("one word" if " " not in asked else "two words", []).append(took)
            timed.setdefault("all", []).append(took)
            if took > 100:
                print(f"    {asked}: {took:.0f} ms")
        for name, values in sorted(timed.items()):
            p50, p95, p99 = (statistics.quantiles(values, n=100)[i] for i in (49, 94, 98))
            print(f"Q1  {engine}, {name}: p50 {p50:.1f}, p95 {p95:.1f}, p99 {p99:.1f}, max {max(values):.1f} ms")
        print(f"    {len(timed['all'])} questions, {hits / len(timed['all']):.1f} results each")
        await index.close()


# -- with a server ---------------------------------------------------------------------------------------


def single(server: OwnServer, seconds: float, rate: float = 0) -> dict[str, float]:
    command = [*NEXO, "bench", "single", "--url", server.url, "--seconds", str(seconds), "--json", "-"]
    if rate:
        command += ["--rate", str(rate)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=lambda: os.sched_setaffinity(0, {1})
    )
    if not done.stdout:
        raise SystemExit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    return {"saved": report["counts"]["saved"], "seconds": report["seconds"], "report": report}


def metric(server: OwnServer, name: str) -> float:
    text = urllib.request.urlopen(f"{server.url}/metrics", timeout=10).read().decode()
    found = re.search(rf"^{name}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


class CpuMeter:
    """CPU time of a server's process."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")

    def __call__(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(server: OwnServer, ended: threading.Event, lags: list[float]) -> None:
    while not ended.wait(0.2):
        lags.append(metric(server, "nexo_search_lag_seconds"))


def cost(seconds: float, rounds: int) -> None:
    found: dict[str, list[tuple[float, float]]] = {"false": [], "true": []}
    with (
        own_server(settings={"search.enabled": "false"}, cores={0}) as without,
        own_server(settings={"search.enabled": "true"}, cores={0}) as with_search,
    ):
        for number in range(rounds + 1):
            for word, server in (("false", without), ("true", with_search)):
                meter = CpuMeter(server.pid)
                before = meter()
                run = single(server, seconds)
                rate = run["saved"] / run["seconds"]
                if number:
                    found[word].append((rate, run["saved"] / (meter() - before)))
                if word == "true":
                    began = time.perf_counter()
                    while metric(server, "nexo_search_messages_total") < metric(server, "nexo_batch_size_sum") * 0.999:
                        time.sleep(0.1)
                        if time.perf_counter() - began > 60:
                            break
                    print(f"    the index had everything {time.perf_counter() - began:.1f} s after the run")
        for place, name in enumerate(("messages/s", "messages per CPU-s of the server")):
            a = statistics.median(one[place] for one in found["false"])
            b = statistics.median(one[place] for one in found["true"])
            print(f"J1  {name}: {a:,.0f} without, {b:,.0f} with search: {b / a:.2f} ×")
        half = statistics.median(one[0] for one in found["false"]) / 2
        lags: list[float] = []
        ended = threading.Event()
        watch = threading.Thread(target=watched, args=(with_search, ended, lags))
        watch.start()
        run = single(with_search, seconds * 2, half)
        ended.set()
        watch.join()
        lags.sort()
        shown = [lags[int(len(lags) * share)] for share in (0.5, 0.95)] + lags[-1:]
        print(
            f"Q1  lag at {run['saved'] / run['seconds']:,.0f} messages/s: "
            f"p50 {shown[0]:.2f}, p95 {shown[1]:.2f}, max {shown[2]:.2f} s"
        )


def _rows(text: str) -> Iterator[str]:
    yield from text.split(",")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--engines", default="sqlite,mariadb,postgresql")
    parser.add_argument("--pause", action="store_true", help="wait for Enter between filling and asking")
    parser.add_argument("--only", default="Q1,J1")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if "Q1" in _rows(given.only):
        for engine in _rows(given.engines):
            uvloop.run(ask(engine, given.messages, given.questions, given.pause))
    if "J1" in _rows(given.only):
        cost(given.seconds, given.rounds)

"""How each row of the figures to reach is measured: which command, which of its numbers, and the marks."""

from __future__ import annotations

import functools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NEXO = Path(sys.executable).with_name("nexo")
ENGINES = ("sqlite", "mariadb", "postgresql")
STORED = 1_000_000  # of row G4c


@dataclass
class Scale:
    """How long it may take."""

    quick: bool = False
    many: bool = False  # S5 with ten million messages

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 3

    @property
    def seconds(self) -> float:
        return 2.0 if self.quick else 5.0

    def long(self, seconds: float) -> float:
        return min(10.0, seconds) if self.quick else seconds


@dataclass
class Outcome:
    measured: str
    must: bool
    aim: bool
    command: str


@dataclass
class Row:
    number: str
    what: str
    must: str
    aim: str
    measure: Callable[[Scale], Outcome]
    quick_differs: str = ""  # what --quick does instead


class CouldNotMeasure(Exception):
    """The text says why."""


# -- running ------------------------------------------------------------------------------------------------------


def run(command: Sequence[str], json_file: Path) -> Any:
    done = subprocess.run([*command, "--json", str(json_file)], capture_output=True, text=True, check=False)
    if done.returncode or not json_file.exists():
        raise CouldNotMeasure((done.stderr.strip() or done.stdout.strip())[-600:])
    text = json_file.read_text()
    return json.loads(text) if not json_file.name.endswith(".jsonl") else [json.loads(x) for x in text.splitlines()]


@functools.cache  # rows that look at one run share it
def script(command: str, lines: bool = False) -> Any:
    """`store.py --rows S1`, in this folder; what it found."""
    with tempfile.TemporaryDirectory() as folder:
        name, *arguments = shlex.split(command)
        file = Path(folder) / ("found.jsonl" if lines else "found.json")
        return run([sys.executable, str(HERE / name), *arguments], file)


def bench(command: str) -> Any:
    """One run of `nexo bench`; only green ones count."""
    with tempfile.TemporaryDirectory() as folder:
        return run([str(NEXO), "bench", *shlex.split(command)], Path(folder) / "found.json")


def benches(command: str, rounds: int) -> list[Any]:
    return [bench(command) for _ in range(rounds)]


def middle(values: Sequence[float], form: str = ",.0f", best: Callable[..., float] = max) -> str:
    """The median, and the best when there are several."""
    text = format(statistics.median(values), form)
    return f"{text} (best {format(best(values), form)})" if len(values) > 1 else text


def fdatasync_ms(count: int = 300) -> list[float]:
    """How long the disk takes by itself: 4 KiB are added to a file and forced out."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.open(Path(folder) / "probe", os.O_CREAT | os.O_WRONLY)
        try:
            times = []
            for _ in range(count):
                os.write(file, bytes(4096))
                began = time.perf_counter()
                os.fdatasync(file)
                times.append((time.perf_counter() - began) * 1000)
            return times
        finally:
            os.close(file)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


# -- the store ----------------------------------------------------------------------------------------------------


def committer(engines: Sequence[str], scale: Scale) -> Outcome:
    rounds = 1 if scale.quick else 4
    command = f"store.py --rows S1 --engines {','.join(engines)} --batches 512 --rounds {rounds} --seconds 1.5"
    found = script(command)
    ratios = {engine: found[engine]["S1"]["ratios"] for engine in engines}
    worst = min(statistics.median(values) for values in ratios.values())
    text = ", ".join(
        f"{engine} {middle(values, '.2f')} ×" if len(engines) > 1 else f"{middle(values, '.2f')} ×"
        for engine, values in ratios.items()
    )
    return Outcome(text, worst >= 0.7, worst >= 0.9, f"bench/{command}")


def hot(scale: Scale) -> Outcome:
    command = f"store.py --rows S3 --rounds {3 if scale.quick else 4} --seconds {0.5 if scale.quick else 1.5:g}"
    found = script(command)
    ratios = {engine: found[engine]["S3"]["ratios"] for engine in ENGINES}
    worst = min(statistics.median(values) for values in ratios.values())
    text = ", ".join(f"{engine} {middle(values, '.2f')} ×" for engine, values in ratios.items())
    return Outcome(text, worst >= 1, worst >= 1.3, f"bench/{command}")


def group_sizes(scale: Scale) -> Outcome:
    command = f"store.py --rows S4{' --engines sqlite' if scale.quick else ''}"
    found = script(command)
    ratios = {
        engine: [many / few for few, many in (figures["S4"]["rows"], figures["S4"]["cpu_us"])]
        for engine, figures in found.items()
    }
    worst = max(max(pair) for pair in ratios.values())
    text = ", ".join(f"{engine} rows {rows:.2f} ×, CPU {cpu:.2f} ×" for engine, (rows, cpu) in ratios.items())
    return Outcome(text, worst <= 1.1, worst <= 1.02, f"bench/{command}")


def reads(scale: Scale) -> Outcome:
    large = 10_000_000 if scale.many else 1_000_000
    command = f"reads.py --large {large}"
    found = script(command)
    ratios = {f"{what}": many / few for what, (few, many) in found["sqlite"].items()}
    worst = max(ratios.values())
    text = ", ".join(f"{what} {ratio:.2f} ×" for what, ratio in ratios.items())
    if not scale.many:
        text = f"with 10⁶: {text}"
    return Outcome(text, worst <= 1.5, worst <= 1.1, f"bench/{command}")


# -- the gateway --------------------------------------------------------------------------------------------------


def floor(act: str, must: float, aim: float, scale: Scale) -> Outcome:
    command = f"floor_ws.py --acts {act} --rounds {scale.rounds} --seconds {scale.seconds / 2:g}"
    found = script(command)[act]
    pairs = zip(found["nexo"]["per_s"], found["picows"]["per_s"], strict=True)
    ratios = [nexo / bare for nexo, bare in pairs]
    ratio = statistics.median(ratios)
    costs = [statistics.median(found[name]["cpu_us"]) for name in ("nexo", "picows")]
    rates = [statistics.median(found[name]["per_s"]) for name in ("nexo", "picows")]
    text = (
        f"{middle(ratios, '.2f')} × ({rates[0]:,.0f}/s against {rates[1]:,.0f}/s; by CPU "
        f"{costs[1] / costs[0]:.2f} ×, {costs[0]:.1f} against {costs[1]:.1f} µs)"
    )
    return Outcome(text, ratio >= must, ratio >= aim, f"bench/{command}")


def idle(scale: Scale) -> Outcome:
    command = f"connect --connections {2000 if scale.quick else 10_000} --pin"
    kib = bench(command)["figures"]["KiB per connection"]
    return Outcome(f"{kib:.1f} KiB", kib <= 16, kib <= 11, f"nexo bench {command}")


def full(scale: Scale) -> Outcome:
    command = f"single --seconds {scale.seconds:g} --pin"
    found = benches(command, scale.rounds)
    per_s, per_cpu = [one["saved_per_s"] for one in found], [one["per_cpu_s"] for one in found]
    a, b = statistics.median(per_s), statistics.median(per_cpu)
    text = f"{middle(per_s)}/s, {middle(per_cpu)} per CPU-s"
    return Outcome(text, a >= 15_000 and b >= 17_000, a >= 25_000 and b >= 28_000, f"nexo bench {command}")


def full_alone(scale: Scale) -> Outcome:
    command = f"single --window 1 --seconds {scale.seconds:g} --pin"
    found = benches(command, scale.rounds)
    per_s, per_cpu = [one["saved_per_s"] for one in found], [one["per_cpu_s"] for one in found]
    rate = statistics.median(per_s)
    text = f"{middle(per_s)}/s, {middle(per_cpu)} per CPU-s"
    return Outcome(text, rate >= 7000, rate >= 12_000, f"nexo bench {command}")


def full_on_many(scale: Scale) -> Outcome:
    """Fresh and filled in turn; `nexo check` of the filled one takes longer than all the rest."""
    stored = 200_000 if scale.quick else STORED
    command = f"single --seconds {scale.seconds:g} --pin --no-check"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "filled.db"
        fill = [sys.executable, str(HERE / "filled.py"), str(file), "--messages", str(stored)]
        subprocess.run(fill, check=True, capture_output=True)
        pairs = [(bench(f"{command} --store sqlite:///{file}"), bench(command)) for _ in range(min(2, scale.rounds))]
    ratios = [filled["saved_per_s"] / fresh["saved_per_s"] for filled, fresh in pairs]
    by_cpu = statistics.median(filled["per_cpu_s"] / fresh["per_cpu_s"] for filled, fresh in pairs)
    ratio = statistics.median(ratios)
    rates = [statistics.median(pair[i]["saved_per_s"] for pair in pairs) for i in range(2)]
    text = f"{middle(ratios, '.2f')} × ({rates[0]:,.0f}/s against {rates[1]:,.0f}/s; by CPU {by_cpu:.2f} ×)"
    command = f"bench/filled.py filled.db; nexo bench {command} [--store sqlite:///…/filled.db]"
    return Outcome(text, ratio >= 0.7, ratio >= 0.85, command)


def peers(scale: Scale) -> tuple[dict[str, float], str]:
    wanted = " ".join(f"{kind}:{engine}" for kind in ("nexo", "ejabberd") for engine in ENGINES)
    command = f"peers/compare.py {wanted} --rows durable --seconds {scale.seconds:g}"
    found = script(command)["results"]
    return {name: figures["msg per CPU-s"] for name, figures in found.items() if "msg per CPU-s" in figures}, command


def against_ejabberd(scale: Scale) -> Outcome:
    found, command = peers(scale)
    others = [value for name, value in found.items() if name.startswith("ejabberd")]
    if not others or "Nexo, sqlite" not in found:
        raise CouldNotMeasure("ejabberd is not there: bench/peers/compare.py --install")
    ratio = found["Nexo, sqlite"] / max(others)
    text = f"{ratio:.1f} × ({found['Nexo, sqlite']:,.0f} against {max(others):,.0f})"
    return Outcome(text, ratio >= 10, ratio >= 17, f"bench/{command}")


def against_ejabberd_on_servers(scale: Scale) -> Outcome:
    found, command = peers(scale)
    try:
        pairs = {name: (found[f"Nexo, {name}"], found[f"ejabberd, {name}"]) for name in ENGINES[1:]}
    except KeyError as error:
        raise CouldNotMeasure(f"{error} did not run: bench/peers/compare.py --install") from None
    worst = min(nexo / other for nexo, other in pairs.values())
    text = ", ".join(f"{name} {a / b:.1f} × ({a:,.0f} against {b:,.0f})" for name, (a, b) in pairs.items())
    return Outcome(text, worst >= 8, worst >= 14, f"bench/{command}")


def light_load(scale: Scale) -> Outcome:
    command = f"single --pairs 50 --rate 500 --seconds {scale.long(10):g} --pin"
    found, disk = [], fdatasync_ms()
    for _ in range(scale.rounds):
        found.append(bench(command)["latencies"]["saved"])
        disk += fdatasync_ms()
    p50, p99 = ([one[name] for one in found] for name in ("p50", "p99"))
    own_p99 = percentile(disk, 0.99)
    limit = max(10.0, 2 * own_p99)
    a, b = statistics.median(p50), statistics.median(p99)
    text = f"{middle(p50, '.2f', min)} / {middle(p99, '.2f', min)} ms"
    text += f" (fdatasync p99 {own_p99:.1f} ms: limit {limit:.0f} ms)"
    return Outcome(text, a <= 1 and b <= limit, a <= 0.6 and b <= 4, f"nexo bench {command}")


def latencies(command: str, must: Sequence[float], aim: Sequence[float]) -> Outcome:
    result = bench(command)
    found = [result["latencies"]["received"][name] for name in ("p50", "p95", "p99")]
    text = " / ".join(f"{value:.1f}" for value in found) + f" ms, {result['counts']['unique']:,} received, none lost"
    holds = [all(value <= mark for value, mark in zip(found, marks, strict=True)) for marks in (must, aim)]
    return Outcome(text, holds[0], holds[1], f"nexo bench {command}")


def steady_clients(scale: Scale) -> Outcome:
    command = f"single --pairs 2500 --rate 833 --seconds {scale.long(40):g}"
    return latencies(command, (9, 50, 137), (3, 10, 30))


def steady_group(scale: Scale) -> Outcome:
    command = f"group --rate 404 --seconds {scale.long(20):g} --verify sample"
    return latencies(command, (21, 34, 498), (10, 20, 60))


def came_back(scale: Scale) -> Outcome:
    command = "offline-catch-up --pairs 20 --pin"
    values = [one["figures"]["server CPU per client, ms"] for one in benches(command, scale.rounds)]
    cost = statistics.median(values)
    return Outcome(f"{middle(values, '.1f', min)} ms", cost <= 15, cost <= 6, f"nexo bench {command}")


def storm(scale: Scale) -> Outcome:
    command = f"reconnect-storm --pairs {1000 if scale.quick else 5000}"
    result = bench(command)
    took_s, cpu_ms = (result["figures"][name] for name in ("all caught up after s", "server CPU per client, ms"))
    text = f"{took_s:.1f} s, {cpu_ms:.2f} ms of server CPU per client"
    return Outcome(text, took_s <= 15, took_s <= 6, f"nexo bench {command}")


def by_http(scale: Scale) -> Outcome:
    command = f"http-send --seconds {scale.seconds:g} --pin"
    found = benches(command, scale.rounds)
    per_s, per_cpu = [one["saved_per_s"] for one in found], [one["per_cpu_s"] for one in found]
    busy = max(one["generator"]["cpu_share"] for one in found)
    rate = statistics.median(per_s)
    text = f"{middle(per_s)}/s, {middle(per_cpu)} per CPU-s (generator {busy:.0%} of a core)"
    return Outcome(text, rate >= 4000, rate >= 8000, f"nexo bench {command}")


# -- with Redis ---------------------------------------------------------------------------------------------------


def dead_redis(scale: Scale) -> Outcome:
    command = f"redis_rows.py --rows R1 --seconds {3 if scale.quick else 6:g} --rounds {3 if scale.quick else 5}"
    found = script(command)["R1"]
    killed, hanging = (found["added_ms"][state] for state in ("killed", "hanging"))
    added = max(killed, hanging)
    alive = statistics.median(found["p99_ms"]["alive"])
    text = f"{added:+.2f} ms (alive {alive:.2f} ms; killed {killed:+.2f}, hanging {hanging:+.2f} ms)"
    return Outcome(text, added <= 5, added <= 0.5, f"bench/{command}")


def idle_instance(scale: Scale) -> Outcome:
    command = f"redis_rows.py --rows C1 --seconds {scale.long(10):g}"
    found = script(command)["C1"]
    share = found["idle_share"]
    text = f"{share:.2%} of a core, while two others save {found['saved_per_s']:,.0f}/s"
    return Outcome(text, share <= 0.02, share <= 0.005, f"bench/{command}")


def two_phase(scale: Scale) -> Outcome:
    command = f"two_phase.py --loads target --commits slow --modes on --seconds {scale.long(10):g}"
    (found,) = script(command, lines=True)
    p99 = float(found["accepted"].split("/")[-1].replace(",", ""))
    text = f"{found['accepted']} ms (p50 / p95 / p99), {found['saved, %']} % saved"
    return Outcome(text, p99 <= 15, p99 <= 5, f"bench/{command}")


ROWS = [
    Row("S1", "committer on SQLite, 512 in flight, against a bare SQL loop", "≥ 0.7 ×", "0.9 ×",
        functools.partial(committer, ENGINES[:1])),
    Row("S2", "the same on MariaDB and PostgreSQL", "≥ 0.7 ×", "0.9 ×", functools.partial(committer, ENGINES[1:])),
    Row("S3", "one hot conversation against 1,000", "≥ 1 ×", "1.3 ×", hot),
    Row("S4", "a group message, 3 members against 10,000: rows and CPU", "≤ 1.1 ×", "1.0 ×", group_sizes,
        "SQLite only"),
    Row("S5", "reading with 10⁷ messages stored against 10⁴", "≤ 1.5 ×", "1.1 ×", reads),
    Row("G1", "PING to PONG against the floor", "≥ 0.6 ×", "0.8 ×",
        functools.partial(floor, "ping", 0.6, 0.8)),
    Row("G2", "deliveries to 1,000 members against the floor", "≥ 0.6 ×", "0.85 ×",
        functools.partial(floor, "group", 0.6, 0.85)),
    Row("G3", "memory per idle connection, at 10,000", "≤ 16 KiB", "11 KiB", idle, "2,000 connections"),
    Row("G4", "full, SQLite, 100 pairs, window 8: per second and per CPU-second", "≥ 15,000, 17,000",
        "25,000, 28,000", full),
    Row("G4b", "the same, window 1", "≥ 7,000/s", "12,000/s", full_alone),
    Row("G4c", "G4 with 1,000,000 messages stored, against fresh", "≥ 0.7 ×", "0.85 ×", full_on_many,
        "200,000 stored"),
    Row("G5", "G4 per CPU-second against ejabberd's best", "≥ 10 ×", "17 ×", against_ejabberd),
    Row("G6", "the same on MariaDB and PostgreSQL, against ejabberd there", "≥ 8 ×", "14 ×",
        against_ejabberd_on_servers),
    Row("G7", "500 msg/s: ACK saved p50 / p99", "≤ 1 / 10 ms or 2 × disk", "0.6 / 4 ms", light_load),
    Row("G8", "5,000 clients, 833 msg/s: p50 / p95 / p99", "≤ 9/50/137 ms", "3/10/30 ms", steady_clients, "10 s"),
    Row("G9", "group of 200, 20 send, 404 msg/s", "≤ 21/34/498 ms", "10/20/60 ms", steady_group, "10 s"),
    Row("G10", "1,000 missed messages: server CPU until all are held", "≤ 15 ms", "6 ms", came_back),
    Row("G11", "5,000 come back at once, 20 missed each", "≤ 15 s", "6 s", storm, "1,000 clients"),
    Row("H1", "`POST /msg/send`, 64 connections, saved", "≥ 4,000/s", "8,000/s", by_http),
    Row("R1", "Redis dead: added p99 of a send", "≤ 5 ms", "0", dead_redis),
    Row("C1", "CPU of an idle instance", "≤ 2 %", "0.5 %", idle_instance),
    Row("T1", "two-phase, commits 20 ms slower, 833 msg/s: accepted p99", "≤ 15 ms", "5 ms", two_phase),
]  # fmt: skip

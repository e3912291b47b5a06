"""Files: bytes per CPU-second against a bare loop, memory (F1), and what uploads do to the p99 of a send (F2).

    .venv/bin/python bench/files.py
    .venv/bin/python bench/files.py --rows F1 --rounds 1
    .venv/bin/python bench/files.py --markdown docs/benchmarks.md

F1: twenty users upload 100 MiB each at once, by tus in one request, then download them at once. The bare loop is a
process that does nothing but read sockets and write files, sync each at its end (a file of Nexo is synced too), and
read files and write sockets; it keeps no hash. Both take turns. CPU is that of all processes of the server. The growth
of memory is the highest resident size of the server since before the first transfer, minus the size at that moment.
F2: `nexo bench single` at a steady rate, without and with twenty uploads that never pause, in turns. The server has
one core; the generators share the other, where the uploads have the lowest priority.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil

from load import register
from nexo.bench.processes import this_machine
from nexo.bench.server import NEXO, OwnServer, own_server
from page import replace_part

MIB = 1024 * 1024
PIECE = 256 * 1024
AT_ONCE = 20
SERVER_CORE, OTHER_CORE = 0, 1
BLOCK = os.urandom(MIB)


# -- the bare loop ---------------------------------------------------------------------------------------


class Bare:
    """One connection after the other has its turn: what a process must do at least to move the bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._piece = bytearray(PIECE)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def run(self, direction: str, size: int) -> float:
        """Move one file for each of so many connections. Returns the CPU time."""
        sockets = [self.listener.accept()[0] for _ in range(AT_ONCE)]
        began = time.process_time()
        take = self._receive if direction == "up" else self._send
        for number, connected in enumerate(sockets):
            connected.setblocking(False)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if direction == "up" else os.O_RDONLY
            file = os.open(self._folder / str(number), flags, 0o600)
            event = selectors.EVENT_READ if direction == "up" else selectors.EVENT_WRITE
            self._selector.register(connected, event, take(connected, file, size))
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if next(key.data, None) is None:
                    self._selector.unregister(key.fileobj)
        spent = time.process_time() - began
        for connected in sockets:
            connected.close()
        return spent

    def _receive(self, connected: socket.socket, file: int, size: int) -> Iterator[bool]:
        view = memoryview(self._piece)
        left = size
        while left:
            got = connected.recv_into(view)
            left -= os.write(file, view[:got])
            if left:
                yield True
        os.fsync(file)
        os.close(file)
        connected.send(b"+")

    def _send(self, connected: socket.socket, file: int, size: int) -> Iterator[bool]:
        view = memoryview(self._piece)
        place = 0
        while place < size:
            got = os.preadv(file, [view], place)
            place += connected.send(view[:got])
            if place < size:
                yield True
        os.close(file)


def be_bare(pipe: Connection, folder: Path) -> None:
    os.sched_setaffinity(0, {SERVER_CORE})
    bare = Bare(folder)
    pipe.send(bare.listener.getsockname()[1])
    while (asked := pipe.recv()) is not None:
        pipe.send(bare.run(*asked))


# -- clients ---------------------------------------------------------------------------------------------


def send_all(connected: socket.socket, size: int, mark: bytes) -> None:
    """Send so many bytes, which no other upload has: equal ones would be stored once."""
    connected.sendall(mark + BLOCK[len(mark) :])
    for _ in range(size // MIB - 1):
        connected.sendall(BLOCK)


def read_head(connected: socket.socket) -> tuple[bytes, bytes]:
    """Returns the head of an answer, and what arrived behind it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connected.recv(65536)
        if not more:
            raise SystemExit(f"the server closed the connection behind {data!r}")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def drain(connected: socket.socket, size: int) -> None:
    piece = bytearray(PIECE)
    while size > 0:
        got = connected.recv_into(piece)
        if not got:
            raise SystemExit("the connection ended early")
        size -= got


def opened(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, timeout=120)


class Client:
    def __init__(self, server: OwnServer, token: str) -> None:
        parts = urlsplit(server.url)
        self.address = (parts.hostname or "127.0.0.1", parts.port or 0)
        self._common = f"host: bench\r\nauthorization: Bearer {token}\r\ntus-resumable: 1.0.0\r\n"

    def _ask(self, connected: socket.socket, line: str, *headers: str) -> None:
        text = "".join(f"{header}\r\n" for header in headers)
        connected.sendall(f"{line} HTTP/1.1\r\n{self._common}{text}\r\n".encode())

    def upload(self, size: int) -> str:
        """Returns the file_id."""
        with opened(self.address) as connected:
            self._ask(connected, "POST /files/tus", f"upload-length: {size}", "content-length: 0")
            head, _ = read_head(connected)
            found = re.search(rb"location: /files/tus/(\S+)", head, re.IGNORECASE)
            if found is None:
                raise SystemExit(head.decode())
            file_id = found[1].decode()
            kind = "content-type: application/offset+octet-stream"
            self._ask(connected, f"PATCH /files/tus/{file_id}", "upload-offset: 0", f"content-length: {size}", kind)
            send_all(connected, size, file_id.encode())
            head, _ = read_head(connected)
            if b" 204 " not in head:
                raise SystemExit(head.decode())
        return file_id

    def download(self, file_id: str, size: int) -> None:
        with opened(self.address) as connected:
            self._ask(connected, f"GET /files/{file_id}")
            head, rest = read_head(connected)
            if b" 200 " not in head:
                raise SystemExit(head.decode())
            drain(connected, size - len(rest))


def at_once(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, range(AT_ONCE)))


# -- the server's processes ------------------------------------------------------------------------------


def processes_of(server: OwnServer) -> list[psutil.Process]:
    own = psutil.Process(server.pid)
    return [own, *own.children(recursive=True)]


def cpu_of(server: OwnServer) -> float:
    spent = 0.0
    for process in processes_of(server):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system + times.children_user + times.children_system
    return spent


def rss_of(server: OwnServer) -> int:
    return sum(process.memory_info().rss for process in processes_of(server))


@contextlib.contextmanager
def peak_rss(server: OwnServer) -> Iterator[list[int]]:
    """Yields the highest resident size so far."""
    found, done = [rss_of(server)], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            with contextlib.suppress(psutil.NoSuchProcess):
                found[0] = max(found[0], rss_of(server))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


# -- F1 --------------------------------------------------------------------------------------------------


class Moved(NamedTuple):
    per_cpu_s: float  # MiB
    per_s: float


class Transfers(NamedTuple):
    nexo: dict[str, list[Moved]]
    bare: dict[str, list[Moved]]
    grown_mib: float

    def ratio(self, direction: str) -> float:
        medians = [statistics.median(one.per_cpu_s for one in side[direction]) for side in (self.nexo, self.bare)]
        return medians[0] / medians[1]


def bare_round(pipe: Connection, port: int, direction: str, size: int) -> Moved:
    pipe.send((direction, size))
    address = ("127.0.0.1", port)

    def work(number: int) -> None:
        with opened(address) as connected:
            if direction == "up":
                send_all(connected, size, b"%d" % number)
                connected.recv(1)
            else:
                drain(connected, size)

    began = time.perf_counter()
    at_once(work)
    taken = time.perf_counter() - began
    total = AT_ONCE * size / MIB
    return Moved(total / pipe.recv(), total / taken)


def nexo_round(server: OwnServer, work: Callable[[int], Any], size: int) -> tuple[Moved, list[Any]]:
    before, began = cpu_of(server), time.perf_counter()
    found = at_once(work)
    taken = time.perf_counter() - began
    total = AT_ONCE * size / MIB
    return Moved(total / (cpu_of(server) - before), total / taken), found


def transfers(server: OwnServer, clients: list[Client], size: int, rounds: int) -> Transfers:
    sides: tuple[dict[str, list[Moved]], ...] = ({"up": [], "down": []}, {"up": [], "down": []})
    nexo, bare = sides
    with tempfile.TemporaryDirectory(prefix="nexo-bench-bare-") as folder:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=be_bare, args=(theirs, Path(folder)), daemon=True)
        process.start()
        port = ours.recv()
        first_rss = rss_of(server)
        with peak_rss(server) as peak:
            for _ in range(rounds):
                bare["up"].append(bare_round(ours, port, "up", size))
                moved, ids = nexo_round(server, lambda number: clients[number].upload(size), size)
                nexo["up"].append(moved)
                bare["down"].append(bare_round(ours, port, "down", size))
                named = list(ids)
                moved, _ = nexo_round(
                    server, lambda number, named=named: clients[number].download(named[number], size), size
                )
                nexo["down"].append(moved)
        ours.send(None)
        process.join()
    return Transfers(nexo, bare, (peak[0] - first_rss) / MIB)


# -- F2 --------------------------------------------------------------------------------------------------


def keep_uploading(url: str, tokens: list[str], size: int, pipe: Connection) -> None:
    """The process of the uploads, which go on until it is ended; it reports each."""
    os.sched_setaffinity(0, {OTHER_CORE})
    os.nice(19)
    server = OwnServer(url, 0, Path(), {})

    def work(number: int) -> None:
        client = Client(server, tokens[number])
        while True:
            client.upload(size)
            pipe.send(size)

    at_once(work)


def single(server: OwnServer, rate: int, seconds: float) -> Any:
    command = [*NEXO, "bench", "single", "--url", server.url, "--json", "-", "--no-check", "--pairs", "50"]
    command += ["--rate", str(rate), "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return json.loads(done.stdout[done.stdout.index("{") :])


class Sends(NamedTuple):
    without: list[dict[str, float]]  # p50 and p99 in ms
    beside: list[dict[str, float]]
    mib_per_s: float

    def median(self, side: str, name: str) -> float:
        return statistics.median(one[name] for one in getattr(self, side))

    @property
    def ratio(self) -> float:
        return self.median("beside", "p99") / self.median("without", "p99")


def sends(server: OwnServer, tokens: list[str], size: int, rounds: int, rate: int, seconds: float) -> Sends:
    found = Sends([], [], 0.0)
    moved, during = 0, 0.0
    single(server, rate, 2)
    for _ in range(rounds):
        found.without.append(latencies(single(server, rate, seconds)))
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=keep_uploading, args=(server.url, tokens, size, theirs), daemon=True)
        process.start()
        ours.recv()  # they are under way
        began = time.perf_counter()
        found.beside.append(latencies(single(server, rate, seconds)))
        during += time.perf_counter() - began
        process.kill()
        process.join()
        while ours.poll():
            moved += ours.recv()
    return found._replace(mib_per_s=moved / MIB / during)


def latencies(result: Any) -> dict[str, float]:
    saved = result["latencies"]["saved"]
    return {"p50": saved["p50"], "p99": saved["p99"]}


# -- the report ------------------------------------------------------------------------------------------


def verdict(reached: bool, aim: bool) -> str:
    return "aim" if aim else "must" if reached else "**no**"


def shown_moved(found: Transfers, direction: str) -> str:
    texts = []
    for side in (found.nexo, found.bare):
        per_cpu_s = statistics.median(one.per_cpu_s for one in side[direction])
        per_s = statistics.median(one.per_s for one in side[direction])
        texts.append(f"{per_cpu_s:,.0f} MiB per CPU-s at {per_s:,.0f} MiB/s")
    return f"{found.ratio(direction):.2f} × ({texts[0]}; the loop {texts[1]})"


def rows_of(moved: Transfers | None, sent: Sends | None) -> list[str]:
    rows = []
    if moved is not None:
        for direction, name in (("up", "upload"), ("down", "download")):
            ratio = moved.ratio(direction)
            rows.append(
                f"| F1 | {name} of 100 MiB, 20 at once: bytes per CPU-second against a bare loop | ≥ 0.5 × | 0.8 × | "
                f"{shown_moved(moved, direction)} | {verdict(ratio >= 0.5, ratio >= 0.8)} |"
            )
        grown = moved.grown_mib
        rows.append(
            f"| F1 | growth of memory meanwhile | ≤ 48 MiB | 16 MiB | {grown:.1f} MiB | "
            f"{verdict(grown <= 48, grown <= 16)} |"
        )
    if sent is not None:
        texts = [
            f"{name} {sent.median('without', name):.2f} → {sent.median('beside', name):.2f} ms"
            for name in ("p50", "p99")
        ]
        rows.append(
            f"| F2 | a send while 20 uploads run, against without: p99 | ≤ 2 × | 1.2 × | {sent.ratio:.2f} × "
            f"({', '.join(texts)}; uploads {sent.mib_per_s:,.0f} MiB/s) | "
            f"{verdict(sent.ratio <= 2, sent.ratio <= 1.2)} |"
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="F1,F2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=100)
    parser.add_argument("--rate", type=int, default=500, help="messages per second of F2")
    parser.add_argument("--seconds", type=float, default=10, help="of each load of F2")
    parser.add_argument("--markdown", type=Path, help="the page whose part is replaced")
    given = parser.parse_args()
    chosen = given.rows.split(",")
    os.sched_setaffinity(0, {OTHER_CORE})
    moved = sent = None
    settings = {"files.max_bytes": str(1 << 30), "files.unused_hours": "1"}
    with own_server(settings=settings, cores={SERVER_CORE}) as server:
        port = urlsplit(server.url).port or 0
        tokens = list(register(port, [f"u{number}" for number in range(AT_ONCE)]).values())
        clients = [Client(server, token) for token in tokens]
        clients[0].upload(MIB)  # imports, threads
        if "F1" in chosen:
            moved = transfers(server, clients, given.mib * MIB, given.rounds)
        if "F2" in chosen:
            sent = sends(server, tokens, given.mib * MIB, given.rounds, given.rate, given.seconds)
    rows = rows_of(moved, sent)
    print("\n".join(rows))
    if given.markdown:
        machine = this_machine()
        line = (
            f"Recorded on {time.strftime('%Y-%m-%d')}: {machine.processor}, {machine.cores} cores, {machine.system}, "
            f"Python {machine.python}. Medians of {given.rounds} rounds."
        )
        head = ["| # | what | must | aim | measured | reached |", "|---|---|---|---|---|---|"]
        replace_part(given.markdown, "files.py", f"{line}\n\n" + "\n".join([*head, *rows]))


if __name__ == "__main__":
    sys.exit(main())

"""The longest turn of the event loop while messages are pushed to one group with many connected members.

.venv/bin/python bench/fanout.py --members 20000 --messages 20

Each connection writes its frames by one system call at the end of a turn, as sockets do. Turns are measured in CPU
time: what other programs of the machine take is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import time
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from harness.fanout import Pushed, make_fanout, sent
from nexo.delivery import portions

GROUP = "sg_g_Bench0000001"


class Written(Pushed):
    """A connection whose frames are written at the end of the turn, to where nothing is kept."""

    sink = os.open(os.devnull, os.O_WRONLY)
    touched: list[Written] = []  # noqa: RUF012 - shared on purpose, as a gateway's is
    count = 0

    def push(self, frame: bytes) -> bool:
        if not self.touched:
            asyncio.get_running_loop().call_soon(self.flush_all)
        if not self.frames:
            self.touched.append(self)
        self.frames.append(frame)
        return True

    @classmethod
    def flush_all(cls) -> None:
        touched, Written.touched = cls.touched, []
        for connection in touched:
            os.write(cls.sink, b"".join(connection.frames))
            Written.count += len(connection.frames)
            connection.frames.clear()


async def run(members: int, messages: int) -> None:
    users = [f"u{number}" for number in range(members)]
    fanout = await make_fanout({GROUP: users}, [Written(user_id) for user_id in users])
    turns_ms: list[float] = []
    gc.collect()
    gc.freeze()
    began = time.perf_counter()
    last = time.thread_time()
    seq = 0
    while Written.count < members * messages:
        if seq < messages and seq <= Written.count // members:
            seq += 1
            fanout.saved(sent(GROUP, seq, "somebody"), None, None)
        await asyncio.sleep(0)
        now = time.thread_time()
        turns_ms.append((now - last) * 1000)
        last = now
    taken = time.perf_counter() - began
    turns_ms.sort()
    print(f"{members} members, {messages} messages, {portions.PORTION} connections per turn")
    print(f"{members * messages / taken:,.0f} pushes/s in {len(turns_ms)} turns")
    print(f"longest turn {turns_ms[-1]:.2f} ms, p99 {turns_ms[int(len(turns_ms) * 0.99)]:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=20_000)
    parser.add_argument("--messages", type=int, default=20)
    given = parser.parse_args()
    uvloop.run(run(given.members, given.messages))


if __name__ == "__main__":
    main()

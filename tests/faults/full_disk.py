"""A disk that fills up and is cleared again, on a file system of its own: `python full_disk.py DIRECTORY`.

Has to run in a mount namespace of its own (`unshare --mount`), where the small disk is visible to nobody else
and goes away with the process. It checks everything itself and says DONE.
"""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import time
from pathlib import Path

import uvloop

from harness.acks import Ack, check_acks
from harness.core import found_group, look, open_test_core
from nexo.assembly.core import Core
from nexo.core.model import Sent
from nexo.errors import NexoError

DISK_BYTES = 8 << 20
PEOPLE = ["ann", "bob", "cleo"]
LARGE = "x" * 4000


def fill(file: Path) -> None:
    """To the last byte."""
    with file.open("wb", buffering=0) as ballast:
        size = 1 << 16
        while size:
            try:
                ballast.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2


async def send_all(core: Core, first: int, count: int) -> tuple[dict[str, Sent], dict[str, NexoError]]:
    """Many at once; what became of each."""
    sent: dict[str, Sent] = {}
    refused: dict[str, NexoError] = {}

    async def send(name: str) -> None:
        try:
            sent[name] = await core.sending.send("ann", client_msg_id=name, recv_id="bob", content=LARGE)
        except NexoError as error:
            refused[name] = error

    await asyncio.gather(*(send(f"c{n}") for n in range(first, first + count)))
    return sent, refused


def acks_of(sent: dict[str, Sent]) -> list[Ack]:
    found = []
    for name, one in sent.items():
        message = one.message
        found.append(Ack(name, message.server_msg_id, message.conversation_id, message.seq, message.send_at, one.fresh))
    return found


async def main(disk: Path) -> None:
    url = f"sqlite:///{disk}/nexo.db"
    ballast = disk / "ballast"
    async with open_test_core(url, PEOPLE) as core:
        group_id, conversation_id = await found_group(core, *PEOPLE)
        acknowledged, refused = await send_all(core, 0, 100)
        assert not refused, refused

        fill(ballast)
        began = time.monotonic()
        sent, refused = await send_all(core, 100, 400)
        took_s = time.monotonic() - began
        acknowledged |= sent  # as much as went into the room that the log had already
        assert len(refused) > 100, "the disk was not full"
        assert {error.name for error in refused.values()} == {"server_busy"}
        assert took_s < 10, took_s  # the deadline is three seconds; without one it would try for ever
        stored = {name for (name,) in await look(core, "SELECT client_msg_id FROM messages WHERE msg_type<100")}
        assert stored == set(acknowledged), "a refusal says that it was surely not saved"
        try:
            await core.groups.update("ann", group_id, announcement=LARGE)
        except NexoError as error:
            if error.name != "server_busy":  # or it fits: it is small
                raise
        page = await core.conversations.pull("bob", "si_ann:bob", 1)
        assert page.messages, "reading goes on"
        await check_acks(url, acks_of(acknowledged))

        ballast.unlink()
        for start in range(100, 500, 100):
            sent, refused = await send_all(core, start, 100)
            assert not refused, refused
            for name, one in sent.items():
                assert one.fresh == (name not in acknowledged)
            acknowledged |= sent
        assert (await core.conversations.pull("bob", conversation_id)).messages
    assert await check_acks(url, acks_of(acknowledged)) == {f"c{n}" for n in range(500)}


if __name__ == "__main__":
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "nexo-small-disk", sys.argv[1]], check=True)
    uvloop.run(main(Path(sys.argv[1])))
    print("DONE", flush=True)

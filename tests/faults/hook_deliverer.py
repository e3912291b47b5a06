"""An instance that delivers webhooks, and saves messages of its own beside: `python hook_deliverer.py URL [quiet]`. It
says READY. What it has saved itself it delivers from memory."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import secrets
import sys

import uvloop

from harness.waiting import time_passes
from nexo.assembly.hooks import make_hooks
from nexo.background import Background
from nexo.config import load
from nexo.errors import NexoError
from nexo.journal.journal import Journal
from nexo.service.filter import FilterFile
from nexo.service.send import Sending
from nexo.store.store import Store


async def main(url: str, *words: str) -> None:
    flags = {"store.url": url, "journal.takeover_s": 1, "journal.poll_ms": 20, "hooks.allow_private": True}
    config = load(env={}, flags={**flags, "hooks.timeout_s": 1})
    background = Background()
    store = Store(config, background)
    await store.open()
    journal = Journal(store.journal, config, background, store.database.ids.holder)
    make_hooks(config, store, journal, background).start()
    store.seam.attach(journal)
    sending = Sending(store.messages, FilterFile(None, "off"))
    mark = secrets.token_hex(4)
    os.write(1, b"READY\n")
    if "quiet" in words:
        await asyncio.Event().wait()
    for number in itertools.count():
        with contextlib.suppress(NexoError):  # such as `server_busy` while the database is busy
            await asyncio.gather(
                *(
                    sending.send(f"a{n}", client_msg_id=f"{mark}-{n}-{number}", recv_id=f"b{n}", content="of its own")
                    for n in range(4)
                )
            )
        await time_passes(0.05)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from nexo.background import Background
from nexo.config import load
from nexo.core.model import Draft, Kind, MsgType
from nexo.ids import IdGenerator
from nexo.ports import Address
from nexo.two_phase import acceptor as module
from nexo.two_phase.acceptor import Acceptor
from nexo.two_phase.streams import Fate, Run


class SavedStreams:
    """Redis that has saved everything it is asked for."""

    def __init__(self) -> None:
        self.link = SimpleNamespace(is_broken=False)
        self.asked: list[int] = []
        self.all_asked = asyncio.Event()

    async def accept(self, runs: Sequence[Run], closed: object) -> list[list[Fate]]:
        self.asked += [len(run.entries) for run in runs]
        self.all_asked.set()
        return [[Fate("saved", 1) for _ in run.entries] for run in runs]


async def test_all_overdue_sends_of_a_connection_are_looked_up_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notices of saved sends that were lost with Redis come back together, not one per round."""
    monkeypatch.setattr(module, "LOOK_S", 0.01)
    looked_up: list[str] = []
    messages: Any = SimpleNamespace(
        submit=lambda draft, origin: looked_up.append(draft.client_msg_id), may_send=lambda pairs: None
    )
    streams: Any = SavedStreams()
    background = Background()
    ids: IdGenerator = SimpleNamespace(take=lambda count: list(range(count)))  # type: ignore[assignment]
    settings = load(env={}, flags={}).two_phase
    acceptor = Acceptor(streams, settings, messages, ids, "here", lambda *_: None, background)
    place = acceptor._places.open(Address("here", "ann", "c1"), "si_ann:ben")
    names = [f"m{i}" for i in range(50)]
    for i, name in enumerate(names):
        draft = Draft(
            sender_id="ann",
            client_msg_id=name,
            conversation_id="si_ann:ben",
            kind=Kind.SINGLE,
            msg_type=MsgType.TEXT,
            content=name,
            request_hash=b"",
            server_msg_id=i + 1,
        )
        acceptor._places.accepted(place, draft, now=0.0)
    acceptor.start()
    try:
        async with asyncio.timeout(10):
            await streams.all_asked.wait()
        assert streams.asked == [50]
        assert looked_up == names
    finally:
        await acceptor.stop()
        await background.stop()

"""What one sender sends to one conversation keeps its order, whatever fails on the way."""

from __future__ import annotations

import asyncio

from harness.answers import Answers
from harness.core import open_test_core
from harness.scripts import intercepted
from harness.triggers import create_fails
from nexo.store.engine import Stmt

PEOPLE = [f"p{n}" for n in range(8)]
PAIRS = [(low, high) for low in PEOPLE for high in PEOPLE if low < high]
EACH = 8  # messages in a chat


async def test_the_first_messages_of_a_chat_keep_their_order_while_it_cannot_be_created(core_url: str) -> None:
    loop = asyncio.get_running_loop()
    async with open_test_core(core_url, PEOPLE, send__deadline_ms=30_000) as core:
        answers = Answers(core)
        left: list[tuple[str, str, str]] = []

        def send_next() -> None:
            if left:
                sender, receiver, name = left.pop(0)
                answers.submit(sender, receiver, client_msg_id=name)

        def meanwhile(script: str, statement: Stmt) -> None:
            """While a batch is under way, the next message arrives."""
            if script == "write_batch":
                loop.call_soon_threadsafe(send_next)

        async with create_fails(core, core_url, 0.6):
            for sender, receiver in PAIRS:
                left += [(sender, receiver, f"{sender}-{receiver}-{number}") for number in range(EACH)]
                with intercepted(core, meanwhile):
                    while left:
                        send_next()
                        async with asyncio.timeout(30):
                            await answers.all()
        given = await answers.all()
        for sender, receiver in PAIRS:
            chat = f"{sender}-{receiver}-"
            seqs = [(name, seq) for name, seq in given if name.startswith(chat)]
            assert seqs == [(f"{chat}{number}", number + 1) for number in range(EACH)]

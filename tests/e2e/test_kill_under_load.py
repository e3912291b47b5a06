"""kill -9 in the middle of everything: what was acknowledged is there, once and in order, and all catch up."""

from __future__ import annotations

import asyncio

from harness.chatters import check_stored, finish, gather_chatters
from harness.server_process import ServerProcess

SENDERS = 30
KILLS = 3
BETWEEN_KILLS_S = 1.0


async def test_what_was_acknowledged_survives_kills_in_order_and_everybody_catches_up() -> None:
    with ServerProcess(limits__inflight_sends=0) as server:
        chatters = await gather_chatters(server, [f"u{i}" for i in range(SENDERS)])
        running = [asyncio.create_task(chatter.run()) for chatter in chatters]
        for _ in range(KILLS):
            await asyncio.sleep(BETWEEN_KILLS_S)
            assert not any(task.done() for task in running), [task for task in running if task.done()]
            await asyncio.to_thread(server.restart)
        await asyncio.sleep(BETWEEN_KILLS_S)
        await finish(chatters, running)
        assert all(chatter.connects > KILLS for chatter in chatters)
        server.kill()
        server.start()
        await check_stored(server, chatters)
        total = sum(len(chatter.saved) for chatter in chatters)
        print(f"{total} messages over {KILLS} kills")
        assert total > 500
        server.kill()
        server.check()

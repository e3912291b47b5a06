"""kill -9 in the middle of everything: what was acknowledged is there, once and in order, and all catch up."""

from __future__ import annotations

import asyncio

from harness.chatters import check_stored, finish, gather_chatters, until_more
from harness.server_process import ServerProcess
from harness.waiting import until

SENDERS = 30
KILLS = 3
BETWEEN_KILLS = 150  # messages


async def test_what_was_acknowledged_survives_kills_in_order_and_everybody_catches_up() -> None:
    with ServerProcess(limits__inflight_sends=0) as server:
        chatters = await gather_chatters(server, [f"u{i}" for i in range(SENDERS)])
        running = [asyncio.create_task(chatter.run()) for chatter in chatters]
        for kills in range(KILLS + 1):
            if kills:
                await asyncio.to_thread(server.restart)
            await until(lambda: all(chatter.connects > kills for chatter in chatters))  # noqa: B023
            await until_more(chatters, running, BETWEEN_KILLS)
        await finish(chatters, running)
        server.kill()
        server.start()
        await check_stored(server, chatters)
        total = sum(len(chatter.saved) for chatter in chatters)
        print(f"{total} messages over {KILLS} kills")
        assert total > 500
        server.kill()
        server.check()

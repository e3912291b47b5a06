"""kill -9 of the server while users of both of OpenIM's SDKs and a Nexo user write: nothing that was acknowledged is
lost, doubled or in another order, neither in the store nor in the clients."""

from __future__ import annotations

import asyncio
import os

from harness.chat import Person, world
from harness.openim import OpenimClient, chat_of, host, openim_client, people
from harness.server_process import ServerProcess
from harness.waiting import until

LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
KILLS = 10 if LONG else 2
COUNT = 200 if LONG else 40
PATIENCE_S = 120.0


async def texts_of(person: Person, conversation_id: str) -> list[str]:
    """The texts that are stored, in the order of seqs."""
    found: list[str] = []
    begin, more = 1, True
    while more:
        page = await person.get("/msg/pull", conversation_id=conversation_id, begin_seq=begin, limit=200)
        found += [one["content"] for one in page["messages"] if one["msg_type"] == 1]
        begin, more = page["next_seq"], page["has_more"]
    return found


async def test_both_sdks_lose_nothing_when_the_server_is_killed() -> None:
    with ServerProcess(limits__sends_per_s=0) as server:
        async with world(server, check_pushes=False) as here:
            ann, ben, cid = await people(here, "ann", "ben", "cid")
            chat = chat_of(ann.user_id, ben.user_id)
            async with (
                openim_client("js", host(server), ann.user_id, ann.tokens.access) as js,
                openim_client("go", host(server), ben.user_id, ben.tokens.access) as go,
            ):
                clients: list[OpenimClient] = [js, go]
                asked = [
                    {"prefix": "js ", "count": COUNT, "recvID": ben.user_id},
                    {"prefix": "go ", "count": COUNT, "recvID": ann.user_id},
                ]
                writing = [
                    asyncio.create_task(client.call("sendMany", one, patience_s=PATIENCE_S * KILLS))
                    for client, one in zip(clients, asked, strict=True)
                ]
                for number in range(1, KILLS + 1):
                    await js.until_count("Saved", number * COUNT // (KILLS + 2))
                    await asyncio.to_thread(server.restart)
                    await cid.send(ben, f"nexo {number}")
                await asyncio.gather(*writing)
                name = f"si_{min(ann.user_id, ben.user_id)}:{max(ann.user_id, ben.user_id)}"
                stored = await texts_of(ann, name)
                for prefix in ("js ", "go "):
                    own = [text for text in stored if text.startswith(prefix)]
                    assert own == [f"{prefix}{number}" for number in range(COUNT)]
                for client in clients:
                    await until(lambda client=client: client.history_is(chat, stored), patience_s=PATIENCE_S)
                from_nexo = chat_of(cid.user_id, ben.user_id)
                told = [f"nexo {number}" for number in range(1, KILLS + 1)]
                await until(lambda: go.history_is(from_nexo, told), patience_s=PATIENCE_S)
            new = await ben.log_in(platform_id=5, device_id="new")
            async with openim_client("js", host(server), ben.user_id, new.access) as device:
                assert await device.history(chat) == stored
        server.check()

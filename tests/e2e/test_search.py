"""Search of a running server: what is sent is found within moments, also after kill -9 and beside a rebuild."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

from harness.chat import Person, Refused, world
from harness.server_process import ServerProcess
from harness.waiting import until


async def found(person: Person, query: str, **more: Any) -> list[str]:
    texts: list[str] = []
    cursor = ""
    while True:
        page = await person.get("/msg/search", q=query, limit=100, **more, **({"cursor": cursor} if cursor else {}))
        texts += [one["message"]["content"] for one in page["results"]]
        if not page["has_more"]:
            return texts
        cursor = page["next_cursor"]


async def wait_for(person: Person, query: str, count: int) -> list[str]:
    async def look() -> list[str] | None:
        try:
            texts = await found(person, query)
        except Refused as refused:
            if refused.name != "server_busy":  # the index is being opened
                raise
            return None
        return texts if len(texts) == count else None

    return await until(look, f"{count} times {query}") or []


async def test_a_message_is_found_soon_and_by_those_who_may_see_it_only(server: ServerProcess) -> None:
    async with world(server) as here:
        ann, ben, cid = await here.people("ann", "ben", "cid")
        sent = await ann.send(ben, "Der Käse ist 很好吃")
        assert await wait_for(ben, "kase 好吃", 1) == ["Der Käse ist 很好吃"]
        page = await ann.get("/msg/search", q="käs", conversation_id=sent["conversation_id"])
        (result,) = page["results"]
        ((low, high),) = result["ranges"]
        assert (result["snippet"][low:high], result["message"]["seq"]) == ("Käs", sent["seq"])
        assert await found(cid, "käse") == []
        with pytest.raises(Refused, match="conversation_not_found"):
            await cid.get("/msg/search", q="käse", conversation_id=sent["conversation_id"])
        for wrong in ({"q": "!?"}, {"q": "x", "cursor": "no"}, {"q": "x", "after": "now"}, {"q": ""}):
            with pytest.raises(Refused, match=r"bad_query|bad_cursor|bad_time|missing_query"):
                await ann.get("/msg/search", **wrong)
        with pytest.raises(Refused, match="bad_kind"):
            await ann.get("/msg/media", conversation_id=sent["conversation_id"], kind="smell")
        await ann.post("/msg/recall", server_msg_id=sent["server_msg_id"])
        assert await found(ben, "käse") == []


async def test_nothing_is_missed_when_the_server_is_killed_while_it_indexes() -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            count = 0
            for _ in range(2):
                texts = [f"needle{number % 5} number {number}" for number in range(count, count + 60)]
                await asyncio.gather(*(ann.send(ben, text) for text in texts))
                count += len(texts)
                server.restart()  # kill -9, at whatever the index is doing
            assert len(set(await wait_for(ben, "needle", count))) == count
            for number in range(5):
                assert len(await found(ben, f"needle{number}")) == count // 5
            built = server.run("search", "rebuild")
            assert built.returncode == 0, built.stderr
            assert f"complete: {count} messages" in built.stdout
            assert len(await found(ben, "needle")) == count
            await ann.send(ben, "one more needle")
            await wait_for(ben, "needle", count + 1)
            shown = server.run("search", "status")
            assert "Search is on." in shown.stdout, shown.stderr
            async with httpx.AsyncClient(base_url=server.address) as http:
                metrics = (await http.get("/metrics")).text
            assert re.search(r"^nexo_search_entries [1-9]", metrics, re.MULTILINE)


async def test_an_index_that_is_damaged_or_deleted_is_built_again_and_sends_do_not_notice() -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            await ann.send(ben, "kept words")
            await wait_for(ben, "kept", 1)
            server.kill()
            index = server.data / "nexo.search.db"
            index.write_bytes(b"this is no database" * 1000)
            for part in ("-wal", "-shm"):
                index.with_name(index.name + part).unlink(missing_ok=True)
            server.start()
            await ann.send(ben, "kept too")
            await wait_for(ben, "kept", 2)


async def test_without_search_questions_are_refused_and_media_lists_still_work() -> None:
    with ServerProcess(search__enabled="false") as server:
        async with world(server) as here:
            ann, ben = await here.people("ann", "ben")
            sent = await ann.send(ben, "see https://example.com")
            with pytest.raises(Refused, match="not_implemented"):
                await ann.get("/msg/search", q="see")
            page = await ben.get("/msg/media", conversation_id=sent["conversation_id"], kind="link")
            assert [one["seq"] for one in page["messages"]] == [sent["seq"]]
            assert not (server.data / "nexo.search.db").exists()

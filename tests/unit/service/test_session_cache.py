"""The cache of sessions: bounded in time and number, and never older than the last word."""

from __future__ import annotations

import asyncio

from nexo.core.model import Session
from nexo.service.session_cache import SessionCache


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def session(sid: str, user_id: str = "ann", version: int = 1) -> Session:
    return Session(sid, user_id, 5, "", version)


async def remember(cache: SessionCache, value: Session) -> None:
    async def read() -> Session:
        return value

    assert await cache.load(value.sid, read) is value


async def test_a_session_is_remembered_until_its_time_is_over() -> None:
    clock = Clock()
    cache = SessionCache(30, clock=clock)
    assert cache.get("a") is None
    await remember(cache, session("a"))
    clock.now_s += 29.9
    assert cache.get("a") == session("a")
    clock.now_s += 0.1
    assert cache.get("a") is None
    assert (cache.hits, cache.misses) == (1, 2)


async def test_time_counts_from_the_question_not_from_the_answer() -> None:
    clock = Clock()
    cache = SessionCache(30, clock=clock)

    async def slow() -> Session:
        clock.now_s += 20
        return session("a")

    await cache.load("a", slow)
    clock.now_s += 10
    assert cache.get("a") is None


async def test_zero_seconds_remember_nothing() -> None:
    cache = SessionCache(0, clock=Clock())
    await remember(cache, session("a"))
    assert cache.get("a") is None


async def test_the_least_recently_used_session_goes_first() -> None:
    cache = SessionCache(30, max_sessions=2, clock=Clock())
    await remember(cache, session("a"))
    await remember(cache, session("b"))
    assert cache.get("a")
    await remember(cache, session("c"))
    assert [sid for sid in "abc" if cache.get(sid)] == ["a", "c"]
    assert len(cache) == 2


async def test_one_session_or_all_of_a_user_are_forgotten() -> None:
    cache = SessionCache(30, clock=Clock())
    for value in (session("a"), session("b"), session("c"), session("d", "bob")):
        await remember(cache, value)
    cache.forget("a")
    cache.forget("nothing")
    assert [sid for sid in "abcd" if cache.get(sid)] == ["b", "c", "d"]
    cache.forget_user("ann")
    cache.forget_user("nobody")
    assert [sid for sid in "abcd" if cache.get(sid)] == ["d"]


async def test_an_answer_that_crosses_a_forget_is_not_remembered() -> None:
    cache = SessionCache(30, clock=Clock())
    asked, answered = asyncio.Event(), asyncio.Event()

    async def read() -> Session:
        asked.set()
        await answered.wait()
        return session("a")

    loading = asyncio.ensure_future(cache.load("a", read))
    await asked.wait()
    cache.forget("a")
    answered.set()
    assert await loading == session("a")
    assert cache.get("a") is None


async def test_a_session_that_is_gone_is_dropped() -> None:
    cache = SessionCache(30, clock=Clock())
    await remember(cache, session("a"))

    async def nothing() -> None:
        return None

    assert await cache.load("a", nothing) is None
    assert cache.get("a") is None

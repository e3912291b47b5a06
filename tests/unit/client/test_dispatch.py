"""Telling subscribers: in order, all of them, and never without bound."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from nexo.client import ClientError, dispatch
from nexo.client.dispatch import Dispatcher
from nexo.client.events import Failed, Kicked


async def test_a_coroutine_function_gets_one_event_after_the_other() -> None:
    dispatcher = Dispatcher()
    seen: list[str] = []

    async def handle(event: Kicked) -> None:
        seen.append(f"{event.reason} begins")
        await asyncio.sleep(0)
        seen.append(f"{event.reason} ends")

    dispatcher.on("kicked", handle)
    dispatcher.tell(Kicked("one"))
    dispatcher.tell(Kicked("two"))
    await dispatcher.end()
    assert seen == ["one begins", "one ends", "two begins", "two ends"]


async def test_a_handler_that_raises_is_told_and_harms_nobody() -> None:
    dispatcher = Dispatcher()
    errors: list[Failed] = []
    seen: list[Any] = []
    dispatcher.on("error", errors.append)
    dispatcher.on("kicked", lambda event: 1 / 0)
    dispatcher.on("kicked", seen.append)
    dispatcher.tell(Kicked("one"))
    assert len(seen) == 1
    assert isinstance(errors[0].error, ZeroDivisionError)


async def test_who_unsubscribes_hears_no_more() -> None:
    dispatcher = Dispatcher()
    seen: list[Any] = []
    off = dispatcher.on("kicked", seen.append)
    dispatcher.tell(Kicked("one"))
    off()
    dispatcher.tell(Kicked("two"))
    assert [event.reason for event in seen] == ["one"]


async def test_an_iterator_ends_with_the_client_and_gives_what_it_had() -> None:
    dispatcher = Dispatcher()
    stream = dispatcher.stream("kicked", "error")
    dispatcher.tell(Kicked("one"))
    await dispatcher.end()
    assert [event.reason async for event in stream] == ["one"]


async def test_who_takes_events_too_slowly_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "EVENTS_MAX", 3)
    dispatcher = Dispatcher()
    stream = dispatcher.stream("kicked")
    for number in range(5):
        dispatcher.tell(Kicked(str(number)))
    assert [(await anext(stream)).reason for _ in range(3)] == ["0", "1", "2"]
    with pytest.raises(ClientError, match="slow_consumer"):
        await anext(stream)


async def test_once_is_once_and_off_ends_it() -> None:
    dispatcher = Dispatcher()
    seen: list[str] = []

    async def later(event: Kicked) -> None:
        await asyncio.sleep(0)
        seen.append(f"{event.reason} later")

    def always(event: Kicked) -> None:
        seen.append(event.reason)

    dispatcher.on("kicked", lambda event: seen.append(f"{event.reason} once"), once=True)
    dispatcher.on("kicked", later, once=True)
    dispatcher.on("kicked", always)
    dispatcher.tell(Kicked("one"))
    dispatcher.tell(Kicked("two"))
    dispatcher.off("kicked", always)
    dispatcher.tell(Kicked("three"))
    await dispatcher.end()
    assert seen == ["one once", "one", "two", "one later"]

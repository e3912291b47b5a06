"""Telling subscribers: in order, all of them, and never without bound."""

from __future__ import annotations

from typing import Any

import pytest

from harness.waiting import loop_turns
from nexo_client import ClientError
from nexo_client import emitter as emitter_module
from nexo_client.emitter import Emitter
from nexo_client.events import Failed, Kicked


async def test_a_coroutine_function_gets_one_event_after_the_other() -> None:
    emitter = Emitter()
    seen: list[str] = []

    async def handle(event: Kicked) -> None:
        seen.append(f"{event.reason} begins")
        await loop_turns()
        seen.append(f"{event.reason} ends")

    emitter.on("kicked", handle)
    emitter.emit(Kicked("one"))
    emitter.emit(Kicked("two"))
    await emitter.end()
    assert seen == ["one begins", "one ends", "two begins", "two ends"]


async def test_a_handler_that_raises_is_told_and_harms_nobody() -> None:
    emitter = Emitter()
    errors: list[Failed] = []
    seen: list[Any] = []
    emitter.on("error", errors.append)
    emitter.on("kicked", lambda event: 1 / 0)
    emitter.on("kicked", seen.append)
    emitter.emit(Kicked("one"))
    assert len(seen) == 1
    assert isinstance(errors[0].error, ZeroDivisionError)


async def test_who_unsubscribes_hears_no_more() -> None:
    emitter = Emitter()
    seen: list[Any] = []
    off = emitter.on("kicked", seen.append)
    emitter.emit(Kicked("one"))
    off()
    emitter.emit(Kicked("two"))
    assert [event.reason for event in seen] == ["one"]


async def test_an_iterator_ends_with_the_client_and_gives_what_it_had() -> None:
    emitter = Emitter()
    stream = emitter.stream("kicked", "error")
    emitter.emit(Kicked("one"))
    await emitter.end()
    assert [event.reason async for event in stream] == ["one"]


async def test_who_takes_events_too_slowly_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter_module, "EVENTS_MAX", 3)
    emitter = Emitter()
    stream = emitter.stream("kicked")
    for number in range(5):
        emitter.emit(Kicked(str(number)))
    assert [(await anext(stream)).reason for _ in range(3)] == ["0", "1", "2"]
    with pytest.raises(ClientError, match="slow_consumer"):
        await anext(stream)


async def test_once_is_once_and_off_ends_it() -> None:
    emitter = Emitter()
    seen: list[str] = []

    async def later(event: Kicked) -> None:
        await loop_turns()
        seen.append(f"{event.reason} later")

    def always(event: Kicked) -> None:
        seen.append(event.reason)

    emitter.on("kicked", lambda event: seen.append(f"{event.reason} once"), once=True)
    emitter.on("kicked", later, once=True)
    emitter.on("kicked", always)
    emitter.emit(Kicked("one"))
    emitter.emit(Kicked("two"))
    emitter.off("kicked", always)
    emitter.emit(Kicked("three"))
    await emitter.end()
    assert seen == ["one once", "one", "two", "one later"]


async def test_when_the_session_has_ended_an_iterator_raises_the_reason_once_after_what_it_had() -> None:
    emitter = Emitter()
    stream = emitter.stream("kicked")
    emitter.emit(Kicked("one"))
    emitter.fail_streams(ClientError("session_invalid"))
    assert (await anext(stream)).reason == "one"
    with pytest.raises(ClientError) as ended:
        await anext(stream)
    assert ended.value.reason == "session_invalid"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_an_event_that_does_not_exist_is_refused_by_its_name() -> None:
    emitter = Emitter()
    for subscribe in (lambda: emitter.on("nonsense", print), lambda: emitter.stream("message", "nonsense")):
        with pytest.raises(ClientError, match=r"no event 'nonsense': changed, contact_decision, ") as refused:
            subscribe()
        assert refused.value.reason == "unknown_event"

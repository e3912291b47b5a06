"""Delivers events to subscribers: functions at once, coroutine functions one event after the other, iterators."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from nexo_client.core.options import EVENTS_MAX
from nexo_client.errors import ClientError
from nexo_client.events import EVENT_NAMES, Event, Failed

Handler = Callable[[Any], object]


class EventStream(AsyncIterator[Any]):
    """Events in the order in which they happened, until the client is closed. When the server has ended the session,
    the error with its reason is raised once, after the events that were kept; `slow_consumer` when there were more of
    them than are kept."""

    def __init__(self, names: tuple[str, ...], forget: Callable[[EventStream], None]) -> None:
        self.names = frozenset(names)
        self._forget = forget
        self._waiting: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._is_over = False
        self._error: ClientError | None = None

    @property
    def is_over(self) -> bool:
        """Whether no further event will be added."""
        return self._is_over

    def put(self, event: Event) -> None:
        if self._is_over:
            return
        if len(self._waiting) >= EVENTS_MAX:
            self.end(ClientError("slow_consumer", "Events were not consumed as fast as they were emitted."))
            return
        self._waiting.append(event)
        self._ready.set()

    def take_waiting(self) -> list[Event]:
        """Removes and returns the events that were not consumed."""
        waiting, self._waiting = list(self._waiting), deque()
        return waiting

    def end(self, error: ClientError | None = None) -> None:
        """Ends it after the events that it has; `error` is raised then."""
        if self._is_over:
            return
        self._is_over = True
        self._error = error
        self._forget(self)
        self._ready.set()

    async def __anext__(self) -> Any:
        while not self._waiting:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._is_over:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


class Emitter:
    def __init__(self) -> None:
        self._handlers: dict[str, list[_Subscription]] = {}
        self._streams: list[EventStream] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def on(self, name: str, handler: Handler, *, once: bool = False) -> Callable[[], None]:
        """Subscribes a handler; returns the function that unsubscribes it."""
        _check_names(name)
        subscription = _Subscription(self, name, handler, once)
        self._handlers.setdefault(name, []).append(subscription)
        return lambda: self._end(name, subscription)

    def off(self, name: str, handler: Handler) -> None:
        for subscription in [one for one in self._handlers.get(name, ()) if one.handler == handler]:
            self._end(name, subscription)

    def _end(self, name: str, subscription: _Subscription) -> None:
        if subscription in self._handlers.get(name, ()):
            self._handlers[name].remove(subscription)
        subscription.end()

    def stream(self, *names: str) -> EventStream:
        _check_names(*names)
        made = EventStream(names, self._forget)
        self._streams.append(made)
        return made

    def _forget(self, stream: EventStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)

    def emit(self, event: Event) -> None:
        for subscription in list(self._handlers.get(event.name, ())):
            if subscription.is_once:
                self._handlers[event.name].remove(subscription)
            subscription.deliver(event)
            if subscription.is_once:
                subscription.end()  # it still handles this event
        for stream in list(self._streams):
            if event.name in stream.names:
                stream.put(event)

    def emit_error(self, error: Exception) -> None:
        self.emit(Failed(error))

    def fail_streams(self, error: ClientError) -> None:
        """Ends all iterators with this error, after the events they already have."""
        for stream in list(self._streams):
            stream.end(error)

    async def end(self) -> None:
        """Ends all iterators after the events they already have, and waits for coroutine handlers."""
        for stream in list(self._streams):
            stream.end()
        for subscriptions in self._handlers.values():
            for subscription in subscriptions:
                subscription.end()
        current = asyncio.current_task()
        tasks = [task for task in self.tasks if task is not current]
        if tasks:
            await asyncio.wait(tasks, timeout=5)


class _Subscription:
    def __init__(self, emitter: Emitter, name: str, handler: Handler, once: bool) -> None:
        self._emitter = emitter
        self._name = name
        self.handler = handler
        self.is_once = once
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004
        )
        self._stream: EventStream | None = None

    def deliver(self, event: Event) -> None:
        if not self._is_async:
            self._call(event)
            return
        if self._stream is None:
            self._stream = EventStream((self._name,), lambda _: None)
            task = asyncio.get_running_loop().create_task(self._follow(self._stream))
            self._emitter.tasks.add(task)
            task.add_done_callback(self._emitter.tasks.discard)
        self._stream.put(event)

    def end(self) -> None:
        if self._stream is not None:
            self._stream.end()
            self._stream = None

    def _call(self, event: Event) -> None:
        try:
            self.handler(event)
        except Exception as error:
            self._report(error)

    async def _follow(self, stream: EventStream) -> None:
        try:
            async for event in stream:
                try:
                    result = self.handler(event)
                    if isinstance(result, Awaitable):
                        await result
                except Exception as error:
                    self._report(error)
        except ClientError as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        if self._name != Failed.name:  # a failing error handler must not be called because of itself
            self._emitter.emit_error(error)


def _check_names(*names: str) -> None:
    unknown = [name for name in names if name not in EVENT_NAMES]
    if unknown or not names:
        detail = f"There is no event {unknown[0]!r}" if unknown else "Name at least one event"
        raise ClientError("unknown_event", f"{detail}: {', '.join(sorted(EVENT_NAMES))}")

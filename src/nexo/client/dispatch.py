"""Telling subscribers: plain functions at once, coroutine functions one event after the other, iterators."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from nexo.client.events import Event, Failed
from nexo.client.failures import ClientError
from nexo.client.options import EVENTS_MAX

Handler = Callable[[Any], object]


class EventStream(AsyncIterator[Any]):
    """Events in the order in which they happened. It ends when the client is closed. Who takes them too slowly
    gets an error at the end of what was kept, instead of silence."""

    def __init__(self, names: tuple[str, ...], forget: Callable[[EventStream], None]) -> None:
        self.names = frozenset(names)
        self._forget = forget
        self._waiting: deque[Event] = deque()
        self._ready = asyncio.Event()
        self._is_over = False
        self._overflowed = False

    def put(self, event: Event) -> None:
        if self._is_over:
            return
        if len(self._waiting) >= EVENTS_MAX:
            self._overflowed = True
            self.end()
            return
        self._waiting.append(event)
        self._ready.set()

    def end(self) -> None:
        self._is_over = True
        self._forget(self)
        self._ready.set()

    async def __anext__(self) -> Any:
        while not self._waiting:
            if self._overflowed:
                raise ClientError("slow_consumer")
            if self._is_over:
                raise StopAsyncIteration
            self._ready.clear()
            await self._ready.wait()
        return self._waiting.popleft()


class Dispatcher:
    def __init__(self) -> None:
        self._handlers: dict[str, list[_Subscription]] = {}
        self._streams: list[EventStream] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def on(self, name: str, handler: Handler, *, once: bool = False) -> Callable[[], None]:
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
        made = EventStream(names, self._forget)
        self._streams.append(made)
        return made

    def _forget(self, stream: EventStream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)

    def tell(self, event: Event) -> None:
        for subscription in list(self._handlers.get(event.name, ())):
            if subscription.is_once:
                self._handlers[event.name].remove(subscription)
            subscription.tell(event)
            if subscription.is_once:
                subscription.end()  # after what it was told
        for stream in list(self._streams):
            if event.name in stream.names:
                stream.put(event)

    def failed(self, error: Exception) -> None:
        """A handler raised: tell those who want to know. A handler of errors that raises is not told of itself."""
        self.tell(Failed(error))

    async def end(self) -> None:
        """What iterators have is still taken from them; then they are over."""
        for stream in list(self._streams):
            stream.end()
        for subscriptions in self._handlers.values():
            for subscription in subscriptions:
                subscription.end()
        mine = asyncio.current_task()
        tasks = [task for task in self.tasks if task is not mine]
        if tasks:
            await asyncio.wait(tasks, timeout=5)


class _Subscription:
    def __init__(self, dispatcher: Dispatcher, name: str, handler: Handler, once: bool) -> None:
        self._dispatcher = dispatcher
        self._name = name
        self.handler = handler
        self.is_once = once
        self._is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
            getattr(handler, "__call__", None)  # noqa: B004
        )
        self._stream: EventStream | None = None

    def tell(self, event: Event) -> None:
        if not self._is_async:
            self._guard(event)
            return
        if self._stream is None:
            self._stream = EventStream((self._name,), lambda _: None)
            task = asyncio.get_running_loop().create_task(self._follow(self._stream))
            self._dispatcher.tasks.add(task)
            task.add_done_callback(self._dispatcher.tasks.discard)
        self._stream.put(event)

    def end(self) -> None:
        if self._stream is not None:
            self._stream.end()
            self._stream = None

    def _guard(self, event: Event) -> None:
        try:
            self.handler(event)
        except Exception as error:
            self._report(error)

    async def _follow(self, stream: EventStream) -> None:
        try:
            async for event in stream:
                try:
                    done = self.handler(event)
                    if isinstance(done, Awaitable):
                        await done
                except Exception as error:
                    self._report(error)
        except ClientError as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        if self._name != Failed.name:
            self._dispatcher.failed(error)

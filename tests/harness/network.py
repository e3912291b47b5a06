"""Proxies that outlive a test: they run in a thread of their own, so servers behind them can be shared by a module."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Self

from harness.proxy import Only, Proxy, proxy_to

__all__ = ["Network", "Only", "Road"]


class Road:
    """The way of one instance to one server; the methods of `Proxy`, callable from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxy: Proxy) -> None:
        self._loop = loop
        self._proxy = proxy
        self.url = proxy.url

    def cut(self) -> None:
        """Break open connections and let no new one in."""

        def cut() -> None:
            self._proxy.refuse()
            self._proxy.cut()

        self._do(cut)

    def freeze(self, only: Only | None = None) -> None:
        """Connections stay open and nothing passes."""
        self._do(lambda: self._proxy.stall(only))

    def heal(self) -> None:
        self._do(self._proxy.flow)

    def _do(self, change: Callable[[], None]) -> None:
        done: Future[None] = Future()

        def do() -> None:
            change()
            done.set_result(None)

        self._loop.call_soon_threadsafe(do)
        done.result(10)


class Network:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @contextlib.contextmanager
    def road_to(self, url: str) -> Iterator[Road]:
        opened = proxy_to(url)
        proxy = asyncio.run_coroutine_threadsafe(opened.__aenter__(), self._loop).result(10)
        try:
            yield Road(self._loop, proxy)
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), self._loop).result(10)

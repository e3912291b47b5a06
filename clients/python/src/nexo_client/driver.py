"""Runs the engine: one socket, one timer, the storage. Every change of the engine is followed by `pump`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from nexo_client.calls import Calls
from nexo_client.core.engine import Engine
from nexo_client.core.ids import now_ms
from nexo_client.core.options import BASELINE_PAUSE_S, Options
from nexo_client.core.outbox import OutboxItem
from nexo_client.core.outputs import StorageWrite
from nexo_client.errors import ClientError
from nexo_client.events import Event, Failed
from nexo_client.http import Http
from nexo_client.sessions import Sessions
from nexo_client.types import Storage
from nexo_client.uploads import Uploads
from nexo_client.websocket import Socket

_TIMER_GRAIN_S = 0.001  # an event loop may round to whole milliseconds, and must not wake the engine too early


class DriverHost(Protocol):
    """What the driver reports to."""

    def _emit(self, event: Event) -> None: ...

    def _conversations_changed(self, conversation_ids: set[str]) -> None: ...

    def _load_list(self) -> None: ...

    def _load_deleted(self, conversation_ids: set[str]) -> None: ...


class Driver:
    def __init__(
        self,
        host: DriverHost,
        options: Options,
        storage: Storage,
        sessions: Sessions,
        http: Http,
        websocket_url: str,
    ) -> None:
        self.engine = Engine(options, "")
        self._host = host
        self._options = options
        self._storage = storage
        self._sessions = sessions
        self._websocket_url = websocket_url
        self._socket: Socket | None = None
        self._socket_task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._baseline_timer: asyncio.TimerHandle | None = None
        self._writer = _StorageWriter(storage, self.spawn, self._written)
        self._is_pumping = False
        self.uploads = Uploads(self, http, sessions, storage, options)

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    @property
    def is_connecting(self) -> bool:
        """Whether there is a socket, or one is being opened."""
        return self._socket_task is not None

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs a coroutine until `close` at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- users -----------------------------------------------------------------------------------------------

    def switch_user(self, user_id: str) -> None:
        """Starts with an empty engine."""
        holds = self.engine.inbox.holds_unhandled
        self.engine = Engine(self._options, user_id)
        self.engine.connection.can_ask_for_token = self._sessions.can_ask
        self.engine.inbox.holds_unhandled = holds

    async def load(self) -> list[OutboxItem]:
        """Reads what the user left in the storage; returns the messages in the outbox."""
        prefix = f"baselines/{self.engine.user_id}/"
        for key, seq in await self._storage.entries(prefix):
            self.engine.inbox.baselines.restore(key.removeprefix(prefix), int(seq))
        prefix = f"outbox/{self.engine.user_id}/"
        stored = await self._storage.entries(prefix)
        items = [OutboxItem.from_stored(key.removeprefix(prefix), value) for key, value in stored]
        items.sort(key=lambda item: item.order)
        for item in items:
            self.engine.restore(item)
        return items

    async def wipe(self, user_id: str) -> None:
        """Deletes what is stored of a user."""
        for kind in ("outbox", "baselines", "uploads"):
            for key, _ in await self._storage.entries(f"{kind}/{user_id}/"):
                await self._storage.delete(key)

    # -- starting and stopping -------------------------------------------------------------------------------

    def start(self) -> None:
        self.uploads.is_on = True
        self.engine.inbox.server_clock.set(self.now(), now_ms())
        self.engine.start(self.now())
        self.engine.request("upload")
        self.pump()

    async def close(self) -> None:
        """Disconnects after everything waiting was sent and stored. Uploads continue with the next start."""
        self.uploads.is_on = False
        self.engine.stop()
        self.pump()
        socket, self._socket = self._socket, None
        task, self._socket_task = self._socket_task, None
        if socket is not None:
            await socket.close()
        if task is not None:
            task.cancel()
        self._cancel_timers()
        self._store_baselines()
        await self._writer.done()
        await self.abandon()

    async def abandon(self) -> None:
        """Drops the socket and cancels everything that runs."""
        self._cancel_timers()
        if self._socket is not None:
            self._socket.drop()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._baseline_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._baseline_timer = None

    def make_calls(self, api: Callable[..., Awaitable[Any]]) -> Calls:
        """Returns the calls of this client; `api` calls the HTTP API."""
        return Calls(self._send_call, api, lambda: self.engine.ids.new(now_ms()), self.spawn)

    def _send_call(self, frame: dict[str, Any]) -> bool:
        is_sent = self.engine.send_call(frame)
        self.pump()
        return is_sent

    # -- the outputs of the engine ---------------------------------------------------------------------------

    def pump(self) -> None:
        """Sends, stores, performs and emits the outputs of the engine, and sets the timer for its next deadline."""
        if self._is_pumping:
            return  # called by a handler: the loop below continues with it
        self._is_pumping = True
        try:
            engine = self.engine
            while engine.frames or engine.writes or engine.actions or engine.events:
                self._send_frames()
                self._write()
                self._perform()
                emitted, engine.events = engine.events, []
                for event in emitted:
                    self._host._emit(event)
        finally:
            self._is_pumping = False
        changed, self.engine.changed = self.engine.changed, set()
        if changed:
            self._host._conversations_changed(changed)
        missing, self.engine.missing_deletions = self.engine.missing_deletions, set()
        if missing:
            self._host._load_deleted(missing)
        self._set_timers()

    def _send_frames(self) -> None:
        frames, self.engine.frames = self.engine.frames, []
        if self._socket is not None and frames:
            self._socket.send(frames)

    def _perform(self) -> None:
        actions, self.engine.actions = self.engine.actions, []
        for action in actions:
            match action:
                case "open":
                    self._socket_task = self.spawn(self._run_socket())
                case "drop":
                    self._drop_socket()
                case "list":
                    self._host._load_list()
                case "upload":
                    self.uploads.look()

    def _set_timers(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop, now = asyncio.get_running_loop(), self.now()
        due = self.engine.deadline(now)
        if due is not None:
            self._timer = loop.call_later(max(due - now, 0.0) + _TIMER_GRAIN_S, self._tick)
        if self.engine.inbox.baselines.has_moved and self._baseline_timer is None:
            self._baseline_timer = loop.call_later(BASELINE_PAUSE_S, self._store_baselines)

    def _tick(self) -> None:
        self._timer = None
        self.engine.tick(self.now())
        self.pump()

    # -- the socket ------------------------------------------------------------------------------------------

    async def _run_socket(self) -> None:
        """Runs one connection from its opening to its end."""
        task = asyncio.current_task()
        code, reason = 1006, ""
        try:
            token = await self._sessions.fresh_token(renew=self.engine.connection.must_refresh)
            device_id = await self._sessions.device_id()
            socket = await Socket.open(self._websocket_url, self._options.connect_timeout_ms / 1000)
        except ClientError as error:
            if self._sessions.is_over(error):
                if task is self._socket_task:
                    self.engine.end(error.reason)
                    self.pump()
                return
            reason = error.reason
            self.engine.connection.hint(error.retry_after_ms)
        else:
            if task is not self._socket_task:
                socket.drop()
                return
            self._socket = socket
            self.engine.opened(self.now(), token, device_id)
            self.pump()
            try:
                code, reason = await socket.read_all(self._receive)
            except Exception as error:  # a defect must not leave a client that only looks connected
                self._host._emit(Failed(error))
        if task is self._socket_task:
            self._socket = self._socket_task = None
            self.engine.lost(self.now(), code, reason)
            self.pump()

    def _receive(self, frame: dict[str, Any]) -> None:
        self.engine.receive(frame, self.now())
        self.pump()

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._socket.drop()
        elif self._socket_task is not None:  # it is still being opened
            self._socket_task.cancel()
            self._socket_task = None
            self.engine.lost(self.now(), 1006, "timeout")

    # -- the outbox --------------------------------------------------------------------------------------------

    def retry(self, item: OutboxItem) -> bool:
        done = self.engine.retry(item)
        self.pump()
        return done

    def cancel(self, item: OutboxItem) -> bool:
        done = self.engine.cancel(item)
        self.pump()
        return done

    # -- the storage -----------------------------------------------------------------------------------------

    def _write(self) -> None:
        writes, self.engine.writes = self.engine.writes, []
        self._writer.write(writes)

    def _written(self, batch: Sequence[tuple[StorageWrite, BaseException | None]]) -> None:
        for write, error in batch:
            kind, _, client_msg_id = write.key.rpartition("/")
            is_outgoing = kind.startswith("outbox/") and write.value is not None
            if isinstance(error, Exception):
                self._host._emit(Failed(error))
                if is_outgoing:
                    self.engine.store_failed(client_msg_id, str(error))
            elif is_outgoing:
                self.engine.stored(client_msg_id, self.now())
        self.pump()

    async def keep_baseline(self, conversation_id: str) -> None:
        """Stores how far the application has a conversation, and returns when that is done."""
        self.engine.inbox.baselines.note(conversation_id)
        await self.store_baselines()

    async def store_baselines(self) -> None:
        self._store_baselines()
        await self._writer.done()

    def _store_baselines(self) -> None:
        self._baseline_timer = None
        self.engine.writes += self.engine.baseline_writes()
        self._write()


class _StorageWriter:
    """Writes one batch after the other, so that changes of one key keep their order."""

    def __init__(
        self,
        storage: Storage,
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
        written: Callable[[Sequence[tuple[StorageWrite, BaseException | None]]], None],
    ) -> None:
        """`written` is called after each batch, with the error of each write that failed."""
        self._storage = storage
        self._spawn = spawn
        self._written = written
        self._waiting: list[StorageWrite] = []
        self._task: asyncio.Task[None] | None = None

    def write(self, writes: Sequence[StorageWrite]) -> None:
        self._waiting += writes
        if self._waiting and self._task is None:
            self._task = self._spawn(self._write_all())

    async def done(self) -> None:
        while self._task is not None:
            await asyncio.wait([self._task])

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                results = await asyncio.gather(*(self._write_one(one) for one in batch), return_exceptions=True)
                self._written(list(zip(batch, results, strict=True)))
        finally:
            self._task = None

    async def _write_one(self, write: StorageWrite) -> None:
        if write.value is None:
            await self._storage.delete(write.key)
        else:
            await self._storage.set(write.key, write.value)

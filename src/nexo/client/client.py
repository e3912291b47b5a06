"""The client: a thin shell of sockets, timers and storage around the core."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from nexo.client import events
from nexo.client.conversation import Conversation, OutgoingMessage, Page
from nexo.client.core import Core
from nexo.client.desk import Store
from nexo.client.dispatch import Dispatcher, EventStream, Handler
from nexo.client.failures import ClientError
from nexo.client.http import Http, read
from nexo.client.keeping import Keeper
from nexo.client.link import Link
from nexo.client.model import Session, State, entry_of, message_of
from nexo.client.options import BASELINE_PAUSE_S, Options
from nexo.client.outbox import Outgoing
from nexo.client.people import Groups, Presence, Users
from nexo.client.sessions import Sessions
from nexo.client.shapes import RecallResult, Receipts, User
from nexo.client.storage import MemoryStorage, Storage
from nexo.client.view import View
from nexo.ids import group_conversation_id, now_ms, single_conversation_id

LIST_PAGE = 100


class NexoClient:
    """A user of a Nexo server. Nothing is connected until `connect`. See docs/clients.md."""

    def __init__(
        self,
        url: str,
        *,
        storage: Storage | None = None,
        device_id: str | None = None,
        platform_id: int = 7,
        **options: Any,
    ) -> None:
        self._url = url.rstrip("/")
        self._options = Options(**options)
        self.storage: Storage = storage or MemoryStorage()
        self._http = Http(self._url, self._options.ack_timeout_ms / 1000)
        self._sessions = Sessions(self._http, self.storage, platform_id, device_id, self._session_changed)
        self._dispatcher = Dispatcher()
        self._core = Core(self._options, "")
        self._conversations: dict[str, Conversation] = {}
        self._outgoing: WeakValueDictionary[str, OutgoingMessage] = WeakValueDictionary()
        self._kept_outgoing: dict[str, OutgoingMessage] = {}  # those in the outbox, which somebody may await
        self._watchers: dict[str, list[Callable[[], object]]] = {}
        self._recent: OrderedDict[str, None] = OrderedDict()
        self._link: Link | None = None
        self._link_task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._refresh_timer: asyncio.TimerHandle | None = None
        self._baseline_timer: asyncio.TimerHandle | None = None
        self._keeper = Keeper(self.storage, self._spawn, self._kept)
        self._is_pumping = False
        self._changes: set[str] = set()
        self._change_told = True
        self._list_task: asyncio.Task[None] | None = None
        self._list_cursor: str | None = None
        self._list_before: dict[str, int] = {}  # heads of what was known before the first page was asked for
        self._state_changed = asyncio.Event()
        self.users = Users(self.call)
        self.groups = Groups(self.call)
        self.presence = Presence(self._watch_presence, self._presence_of)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self._http.close()
        await self.storage.close()

    # -- the account -----------------------------------------------------------------------------------------

    @property
    def session(self) -> Session | None:
        return self._sessions.session

    @property
    def user_id(self) -> str | None:
        return self.session.user_id if self.session is not None else None

    async def register(
        self, user_id: str | None, password: str, nickname: str = "", avatar: str = "", extra: Any = None
    ) -> User:
        """A new user; does not sign in. Without a `user_id` the server chooses one."""
        asked = {"user_id": user_id, "password": password, "nickname": nickname or None, "avatar": avatar or None}
        return read(await self._http.call("POST", "/user/register", asked | {"extra": extra}), User)

    async def login(self, user_id: str, password: str) -> Session:
        session = await self._sessions.login(user_id, password)
        await self._become(session.user_id)
        return session

    async def restore(self, session: Session | None = None) -> bool:
        """Go on with a saved session, or the one in the storage; whether there was one."""
        found = await self._sessions.restore(session)
        if found is not None:
            await self._become(found.user_id)
        return found is not None

    async def change_password(self, old_password: str, new_password: str) -> None:
        """All other sessions of the user end."""
        await self._sessions.change_password(old_password, new_password)

    async def logout(self) -> None:
        """End the session on the server, forget it and what is stored of this user."""
        user_id = self.user_id
        with contextlib.suppress(ClientError):
            await self.call("POST", "/auth/logout")
        await self.close()
        await self._sessions.forget()
        for kind in ("outbox", "baselines"):
            for key, _ in await self.storage.entries(f"{kind}/{user_id}/"):
                await self.storage.delete(key)
        self._reset("")

    async def _become(self, user_id: str) -> None:
        """Take up what this user left in the storage."""
        if self._core.user_id == user_id:
            return
        if self._core.user_id:
            await self.close()
        self._reset(user_id)
        prefix = f"baselines/{user_id}/"
        for key, value in await self.storage.entries(prefix):
            self._core.inbox.baselines.restore(key.removeprefix(prefix), int(value))
        prefix = f"outbox/{user_id}/"
        kept = [Outgoing.from_stored(k.removeprefix(prefix), v) for k, v in await self.storage.entries(prefix)]
        for outgoing in sorted(kept, key=lambda one: one.order):
            self._core.restore(outgoing)
            self._kept_outgoing[outgoing.client_msg_id] = self._message_of(outgoing)

    def _reset(self, user_id: str) -> None:
        self._core = Core(self._options, user_id)
        self._conversations.clear()
        self._kept_outgoing.clear()
        self._recent.clear()
        self._list_cursor = None

    def _session_changed(self, session: Session | None) -> None:
        if self._refresh_timer is not None:
            self._refresh_timer.cancel()
            self._refresh_timer = None
        if session is not None:
            wait_s = max(0.0, (session.refresh_at - now_ms()) / 1000)
            loop = asyncio.get_running_loop()
            self._refresh_timer = loop.call_later(wait_s, lambda: self._spawn(self._refresh()))
            if self._core.user_id == session.user_id:
                self._core.refreshed(session.access_token)
                self._pump()
        self._dispatcher.tell(events.SessionChanged(session))

    async def _refresh(self) -> None:
        """In time; when it does not succeed, again and again until it does or the session is over."""
        if self._core.link.state in ("offline", "closed") and self._link_task is None:
            return  # nobody needs it now; the next call or connection does it
        try:
            await self._sessions.refresh()
        except ClientError as error:
            if self._sessions.is_over(error):
                self._core.end(error.reason)
                self._pump()
            elif self.session is not None:
                wait_s = self._core.link.pause_s(4, error.retry_after_ms)
                loop = asyncio.get_running_loop()
                self._refresh_timer = loop.call_later(wait_s, lambda: self._spawn(self._refresh()))

    async def call(self, method: str, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any call of the HTTP API, signed in: what is in `data`."""
        token = await self._sessions.fresh_token()
        try:
            return await self._http.call(method, path, dict(params or {}), token=token)
        except ClientError as error:
            if error.reason != "token_expired":
                raise
        token = await self._sessions.fresh_token(renew=True)
        return await self._http.call(method, path, dict(params or {}), token=token)

    # -- the connection --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._core.link.state

    @property
    def state_change(self) -> events.StateChanged:
        """With the reason and the time of the next attempt, as the event has it."""
        link = self._core.link
        return events.StateChanged(link.state, link.reason, self._date_of(link.retry_at))

    def _date_of(self, at: float | None) -> float | None:
        """A time of the event loop as one of the date, in ms."""
        return None if at is None else now_ms() + (at - self._now()) * 1000

    async def connect(self) -> None:
        """Until everything that was missed is here. Raises when the server does not want us; goes on trying
        when it is only away."""
        if self.session is None and not await self.restore():
            raise ClientError("unauthorized", "Sign in first")
        if self._core.link.state == "closed":
            self._core.link.must_refresh = False
        self._core.start(self._now())
        self._pump()
        while self.state != "online":
            if self.state == "closed":
                raise ClientError(self._core.link.reason or "closed")
            if self.state == "offline" and self._core.link.retry_at is None:
                raise ClientError("closed")
            self._state_changed.clear()
            await self._state_changed.wait()
        if self._list_task is not None:
            await asyncio.wait([self._list_task])

    async def close(self) -> None:
        """Disconnect. What is in the outbox stays there; `connect` goes on."""
        self._core.stop()
        self._pump()
        link, task = self._link, self._link_task
        self._link = self._link_task = None
        if link is not None:
            await link.close()
        if task is not None:
            task.cancel()
        self._cancel_timers()
        self._store_baselines()
        await self._keeper.done()
        others = [other for other in self._tasks if other is not asyncio.current_task()]
        for other in others:
            other.cancel()
        await asyncio.gather(*others, *([task] if task is not None else []), return_exceptions=True)
        await self._dispatcher.end()

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._refresh_timer, self._baseline_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._refresh_timer = self._baseline_timer = None

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def _ws_url(self) -> str:
        parts = urlsplit(self._url)
        return parts._replace(scheme="wss" if parts.scheme == "https" else "ws", path=f"{parts.path}/ws").geturl()

    async def _run_link(self) -> None:
        """One connection, from its opening to its end."""
        mine = asyncio.current_task()
        code, reason = 1006, ""
        try:
            token = await self._sessions.fresh_token(renew=self._core.link.must_refresh)
            device_id = await self._sessions.device_id()
            link = await Link.open(self._ws_url, self._options.connect_timeout_ms / 1000)
        except ClientError as error:
            if self._sessions.is_over(error):
                if mine is self._link_task:
                    self._core.end(error.reason)
                    self._pump()
                return
            reason = error.reason
            self._core.link.told_hint(error.retry_after_ms)
        else:
            if mine is not self._link_task:
                link.drop()
                return
            self._link = link
            self._core.opened(self._now(), token, device_id)
            self._pump()
            try:
                code, reason = await link.follow(self._received)
            except Exception as error:  # a mistake of ours must not leave a client that only looks connected
                self._dispatcher.failed(error)
        if mine is self._link_task:
            self._link = self._link_task = None
            self._core.lost(self._now(), code, reason)
            self._pump()

    def _received(self, frame: dict[str, Any]) -> None:
        self._core.received(frame, self._now())
        self._pump()

    # -- what the core has left ------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Write, keep, fulfil and tell whatever the core has left; then see when it wants to be called again."""
        if self._is_pumping:
            return  # a handler called back: the loop below goes on with it
        self._is_pumping = True
        try:
            core = self._core
            while core.frames or core.stores or core.wishes or core.events:
                self._write()
                self._keep()
                self._fulfil()
                told, core.events = core.events, []
                for event in told:
                    self._tell(event)
        finally:
            self._is_pumping = False
        self._note_changes()
        self._arm_timer()

    def _write(self) -> None:
        frames, self._core.frames = self._core.frames, []
        if self._link is not None and frames:
            self._link.send(frames)

    def _fulfil(self) -> None:
        wishes, self._core.wishes = self._core.wishes, []
        for wish in wishes:
            match wish:
                case "open":
                    self._link_task = self._spawn(self._run_link())
                case "drop":
                    self._drop_link()
                case "list":
                    if self._list_task is None or self._list_task.done():
                        self._list_task = self._spawn(self._load_first_page())

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.drop()
        elif self._link_task is not None:  # it is still being opened
            self._link_task.cancel()
            self._link_task = None
            self._core.lost(self._now(), 1006, "timeout")

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        now = self._now()
        due = self._core.deadline(now)
        if due is None:
            self._timer = None
        else:  # a loop may count in whole milliseconds: one that is not over yet is waited for
            self._timer = asyncio.get_running_loop().call_later(max(due - now, 0.0) + 0.001, self._tick)
        if self._core.inbox.baselines.has_moved and self._baseline_timer is None:
            self._baseline_timer = asyncio.get_running_loop().call_later(BASELINE_PAUSE_S, self._store_baselines)

    def _tick(self) -> None:
        self._timer = None
        self._core.tick(self._now())
        self._pump()

    def _tell(self, event: events.Event) -> None:
        match event:
            case events.StateChanged():
                self._state_changed.set()
                event.retry_at = self._date_of(event.retry_at)
            case events.SessionChanged():
                self._spawn(self._sessions.forget())  # which tells
                return
            case events.OutgoingChanged():
                event.outgoing = self._message_of(event.raw)
                event.outgoing._changed()
                if event.raw.state not in ("sending", "accepted"):
                    self._kept_outgoing.pop(event.raw.client_msg_id, None)
            case _ if (name := getattr(event, "conversation_id", None)) is not None:
                event.conversation = self.conversation(name)  # type: ignore[attr-defined]
        self._dispatcher.tell(event)

    def _note_changes(self) -> None:
        changed, self._core.changed = self._core.changed, set()
        if not changed:
            return
        for name in changed:
            self._touch(name)
        self._changes |= changed
        if self._change_told:
            self._change_told = False
            asyncio.get_running_loop().call_soon(self._tell_changes)

    def _tell_changes(self) -> None:
        """Once per turn of the loop, whatever happened in it."""
        changed, self._changes, self._change_told = self._changes, set(), True
        for name in changed:
            for tell in list(self._watchers.get(name, ())):
                tell()
        self._dispatcher.tell(events.ConversationsChanged(self.conversations))

    # -- what is kept ----------------------------------------------------------------------------------------

    def _keep(self) -> None:
        stores, self._core.stores = self._core.stores, []
        self._keeper.keep(stores)

    def _kept(self, batch: Sequence[tuple[Store, BaseException | None]]) -> None:
        for store, result in batch:
            kind, _, name = store.key.rpartition("/")
            is_outgoing = kind.startswith("outbox/") and store.value is not None
            if isinstance(result, Exception):
                self._dispatcher.failed(result)
                if is_outgoing:
                    self._core.could_not_store(name, str(result))
            elif is_outgoing:
                self._core.stored(name, self._now())
        self._pump()

    def _store_baselines(self) -> None:
        self._baseline_timer = None
        self._core.stores += self._core.take_baselines()
        self._keep()

    # -- conversations ---------------------------------------------------------------------------------------

    @property
    def conversations(self) -> list[Conversation]:
        """The live list: pinned first, then newest activity."""
        listed = [view for view in self._core.views.values() if view.is_listed]
        listed.sort(key=lambda view: (not view.pinned, -view.updated_at))
        return [self.conversation(view.conversation_id) for view in listed]

    @property
    def total_unread(self) -> int:
        return sum(view.unread for view in self._core.views.values() if view.is_listed)

    @property
    def pending(self) -> list[OutgoingMessage]:
        """Everything in the outbox, in order."""
        return [self._message_of(outgoing) for outgoing in self._core.outbox]

    def conversation(self, conversation_id: str) -> Conversation:
        """Always the same object."""
        found = self._conversations.get(conversation_id)
        if found is None:
            found = Conversation(self, self._core.view(conversation_id))
            self._conversations[conversation_id] = found
        return found

    def chat_with(self, user_id: str) -> Conversation:
        return self.conversation(single_conversation_id(self._me, user_id))

    def group(self, group_id: str) -> Conversation:
        return self.conversation(group_conversation_id(group_id))

    @property
    def _me(self) -> str:
        if not self._core.user_id:
            raise ClientError("unauthorized", "Sign in first")
        return self._core.user_id

    async def load_conversations(self, limit: int = LIST_PAGE) -> bool:
        """The next page of the list, with last messages and settings; whether there are more."""
        data = await self.call("GET", "/conversation/list", {"cursor": self._list_cursor or None, "limit": limit})
        for shape in data["conversations"]:
            entry = entry_of(shape)
            self._list_before.pop(entry.conversation_id, None)
            self._core.inbox.told_by_list(entry, self._now())
        self._list_cursor = data["next_cursor"] if data["has_more"] else None
        if not data["has_more"]:
            self._core.inbox.hide(self._list_before)
        self._pump()
        return bool(data["has_more"])

    async def _load_first_page(self) -> None:
        self._list_cursor = None
        self._list_before = {name: view.head_seq for name, view in self._core.views.items()}
        try:
            await self.load_conversations()
        except ClientError as error:
            self._dispatcher.failed(error)

    # -- for conversations (`conversation.Owner`) --------------------------------------------------------------

    def _message_of(self, outgoing: Outgoing) -> OutgoingMessage:
        found = self._outgoing.get(outgoing.client_msg_id)
        if found is None:
            found = self._outgoing[outgoing.client_msg_id] = OutgoingMessage(self, outgoing)
        return found

    def _send(self, conversation_id: str, fields: Mapping[str, Any], client_msg_id: str | None) -> OutgoingMessage:
        if not self._core.user_id:
            raise ClientError("unauthorized", "Sign in first")
        known = self._outgoing.get(client_msg_id) if client_msg_id is not None else None
        if known is not None:
            return known
        outgoing = self._core.send(conversation_id, fields, now_ms(), client_msg_id)
        message = self._kept_outgoing[outgoing.client_msg_id] = self._message_of(outgoing)
        self._pump()
        return message

    def _pending_of(self, conversation_id: str) -> list[OutgoingMessage]:
        return [self._message_of(outgoing) for outgoing in self._core.pending(conversation_id)]

    def _retry(self, outgoing: Outgoing) -> bool:
        done = self._core.retry(outgoing)
        self._pump()
        return done

    def _cancel(self, outgoing: Outgoing) -> bool:
        done = self._core.cancel(outgoing)
        self._pump()
        return done

    def _mark_read(self, conversation_id: str, seq: int | None) -> None:
        self._core.mark_read(conversation_id, seq, self._now())
        self._pump()

    def _tell_typing(self, target: Mapping[str, str], on: bool) -> None:
        self._core.typing(target, on)
        self._pump()

    def _typists_of(self, conversation_id: str) -> list[str]:
        return self._core.inbox.typists.of(conversation_id)

    def _touch(self, conversation_id: str) -> None:
        self._recent[conversation_id] = None
        self._recent.move_to_end(conversation_id)
        while len(self._recent) > self._options.max_conversations:
            name, _ = self._recent.popitem(last=False)
            self._core.view(name).forget_window()

    async def _load_history(self, view: View, before_seq: int | None, limit: int) -> Page:
        asked = {"conversation_id": view.conversation_id, "before_seq": before_seq, "limit": limit}
        return await self._load("/msg/history", view, asked)

    async def _load_range(self, view: View, begin_seq: int, limit: int) -> Page:
        asked = {"conversation_id": view.conversation_id, "begin_seq": begin_seq, "limit": limit}
        return await self._load("/msg/pull", view, asked)

    async def _load(self, path: str, view: View, asked: dict[str, Any]) -> Page:
        data = await self.call("GET", path, asked)
        self._changes.add(view.conversation_id)
        if self._change_told:
            self._change_told = False
            asyncio.get_running_loop().call_soon(self._tell_changes)
        messages = [message_of(shape) for shape in data["messages"]]
        return Page(messages, data["head_seq"], data["next_seq"], data["has_more"])

    async def _recall(self, conversation_id: str, server_msg_id: str) -> RecallResult:
        return read(await self.call("POST", "/msg/recall", {"server_msg_id": server_msg_id}), RecallResult)

    async def _receipts(self, server_msg_id: str) -> Receipts:
        return read(await self.call("GET", "/msg/receipts", {"server_msg_id": server_msg_id}), Receipts)

    async def _update_conversation(self, conversation_id: str, changes: Mapping[str, Any]) -> None:
        asked = {"conversation_id": conversation_id, **changes}
        entry = entry_of(await self.call("PUT", "/conversation/update", asked))
        self._core.inbox.told_by_list(entry, self._now())
        if "hidden" in changes:
            view = self._core.view(conversation_id)
            view.hidden_at = view.head_seq if changes["hidden"] else -1
        self._pump()

    def _watch_conversation(self, conversation_id: str, tell: Callable[[], object]) -> Callable[[], None]:
        self._watchers.setdefault(conversation_id, []).append(tell)

        def off() -> None:
            if tell in self._watchers.get(conversation_id, ()):
                self._watchers[conversation_id].remove(tell)

        return off

    # -- presence, events ------------------------------------------------------------------------------------

    def _watch_presence(self, user_ids: list[str]) -> None:
        self._core.watch(user_ids)
        self._pump()

    def _presence_of(self, user_id: str) -> events.UserPresence | None:
        return self._core.presence.of(user_id)

    def on(self, name: str, handler: Handler) -> Callable[[], None]:
        """Call `handler` with each event of that name; coroutine functions are awaited, one event after the
        other. The result ends it."""
        return self._dispatcher.on(name, handler)

    def once(self, name: str, handler: Handler) -> Callable[[], None]:
        """The same, for the next one only."""
        return self._dispatcher.on(name, handler, once=True)

    def off(self, name: str, handler: Handler) -> None:
        self._dispatcher.off(name, handler)

    def events(self, *names: str) -> EventStream:
        """Events of these names from now on, for `async for`, until the client is closed."""
        return self._dispatcher.stream(*names)

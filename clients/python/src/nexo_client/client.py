"""The client: accounts, the connection, conversations, events. The engine in `core` decides what is sent when."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from nexo_client import events
from nexo_client.api_calls import ApiCalls
from nexo_client.conversation import Conversation
from nexo_client.conversation_list import PAGE, ConversationList, sort_conversations
from nexo_client.conversation_work import ConversationWork
from nexo_client.core.engine import Engine
from nexo_client.core.ids import group_conversation_id, now_ms, single_conversation_id
from nexo_client.core.options import Options
from nexo_client.driver import Driver
from nexo_client.emitter import Emitter, EventStream, Handler
from nexo_client.errors import ClientError
from nexo_client.http import Http, decode
from nexo_client.inbox_stream import InboxStream
from nexo_client.message_calls import HasId, MessageOrId
from nexo_client.outgoing_message import OutgoingMessage, OutgoingMessages
from nexo_client.presence import Presence
from nexo_client.sessions import GetToken, Sessions
from nexo_client.storage.memory import MemoryStorage
from nexo_client.token_refresh import TokenRefresh
from nexo_client.types import Forwarded, Message, SearchPage, Session, State, Storage, User

_log = logging.getLogger("nexo_client")


class NexoClient:
    """A user of a Nexo server. It does not connect before `connect` is called. See docs/clients.md."""

    def __init__(
        self,
        url: str,
        *,
        storage: Storage | None = None,
        device_id: str | None = None,
        platform_id: int = 7,
        get_token: GetToken | None = None,
        **options: Any,
    ) -> None:
        url = url.rstrip("/")
        self._options = Options(**options)
        self.storage: Storage = storage or MemoryStorage()
        self._http = Http(url, self._options.ack_timeout_ms / 1000)
        self._sessions = Sessions(self._http, self.storage, platform_id, device_id, get_token, self._session_changed)
        self._emitter = Emitter()
        self._driver = Driver(self, self._options, self.storage, self._sessions, self._http, _websocket_url(url))
        self._list = ConversationList(self.call, self._driver, self._emitter.emit_error)
        self._token_refresh = TokenRefresh(
            self._sessions,
            self._options,
            self._driver.spawn,
            is_needed=lambda: self._driver.is_connecting or self.state not in ("offline", "closed"),
            ended=self._session_ended,
        )
        self._conversations: dict[str, Conversation] = {}
        self._outgoing = OutgoingMessages(self._driver)
        self._changed: set[str] = set()
        self._change_is_scheduled = False
        self._state_changed = asyncio.Event()
        self._inbox: InboxStream | None = None
        self._work = ConversationWork(
            self.call,
            self._driver,
            self._outgoing,
            self._options,
            self._emitter.emit_error,
            self._conversations_changed,
        )
        calls = ApiCalls(self.call, self._download, self._forget_all)
        self.users, self.contacts, self.groups = calls.users, calls.contacts, calls.groups
        self.devices, self.push, self.account = calls.devices, calls.push, calls.account
        self.presence = Presence(self._watch_presence)
        self.calls = self._driver.make_calls(self.call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        """Closes the client. Without an error it waits for what was sent a moment ago; what then remains is logged."""
        if kind is None and self._engine.connection.is_signed_in:
            with contextlib.suppress(ClientError):
                await self.flush(self._options.ack_timeout_ms)
        unsent = await self.close()
        if unsent:
            fate = "lost" if isinstance(self.storage, MemoryStorage) else "kept in the storage"
            _log.warning("Closed with %d messages that the server has not saved; they are %s.", len(unsent), fate)
        await self._http.close()
        await self.storage.close()

    @property
    def _engine(self) -> Engine:
        return self._driver.engine

    # -- the account -----------------------------------------------------------------------------------------

    @property
    def session(self) -> Session | None:
        return self._sessions.session

    @property
    def user_id(self) -> str | None:
        return self.session.user_id if self.session is not None else None

    async def register(
        self,
        user_id: str | None,
        password: str,
        nickname: str = "",
        avatar: str = "",
        extra: Any = None,
        code: str = "",
    ) -> User:
        """Creates a user and does not sign in. Without a `user_id` the server chooses one. Where registering needs a
        `code`, the operator has given it."""
        params = {"user_id": user_id, "password": password, "nickname": nickname or None, "avatar": avatar or None}
        more = {"extra": extra, "code": code or None}
        return decode(await self._http.call("POST", "/user/register", params | more), User)

    async def login(self, user_id: str, password: str) -> Session:
        session = await self._sessions.login(user_id, password)
        await self._switch_user(session.user_id)
        return session

    async def restore(self, session: Session | None = None, *, expect_user: str | None = None) -> bool:
        """Continues a saved session, or the one in the storage; returns whether there was one. With `expect_user`, a
        session of another user is not continued but deleted from the storage."""
        if expect_user is not None and self.user_id not in (None, expect_user):
            await self.close()
            await self._sessions.forget()
            self._forget_user("")
        found = await self._sessions.restore(session, expect_user)
        if found is not None:
            await self._switch_user(found.user_id)
        return found is not None

    async def change_password(self, old_password: str, new_password: str) -> None:
        """Changes the password and ends all other sessions of the user."""
        await self._sessions.change_password(old_password, new_password)

    async def logout(self) -> None:
        """Ends the session on the server, and deletes it and everything stored of the user."""
        with contextlib.suppress(ClientError):
            await self.call("POST", "/auth/logout")
        await self._forget_all()

    async def _forget_all(self) -> None:
        user_id = self._engine.user_id
        await self.close()
        await self._sessions.forget()
        await self._driver.wipe(user_id)
        self._forget_user("")

    async def _switch_user(self, user_id: str) -> None:
        if self._engine.user_id == user_id:
            return
        if self._engine.user_id:
            await self.close()
        self._forget_user(user_id)
        if self.presence.watched:
            self._engine.watch_presence(self.presence.watched)
        for item in await self._driver.load():
            self._outgoing.keep(item)

    def _forget_user(self, user_id: str) -> None:
        self._driver.switch_user(user_id)
        self._conversations.clear()
        self._outgoing.clear()
        self.calls._clear("closed")
        self._work.forget_user()
        if self._inbox is not None and self._inbox.is_over:
            self._inbox = None
        self._list.reset()

    def _session_changed(self, session: Session | None) -> None:
        self._token_refresh.start()
        if session is not None and self._engine.user_id == session.user_id:
            self._engine.refreshed(session.access_token)
            self._driver.pump()
        self._emitter.emit(events.SessionChanged(session))

    def _session_ended(self, reason: str) -> None:
        self._engine.end(reason)
        self._driver.pump()

    async def call(self, method: str, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """Performs any call of the HTTP API as the signed-in user; returns `data` of the answer."""
        token = await self._sessions.fresh_token()
        try:
            return await self._http.call(method, path, dict(params or {}), token=token)
        except ClientError as error:
            if error.reason != "token_expired" and not (self._sessions.can_ask and self._sessions.is_over(error)):
                raise
        token = await self._sessions.fresh_token(renew=True)
        return await self._http.call(method, path, dict(params or {}), token=token)

    async def _download(self, path: str) -> bytes:
        return await self._http.download(path, await self._sessions.fresh_token())

    # -- the connection --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._engine.connection.state

    @property
    def state_change(self) -> events.StateChanged:
        """The state with its reason and the time of the next attempt, as in the event."""
        connection = self._engine.connection
        return events.StateChanged(connection.state, connection.reason, self._date_of(connection.retry_at))

    def _date_of(self, at: float | None) -> float | None:
        """Converts a time of the event loop to a date in ms."""
        return None if at is None else now_ms() + (at - self._driver.now()) * 1000

    async def connect(self) -> None:
        """Connects and returns when everything that was missed is here. Raises when the server ends the session;
        keeps trying while the server cannot be reached. Without a session it signs in by `get_token`, if there is
        one, or else continues the stored session."""
        if self._inbox is not None and self._inbox.is_over:
            self._engine.inbox.holds_unhandled = False
        if self.session is None and self._sessions.can_ask:
            await self._switch_user((await self._sessions.ask()).user_id)
        elif self.session is None and not await self.restore():
            raise ClientError("unauthorized", "Sign in first")
        if self.state == "closed":
            self._engine.connection.must_refresh = False
        self._driver.start()
        while self.state != "online":
            if self.state == "closed":
                raise ClientError(self._engine.connection.reason or "closed")
            if self.state == "offline" and self._engine.connection.retry_at is None:
                raise ClientError("closed")
            self._state_changed.clear()
            await self._state_changed.wait()
        await self._list.loaded()

    async def flush(self, timeout_ms: int = 30_000) -> None:
        """Returns when everything that was sent is saved. Raises the error of a message that failed, the reason when
        the client is closed, or `timeout`."""
        await self._outgoing.flush(lambda: self.pending, self._check_connection, timeout_ms)

    def _check_connection(self) -> None:
        """Raises when there is no connection and none will be opened."""
        change = self.state_change
        if change.state == "closed":
            raise ClientError(change.reason or "closed")
        if change.state == "offline" and change.retry_at is None:
            raise ClientError("offline", "connect() first")

    async def close(self) -> list[OutgoingMessage]:
        """Disconnects; returns the messages that the server has not saved. They stay in the outbox, and `connect`
        continues with it."""
        self._token_refresh.stop()
        self._work.repeated.stop()
        await self._driver.close()
        self._outgoing.wake()
        await self._emitter.end()
        return self.pending

    # -- what the driver reports -----------------------------------------------------------------------------

    def _emit(self, event: events.Event) -> None:
        match event:
            case events.StateChanged():
                self._state_changed.set()
                self._outgoing.wake()
                if event.state == "online":
                    self._work.repeated.wake()
                if event.state == "closed":  # after the events that belong to it
                    error = ClientError(event.reason or "closed")
                    asyncio.get_running_loop().call_soon(self._emitter.fail_streams, error)
                event.retry_at = self._date_of(event.retry_at)
                if event.state == "online":
                    self.calls._online()
            case events.CallSignaled():
                self.calls._receive(event.frame)
                return
            case events.SessionChanged():
                self._driver.spawn(self._sessions.forget())  # which emits the event
                return
            case events.PresenceChanged():
                self.presence._learn(event.users)
            case events.OutgoingChanged():
                event.outgoing = self._outgoing.changed(event.raw)
            case _ if (conversation_id := getattr(event, "conversation_id", None)) is not None:
                event.conversation = self.conversation(conversation_id)  # type: ignore[attr-defined]
                if isinstance(event, events.Received | events.Sent):
                    self.calls._learn(event.message)
        self._emitter.emit(event)

    def _conversations_changed(self, conversation_ids: set[str]) -> None:
        for conversation_id in conversation_ids:
            self._work._touch(conversation_id)
        self._changed |= conversation_ids
        if not self._change_is_scheduled:
            self._change_is_scheduled = True
            asyncio.get_running_loop().call_soon(self._emit_changes)

    def _emit_changes(self) -> None:
        """Emits all changes of one iteration of the event loop at once."""
        changed, self._changed, self._change_is_scheduled = self._changed, set(), False
        for conversation_id in changed:
            self._work.notify(conversation_id)
        self._emitter.emit(events.ConversationsChanged(self.conversations))

    def _load_list(self) -> None:
        self._list.reload()

    def _load_deleted(self, conversation_ids: set[str]) -> None:
        self._work.load_deleted(conversation_ids)

    # -- conversations ---------------------------------------------------------------------------------------

    @property
    def conversations(self) -> list[Conversation]:
        """The live list: pinned first, then newest activity."""
        listed = sort_conversations(self._engine.conversations.values())
        return [self.conversation(state.conversation_id) for state in listed]

    @property
    def total_unread(self) -> int:
        return sum(state.unread for state in self._engine.conversations.values() if state.is_listed)

    @property
    def pending(self) -> list[OutgoingMessage]:
        """All messages in the outbox, in order."""
        return [self._outgoing.of(item) for item in self._engine.outbox]

    def conversation(self, conversation_id: str) -> Conversation:
        """Returns always the same object for the same id."""
        found = self._conversations.get(conversation_id)
        if found is None:
            found = Conversation(self._work, self._engine.conversation(conversation_id))
            self._conversations[conversation_id] = found
        return found

    def chat_with(self, user_id: str) -> Conversation:
        self._check_signed_in()
        return self.conversation(single_conversation_id(self._engine.user_id, user_id))

    def group(self, group_id: str) -> Conversation:
        return self.conversation(group_conversation_id(group_id))

    def _check_signed_in(self) -> None:
        if not self._engine.user_id:
            raise ClientError("unauthorized", "Sign in first")

    async def load_conversations(self, limit: int = PAGE) -> bool:
        """Loads the next page of the list, with last messages and settings; returns whether there are more."""
        return await self._list.load_more(limit)

    # -- messages --------------------------------------------------------------------------------------------

    async def forward(
        self,
        messages: Iterable[MessageOrId],
        targets: Iterable[HasId | str],
        *,
        merge: bool = False,
        title: str | None = None,
        client_msg_id: str | None = None,
    ) -> list[Forwarded]:
        """Sends copies of messages to other conversations, or with `merge` one message that holds them; returns what
        became of it for each. Tried until the server has answered. At most 100 messages, 20 targets, 200 copies."""
        return await self._work.message_calls.forward(messages, targets, merge, title, client_msg_id)

    async def search(
        self,
        q: str,
        *,
        conversation_id: str | None = None,
        sender_id: str | None = None,
        msg_type: int | None = None,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> SearchPage:
        """Searches all conversations or one, newest first."""
        where = {"conversation_id": conversation_id, "sender_id": sender_id, "msg_type": msg_type}
        page = {"after": after, "before": before, "limit": limit, "cursor": cursor}
        return await self._work.message_calls.search({"q": q} | where | page)

    async def report(self, message: MessageOrId, reason: str) -> str:
        """Puts a message before the moderators; returns the id of the report."""
        return await self._work.message_calls.report(message, reason)

    def file_url(self, message: Message, preview: Literal["", "small", "medium"] = "") -> str | None:
        """Returns the address of a message's file, or of a smaller picture of it, which needs no token for an hour or
        two; None when there is none."""
        path = message.file_path(preview)
        return self._http.url + path if path is not None and path.startswith("/") else path

    def _watch_presence(self, user_ids: list[str]) -> None:
        self._engine.watch_presence(user_ids)
        self._driver.pump()

    # -- events ----------------------------------------------------------------------------------------------

    def on(self, name: str, handler: Handler) -> Callable[[], None]:
        """Calls `handler` with each event of that name, a coroutine function with one event after the other; returns
        the function that unsubscribes it."""
        return self._emitter.on(name, handler)

    def once(self, name: str, handler: Handler) -> Callable[[], None]:
        """Calls `handler` with the next event of that name only."""
        return self._emitter.on(name, handler, once=True)

    def off(self, name: str, handler: Handler) -> None:
        self._emitter.off(name, handler)

    def events(self, *names: str) -> EventStream:
        """Returns the events of these names from now on, for `async for`: until `close`, or until the server ends the
        session, which raises the error with its reason."""
        return self._emitter.stream(*names)

    def inbox(self) -> InboxStream:
        """Returns the messages of other users for `async for`, to be called before `connect`. What is not handled when
        the process ends is received again by the next one with the same storage. It ends as `events` do."""
        if self._inbox is not None and not self._inbox.is_over:
            raise ClientError("inbox_in_use")
        self._engine.inbox.holds_unhandled = True
        stream = self._emitter.stream("message")
        for event in [] if self._inbox is None else self._inbox.take_unhandled():
            stream.put(event)
        driver = self._driver
        self._inbox = InboxStream(stream, self._message_handled, driver.keep_baseline, driver.store_baselines)
        return self._inbox

    def _message_handled(self, conversation_id: str, seq: int) -> None:
        self._engine.inbox.handled(conversation_id, seq, self._driver.now())
        self._driver.pump()


def _websocket_url(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(scheme="wss" if parts.scheme == "https" else "ws", path=f"{parts.path}/ws").geturl()

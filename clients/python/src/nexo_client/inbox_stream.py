"""Messages that are handled one after the other, and come again after a restart unless they were: `client.inbox()`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from nexo_client.conversation import Conversation
from nexo_client.emitter import EventStream
from nexo_client.errors import ClientError
from nexo_client.events import Event, Received
from nexo_client.types import Message


class InboxMessage:
    """A message of another user, to be handled."""

    def __init__(self, event: Received, handled: Callable[[str, int], None]) -> None:
        self.message: Message = event.message
        self.conversation: Conversation = event.conversation
        self._event = event
        self._handled = handled
        self._is_done = False

    def done(self) -> None:
        """Counts it as handled. Otherwise that happens when the next one is requested."""
        if not self._is_done:
            self._is_done = True
            self._handled(self.conversation.id, self.message.place)


class InboxStream(AsyncIterator[InboxMessage]):
    """Messages in the order of their conversations. One counts as handled when the next is requested or `done` was
    called; only then is it acknowledged and stored that this device has it. It ends as an iterator of events does."""

    def __init__(
        self,
        stream: EventStream,
        handled: Callable[[str, int], None],
        keep: Callable[[str], Awaitable[None]],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        """`keep` stores that a conversation has messages that are not handled; `ended` stores what was handled."""
        self._stream = stream
        self._handled = handled
        self._keep = keep
        self._ended = ended
        self._current: InboxMessage | None = None
        self._kept: set[str] = set()

    @property
    def is_over(self) -> bool:
        return self._stream.is_over

    async def __anext__(self) -> InboxMessage:
        if self._current is not None:
            self._current.done()
            self._current = None
        try:
            event = await anext(self._stream)
        except (StopAsyncIteration, ClientError):
            await self._ended()
            raise
        # Before the application has it, so that nothing that it does (marking it as read) makes it appear as handled.
        if event.conversation_id not in self._kept:
            await self._keep(event.conversation_id)
            self._kept.add(event.conversation_id)
        self._current = InboxMessage(event, self._handled)
        return self._current

    def take_unhandled(self) -> list[Event]:
        """Returns the messages that this iterator leaves to the next one."""
        current, self._current = self._current, None
        held: list[Event] = [] if current is None or current._is_done else [current._event]
        return held + self._stream.take_waiting()

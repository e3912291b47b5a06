"""A message on its way, as `send` returns it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakValueDictionary

from nexo_client.core.outbox import OutboxItem
from nexo_client.errors import ClientError
from nexo_client.types import SendState

UNSAVED = ("uploading", "sending", "accepted")


class OutgoingOwner(Protocol):
    """What an outgoing message needs: the driver."""

    def retry(self, item: OutboxItem) -> bool: ...

    def cancel(self, item: OutboxItem) -> bool: ...


OnProgress = Callable[[int, int], object]  # bytes that the server has, and bytes of the file


class OutgoingMessage:
    """The same object through all attempts."""

    def __init__(self, owner: OutgoingOwner, item: OutboxItem) -> None:
        self._owner = owner
        self._item = item
        self._size = 0 if item.upload is None else item.upload.size
        self._reported = 0
        self._ended: asyncio.Future[None] | None = None
        self.on_progress: OnProgress | None = None

    def __repr__(self) -> str:
        return f"<OutgoingMessage {self.client_msg_id} {self.state}>"

    @property
    def client_msg_id(self) -> str:
        return self._item.client_msg_id

    @property
    def order(self) -> str:
        """A text that sorts by creation time."""
        return self._item.order

    @property
    def conversation_id(self) -> str:
        return self._item.conversation_id

    @property
    def content(self) -> Any:
        return self._item.fields.get("body")

    @property
    def msg_type(self) -> int:
        return int(self._item.fields.get("msgType", 1))

    @property
    def mentions(self) -> list[str]:
        return list(self._item.fields.get("mentions") or ())

    @property
    def reply_to(self) -> str | None:
        return self._item.fields.get("replyToServerMsgId")

    @property
    def extra(self) -> Any:
        return self._item.fields.get("extra")

    @property
    def expires_s(self) -> int | None:
        """How many seconds its content is shown; None: without end."""
        return self._item.fields.get("expiresS")

    @property
    def created_at(self) -> int:
        return self._item.created_at

    @property
    def state(self) -> SendState:
        return self._item.state

    @property
    def progress(self) -> tuple[int, int] | None:
        """How many bytes of its file the server has, of how many; None without a file."""
        return (self._item.uploaded_bytes, self._size) if self._size else None

    @property
    def error(self) -> ClientError | None:
        reason = self._item.reason
        return None if reason is None else ClientError(reason, self._item.detail)

    @property
    def server_msg_id(self) -> str | None:
        return self._item.server_msg_id

    @property
    def seq(self) -> int | None:
        return self._item.seq

    @property
    def send_at(self) -> int | None:
        return self._item.send_at

    async def when_saved(self) -> OutgoingMessage:
        """Returns itself once the server has saved it; raises the error when it fails."""
        while self.state in UNSAVED:
            if self._ended is None:
                self._ended = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._ended)
        if self.error is not None:
            raise self.error
        return self

    def retry(self) -> bool:
        """Sends a failed message once more, with the same id; returns whether it had failed."""
        return self._owner.retry(self._item)

    def cancel(self) -> bool:
        """Removes it from the outbox, unless the server may have stored it; returns whether it was removed."""
        return self._owner.cancel(self._item)

    def _changed(self) -> None:
        if self.on_progress is not None and self._reported != self._item.uploaded_bytes:
            self._reported = self._item.uploaded_bytes
            # later: an exception in it is the application's
            asyncio.get_running_loop().call_soon(self.on_progress, self._reported, self._size)
        if self.state not in UNSAVED and self._ended is not None:
            ended, self._ended = self._ended, None
            if not ended.done():
                ended.set_result(None)


class OutgoingMessages:
    """All messages on their way: each is the same object through all attempts."""

    def __init__(self, owner: OutgoingOwner) -> None:
        self._owner = owner
        self._known: WeakValueDictionary[str, OutgoingMessage] = WeakValueDictionary()
        self._unsaved: dict[str, OutgoingMessage] = {}  # strong references: the application may await them
        self._changed = asyncio.Event()

    def get(self, client_msg_id: str | None) -> OutgoingMessage | None:
        return None if client_msg_id is None else self._known.get(client_msg_id)

    def of(self, item: OutboxItem) -> OutgoingMessage:
        found = self._known.get(item.client_msg_id)
        if found is None:
            found = self._known[item.client_msg_id] = OutgoingMessage(self._owner, item)
        return found

    def keep(self, item: OutboxItem) -> OutgoingMessage:
        """Returns the message of an item that is in the outbox now."""
        outgoing = self._unsaved[item.client_msg_id] = self.of(item)
        return outgoing

    def changed(self, item: OutboxItem) -> OutgoingMessage:
        outgoing = self.of(item)
        outgoing._changed()
        if item.state not in UNSAVED:
            self._unsaved.pop(item.client_msg_id, None)
        self.wake()
        return outgoing

    def clear(self) -> None:
        self._unsaved.clear()

    def wake(self) -> None:
        """Lets `flush` look again, because the connection has changed."""
        self._changed.set()

    async def flush(
        self, pending: Callable[[], list[OutgoingMessage]], check: Callable[[], None], timeout_ms: int
    ) -> None:
        """Returns when nothing is pending. Raises the error of a message that failed, `timeout`, or what `check`
        raises, which is called while there are messages to wait for."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while any(message.error is None for message in pending()):
                    check()
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise ClientError("timeout", f"{len(pending())} messages are not saved yet") from None
        for message in pending():
            if message.error is not None:
                raise message.error

"""What a conversation needs of its client: its messages are sent, loaded and changed here."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nexo_client.conversation import Page
from nexo_client.core.ids import now_ms
from nexo_client.core.message_changes import Edit
from nexo_client.core.messages import entry_from_api, message_from_api
from nexo_client.core.options import Options
from nexo_client.driver import Driver
from nexo_client.errors import ClientError
from nexo_client.http import Call
from nexo_client.message_calls import MessageCalls
from nexo_client.outgoing_message import OutgoingMessage, OutgoingMessages
from nexo_client.repeated_calls import RepeatedCalls
from nexo_client.types import Reaction, Upload


class ConversationWork:
    """The `ConversationOwner` of all conversations of a client."""

    def __init__(
        self,
        call: Call,
        driver: Driver,
        outgoing: OutgoingMessages,
        options: Options,
        failed: Callable[[Exception], None],
        mark_changed: Callable[[set[str]], None],
    ) -> None:
        self.repeated = RepeatedCalls(options)
        self.message_calls = MessageCalls(
            call, self.repeated, lambda: driver.engine.ids.new(now_ms()), lambda: driver.engine.user_id
        )
        self._call = call
        self._driver = driver
        self._outgoing = outgoing
        self._max_conversations = options.max_conversations
        self._failed = failed
        self._mark_changed = mark_changed
        self._watchers: dict[str, list[Callable[[], object]]] = {}
        self._in_memory: OrderedDict[str, None] = OrderedDict()  # least recently used conversation first
        self._loading_deleted: set[str] = set()

    def forget_user(self) -> None:
        self._in_memory.clear()

    def notify(self, conversation_id: str) -> None:
        for notify in list(self._watchers.get(conversation_id, ())):
            notify()

    def load_deleted(self, conversation_ids: set[str]) -> None:
        """Loads what the user has deleted on other devices, as far as this one does not know it."""
        for conversation_id in conversation_ids - self._loading_deleted:
            self._loading_deleted.add(conversation_id)
            self._driver.spawn(self._load_deleted(conversation_id))

    async def _load_deleted(self, conversation_id: str) -> None:
        engine = self._driver.engine
        conversation, has_more = engine.conversation(conversation_id), True
        try:
            while has_more:
                ids, up_to_seq, rev, has_more = await self.message_calls.deleted(
                    conversation_id, conversation.deleted_rev or 0
                )
                conversation.deleted_rev = max(conversation.deleted_rev or 0, rev)
                engine.inbox.apply_deleted(conversation, ids, up_to_seq, rev, self._driver.now())
                self._driver.pump()
        except ClientError as error:
            self._failed(error)  # the next SYNC names the revision again
        finally:
            self._loading_deleted.discard(conversation_id)

    def _send(self, conversation_id: str, fields: Mapping[str, Any], client_msg_id: str | None) -> OutgoingMessage:
        if not self._driver.engine.user_id:
            raise ClientError("unauthorized", "Sign in first")
        known = self._outgoing.get(client_msg_id)
        if known is not None:
            return known
        item = self._driver.engine.send(conversation_id, fields, now_ms(), client_msg_id)
        outgoing = self._outgoing.keep(item)
        self._driver.pump()
        return outgoing

    def _send_file(
        self,
        conversation_id: str,
        fields: Mapping[str, Any],
        client_msg_id: str | None,
        upload: Upload,
        content: bytes | None,
    ) -> OutgoingMessage:
        if not self._driver.engine.user_id:
            raise ClientError("unauthorized", "Sign in first")
        known = self._outgoing.get(client_msg_id)
        if known is not None:
            return known
        item = self._driver.engine.send(conversation_id, fields, now_ms(), client_msg_id, upload)
        if content is not None:
            self._driver.engine.writes.insert(0, self._driver.uploads.keep(item, content))
        outgoing = self._outgoing.keep(item)
        self._driver.pump()
        return outgoing

    def _pending_of(self, conversation_id: str) -> list[OutgoingMessage]:
        return [self._outgoing.of(item) for item in self._driver.engine.pending(conversation_id)]

    def _mark_read(self, conversation_id: str, seq: int | None) -> None:
        if self._driver.engine.conversation(conversation_id).settings.marked_unread:
            self._driver.spawn(self._unmark(conversation_id))
        self._driver.engine.mark_read(conversation_id, seq, self._driver.now())
        self._driver.pump()

    async def _unmark(self, conversation_id: str) -> None:
        try:
            await self._update_conversation(conversation_id, {"marked_unread": False})
        except ClientError as error:
            self._failed(error)

    def _send_typing(self, target: Mapping[str, str], on: bool) -> None:
        self._driver.engine.send_typing(target, on)
        self._driver.pump()

    def _typists_of(self, conversation_id: str) -> list[str]:
        return self._driver.engine.inbox.typists.of(conversation_id)

    def _touch(self, conversation_id: str) -> None:
        self._in_memory[conversation_id] = None
        self._in_memory.move_to_end(conversation_id)
        while len(self._in_memory) > self._max_conversations:
            oldest, _ = self._in_memory.popitem(last=False)
            self._driver.engine.conversation(oldest).forget_window()

    async def _load_page(self, path: str, conversation_id: str, **params: int | None) -> Page:
        data = await self._call("GET", path, {"conversation_id": conversation_id} | params)
        self._mark_changed({conversation_id})
        messages = [message_from_api(shape) for shape in data["messages"]]
        return Page(messages, data["head_seq"], data["next_seq"], data["has_more"])

    def _apply_edit(self, conversation_id: str, server_msg_id: str, edit: Edit) -> None:
        self._driver.engine.inbox.apply_edit(self._driver.engine.conversation(conversation_id), server_msg_id, edit)
        self._driver.pump()

    def _apply_reactions(
        self, conversation_id: str, server_msg_id: str, reactions: Sequence[Reaction], emoji: str
    ) -> None:
        conversation = self._driver.engine.conversation(conversation_id)
        self._driver.engine.inbox.apply_reactions(conversation, server_msg_id, reactions, emoji)
        self._driver.pump()

    def _apply_deleted(self, conversation_id: str, server_msg_ids: Sequence[str], up_to_seq: int | None) -> None:
        conversation = self._driver.engine.conversation(conversation_id)
        self._driver.engine.inbox.apply_deleted(conversation, server_msg_ids, up_to_seq, None, self._driver.now())
        self._driver.pump()

    async def _update_conversation(self, conversation_id: str, changes: Mapping[str, Any]) -> None:
        params = {"conversation_id": conversation_id, **changes}
        entry = entry_from_api(await self._call("PUT", "/conversation/update", params))
        self._driver.engine.inbox.apply_list_row(entry, self._driver.now())
        if "hidden" in changes:
            self._driver.engine.conversation(conversation_id).is_hidden = changes["hidden"]
        self._driver.pump()

    def _watch_conversation(self, conversation_id: str, notify: Callable[[], object]) -> Callable[[], None]:
        self._watchers.setdefault(conversation_id, []).append(notify)

        def off() -> None:
            if notify in self._watchers.get(conversation_id, ()):
                self._watchers[conversation_id].remove(notify)

        return off

"""What the engine leaves for its driver, and the conversations that all parts of the engine work on."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from nexo_client.core.conversation_state import ConversationState
from nexo_client.core.frames import Frame
from nexo_client.core.options import Options
from nexo_client.events import Event

# Open a connection, drop it, load the first page of the list, upload what waits for it.
Action = Literal["open", "drop", "list", "upload"]


class StorageWrite(NamedTuple):
    """Store `value` under `key`; None deletes the key."""

    key: str
    value: Any


class Outputs:
    def __init__(self, options: Options, user_id: str) -> None:
        self.options = options
        self.user_id = user_id
        self.conversations: dict[str, ConversationState] = {}
        self.frames: list[Frame] = []
        self.events: list[Event] = []
        self.writes: list[StorageWrite] = []
        self.actions: list[Action] = []
        self.changed: set[str] = set()  # ids of conversations with any change
        self.missing_deletions: set[str] = set()  # of which the user has deleted messages on other devices

    def conversation(self, conversation_id: str) -> ConversationState:
        found = self.conversations.get(conversation_id)
        if found is None:
            found = ConversationState(conversation_id, self.user_id, self.options.window_size)
            self.conversations[conversation_id] = found
        return found

    def mark_changed(self, conversation: ConversationState) -> None:
        self.changed.add(conversation.conversation_id)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def request(self, action: Action) -> None:
        if action not in self.actions:
            self.actions.append(action)

"""How far this device has each conversation: told with AUTH, and kept over a restart. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nexo.client.options import BASELINES_MAX, BASELINES_MAX_BYTES
from nexo.client.view import View

_ENTRY_BYTES = 24  # of a frame, besides the name


class Baselines:
    def __init__(self) -> None:
        self._found: dict[str, int] = {}  # in the storage, until the conversation is known
        self._moved: set[str] = set()

    def restore(self, name: str, seq: int) -> None:
        self._found[name] = seq

    def take_found(self, name: str) -> int | None:
        return self._found.pop(name, None)

    def moved(self, name: str) -> None:
        self._moved.add(name)

    @property
    def has_moved(self) -> bool:
        return bool(self._moved)

    def take_moved(self) -> set[str]:
        moved, self._moved = self._moved, set()
        return moved

    def for_auth(self, views: Mapping[str, View]) -> dict[str, int]:
        """As many as fit into a frame, newest activity first. Of the others the server thinks that this device
        has what any device has; what it lacks shows in SYNC."""
        known = {name: view.synced_seq for name, view in views.items() if view.is_known}
        activity = {name: view.updated_at for name, view in views.items()}
        chosen: dict[str, int] = {}
        size = 0
        for name, seq in sorted((self._found | known).items(), key=lambda item: -activity.get(item[0], 0)):
            size += len(name) + _ENTRY_BYTES
            if size > BASELINES_MAX_BYTES or len(chosen) >= BASELINES_MAX:
                break
            chosen[name] = seq
        return chosen

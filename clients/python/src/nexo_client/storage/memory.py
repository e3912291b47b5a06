"""A storage in memory."""

from __future__ import annotations

import json
from typing import Any


class MemoryStorage:
    """Forgets everything with the process."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    async def get(self, key: str) -> Any:
        return json.loads(self._values[key]) if key in self._values else None

    async def set(self, key: str, value: Any) -> None:
        self._values[key] = json.dumps(value)  # as text: a later change of the object must not change what is stored

    async def delete(self, key: str) -> None:
        self._values.pop(key, None)

    async def entries(self, prefix: str) -> list[tuple[str, Any]]:
        return [(key, json.loads(self._values[key])) for key in sorted(self._values) if key.startswith(prefix)]

    async def close(self) -> None:
        """Does nothing: the values stay, as in a file."""

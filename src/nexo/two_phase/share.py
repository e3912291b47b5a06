"""Which conversations have two-phase acknowledgement: by scope, and by a share that can change at any time."""

from __future__ import annotations

import zlib

from nexo.config.tree import TwoPhaseConfig
from nexo.core.model import Draft, Kind

_SINGLE = int(Kind.SINGLE)


class TwoPhaseShare:
    """A conversation stays in as long as the share does not shrink, on every instance."""

    __slots__ = ("_below", "_groups_too")

    def __init__(self, settings: TwoPhaseConfig) -> None:
        self._groups_too = settings.scope == "all"
        self.set(settings.share if settings.enabled and not settings.observe else 0.0)

    def set(self, share: float) -> None:
        self._below = round(share * 2**32)

    def takes(self, draft: Draft) -> bool:
        below = self._below
        if not below or not (self._groups_too or draft.kind == _SINGLE):
            return False
        return below >= 2**32 or zlib.crc32(draft.conversation_id.encode()) < below

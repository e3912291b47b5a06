"""The ids that `accepted` has reported and that are not known to be saved, beyond the life of a connection: a retry is
saved under the same id, also while Redis is away or after it lost its data."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from nexo.core.model import Draft

REMEMBERED_S = 600.0  # a sender that was away for longer finds its message saved


class AcceptedId(NamedTuple):
    server_msg_id: int
    accepted_at: int
    request_hash: bytes
    until: float


class AcceptedIds:
    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: OrderedDict[tuple[str, str], AcceptedId] = OrderedDict()  # by sender and client_msg_id, oldest first

    def __len__(self) -> int:
        return len(self._ids)

    def clear(self) -> None:
        self._ids.clear()

    def note(self, draft: Draft, now: float) -> None:
        assert draft.server_msg_id is not None
        ids = self._ids
        key = (draft.sender_id, draft.client_msg_id)
        ids.pop(key, None)
        ids[key] = AcceptedId(draft.server_msg_id, draft.accepted_at, draft.request_hash, now + REMEMBERED_S)
        while len(ids) > self._most or next(iter(ids.values())).until <= now:
            ids.popitem(last=False)

    def knows(self, draft: Draft) -> bool:
        """Returns whether the same send was accepted before."""
        found = self._ids.get((draft.sender_id, draft.client_msg_id)) if self._ids else None
        return found is not None and found.request_hash == draft.request_hash

    def adopt(self, draft: Draft) -> None:
        """Give a draft without an id the one under which it was accepted before, if it was."""
        if draft.server_msg_id is None and self.knows(draft):
            found = self._ids[draft.sender_id, draft.client_msg_id]
            draft.server_msg_id, draft.accepted_at = found.server_msg_id, found.accepted_at

    def settle(self, sender_id: str, client_msg_id: str) -> None:
        self._ids.pop((sender_id, client_msg_id), None)

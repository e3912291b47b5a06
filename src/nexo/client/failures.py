"""What a call of the SDK fails with."""

from __future__ import annotations

from nexo.errors import ERRORS

# What has no row in the server's table, because it happens on this side of the wire.
LOCAL = {
    "network": "The server could not be reached.",
    "timeout": "The server did not answer in time.",
    "offline": "There is no connection.",
    "closed": "The client is closed.",
    "cancelled": "The message was taken out of the outbox.",
    "slow_consumer": "Events were not taken as fast as they came.",
    "outbox_full": "Too much waits in the outbox already.",
    "storage": "The message could not be kept on this device.",
    "bad_answer": "The server's answer makes no sense.",
}
_LOCAL_TRANSIENT = frozenset(("network", "timeout", "offline"))


class ClientError(Exception):
    """`reason` is a name of the server's error table, or one of `LOCAL`."""

    def __init__(self, reason: str, detail: str = "", *, status: int = 0, retry_after_ms: int | None = None) -> None:
        self.reason = reason
        row = ERRORS.get(reason)
        self.detail = detail or (row.sentence if row is not None else LOCAL.get(reason, ""))
        self.status = status
        self.retry_after_ms = retry_after_ms
        super().__init__(f"{reason}: {self.detail}")

    @property
    def is_transient(self) -> bool:
        """Whether the same may succeed a little later."""
        return is_transient(self.reason)


def is_transient(reason: str) -> bool:
    row = ERRORS.get(reason)
    return row.retry if row is not None else reason in _LOCAL_TRANSIENT

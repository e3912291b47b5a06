"""`ClientError`, and the error names that change what the client does."""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """One error name. `close_code` is 0 unless the server closes the connection because of this error."""

    sentence: str
    is_transient: bool = False
    close_code: int = 0


# The rows of docs/errors.md that end a connection or may be retried; other names are only passed on to the caller.
REASONS = {
    "unauthorized": Reason("Sign in first: the request has no valid token.", close_code=4101),
    "token_expired": Reason("The access token has expired; refresh it.", close_code=4603),
    "session_invalid": Reason("The session has ended; sign in again.", close_code=4104),
    "auth_timeout": Reason("No valid AUTH arrived in time.", close_code=4605),
    "reauth_uid_mismatch": Reason("The new token belongs to another user.", close_code=4106),
    "kicked": Reason("Another device of this user took the place.", close_code=4107),
    "replaced": Reason("A newer connection of this device took the place.", close_code=4108),
    "user_disabled": Reason("This account has been disabled by an administrator.", close_code=4113),
    "user_deleted": Reason("This account has been closed for good.", close_code=4114),
    "server_busy": Reason("The server cannot take this now; try again.", is_transient=True),
    "internal_error": Reason("The server failed; the log has the cause.", is_transient=True),
    "too_many_requests": Reason("Too many requests; wait and try again.", is_transient=True),
    "too_many_uploads": Reason("You have as many uploads running as you may; finish or end one.", is_transient=True),
    "storage_full": Reason("The server has no room for this file at present; try again later.", is_transient=True),
    "slow_consumer": Reason("The connection did not take what was sent.", is_transient=True, close_code=4904),
    "server_shutdown": Reason("The server stops; connect again.", is_transient=True, close_code=4905),
    # These happen on the client's side and have no row in the server's table.
    "network": Reason("The server could not be reached.", is_transient=True),
    "timeout": Reason("The server did not answer in time.", is_transient=True),
    "offline": Reason("There is no connection.", is_transient=True),
    "closed": Reason("The client is closed."),
    "cancelled": Reason("The message was removed from the outbox."),
    "outbox_full": Reason("The outbox holds as many messages as it may."),
    "storage": Reason("The message could not be stored on this device."),
    "file_changed": Reason("The file was changed or removed before it was uploaded."),
    "bad_signature": Reason("The webhook was not signed with this secret."),
    "bad_secret": Reason("The secret is none of a webhook."),
    "bad_key": Reason("The key is empty, or has characters that no key has."),
    "webhook_expired": Reason("The webhook was signed too long ago."),
    "unknown_event": Reason("There is no event of that name."),
    "inbox_in_use": Reason("The client has an inbox already."),
    "bad_answer": Reason("The server's answer could not be understood."),
}
_UNKNOWN = Reason("")


def reason_of(name: str) -> Reason:
    """Returns the row of an error name; for a name without a row, one that is final and closes nothing."""
    return REASONS.get(name, _UNKNOWN)


def is_transient(name: str) -> bool:
    """Returns whether the same call may succeed a little later."""
    return reason_of(name).is_transient


class ClientError(Exception):
    """A failed call. `reason` is a name of docs/errors.md or one of the client-side names of `REASONS`."""

    def __init__(self, reason: str, detail: str = "", *, status: int = 0, retry_after_ms: int | None = None) -> None:
        self.reason = reason
        self.detail = detail or reason_of(reason).sentence
        self.status = status
        self.retry_after_ms = retry_after_ms
        super().__init__(f"{reason}: {self.detail}")

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed a little later."""
        return is_transient(self.reason)

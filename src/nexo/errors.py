"""The one error table: every name a client can meet, its number and what it means for the connection.

`NexoError` carries a row of it; it is raised where the cause is known and translated once, at the edge.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class ErrorRow(NamedTuple):
    name: str
    number: int
    http_status: int
    closes: bool
    retry: bool
    sentence: str
    reconnect: bool = False

    @property
    def close_code(self) -> int:
        """What a connection is closed with: below 4500 a client must not come back with this session."""
        base = 4500 if self.reconnect or self.retry else 4000
        return base + (self.number // 1000 - 1) * 100 + self.number % 100


def _rows() -> list[ErrorRow]:
    rows: list[ErrorRow] = []

    def add(
        number: int,
        name: str,
        http: int,
        sentence: str,
        *,
        closes: bool = False,
        retry: bool = False,
        reconnect: bool = False,
    ) -> None:
        rows.append(ErrorRow(name, number, http, closes, retry, sentence, reconnect))

    # 1000: the shape of a request
    add(1001, "bad_json", 400, "The text is not valid JSON.")
    add(1002, "bad_request", 400, "The request has a field that is unknown, misplaced or of the wrong type.")
    add(1003, "missing_type", 400, "The frame does not say what it is.")
    add(1004, "unknown_type", 400, "No such frame or command exists.")
    add(1005, "body_too_long", 413, "The content or the frame is larger than allowed.")
    add(1006, "unknown_ack_type", 400, "An acknowledgement is delivered or read.")
    add(1007, "not_implemented", 501, "Reserved, and not part of this release.")
    add(1008, "not_found", 404, "There is nothing at this address.")
    add(1009, "method_not_allowed", 405, "This address answers another method.")
    for offset, field in enumerate(_REQUEST_FIELDS):
        add(1100 + offset, f"missing_{field}", 400, f"The field {field} is required.")
        add(1200 + offset, f"bad_{field}", 400, f"The field {field} has the wrong type, size or form.")

    # 2000: who you are
    add(2001, "unauthorized", 401, "Sign in first: no valid token came with this.", closes=True)
    add(2002, "invalid_credentials", 401, "The user or the password is wrong.")
    add(2003, "token_expired", 401, "The access token has expired; refresh it.", closes=True, reconnect=True)
    add(2004, "session_invalid", 401, "The session has ended; sign in again.", closes=True)
    add(2005, "auth_timeout", 401, "No valid AUTH came in time.", closes=True, reconnect=True)
    add(2006, "reauth_uid_mismatch", 401, "The new token belongs to another user.", closes=True)
    add(2007, "kicked", 401, "Another device of this user took the place.", closes=True)
    add(2008, "replaced", 401, "A newer connection of this device took the place.", closes=True)
    add(2009, "identity_mismatch", 403, "The sender named in the request is not the one signed in.")
    add(2010, "admin_only", 403, "Only administrators may do this.")

    # 3000: users and groups
    add(3001, "user_exists", 409, "This user id is taken.")
    add(3002, "user_not_found", 404, "No such user.")
    add(3003, "group_not_found", 404, "No such group.")
    add(3004, "group_not_available", 410, "The group has been dismissed.")
    add(3005, "not_group_member", 403, "Only members may do this, and you never were one.")
    add(3006, "member_not_active", 403, "You have left this group or were removed from it.")
    add(3007, "no_permission", 403, "Your role does not allow this.")
    add(
        3008,
        "owner_cannot_leave",
        409,
        "The owner cannot leave; transfer the ownership or dismiss the group.",
    )
    add(3009, "group_members_too_few", 400, "The group would have too few members.")
    add(3010, "group_full", 409, "The group has as many members as it may have.")
    add(3011, "conversation_not_found", 404, "No such conversation, or you have no part in it.")
    add(
        3012,
        "conversation_private_cannot_delete",
        409,
        "A private conversation cannot be deleted, only hidden.",
    )
    add(3013, "join_request_not_found", 404, "There is no open request of this user to join.")

    # 4000: messages
    add(4001, "cannot_send_to_self", 400, "A message needs somebody else to receive it.")
    add(4002, "blocked", 403, "The receiver has blocked you.")
    add(4003, "speak_muted", 403, "You may not speak in this group at present.")
    add(4004, "client_msg_id_reused", 409, "This client_msg_id was used for another message.")
    add(4005, "content_rejected", 422, "The content filter refuses this message.")
    add(4006, "message_not_found", 404, "No such message, or you may not see it.")
    add(4007, "not_message_sender", 403, "Only the sender may recall this message.")
    add(4008, "recall_timeout", 409, "The time in which this message could be recalled is over.")
    add(4009, "ack_not_allowed", 403, "You may not acknowledge what you cannot see.")

    # 5000: the server
    add(5001, "server_busy", 503, "The server cannot take this now; try again.", retry=True, reconnect=True)
    add(5002, "internal_error", 500, "The server failed; the log has the cause.", retry=True, reconnect=True)
    add(5003, "too_many_requests", 429, "Too many requests; wait and try again.", retry=True, reconnect=True)
    add(
        5004,
        "slow_consumer",
        503,
        "The connection did not take what was sent.",
        closes=True,
        reconnect=True,
        retry=True,
    )
    add(5005, "server_shutdown", 503, "The server stops; connect again.", closes=True, reconnect=True, retry=True)
    return rows


# Fields that can be missing or bad; appended to, never reordered: the position makes the number.
_REQUEST_FIELDS = (
    "client_msg_id",
    "server_msg_id",
    "conversation_id",
    "user_id",
    "group_id",
    "receiver",
    "content",
    "msg_type",
    "mentions",
    "reply_to",
    "extra",
    "password",
    "nickname",
    "avatar",
    "name",
    "introduction",
    "announcement",
    "join_policy",
    "role",
    "duration",
    "token",
    "platform_id",
    "device_id",
    "seq",
    "cursor",
    "limit",
    "member_ids",
    "message",
    "baselines",
    "recv_msg_opt",
    "query",
)

ERRORS: dict[str, ErrorRow] = {row.name: row for row in _rows()}


class NexoError(Exception):
    """A refusal that a client may be told, word for word."""

    def __init__(self, name: str, detail: str | None = None, *, retry_after_ms: int | None = None, **data: Any) -> None:
        self.row = ERRORS[name]
        self.detail = detail or self.row.sentence
        self.retry_after_ms = retry_after_ms
        self.data = data
        super().__init__(f"{name}: {self.detail}")

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def number(self) -> int:
        return self.row.number


class StartupError(Exception):
    """The process cannot start or go on as configured; the text says what to do."""

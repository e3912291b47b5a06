"""The one error table: every name a client can receive, its number and its effect on the connection.

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
        """WebSocket close code: below 4500 a client must not reconnect with this session."""
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
    add(1003, "missing_type", 400, "The frame has no type.")
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
    add(2001, "unauthorized", 401, "Sign in first: the request has no valid token.", closes=True)
    add(2002, "invalid_credentials", 401, "The user or the password is wrong.")
    add(2003, "token_expired", 401, "The access token has expired; refresh it.", closes=True, reconnect=True)
    add(2004, "session_invalid", 401, "The session has ended; sign in again.", closes=True)
    add(2005, "auth_timeout", 401, "No valid AUTH arrived in time.", closes=True, reconnect=True)
    add(2006, "reauth_uid_mismatch", 401, "The new token belongs to another user.", closes=True)
    add(2007, "kicked", 401, "Another device of this user took the place.", closes=True)
    add(2008, "replaced", 401, "A newer connection of this device took the place.", closes=True)
    add(2009, "identity_mismatch", 403, "The sender named in the request is not the one signed in.")
    add(2010, "admin_only", 403, "Only administrators may do this.")
    add(2020, "registration_closed", 403, "Registering needs a valid code, or is not possible on this server.")

    add(2011, "scope_missing", 403, "The key does not have the scope that this call needs.")
    add(2012, "key_expired", 401, "The key has expired; make a new one.")
    add(2013, "user_disabled", 403, "This account has been disabled by an administrator.", closes=True)
    add(2014, "user_deleted", 403, "This account has been closed for good.", closes=True)

    add(2021, "code_invalid", 403, "The code is wrong, was used, or has expired; ask for another one.")
    add(2022, "passwords_off", 403, "Users of this server have no passwords; sign in by a token of the product.")

    # 3000: users and groups
    add(3001, "user_exists", 409, "This user id is taken.")
    add(3002, "user_not_found", 404, "No such user.")
    add(3003, "group_not_found", 404, "No such group.")
    add(3004, "group_not_available", 410, "The group has been dismissed, or disabled by a moderator.")
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
    add(3014, "cursor_expired", 410, "What followed this cursor has been trimmed; begin again without it.")

    add(3015, "key_not_found", 404, "No such key.")
    add(3016, "hook_not_found", 404, "No such webhook.")
    add(3030, "too_many_hooks", 409, "There are as many webhooks as there may be.")
    add(3017, "session_not_found", 404, "No such session of yours.")
    add(3018, "contact_request_not_found", 404, "There is no open contact request of this user.")
    add(3019, "not_contact", 403, "Only contacts may do this; send a contact request first.")
    add(3020, "link_expired", 410, "The invite link was revoked, used up or has ended; ask for another one.")
    add(3021, "too_many_contacts", 409, "There are as many contacts or requests as there may be.")
    add(3022, "too_many_links", 409, "The group has as many invite links as it may have.")

    # 4000: messages
    add(4001, "cannot_send_to_self", 400, "The receiver of a message must be another user.")
    add(4002, "blocked", 403, "The receiver has blocked you.")
    add(4003, "speak_muted", 403, "You may not speak in this group at present.")
    add(4004, "client_msg_id_reused", 409, "This client_msg_id was used for another message.")
    add(4005, "content_rejected", 422, "The content filter refuses this message.")
    add(4006, "message_not_found", 404, "No such message, or you may not see it.")
    add(4007, "not_message_sender", 403, "Only the sender may recall this message.")
    add(4008, "recall_timeout", 409, "The time in which this message could be recalled is over.")
    add(4009, "ack_not_allowed", 403, "You may not acknowledge what you cannot see.")
    add(4010, "edit_timeout", 409, "The time in which this message could be edited is over.")
    add(4011, "not_editable", 409, "This message cannot be edited, or was edited as often as it may be.")
    add(4012, "too_many_reactions", 409, "The message has as many reactions as it may have, in all or from you.")
    add(4013, "too_many_pins", 409, "The conversation has as many pinned messages as it may have.")
    add(4014, "not_forwardable", 409, "This message cannot be forwarded.")
    add(
        4015,
        "too_many_deleted",
        409,
        "You have deleted as many messages here as you may; clear the conversation.",
    )

    # 4100: files
    add(4101, "file_not_found", 404, "No such file, or you may not see it.")
    add(4102, "file_too_large", 413, "The file is larger than allowed.")
    add(4103, "file_type_refused", 415, "Files of this type are not accepted here.")
    add(4104, "bad_file", 422, "The file is empty, damaged, or not what its type promises.")
    add(4105, "quota_exceeded", 413, "Your files take as much room as they may; delete some first.")
    add(4106, "upload_expired", 410, "The upload was not finished in time; begin again.")
    add(4107, "too_many_uploads", 429, "You have as many uploads running as you may; finish or end one.", retry=True)
    add(4108, "storage_full", 507, "The server has no room for this file at present; try again later.", retry=True)

    # 4200: calls
    add(4201, "callee_offline", 409, "The callee has no connection and no device that rings by push.")
    add(4202, "busy", 409, "You or the callee take part in another call.")
    add(4203, "call_not_found", 404, "No such call, or it has ended.")
    add(4204, "call_not_participant", 403, "You do not take part in this call.")
    add(4205, "call_not_ringing", 409, "The call was answered already, or has ended.")
    add(4206, "only_callee_can_accept", 403, "Only the callee may accept or reject the call.")
    add(4207, "only_caller_can_cancel", 403, "Only the caller may cancel the call.")
    add(4208, "unsupported_call_kind", 400, "A call is audio or video.")
    add(4209, "sdp_too_long", 413, "A session description has at most 65,000 characters.")

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
    "code",
    "user",
    "scopes",
    "types",
    "url",
    "reason",
    "ttl",
    "emoji",
    "expires",
    "draft",
    "remark",
    "time",
    "kind",
    "file_id",
    "privacy",
    "server_msg_ids",
    "to",
    "uses",
    "session_id",
    "call_id",
    "sdp",
    "candidate",
    "call_kind",
    "subscription",
)

ERRORS: dict[str, ErrorRow] = {row.name: row for row in _rows()}


class NexoError(Exception):
    """A refusal; name, detail and data are sent to the client as they are."""

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
    """The process cannot start or continue as configured; the text states what to do."""


class Unavailable(StartupError):
    """What the process needs is not there now and may be later: trying again can help."""

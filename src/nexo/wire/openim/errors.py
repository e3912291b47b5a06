"""Codes of OpenIM for errors of Nexo: what a client of OpenIM acts on."""

from __future__ import annotations

import msgspec

from nexo.errors import NexoError

EXPIRED, INVALID, MALFORMED, NOT_YET, UNKNOWN, KICKED, NOT_EXIST = range(1501, 1508)
SERVER, ARGS, NO_PERMISSION, DUPLICATE, NOT_FOUND = 500, 1001, 1002, 1003, 1004
USER_NOT_FOUND, USER_REGISTERED, GROUP_NOT_FOUND, GROUP_DISMISSED = 1101, 1102, 1201, 1204
BLOCKED, NOT_FRIEND, MUTED = 1302, 1304, 1402

_CODES = {
    "token_expired": EXPIRED,
    "token_invalid": INVALID,
    "unauthorized": MALFORMED,
    "bad_token": MALFORMED,
    "missing_token": NOT_EXIST,
    "session_invalid": KICKED,
    "user_disabled": KICKED,
    "user_deleted": NOT_EXIST,
    "identity_mismatch": INVALID,
    "user_not_found": USER_NOT_FOUND,
    "bad_user_id": USER_NOT_FOUND,
    "bad_receiver": USER_NOT_FOUND,
    "user_exists": USER_REGISTERED,
    "group_not_found": GROUP_NOT_FOUND,
    "group_not_available": GROUP_DISMISSED,
    "not_group_member": NO_PERMISSION,
    "member_not_active": NO_PERMISSION,
    "no_permission": NO_PERMISSION,
    "scope_missing": NO_PERMISSION,
    "not_message_sender": NO_PERMISSION,
    "recall_timeout": NO_PERMISSION,
    "owner_cannot_leave": NO_PERMISSION,
    "blocked": BLOCKED,
    "not_contact": NOT_FRIEND,
    "cannot_send_to_self": ARGS,
    "speak_muted": MUTED,
    "message_not_found": NOT_FOUND,
    "conversation_not_found": NOT_FOUND,
    "file_not_found": NOT_FOUND,
    "not_found": NOT_FOUND,
    "client_msg_id_reused": DUPLICATE,
    "internal_error": SERVER,
    "server_busy": SERVER,
}


def code_of(error: NexoError) -> int:
    """Returns OpenIM's code. What has none of its own is a wrong argument, or a fault of the server."""
    found = _CODES.get(error.name)
    if found is not None:
        return found
    return SERVER if error.row.http_status >= 500 or error.row.retry else ARGS


def encode_outcome(error: NexoError | None) -> bytes:
    """Returns the outcome of a handshake, or the head of an HTTP answer without data."""
    if error is None:
        return b'{"errCode":0,"errMsg":"","errDlt":""}'
    return msgspec.json.encode({"errCode": code_of(error), "errMsg": error.name, "errDlt": error.detail})

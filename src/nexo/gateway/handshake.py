"""The identity in an upgrade request: a bearer token, or the query parameters of the legacy WebSocket API.

The query is `token, send_id, platform_id, operation_id, sdk_type, is_msg_resp`, or all of these in `v`, as base64url of
a JSON object. OpenIM's clients use other names for the same. A token in the query is as secret as a token in a header:
this module logs nothing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from nexo.core.model import Session
from nexo.errors import NexoError

QUERY_FIELDS_MAX = 50

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode


class Handshake(Struct, frozen=True):
    token: str | None = None
    send_id: str | None = None
    platform_id: str | None = None
    asks_outcome: bool = False  # is_msg_resp: the upgrade always happens, and the first frame is the result

    def check(self, session: Session) -> None:
        """Raises NexoError when the client names another user or platform than its token."""
        if self.send_id is not None and self.send_id != session.user_id:
            raise NexoError("identity_mismatch", "send_id is not the token's user")
        if self.platform_id is not None and self.platform_id != str(session.platform_id):
            raise NexoError("bad_platform_id", "platform_id is not the token's")

    def __repr__(self) -> str:
        return f"Handshake(send_id={self.send_id!r}, platform_id={self.platform_id!r})"


def parse_query(query: str) -> dict[str, str]:
    """Returns the query parameters: of a repeated one the first, none without a value."""
    try:
        pairs = parse_qsl(query, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise NexoError("bad_request", "The query is not in the form name=value&name=value, in UTF-8") from None
    return dict(reversed(pairs))


def read_handshake(query: Mapping[str, str], headers: Mapping[str, str]) -> Handshake:
    """Returns the identity that the client shows. A token in a header has precedence over one in the query."""
    fields = {**_packed(query["v"]), **query} if "v" in query else query
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        token = fields.get("token", "")
    return Handshake(
        token.strip() or None,
        fields.get("send_id") or None,
        fields.get("platform_id") or None,
        asks_outcome(fields),
    )


def read_openim(query: Mapping[str, str]) -> dict[str, str]:
    """Returns the query of an OpenIM client in the names of Nexo. The platform is not compared: its tokens name one,
    those of Nexo may be used on any."""
    fields = {**_packed(query["v"]), **query} if "v" in query else query
    named = {
        "token": fields.get("token", ""),
        "send_id": fields.get("sendID") or fields.get("userID", ""),
        "is_msg_resp": fields.get("isMsgResp") or fields.get("sendResponse", ""),
        "sdk_type": fields.get("sdkType", ""),
        "compression": fields.get("compression", ""),
    }
    return {name: value for name, value in named.items() if value}


def asks_outcome(fields: Mapping[str, str]) -> bool:
    return fields.get("is_msg_resp", "").lower() in ("true", "1")


def _packed(text: str) -> dict[str, str]:
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = _decode_object(plain)
    except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError):
        raise NexoError("bad_request", "v is base64url of a JSON object") from None
    return {name: _as_text(value) for name, value in found.items() if value is not None}


def _as_text(value: object) -> str:
    """Returns the value as a query would hold it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else ""

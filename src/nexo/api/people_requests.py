"""Requests of the routes about contacts, links, sessions, accounts and reports."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, UnsetType

from nexo.api.requests import ApiRequest, Cursor, GroupId, Limit, MessageId, Password, Seq, UserId, form

Reason = Annotated[str, form(minLength=1, maxLength=512)]
Code = Annotated[str, Meta(description="As `POST /group/link` gave it.")]


class ContactRequestBody(ApiRequest, frozen=True):
    user_id: UserId
    message: Annotated[str, form(maxLength=512)] = ""


class DecideContactRequest(ApiRequest, frozen=True):
    user_id: UserId
    accept: bool


class RemarkRequest(ApiRequest, frozen=True):
    user_id: UserId
    remark: Annotated[str, form(maxLength=128)]


class ContactRequestsQuery(ApiRequest, frozen=True):
    sent: Annotated[bool, Meta(description="Those that you have sent, instead of those that you have received.")] = (
        False
    )
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class AddLinkRequest(ApiRequest, frozen=True):
    group_id: GroupId
    expires_s: Annotated[int, Meta(description="None: no end.")] | None = None
    uses: Annotated[int, Meta(description="How many users may join by it; none: any number.")] | None = None


class WhichLink(ApiRequest, frozen=True):
    code: Code


class RevokeSessionRequest(ApiRequest, frozen=True):
    """`session_id`, or `others`: all but this one."""

    session_id: Annotated[str, form(maxLength=64)] | None = None
    others: bool = False


class DeleteUserRequest(ApiRequest, frozen=True):
    """Without a password only a moment after signing in."""

    password: Password | None = None
    erase_messages: Annotated[bool, Meta(description="Erase your messages for all members, too.")] = False


class DeleteUserQuery(ApiRequest, frozen=True):
    erase_messages: Annotated[bool, Meta(description="Erase the messages for all members, too.")] = False


class ExportRequest(ApiRequest, frozen=True):
    """Without a password only a moment after signing in."""

    password: Password | None = None


class ReportRequest(ApiRequest, frozen=True):
    server_msg_id: MessageId
    reason: Reason


class ReportsQuery(ApiRequest, frozen=True):
    error_names: ClassVar[dict[str, str]] = {"before": "cursor", "state": "kind"}

    state: Annotated[str, form(enum=["open", "resolved", "all"])] = "open"
    before: Annotated[Seq, Meta(description="Only reports below this number.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(description="At most 50.")] | UnsetType = UNSET


class ResolveRequest(ApiRequest, frozen=True):
    error_names: ClassVar[dict[str, str]] = {"resolution": "reason"}

    resolution: Annotated[str, form(maxLength=512)] = ""

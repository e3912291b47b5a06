"""Requests of the routes under `/server`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from nexo.api.requests import ApiRequest, Avatar, DeviceId, NewUserId, Nickname, PlatformId, Seq, UserId, form


class PutUser(Struct, forbid_unknown_fields=True, frozen=True):
    user_id: NewUserId
    nickname: Nickname | UnsetType = UNSET
    avatar: Avatar | UnsetType = UNSET
    extra: Any = UNSET


class PutUsersRequest(ApiRequest, frozen=True):
    users: Annotated[list[PutUser], form(minItems=1, maxItems=1000)]

    error_names = {"users": "user"}  # noqa: RUF012


class DisableRequest(ApiRequest, frozen=True):
    reason: Annotated[str, form(maxLength=255)] = ""


class TokensRequest(ApiRequest, frozen=True):
    user_id: UserId
    platform_id: PlatformId = 5
    device_id: DeviceId = ""
    ttl_s: Annotated[int, form(minimum=1, description="Absent: `auth.access_ttl_s`. At most 30 days.")] | None = None
    refresh: Annotated[bool, Meta(description="Add a refresh token.")] = False

    error_names = {"ttl_s": "ttl"}  # noqa: RUF012


class RevokeSessionsRequest(ApiRequest, frozen=True):
    user_id: UserId
    device_id: Annotated[str, form(maxLength=128, description="Absent: of all devices.")] | UnsetType = UNSET


class InvitesRequest(ApiRequest, frozen=True):
    error_names: ClassVar[dict[str, str]] = {"uses": "request"}

    uses: Annotated[int, form(minimum=1, maximum=1_000_000, description="Users that may register with it.")] = 1
    days: Annotated[int, form(minimum=1, maximum=3650, description="How long it is valid.")] = 7


class AuditRequest(ApiRequest, frozen=True):
    before: Annotated[Seq, Meta(description="An id: older entries than this one.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(description="At most 100.")] | UnsetType = UNSET
    target: str = ""

    error_names = {"before": "cursor", "target": "query"}  # noqa: RUF012


class UserMessagesRequest(ApiRequest, frozen=True):
    before: Annotated[str, form("[0-9]{0,19}", description="A server_msg_id: older messages than this one.")] = ""
    limit: Annotated[int, Meta(description="At most 100.")] | UnsetType = UNSET

    error_names = {"before": "server_msg_id"}  # noqa: RUF012

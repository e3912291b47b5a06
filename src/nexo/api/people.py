"""Handlers: contacts, invite links, own sessions, leaving and exporting, reports."""

from __future__ import annotations

from msgspec import Struct

from nexo.api import people_requests as requests
from nexo.api.replies import FileReply
from nexo.api.requests import Nothing, OtherUser, OwnMemberRequest, Paging, WhichGroup, given
from nexo.api.route import Caller, Services
from nexo.api.shapes import Empty, NextCursor
from nexo.core.people import EXPORT_NAMES, Contact, ContactChange, Export, ExportStatus, GroupLink, LinkView
from nexo.core.profile_shapes import MemberShape, member_shape
from nexo.errors import NexoError

# -- contacts --------------------------------------------------------------------------------------------


class ContactStatus(Struct):
    """`status` is pending, accepted or refused."""

    status: str
    request_id: str


class ContactList(Struct):
    contacts: list[Contact]
    next_cursor: NextCursor
    has_more: bool


class ContactRequestShape(Struct):
    """`user_id` is the other user."""

    request_id: str
    user_id: str
    message: str
    created_at: int


class ContactRequestList(Struct):
    requests: list[ContactRequestShape]
    next_cursor: NextCursor
    has_more: bool


def _status(change: ContactChange) -> ContactStatus:
    return ContactStatus(change.status, str(change.request_id))


async def request_contact(services: Services, caller: Caller, request: requests.ContactRequestBody) -> ContactStatus:
    return _status(await services.actions.request_contact(caller.user_id, request.user_id, request.message))


async def decide_contact(services: Services, caller: Caller, request: requests.DecideContactRequest) -> ContactStatus:
    return _status(await services.actions.decide_contact(caller.user_id, request.user_id, request.accept))


async def remove_contact(services: Services, caller: Caller, request: OtherUser) -> Empty:
    await services.actions.remove_contact(caller.user_id, request.user_id)
    return Empty()


async def remark_contact(services: Services, caller: Caller, request: requests.RemarkRequest) -> Contact:
    return await services.people.contacts.set_remark(caller.user_id, request.user_id, request.remark)


async def contacts(services: Services, caller: Caller, request: Paging) -> ContactList:
    cursor, limit = given(request.cursor), given(request.limit)
    return ContactList(*await services.people.contacts.contacts(caller.user_id, cursor, limit))


async def contact_requests(
    services: Services, caller: Caller, request: requests.ContactRequestsQuery
) -> ContactRequestList:
    found, next_cursor, has_more = await services.people.contacts.requests(
        caller.user_id, request.sent, given(request.cursor), given(request.limit)
    )
    shown = [ContactRequestShape(str(one.request_id), one.user_id, one.message, one.created_at) for one in found]
    return ContactRequestList(shown, next_cursor, has_more)


# -- groups ----------------------------------------------------------------------------------------------


class LinkShape(Struct):
    """`expires_at` and `uses` are null without an end."""

    code: str
    group_id: str
    creator_id: str
    created_at: int
    expires_at: int | None
    uses: int | None
    used: int


class LinkList(Struct):
    links: list[LinkShape]


def _link(link: GroupLink) -> LinkShape:
    return LinkShape(
        link.code,
        link.group_id,
        link.creator_id,
        link.created_at,
        link.expires_at or None,
        link.uses or None,
        link.used,
    )


async def add_link(services: Services, caller: Caller, request: requests.AddLinkRequest) -> LinkShape:
    return _link(await services.actions.add_link(caller.user_id, request.group_id, request.expires_s, request.uses))


async def revoke_link(services: Services, caller: Caller, request: requests.WhichLink) -> Empty:
    await services.actions.revoke_link(caller.user_id, request.code)
    return Empty()


async def link(services: Services, caller: Caller, request: requests.WhichLink) -> LinkView:
    return await services.people.links.view(caller.user_id, request.code)


async def links(services: Services, caller: Caller, request: WhichGroup) -> LinkList:
    return LinkList([_link(one) for one in await services.people.links.links(caller.user_id, request.group_id)])


async def set_own_member(services: Services, caller: Caller, request: OwnMemberRequest) -> MemberShape:
    member = await services.actions.set_own_member(
        caller.user_id,
        request.group_id,
        group_nickname=given(request.group_nickname),
        group_avatar=given(request.group_avatar),
        extra=request.extra,
    )
    return member_shape(member)


# -- oneself ---------------------------------------------------------------------------------------------


class SessionShape(Struct):
    """`current` is the session of this call."""

    session_id: str
    device_id: str
    platform_id: int
    address: str
    created_at: int
    last_seen_at: int
    current: bool


class SessionList(Struct):
    sessions: list[SessionShape]


class Revoked(Struct):
    revoked: int


async def sessions(services: Services, caller: Caller, request: Nothing) -> SessionList:
    found = await services.people.sessions.sessions(caller.user_id)
    return SessionList(
        [
            SessionShape(
                one.session_id,
                one.device_id,
                one.platform_id,
                one.address,
                one.created_at,
                one.last_seen_at,
                one.session_id == caller.session.sid,
            )
            for one in found
        ]
    )


async def revoke_session(services: Services, caller: Caller, request: requests.RevokeSessionRequest) -> Revoked:
    own = services.people.sessions
    if request.others:
        if request.session_id is not None:
            raise NexoError("bad_request", "Name a session_id or others, not both")
        return Revoked(await own.revoke_others(caller.session))
    if request.session_id is None:
        raise NexoError("missing_session_id", "Name a session_id, or others")
    return Revoked(await own.revoke(caller.session, request.session_id))


async def delete_user(services: Services, caller: Caller, request: requests.DeleteUserRequest) -> Empty:
    async with services.limits.try_password(caller.address, caller.user_id):
        await services.people.sessions.check_fresh(caller.session, request.password, caller.address)
    await services.people.work.close(caller.user_id, caller.actor, erase_messages=request.erase_messages)
    return Empty()


async def delete_any_user(services: Services, caller: Caller, request: requests.DeleteUserQuery) -> Empty:
    await services.people.work.close(caller.path_id, caller.actor, erase_messages=request.erase_messages)
    return Empty()


class ExportShape(Struct):
    """`status` is running, done or too_large. The file is at `/user/export/file` until `expires_at`."""

    export_id: str
    status: str
    messages: int
    size: int
    created_at: int
    expires_at: int


def _export(export: Export) -> ExportShape:
    name = EXPORT_NAMES[ExportStatus(export.status)]
    return ExportShape(export.export_id, name, export.messages, export.size, export.created_at, export.expires_at)


async def begin_export(services: Services, caller: Caller, request: requests.ExportRequest) -> ExportShape:
    async with services.limits.try_password(caller.address, caller.user_id):
        await services.people.sessions.check_fresh(caller.session, request.password, caller.address)
    return _export(await services.people.work.begin_export(caller.user_id))


async def export(services: Services, caller: Caller, request: Nothing) -> ExportShape:
    return _export(await services.people.work.export(caller.user_id))


async def export_file(services: Services, caller: Caller, request: Nothing) -> FileReply:
    found = await services.people.work.export(caller.user_id)
    parts = services.people.work.export_file(caller.user_id, found)
    return FileReply(f"nexo-{caller.user_id}.jsonl.gz", "application/octet-stream", found.size, parts)


# -- reports ---------------------------------------------------------------------------------------------


class Reported(Struct):
    report_id: str


async def report(services: Services, caller: Caller, request: requests.ReportRequest) -> Reported:
    return Reported(str(await services.actions.report(caller.user_id, request.server_msg_id, request.reason)))

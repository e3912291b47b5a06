"""The routes of contacts, invite links, own sessions, closing and exporting an account, and reports."""

from __future__ import annotations

from nexo.api import (
    people,
    people_requests,
    reports,
    requests,
    shapes,
)
from nexo.api.replies import FileReply
from nexo.api.route import Route, route
from nexo.core.people import Contact, LinkView
from nexo.core.profile_shapes import MemberShape

_IN_GROUP = ("group_not_found", "group_not_available", "not_group_member")
_FRESH = ("missing_password", "invalid_credentials", "passwords_off")

PEOPLE_ROUTES: tuple[Route, ...] = (
    route(
        "POST", "/contact/request", people.request_contact, people_requests.ContactRequestBody, people.ContactStatus,
        "Ask a user to become a contact; one who has asked you before becomes it at once",
        "user_not_found", "blocked", "too_many_contacts",
    ),
    route(
        "POST", "/contact/decide", people.decide_contact, people_requests.DecideContactRequest, people.ContactStatus,
        "Accept or refuse a contact request", "contact_request_not_found", "user_not_found",
        "too_many_contacts",
    ),
    route(
        "POST", "/contact/remove", people.remove_contact, requests.OtherUser, shapes.Empty,
        "End a contact, for both", "not_contact", "user_not_found",
    ),
    route(
        "POST", "/contact/remark", people.remark_contact, people_requests.RemarkRequest, Contact,
        "Your own name for a contact", "not_contact",
    ),
    route("GET", "/contact/list", people.contacts, requests.Paging, people.ContactList, "Your contacts"),
    route(
        "GET", "/contact/requests", people.contact_requests, people_requests.ContactRequestsQuery,
        people.ContactRequestList, "Open contact requests",
    ),
    route(
        "PUT", "/group/member", people.set_own_member, requests.OwnMemberRequest, MemberShape,
        "Your own nickname, avatar and extra in a group", "file_not_found", *_IN_GROUP,
    ),
    route(
        "POST", "/group/link", people.add_link, people_requests.AddLinkRequest, people.LinkShape,
        "Make an invite link", "no_permission", "too_many_links", *_IN_GROUP,
    ),
    route(
        "GET", "/group/link", people.link, people_requests.WhichLink, LinkView,
        "The group that an invite link leads to", "link_expired", "group_not_available",
    ),
    route(
        "GET", "/group/links", people.links, requests.WhichGroup, people.LinkList,
        "The open invite links of a group", "no_permission", "group_not_found", "not_group_member",
    ),
    route(
        "POST", "/group/link/revoke", people.revoke_link, people_requests.WhichLink, shapes.Empty,
        "End an invite link", "link_expired", "no_permission", "group_not_available", "not_group_member",
    ),
    route(
        "GET", "/session/list", people.sessions, requests.Nothing, people.SessionList,
        "Your sessions, on all devices", by_key=False,
    ),
    route(
        "POST", "/session/revoke", people.revoke_session, people_requests.RevokeSessionRequest, people.Revoked,
        "End one of your sessions, or all others", "missing_session_id", "session_not_found", by_key=False,
    ),
    route(
        "DELETE", "/user", people.delete_user, people_requests.DeleteUserRequest, shapes.Empty,
        "Close your account for good", *_FRESH, by_key=False, takes_body=True,
    ),
    route(
        "POST", "/user/export", people.begin_export, people_requests.ExportRequest, people.ExportShape,
        "Collect everything you may see in a file; one at a time", *_FRESH, by_key=False,
    ),
    route(
        "GET", "/user/export", people.export, requests.Nothing, people.ExportShape,
        "How far the export is", "not_found", by_key=False,
    ),
    route(
        "GET", "/user/export/file", people.export_file, requests.Nothing, FileReply,
        "The file of the export: JSON lines, packed by gzip", "not_found", by_key=False,
    ),
    route(
        "POST", "/msg/report", people.report, people_requests.ReportRequest, people.Reported,
        "Put a message before the moderators", "message_not_found",
    ),
    route(
        "DELETE", "/server/users/{id}", people.delete_any_user, people_requests.DeleteUserQuery, shapes.Empty,
        "Close an account for good", "user_not_found", "user_deleted", "bad_user_id", scopes=("users", "moderate"),
    ),
    route(
        "GET", "/server/reports", reports.reports, people_requests.ReportsQuery, reports.ReportList,
        "What users have reported, newest first; reading is written to the audit log", scopes=("moderate",),
    ),
    route(
        "POST", "/server/reports/{id}/resolve", reports.resolve, people_requests.ResolveRequest, shapes.Empty,
        "Mark a report as dealt with", "not_found", "bad_reason", scopes=("moderate",),
    ),
)  # fmt: skip

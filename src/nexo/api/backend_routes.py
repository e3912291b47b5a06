"""The routes under `/server`: what a product's backend calls by its key, and moderators."""

from __future__ import annotations

from nexo.api import (
    backend,
    backend_requests,
    events,
    hooks,
    moderation,
    requests,
    shapes,
)
from nexo.api.route import Route, route
from nexo.service.password_resets import ResetCode
from nexo.service.tokens import TokenSession

_EVENTS = ("events",)
_WHICH_USER = ("user_not_found", "bad_user_id")
_WHICH_MESSAGE = ("message_not_found", "bad_server_msg_id")
_WHICH_GROUP = ("group_not_found", "group_not_available", "bad_group_id")

BACKEND_ROUTES: tuple[Route, ...] = (
    route(
        "PUT", "/server/users", backend.put_users, backend_requests.PutUsersRequest, shapes.Users,
        "Create or update users, at most 1000; they need no password", "bad_user_id", "bad_nickname", "bad_avatar",
        "file_not_found",
        scopes=("users",),
    ),
    route(
        "GET", "/server/users/{id}", backend.user, requests.Nothing, backend.ServerUser,
        "A user, and whether the account is disabled", *_WHICH_USER, scopes=("users", "moderate"),
    ),
    route(
        "POST", "/server/users/{id}/disable", backend.disable_user, backend_requests.DisableRequest, shapes.Empty,
        "Disable an account: its sockets are closed on all instances, and it cannot sign in",
        "user_deleted", *_WHICH_USER, scopes=("users", "moderate"),
    ),
    route(
        "POST", "/server/users/{id}/enable", backend.enable_user, requests.Nothing, shapes.Empty,
        "Enable an account again", "user_deleted", *_WHICH_USER, scopes=("users", "moderate"),
    ),
    route(
        "POST", "/server/tokens", backend.issue_tokens, backend_requests.TokensRequest, TokenSession,
        "Tokens for a user who is signed in to the product; `refresh: true` adds a refresh token",
        "user_disabled", "user_deleted", *_WHICH_USER, scopes=("tokens",),
    ),
    route(
        "POST", "/server/sessions/revoke", backend.revoke_sessions, backend_requests.RevokeSessionsRequest,
        backend.SessionsRevoked, "End the sessions of a user, of one device or all", *_WHICH_USER,
        scopes=("tokens", "users", "moderate"),
    ),
    route(
        "POST", "/server/invites", backend.invite, backend_requests.InvitesRequest, backend.InviteCode,
        "A code that allows to register where `auth.registration` is `invite`; it is shown once", scopes=("users",),
    ),
    route(
        "GET", "/server/audit", backend.audit, backend_requests.AuditRequest, backend.AuditPage,
        "What administrators and keys have done, newest first", scopes=("moderate",),
    ),
    route(
        "GET", "/server/events", events.events, events.EventsRequest, events.EventsReply,
        "What was committed after a cursor, in order per conversation; waits for it up to `wait_s`", "cursor_expired",
        "too_many_requests", scopes=_EVENTS, waits=True,
    ),
    route(
        "GET", "/server/hooks", hooks.entries, requests.Nothing, hooks.HookList, "All webhooks", scopes=_EVENTS,
    ),
    route(
        "POST", "/server/hooks", hooks.add, hooks.AddHookRequest, hooks.HookWithSecret,
        "Add a webhook, which gets what is committed from now on", "bad_url", "bad_name", "too_many_hooks",
        scopes=_EVENTS,
    ),
    route(
        "DELETE", "/server/hooks/{id}", hooks.remove, requests.Nothing, shapes.Empty,
        "Remove a webhook", "hook_not_found", scopes=_EVENTS,
    ),
    route(
        "POST", "/server/hooks/{id}/test", hooks.test, requests.Nothing, hooks.HookTested,
        "Send a test event, once", "hook_not_found", scopes=_EVENTS,
    ),
    route(
        "POST", "/server/hooks/{id}/pause", hooks.pause, requests.Nothing, hooks.HookShape,
        "Stop a webhook; it keeps its place", "hook_not_found", scopes=_EVENTS,
    ),
    route(
        "POST", "/server/hooks/{id}/resume", hooks.resume, requests.Nothing, hooks.HookShape,
        "Continue a webhook where it was", "hook_not_found", scopes=_EVENTS,
    ),
    route(
        "POST", "/server/hooks/{id}/replay", hooks.replay, hooks.ReplayRequest, hooks.HookShape,
        "Deliver again from a cursor or a time", "hook_not_found", "cursor_expired", scopes=_EVENTS,
    ),
    route(
        "POST", "/server/hooks/{id}/rotate", hooks.rotate, requests.Nothing, hooks.HookWithSecret,
        "Make a new secret; the old one signs too for some hours", "hook_not_found", scopes=_EVENTS,
    ),
    route(
        "GET", "/server/messages/{id}", moderation.message, requests.Nothing, moderation.MessageAndVersions,
        "A message, and what it was before it was recalled or edited; reading it is written to the audit log",
        *_WHICH_MESSAGE, scopes=("moderate",),
    ),
    route(
        "POST", "/server/messages/{id}/recall", moderation.recall, requests.Nothing, shapes.RecalledReply,
        "Recall any message, also long after it was sent", *_WHICH_MESSAGE, scopes=("moderate",),
    ),
    route(
        "GET", "/server/users/{id}/messages", moderation.messages_of, backend_requests.UserMessagesRequest,
        moderation.MessagesOfUser, "What a user has sent, newest first; written to the audit log",
        *_WHICH_USER, scopes=("moderate",),
    ),
    route(
        "POST", "/server/users/{id}/password_reset", moderation.reset_password, requests.Nothing, ResetCode,
        "A code by which the user sets a new password; it works once", "user_disabled", "user_deleted",
        "passwords_off", *_WHICH_USER, scopes=("moderate",),
    ),
    route(
        "POST", "/server/groups/{id}/disable", moderation.disable_group, backend_requests.DisableRequest, shapes.Empty,
        "Disable a group: sends, joins and changes are refused; it can still be read", *_WHICH_GROUP,
        scopes=("moderate",),
    ),
    route(
        "POST", "/server/groups/{id}/enable", moderation.enable_group, requests.Nothing, shapes.Empty,
        "Enable a group again", *_WHICH_GROUP, scopes=("moderate",),
    ),
)  # fmt: skip

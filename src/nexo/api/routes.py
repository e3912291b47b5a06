"""The whole HTTP API on one page: what answers where, takes what, gives what, and refuses with what.

Not repeated in each row: errors of the request's shape (`decoding.shape_errors`), of signing in, and of the
server itself; `errors_of` has them all. The OpenAPI document is made from this table.
"""

from __future__ import annotations

from nexo.api import admin, conversations, groups, messages, requests, shapes, status, users
from nexo.api.call import Route, route
from nexo.api.decoding import shape_errors
from nexo.core.model import Receipts
from nexo.core.shapes import SentShape
from nexo.service.tokens import SignedIn

_LIMITED = "too_many_requests"
_READING = ("group_not_found", "not_group_member", "conversation_not_found", "bad_conversation_id")
_IN_GROUP = ("group_not_found", "group_not_available", "not_group_member")
_MANAGING = (*_IN_GROUP, "no_permission")

ROUTES: tuple[Route, ...] = (
    # users and sessions
    route(
        "POST", "/user/register", users.register, requests.Register, shapes.UserShape,
        "Register; without a user_id the server chooses one", "user_exists", _LIMITED, signed_in=False,
    ),
    route(
        "GET", "/user/info", users.info, requests.WhichUser, shapes.UserShape,
        "A user, or yourself", "user_not_found",
    ),
    route(
        "GET", "/user/search", users.search, requests.Search, shapes.Users,
        "Users whose id or nickname begins so", "no_permission",
    ),
    route(
        "GET", "/user/online", users.online, requests.WhichUsers, shapes.UsersOnline,
        "Who is connected, and on which platforms",
    ),
    route(
        "PUT", "/user/update", users.update, requests.UpdateUser, shapes.UserShape,
        "Change your profile", "user_not_found",
    ),
    route(
        "POST", "/user/block", users.block, requests.OtherUser, shapes.UserIds,
        "Refuse messages of a user; all who are blocked", "user_not_found",
    ),
    route(
        "POST", "/user/unblock", users.unblock, requests.OtherUser, shapes.UserIds,
        "Take messages of a user again; all who are blocked", "user_not_found",
    ),
    route("GET", "/user/blocks", users.blocks, requests.Nothing, shapes.UserIds, "All who are blocked"),
    route(
        "POST", "/auth/login", users.login, requests.Login, SignedIn,
        "Sign in", "invalid_credentials", _LIMITED, signed_in=False,
    ),
    route(
        "POST", "/auth/refresh", users.refresh, requests.Refresh, SignedIn,
        "Exchange a refresh token for new tokens", "session_invalid", signed_in=False,
    ),
    route("POST", "/auth/logout", users.logout, requests.Nothing, shapes.Empty, "End this session"),
    route(
        "POST", "/auth/password", users.change_password, requests.ChangePassword, SignedIn,
        "Change the password; all other sessions end", "invalid_credentials", _LIMITED,
    ),
    # messages
    route(
        "POST", "/msg/send", messages.send, requests.Send, SentShape,
        "Send a message; again with the same client_msg_id it is the same message",
        "missing_receiver", "missing_reply_to", "cannot_send_to_self", "identity_mismatch", "user_not_found",
        "message_not_found", "blocked", "group_not_found", "group_not_available", "not_group_member",
        "member_not_active", "speak_muted", "no_permission", "client_msg_id_reused", "content_rejected", _LIMITED,
    ),
    route(
        "GET", "/msg/pull", messages.pull, requests.Pull, shapes.Messages,
        "Messages of a conversation, ascending, by range or by list", "missing_seq", *_READING,
    ),
    route(
        "GET", "/msg/history", messages.history, requests.History, shapes.Messages,
        "Messages of a conversation, newest first", *_READING,
    ),
    route(
        "GET", "/msg/offline", messages.offline, requests.Paging, shapes.OfflineMessages,
        "What was not delivered to any of your devices, over all conversations, oldest first",
    ),
    route(
        "GET", "/msg/receipts", messages.receipts, requests.WhichMessage, Receipts,
        "Who has read a message, and to whom it was delivered", "message_not_found",
    ),
    route(
        "POST", "/msg/recall", messages.recall, requests.WhichMessage, shapes.Recalled,
        "Take a message back", "message_not_found", "not_message_sender", "recall_timeout",
        "member_not_active", "group_not_available",
    ),
    # conversations
    route(
        "GET", "/conversation/list", conversations.entries, requests.Paging, shapes.Conversations,
        "Your conversations, pinned first, then by activity",
    ),
    route(
        "GET", "/conversation/sync", conversations.sync, requests.Paging, shapes.Heads,
        "Heads and cursors of your conversations, newest activity first",
    ),
    route(
        "GET", "/conversation/newest_seq", conversations.newest_seqs, requests.WhichConversations, shapes.NewestSeqs,
        "Newest and read seqs of many conversations; unknown ones are left out",
    ),
    route(
        "PUT", "/conversation/update", conversations.update, requests.UpdateConversation, shapes.ConversationShape,
        "Pin, hide, or choose how new messages reach you", *_READING,
    ),
    route(
        "POST", "/conversation/read", conversations.mark_read, requests.MarkRead, shapes.MarkedRead,
        "Everything up to here is read", "missing_seq", "message_not_found", "ack_not_allowed", *_READING,
    ),
    route(
        "DELETE", "/conversation", conversations.delete, requests.WhichConversation, shapes.Empty,
        "Dismiss a group of yours and take it out of every list", "conversation_private_cannot_delete", *_MANAGING,
    ),
    # groups
    route(
        "POST", "/group/create", groups.create, requests.CreateGroup, shapes.GroupShape,
        "Found a group", "user_not_found", "group_members_too_few", "group_full", _LIMITED,
    ),
    route("GET", "/group/info", groups.info, requests.WhichGroup, shapes.GroupShape, "A group", "group_not_found"),
    route("GET", "/group/list", groups.mine, requests.Nothing, shapes.GroupList, "The groups you are in"),
    route(
        "GET", "/group/members", groups.members, requests.Members, shapes.MemberList,
        "The members of a group", "group_not_found", "not_group_member",
    ),
    route(
        "GET", "/group/join_requests", groups.join_requests, requests.WhichGroup, shapes.JoinRequests,
        "Who asks to be let in", "group_not_found", "not_group_member", "no_permission",
    ),
    route(
        "POST", "/group/join", groups.join, requests.JoinGroup, shapes.Joined,
        "Join a group, or ask to", "group_not_found", "group_not_available", "group_full", "no_permission",
    ),
    route(
        "POST", "/group/join_decide", groups.decide_join, requests.DecideJoin, shapes.Empty,
        "Let somebody in who asked to, or not", "join_request_not_found", "group_full", *_MANAGING,
    ),
    route(
        "POST", "/group/quit", groups.quit_group, requests.WhichGroup, shapes.Empty,
        "Leave a group", "owner_cannot_leave", *_IN_GROUP,
    ),
    route(
        "POST", "/group/invite", groups.invite, requests.Invite, shapes.Invited,
        "Bring users into a group", "group_full", *_MANAGING,
    ),
    route(
        "POST", "/group/remove_member", groups.remove_member, requests.WhichMember, shapes.Invited,
        "Remove a member", *_MANAGING,
    ),
    route(
        "POST", "/group/transfer_owner", groups.transfer_owner, requests.WhichMember, shapes.Empty,
        "Give your group to a member", *_MANAGING,
    ),
    route(
        "POST", "/group/set_member_role", groups.set_member_role, requests.SetRole, shapes.Empty,
        "Make a member an admin, or an admin a member", *_MANAGING,
    ),
    route(
        "POST", "/group/mute", groups.mute, requests.Mute, shapes.Empty,
        "Take or give back the word, to one or all", *_MANAGING,
    ),
    route(
        "PUT", "/group/update", groups.update, requests.UpdateGroup, shapes.GroupShape,
        "Change what a group says of itself", "missing_name", *_MANAGING,
    ),
    route(
        "POST", "/group/dismiss", groups.dismiss, requests.WhichGroup, shapes.Empty,
        "Close a group for good", *_MANAGING,
    ),
    # as seed 002 names them
    route(
        "GET", "/single-chat/message/cursor", messages.single_cursor, requests.SingleCursor, shapes.CamelMessages,
        "Messages with a user, newest first, below lastSeq",
    ),
    route(
        "GET", "/group/message/cursor", messages.group_cursor, requests.GroupCursor, shapes.CamelMessages,
        "Messages of a group, newest first, below lastSeq", "group_not_found", "not_group_member",
    ),
    route(
        "GET", "/group/message/since", messages.group_since, requests.GroupSince, shapes.CamelMessages,
        "Messages of a group, ascending, above sinceSeq", "group_not_found", "not_group_member",
    ),
    # the server
    route(
        "GET", "/admin/stats", admin.stats, requests.AdminStats, admin.Status,
        "How the server is doing, for administrators: what the page /admin shows", "no_permission",
    ),
    route("GET", "/healthz", status.alive, requests.Nothing, status.Alive, "Is the server alive", signed_in=False),
    route(
        "GET", "/readyz", status.ready, requests.Nothing, status.Ready,
        "Can it store and deliver; a message is sent on trial", signed_in=False,
    ),
)  # fmt: skip


def errors_of(row: Route) -> set[str]:
    """Every error that this route may answer with."""
    found = {*row.errors, *shape_errors(row.request), "server_busy", "internal_error"}
    if row.has_body:
        found |= {"bad_json", "body_too_long"}
    if row.signed_in:
        found |= {"unauthorized", "token_expired", "session_invalid"}
    return found

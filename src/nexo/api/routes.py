"""All routes of the HTTP API: the table below, and the tables of other modules that it includes. A row has path,
handler, request, reply and errors.

Not repeated in each row: errors of the request's shape (`decoding.shape_errors`), of signing in, and of the
server itself; `errors_of` has them all. The OpenAPI document is made from this table.
"""

from __future__ import annotations

from nexo.api import (
    conversations,
    groups,
    message_changes,
    messages,
    requests,
    search,
    shapes,
    users,
)
from nexo.api.backend_routes import BACKEND_ROUTES
from nexo.api.calls import CALL_ROUTES
from nexo.api.decoding import shape_errors
from nexo.api.files import FILE_ROUTES
from nexo.api.people_routes import PEOPLE_ROUTES
from nexo.api.push import PUSH_ROUTES
from nexo.api.route import Route, route
from nexo.api.server_routes import SERVER_ROUTES
from nexo.core.model import Receipts
from nexo.core.profile_shapes import GroupShape, UserShape
from nexo.core.shapes import EditedShape, SentShape
from nexo.service.tokens import TokenSession

_READING = ("group_not_found", "not_group_member", "conversation_not_found", "bad_conversation_id")
_IN_GROUP = ("group_not_found", "group_not_available", "not_group_member")
_MANAGING = (*_IN_GROUP, "no_permission")

ROUTES: tuple[Route, ...] = (
    # users and sessions
    route(
        "POST", "/user/register", users.register, requests.RegisterRequest, UserShape,
        "Register; without a user_id the server chooses one", "user_exists", "registration_closed", "passwords_off",
        "file_not_found",
        signed_in=False,
    ),
    route(
        "GET", "/user/info", users.info, requests.WhichUser, UserShape,
        "A user, or yourself", "user_not_found",
    ),
    route(
        "GET", "/user/search", users.search, requests.SearchRequest, shapes.Users,
        "Users whose id or nickname begins so", "no_permission",
    ),
    route(
        "GET", "/user/online", users.online, requests.WhichUsers, shapes.UsersOnline,
        "Who is connected, and on which platforms",
    ),
    route(
        "PUT", "/user/update", users.update, requests.UpdateUserRequest, UserShape,
        "Change your profile", "user_not_found", "file_not_found",
    ),
    route(
        "POST", "/user/block", users.block, requests.OtherUser, shapes.UserIds,
        "Block a user; returns all blocked users", "user_not_found",
    ),
    route(
        "POST", "/user/unblock", users.unblock, requests.OtherUser, shapes.UserIds,
        "Unblock a user; returns all blocked users", "user_not_found",
    ),
    route("GET", "/user/blocks", users.blocks, requests.Nothing, shapes.UserIds, "All blocked users"),
    route(
        "POST", "/auth/login", users.login, requests.LoginRequest, TokenSession,
        "Sign in", "invalid_credentials", "user_disabled", "user_deleted", "passwords_off", signed_in=False,
    ),
    route(
        "POST", "/auth/refresh", users.refresh, requests.RefreshRequest, TokenSession,
        "Exchange a refresh token for new tokens", "session_invalid", signed_in=False,
    ),
    route("POST", "/auth/logout", users.logout, requests.Nothing, shapes.Empty, "End this session", by_key=False),
    route(
        "POST", "/auth/password", users.change_password, requests.ChangePasswordRequest, TokenSession,
        "Change the password; all other sessions end", "invalid_credentials", "passwords_off", by_key=False,
    ),
    route(
        "POST", "/auth/reset", users.reset_password, requests.ResetPasswordRequest, shapes.Empty,
        "Set a new password by a code from a moderator; all sessions end",
        "code_invalid", "user_disabled", "user_deleted", "passwords_off", signed_in=False,
    ),
    # messages
    route(
        "POST", "/msg/send", messages.send, requests.SendRequest, SentShape,
        "Send a message; again with the same client_msg_id it is the same message",
        "missing_receiver", "missing_reply_to", "cannot_send_to_self", "identity_mismatch", "user_not_found",
        "message_not_found", "blocked", "not_contact", "group_not_found", "group_not_available", "not_group_member",
        "member_not_active", "speak_muted", "no_permission", "client_msg_id_reused", "content_rejected",
        "file_not_found", "bad_file_id", "bad_url",
    ),
    route(
        "GET", "/msg/pull", messages.pull, requests.PullRequest, shapes.Messages,
        "Messages of a conversation, ascending, by range or by list", "missing_seq", *_READING,
    ),
    route(
        "GET", "/msg/history", messages.history, requests.HistoryRequest, shapes.Messages,
        "Messages of a conversation, newest first", *_READING,
    ),
    route(
        "GET", "/msg/offline", messages.offline, requests.Paging, shapes.OfflineMessages,
        "What was not delivered to any of your devices, over all conversations, oldest first",
    ),
    route(
        "GET", "/msg/receipts", messages.receipts, requests.WhichMessage, Receipts,
        "Who has read a message, and to whom it was delivered", "message_not_found", "member_not_active",
    ),
    route(
        "POST", "/msg/recall", messages.recall, requests.WhichMessage, shapes.RecalledReply,
        "Recall a message", "message_not_found", "not_message_sender", "recall_timeout",
        "member_not_active", "group_not_available",
    ),
    route(
        "POST", "/msg/delete", messages.delete, requests.DeleteRequest, shapes.Empty,
        "Delete messages for yourself, on all your devices", "message_not_found", "too_many_deleted",
    ),
    route(
        "GET", "/msg/deleted", messages.deleted, requests.DeletedRequest, shapes.DeletedReply,
        "What you deleted for yourself since a revision", *_READING,
    ),
    route(
        "PUT", "/msg/edit", message_changes.edit, requests.EditRequest, EditedShape,
        "Edit a message; again with the same client_msg_id it is the same edit",
        "message_not_found", "not_message_sender", "not_editable", "edit_timeout", "client_msg_id_reused",
        "content_rejected", "blocked", "group_not_available", "member_not_active", "speak_muted", "no_permission",
    ),
    route(
        "POST", "/msg/react", message_changes.react, requests.ReactRequest, shapes.ReactedReply,
        "React to a message with an emoji, or take that back",
        "message_not_found", "too_many_reactions", "blocked", "group_not_available", "member_not_active",
    ),
    route(
        "GET", "/msg/reactions", message_changes.reactions, requests.WhichReactions, shapes.ReactionList,
        "Who reacted to a message", "message_not_found",
    ),
    route(
        "POST", "/msg/pin", message_changes.pin, requests.PinRequest, shapes.PinnedReply,
        "Pin a message in its conversation, or unpin it; in a group by the owner and admins",
        "message_not_found", "too_many_pins", "no_permission", "blocked", "group_not_available", "member_not_active",
    ),
    route(
        "GET", "/msg/pins", message_changes.pins, requests.WhichConversation, shapes.Pins,
        "The pinned messages of a conversation that you may see, the last pinned first", *_READING,
    ),
    route(
        "POST", "/msg/forward", message_changes.forward, requests.ForwardRequest, shapes.ForwardedReply,
        "Send copies of messages to other chats, or one message that holds them",
        "message_not_found", "not_forwardable", "client_msg_id_reused", "content_rejected", "bad_content",
    ),
    route(
        "GET", "/msg/search", search.search, search.SearchMessages, search.SearchReply,
        "Search in all your conversations or one, newest first", "not_implemented", *_READING,
    ),
    route(
        "GET", "/msg/media", search.media, search.MediaRequest, search.MediaReply,
        "Photos, videos, voice messages, files or links of a conversation, newest first", *_READING,
    ),
    # conversations
    route(
        "GET", "/conversation/list", conversations.entries, requests.Paging, shapes.ConversationsReply,
        "Your conversations, pinned first, then by activity",
    ),
    route(
        "GET", "/conversation/sync", conversations.sync, requests.Paging, shapes.HeadsReply,
        "Heads and cursors of your conversations, newest activity first",
    ),
    route(
        "GET", "/conversation/newest_seq", conversations.newest_seqs, requests.WhichConversations, shapes.NewestSeqs,
        "Newest and read seqs of many conversations; unknown ones are left out",
    ),
    route(
        "PUT", "/conversation/update", conversations.update, requests.UpdateConversationRequest,
        shapes.ConversationShape, "Settings of your own, and how long messages are shown to all",
        "group_not_available", "member_not_active", "no_permission", "blocked", *_READING,
    ),
    route(
        "POST", "/conversation/read", conversations.mark_read, requests.MarkReadRequest, shapes.MarkedReadReply,
        "Mark everything up to here as read", "missing_seq", "message_not_found", "ack_not_allowed", *_READING,
    ),
    route(
        "POST", "/conversation/clear", conversations.clear, requests.WhichConversation, shapes.ClearedReply,
        "Hide everything there is from yourself, on all your devices", *_READING,
    ),
    route(
        "GET", "/conversation/at", conversations.seq_at, requests.TimeRequest, shapes.SeqAt,
        "The first message at or after a time", *_READING,
    ),
    route(
        "DELETE", "/conversation", conversations.delete, requests.WhichConversation, shapes.Empty,
        "Dismiss a group of yours and take it out of every list", "conversation_private_cannot_delete", *_MANAGING,
    ),
    # groups
    route(
        "POST", "/group/create", groups.create, requests.CreateGroupRequest, GroupShape,
        "Create a group", "user_not_found", "blocked", "group_members_too_few", "group_full", "file_not_found",
    ),
    route(
        "GET", "/group/info", groups.info, requests.WhichGroup, shapes.GroupInfo,
        "A group; of one that you are not in, only what strangers may know", "group_not_found",
    ),
    route("GET", "/group/list", groups.mine, requests.Nothing, shapes.GroupList, "The groups you are in"),
    route(
        "GET", "/group/members", groups.members, requests.Members, shapes.MemberList,
        "The members of a group", "group_not_found", "not_group_member",
    ),
    route(
        "GET", "/group/join_requests", groups.join_requests, requests.WhichGroup, shapes.JoinRequests,
        "Open requests to join", "group_not_found", "not_group_member", "no_permission",
    ),
    route(
        "POST", "/group/join", groups.join, requests.JoinGroupRequest, shapes.JoinedReply,
        "Join a group, or ask to; by an invite link without asking", "missing_group_id", "group_not_found",
        "group_not_available", "group_full", "no_permission", "link_expired",
    ),
    route(
        "POST", "/group/join_decide", groups.decide_join, requests.DecideJoinRequest, shapes.Empty,
        "Accept or refuse a request to join", "join_request_not_found", "group_full", *_MANAGING,
    ),
    route(
        "POST", "/group/quit", groups.quit_group, requests.WhichGroup, shapes.Empty,
        "Leave a group", "owner_cannot_leave", *_IN_GROUP,
    ),
    route(
        "POST", "/group/invite", groups.invite, requests.InviteRequest, shapes.InvitedReply,
        "Bring users into a group", "group_full", *_MANAGING,
    ),
    route(
        "POST", "/group/remove_member", groups.remove_member, requests.WhichMember, shapes.InvitedReply,
        "Remove a member", *_MANAGING,
    ),
    route(
        "POST", "/group/transfer_owner", groups.transfer_owner, requests.WhichMember, shapes.Empty,
        "Transfer the ownership of a group", *_MANAGING,
    ),
    route(
        "POST", "/group/set_member_role", groups.set_member_role, requests.SetRoleRequest, shapes.Empty,
        "Make a member an admin, or an admin a member", *_MANAGING,
    ),
    route(
        "POST", "/group/mute", groups.mute, requests.MuteRequest, shapes.Empty,
        "Mute or unmute a member, or the whole group", *_MANAGING,
    ),
    route(
        "PUT", "/group/update", groups.update, requests.UpdateGroupRequest, GroupShape,
        "Change name, avatar and texts of a group", "missing_name", "file_not_found", *_MANAGING,
    ),
    route(
        "POST", "/group/dismiss", groups.dismiss, requests.WhichGroup, shapes.Empty,
        "Dismiss a group", *_MANAGING,
    ),
    # history under the paths of the legacy API
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
    *CALL_ROUTES,
    *PUSH_ROUTES,
    *PEOPLE_ROUTES,
    *BACKEND_ROUTES,
    *FILE_ROUTES,
    *SERVER_ROUTES,
)  # fmt: skip


def errors_of(row: Route) -> set[str]:
    """Every error that this route may answer with."""
    found = {*row.errors, *shape_errors(row.request), "server_busy", "internal_error"}
    if row.limited:
        found.add("too_many_requests")
    if row.has_body:
        found |= {"bad_json", "body_too_long"}
    if row.signed_in:
        found |= {"unauthorized", "token_expired", "session_invalid", "user_disabled", "key_expired", "scope_missing"}
        found |= {"bad_user_id", "user_not_found", "user_deleted"}  # a product's own tokens
        found |= {"too_many_requests"}
        if not row.scopes and row.by_key:
            found |= {"missing_user", "bad_user", "identity_mismatch", "user_not_found"}
    return found

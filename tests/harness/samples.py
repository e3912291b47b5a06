"""One of every event, for the golden frames of all dialects: the same event stands behind frames of the same name."""

from __future__ import annotations

from msgspec import structs

from nexo.core import events
from nexo.core.message_events import bare
from nexo.core.model import (
    ConversationEntry,
    Group,
    GroupGlimpse,
    GroupMember,
    Head,
    Kind,
    Message,
    MsgType,
    OfflinePage,
    Page,
    Quote,
    Reaction,
    Role,
    User,
)
from nexo.core.people import Contact, ContactRequest
from nexo.errors import NexoError

ANN, BEN, CY = "ann", "b_en", "cy"
SINGLE, GROUP = f"si_{ANN}:{BEN}", "sg_g_Team00000001"
AT = 1_800_000_000_000

TEXT = Message(380476066038284288, "c-1", SINGLE, 7, ANN, MsgType.TEXT, '"hello"', AT)
REPLY = Message(
    380476066038284289,
    "c-2",
    SINGLE,
    8,
    BEN,
    MsgType.TEXT,
    '"hello yourself"',
    AT + 1000,
    reply_to=TEXT.server_msg_id,
    quote=Quote(TEXT.server_msg_id, ANN, MsgType.TEXT, "hello"),
    extra='{"mood":"good"}',
)
IN_GROUP = Message(
    380476066038284290, "c-3", GROUP, 12, ANN, MsgType.IMAGE, '{"url":"https://x.test/cat.png"}', AT, mentions=(BEN,)
)
GONE = structs.replace(TEXT, content='""', status=1, recalled_at=AT + 5000)
RECALL_EVENT = Message(
    380476066038284291,
    None,
    SINGLE,
    9,
    ANN,
    MsgType.RECALLED,
    '{"server_msg_id":"380476066038284288","seq":7,"by":"ann"}',
    AT + 5000,
)
JOIN_EVENT = Message(
    380476066038284292, None, GROUP, 13, ANN, MsgType.JOINED, '{"user_ids":["cy"],"by":"ann"}', AT + 6000
)
EDIT_EVENT = Message(
    380476066038284293,
    None,
    SINGLE,
    10,
    ANN,
    MsgType.EDITED,
    '{"server_msg_id":"380476066038284288","seq":7,"edited_at":1800000007000,"by":"ann",'
    '"content":"hello, Ben","mentions":["b_en"]}',
    AT + 7000,
    mentions=(BEN,),
)
REACTIONS_EVENT = Message(
    380476066038284294,
    None,
    GROUP,
    14,
    ANN,
    MsgType.REACTIONS,
    '{"server_msg_id":"380476066038284290","seq":12,"reactions":[{"emoji":"👍","count":2}],'
    '"added":[{"emoji":"👍","user_id":"b_en"}],"removed":[{"emoji":"🎉","user_id":"cy"}]}',
    AT + 8000,
)
PIN_EVENT = Message(
    380476066038284295,
    None,
    GROUP,
    15,
    BEN,
    MsgType.PINNED,
    '{"server_msg_id":"380476066038284290","seq":12,"on":true,"by":"b_en"}',
    AT + 9000,
)
CHANGED = structs.replace(
    TEXT, edited_at=AT + 7000, reactions=(Reaction("👍", 2, True), Reaction("🎉", 1)), content='"hello, Ben"'
)
FORWARDED = structs.replace(
    REPLY, reply_to=None, quote=None, forwarded_from='{"sender_id":"cy","send_at":1700000000000}'
)
TEAM = Group(
    "g_Team00000001", "team", "who we are", "meet at noon", "https://x.test/team.png", 0, ANN, BEN, "open", None, 0, 3,
    0, AT,
)  # fmt: skip
FRIEND = Contact(BEN, "Ben", "https://x.test/ben.png", "Benny", AT)
REQUEST_ID = 7_000_000_000_000_000_042
SINGLE_HEAD = Head(SINGLE, 9, 1, 6, 7, 2)
GROUP_HEAD = Head(GROUP, 13, 4, 12, 13, 0)
SINGLE_ENTRY = ConversationEntry(
    SINGLE, Kind.SINGLE, BEN, None, REPLY, 8, 1, 6, 7, 2, 0, True, 0, 5, 6, AT + 1000
)  # fmt: skip
GROUP_ENTRY = ConversationEntry(
    GROUP, Kind.GROUP, None, "g_Team00000001", None, 13, 4, 12, 13, 0, 1, False, 2, None, None, AT
)  # fmt: skip

EVENTS: dict[str, events.Event] = {
    "signed in": events.SignedIn(ANN, "c1f", 30000),
    "sign-in failed": events.SignInFailed(NexoError("session_invalid")),
    "tokens issued": events.TokensIssued(ANN, "access", "refresh", AT, 5, "tab"),
    "registered": events.Registered(User(ANN, "Ann", "", '{"team":1}', False, AT)),
    "pinged": events.Pinged(),
    "done": events.Done(),
    "accepted": events.Accepted("c-1", TEXT.server_msg_id, SINGLE),
    "saved": events.Saved(TEXT),
    "saved, filtered": events.Saved(structs.replace(TEXT, content='"***"'), True),
    "recall done": events.Recalled(TEXT.server_msg_id, SINGLE, 9),
    "edit done": events.Edited(TEXT.server_msg_id, SINGLE, 10, AT + 7000),
    "edit done, filtered": events.Edited(TEXT.server_msg_id, SINGLE, 10, AT + 7000, '"***"'),
    "reacted": events.Reacted(TEXT.server_msg_id, SINGLE, (Reaction("👍", 2, True),)),
    "pin done": events.PinChanged(TEXT.server_msg_id, SINGLE, 11),
    "page": events.Pulled(SINGLE, Page([GONE, REPLY, RECALL_EVENT], 9, 10, False)),
    "page by seqs": events.Pulled(GROUP, Page([IN_GROUP], 13, None, True)),
    "offline page": events.OfflinePulled(OfflinePage([IN_GROUP, REPLY], "next", True)),
    "last messages": events.LastMessagesListed([REPLY, JOIN_EVENT]),
    "sync page": events.Synced([SINGLE_HEAD, GROUP_HEAD], True, "next"),
    "sync entry": events.Synced([GROUP_HEAD]),
    "conversations": events.ConversationsListed([SINGLE_ENTRY, GROUP_ENTRY], "next", True),
    "marked read": events.MarkedRead(SINGLE, 8, 0),
    "resend done": events.ResendDone(True),
    "group": events.GroupShown(TEAM),
    "group_glimpsed": events.GroupGlimpsed(GroupGlimpse(TEAM.group_id, "open", TEAM.name, TEAM.avatar, 3)),
    "group_hidden": events.GroupGlimpsed(GroupGlimpse(TEAM.group_id, "invite")),
    "groups": events.GroupsListed([TEAM]),
    "members": events.MembersListed(
        [GroupMember(BEN, Role.OWNER, "Ben", "", AT, 0), GroupMember(CY, Role.MEMBER, "Cy", "Captain", AT, -1)],
        "next",
        True,
    ),
    "joined": events.Joined("pending"),
    "invited": events.Invited([CY], [(BEN, "already_member"), ("nobody", "user_not_found")]),
    "joined by a link": events.Joined("joined", TEAM.group_id),
    "contact asked": events.ContactAsked("pending", REQUEST_ID),
    "contact": events.ContactShown(FRIEND),
    "contacts": events.ContactsListed([FRIEND], "next", True),
    "contact requests": events.ContactRequestsListed([ContactRequest(REQUEST_ID, CY, "it is me", AT)]),
    "contact requested": events.ContactRequested(REQUEST_ID, CY, "it is me", AT),
    "contact decided": events.ContactDecided(REQUEST_ID, BEN, True, AT),
    "join requested": events.JoinRequested(TEAM.group_id, CY, "let me in", AT),
    "call invited": events.CallInvited(REQUEST_ID, "c-1"),
    "call rings": events.CallRinging(call_id=REQUEST_ID, user_id=BEN, kind="video", sdp="v=0 offer"),
    "call accepted": events.CallAccepted(call_id=REQUEST_ID, user_id=BEN, sdp="v=0 answer"),
    "call candidate": events.CallSignaled(
        call_id=REQUEST_ID, user_id=BEN, fields={"candidate": "candidate:1", "sdp_mid": "0", "sdp_m_line_index": 0}
    ),
    "call description": events.CallSignaled(
        call_id=REQUEST_ID, user_id=BEN, fields={"description": {"type": "offer", "sdp": "v=0 again"}}
    ),
    "call ended": events.CallEnded(call_id=REQUEST_ID, reason="ended", duration_ms=5000),
    "call rejected": events.CallEnded(call_id=REQUEST_ID, reason="rejected"),
    "call timed out": events.CallTimedOut(call_id=REQUEST_ID),
    "message": events.Pushed(TEXT),
    "message, reply": events.Pushed(REPLY),
    "message, reply to something unseen": events.Pushed(REPLY, quoted=False),
    "message in a group, important": events.Pushed(IN_GROUP, important=True),
    "message, expiring": events.Pushed(structs.replace(TEXT, expires_at=AT + 60_000)),
    "message, silent": events.Pushed(TEXT, silent=True),
    "message, again": events.Pushed(TEXT, resend=True),
    "message, recalled": events.Pushed(GONE),
    "message, provisional": events.Pushed(structs.replace(TEXT, seq=0), provisional=True),
    "message, edited and with reactions": events.Pushed(CHANGED),
    "message, forwarded": events.Pushed(FORWARDED),
    "group event": events.Pushed(JOIN_EVENT),
    "recalled": events.Pushed(RECALL_EVENT),
    "edited, important": events.Pushed(EDIT_EVENT, important=True),
    "edited, something unseen": events.Pushed(bare(EDIT_EVENT), quoted=False),
    "reactions": events.Pushed(REACTIONS_EVENT),
    "reactions, to something unseen": events.Pushed(bare(REACTIONS_EVENT), quoted=False, resend=True),
    "pinned": events.Pushed(PIN_EVENT),
    "withdrawn": events.Withdrawn(TEXT.server_msg_id, SINGLE, "speak_muted"),
    "read receipt": events.Receipt("read", SINGLE, TEXT.server_msg_id, 7, BEN),
    "delivered receipt": events.Receipt("delivered", GROUP, IN_GROUP.server_msg_id, 12, CY),
    "notify": events.Notify(GROUP, 13),
    "notify, important": events.Notify(GROUP, 13, True),
    "heads": events.HeadsChanged([(GROUP, 13), (SINGLE, 9)]),
    "resync": events.Resync("slow_consumer", 421),
    "resync of some": events.Resync("push_lost", 421, [GROUP, SINGLE]),
    "deleted": events.Deleted(SINGLE, (TEXT.server_msg_id, REPLY.server_msg_id), None, 3),
    "cleared": events.Deleted(GROUP, (), 13, 4),
    "typing": events.IsTyping(BEN, SINGLE, True),
    "presence": events.Presence([(BEN, True, [2, 5]), (CY, False, [])]),
    "error": events.Failed(NexoError("user_not_found", "There is no user nobody", user_ids=["nobody"])),
    "error, busy": events.Failed(NexoError("server_busy", retry_after_ms=200)),
    "error about a send": events.Failed(NexoError("speak_muted"), "c-1"),
    "kicked": events.Failed(NexoError("kicked")),
    "replaced": events.Failed(NexoError("replaced")),
    "shutdown": events.Failed(NexoError("server_shutdown", retry_after_ms=1500)),
}

"""One of every event, for the golden frames of all dialects: the same event stands behind frames of the same name."""

from __future__ import annotations

from msgspec import structs

from nexo.core import events
from nexo.core.model import (
    ConversationEntry,
    Group,
    GroupMember,
    Head,
    Kind,
    Message,
    MsgType,
    OfflinePage,
    Page,
    Quote,
    Role,
    User,
)
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
TEAM = Group(
    "g_Team00000001", "team", "who we are", "meet at noon", "https://x.test/team.png", 0, ANN, BEN, "open", None, 0, 3,
    0, AT,
)  # fmt: skip
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
    "page": events.Pulled(SINGLE, Page([GONE, REPLY, RECALL_EVENT], 9, 10, False)),
    "page by seqs": events.Pulled(GROUP, Page([IN_GROUP], 13, None, True)),
    "offline page": events.OfflinePulled(OfflinePage([IN_GROUP, REPLY], "next", True)),
    "last messages": events.LastMessages([REPLY, JOIN_EVENT]),
    "sync page": events.Synced([SINGLE_HEAD, GROUP_HEAD], True, "next"),
    "sync entry": events.Synced([GROUP_HEAD]),
    "conversations": events.ConversationsListed([SINGLE_ENTRY, GROUP_ENTRY], "next", True),
    "marked read": events.MarkedRead(SINGLE, 8, 0),
    "resend done": events.ResendDone(True),
    "group": events.GroupShown(TEAM),
    "groups": events.GroupsListed([TEAM]),
    "members": events.MembersListed(
        [GroupMember(BEN, Role.OWNER, "Ben", "", AT, 0), GroupMember(CY, Role.MEMBER, "Cy", "Captain", AT, -1)],
        "next",
        True,
    ),
    "joined": events.Joined("pending"),
    "invited": events.Invited([CY], [(BEN, "already_member"), ("nobody", "user_not_found")]),
    "message": events.Pushed(TEXT),
    "message, reply": events.Pushed(REPLY),
    "message, reply to something unseen": events.Pushed(REPLY, quoted=False),
    "message in a group, important": events.Pushed(IN_GROUP, important=True),
    "message, silent": events.Pushed(TEXT, silent=True),
    "message, again": events.Pushed(TEXT, resend=True),
    "message, recalled": events.Pushed(GONE),
    "message, provisional": events.Pushed(structs.replace(TEXT, seq=0), provisional=True),
    "group event": events.Pushed(JOIN_EVENT),
    "recalled": events.Pushed(RECALL_EVENT),
    "withdrawn": events.Withdrawn(TEXT.server_msg_id, SINGLE, "speak_muted"),
    "read receipt": events.Receipt("read", SINGLE, TEXT.server_msg_id, 7, BEN),
    "delivered receipt": events.Receipt("delivered", GROUP, IN_GROUP.server_msg_id, 12, CY),
    "notify": events.Notify(GROUP, 13),
    "notify, important": events.Notify(GROUP, 13, True),
    "heads": events.HeadsChanged([(GROUP, 13), (SINGLE, 9)]),
    "resync": events.Resync("slow_consumer", 421),
    "resync of some": events.Resync("push_lost", 421, [GROUP, SINGLE]),
    "typing": events.IsTyping(BEN, SINGLE, True),
    "presence": events.Presence([(BEN, True, [2, 5]), (CY, False, [])]),
    "error": events.Failed(NexoError("user_not_found", "There is no user nobody", user_ids=["nobody"])),
    "error, busy": events.Failed(NexoError("server_busy", retry_after_ms=200)),
    "error about a send": events.Failed(NexoError("speak_muted"), "c-1"),
    "kicked": events.Failed(NexoError("kicked")),
    "replaced": events.Failed(NexoError("replaced")),
    "shutdown": events.Failed(NexoError("server_shutdown", retry_after_ms=1500)),
}

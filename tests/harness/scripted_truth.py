"""The truth behind the scripted server: users, conversations, messages and cursors, as the contract has them.

It is small and slow on purpose: unread is a recount, visibility a walk over spans. What a client shows in the
end is compared with this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nexo.errors import NexoError

Frame = dict[str, Any]

FIRST_EVENT = 100
RECALLED = 100
CREATED = 101
JOINED = 102
LEFT = 103
REMOVED = 104
EDITED = 110
REACTIONS = 111
PINNED = 112
QUIET = (EDITED, REACTIONS, PINNED)  # about an earlier message: they move nothing up
TEXTS = (1, 7)
QUOTE_CHARS = 200


@dataclass
class Message:
    server_msg_id: str
    client_msg_id: str | None
    conversation_id: str
    seq: int
    sender_id: str
    msg_type: int
    content: Any
    send_at: int
    mentions: list[str] = field(default_factory=list)
    reply_to: str | None = None
    extra: Any = None
    status: int = 0
    recalled_at: int | None = None
    edited_at: int | None = None
    expires_at: int | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)  # emoji → users

    @property
    def is_event(self) -> bool:
        return self.msg_type >= FIRST_EVENT

    def mentions_user(self, user_id: str) -> bool:
        return self.sender_id != user_id and (user_id in self.mentions or self.mentions[:1] == ["@all"])


@dataclass
class Member:
    """Spans are [from, to] with to None while open; the cursors are those of the whole user."""

    spans: list[list[int | None]]
    delivered_seq: int = 0
    read_seq: int = 0
    deleted: set[str] = field(default_factory=set)  # for themselves
    cleared_seq: int = 0
    deletions: list[tuple[list[str], int | None]] = field(default_factory=list)
    settings: Frame = field(default_factory=dict)  # those that differ from their default

    @property
    def is_active(self) -> bool:
        return self.spans[-1][1] is None

    def sees(self, seq: int) -> bool:
        return any((start or 0) <= seq and (end is None or seq <= end) for start, end in self.spans)

    def shows(self, message: Message) -> bool:
        is_deleted = message.seq <= self.cleared_seq or message.server_msg_id in self.deleted
        return self.sees(message.seq) and not is_deleted


@dataclass
class Conversation:
    conversation_id: str
    members: dict[str, Member]
    mode: str = "push"  # group strategy: push, notify or none
    name: str = ""
    messages: list[Message] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        return self.conversation_id.startswith("sg_")

    @property
    def head_seq(self) -> int:
        return len(self.messages)

    @property
    def active(self) -> list[str]:
        return [user_id for user_id, member in self.members.items() if member.is_active]

    def visible(self, user_id: str) -> list[Message]:
        member = self.members.get(user_id)
        return [] if member is None else [message for message in self.messages if member.shows(message)]

    def last(self, user_id: str) -> Message | None:
        """The newest message that stands in the list."""
        found = [message for message in self.visible(user_id) if message.msg_type not in QUIET]
        return found[-1] if found else None

    def visible_head(self, user_id: str) -> int:
        end = self.members[user_id].spans[-1][1]
        return self.head_seq if end is None else end


class Truth:
    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:
        self.passwords: dict[str, str] = {}
        self.conversations: dict[str, Conversation] = {}
        self.blocked: set[tuple[str, str]] = set()  # (who blocks, who is blocked)
        self._now_ms = start_ms
        self._last_id = 700_000_000_000_000_000
        self._sent: dict[tuple[str, str], Message] = {}

    def now_ms(self) -> int:
        self._now_ms += 1
        return self._now_ms

    def new_id(self) -> str:
        self._last_id += 4096
        return str(self._last_id)

    # -- conversations -----------------------------------------------------------------------------------

    def add_user(self, user_id: str, password: str = "secret horse") -> None:
        self.passwords[user_id] = password

    def single(self, a: str, b: str) -> Conversation:
        name = f"si_{min(a, b)}:{max(a, b)}"
        found = self.conversations.get(name)
        if found is None:
            found = self.conversations[name] = Conversation(name, {a: Member([[1, None]]), b: Member([[1, None]])})
        return found

    def create_group(self, group_id: str, name: str, by: str, members: list[str], mode: str = "push") -> Conversation:
        everybody = list(dict.fromkeys([by, *members]))
        made = Conversation(f"sg_{group_id}", {user: Member([[1, None]]) for user in everybody}, mode, name)
        self.conversations[made.conversation_id] = made
        self.append(made, by, CREATED, {"group_id": group_id, "name": name, "by": by})
        return made

    def of(self, conversation_id: str, user_id: str | None = None) -> Conversation:
        found = self.conversations.get(conversation_id)
        if found is None:
            raise NexoError("group_not_found" if conversation_id.startswith("sg_") else "conversation_not_found")
        if user_id is not None and user_id not in found.members:
            raise NexoError("not_group_member" if found.is_group else "conversation_not_found")
        return found

    def mine(self, user_id: str) -> list[Conversation]:
        """Newest activity first."""
        found = [c for c in self.conversations.values() if user_id in c.members and c.visible_head(user_id)]
        return sorted(found, key=self._updated_at, reverse=True)

    @staticmethod
    def _updated_at(conversation: Conversation) -> int:
        return next(m.send_at for m in reversed(conversation.messages) if m.msg_type not in QUIET)

    def join(self, conversation: Conversation, user_id: str, by: str | None = None) -> Message:
        seq = conversation.head_seq + 1
        member = conversation.members.get(user_id)
        if member is None:
            member = conversation.members[user_id] = Member([[seq, None]])
        else:
            member.spans.append([seq, None])
        member.delivered_seq = member.read_seq = seq - 1
        return self.append(conversation, by or user_id, JOINED, {"user_ids": [user_id], "by": by or user_id})

    def leave(self, conversation: Conversation, user_id: str, by: str | None = None) -> Message:
        content = {"user_id": user_id} if by is None else {"user_ids": [user_id], "by": by}
        event = self.append(conversation, by or user_id, LEFT if by is None else REMOVED, content)
        conversation.members[user_id].spans[-1][1] = event.seq
        return event

    # -- messages ----------------------------------------------------------------------------------------

    def check_may_send(self, sender_id: str, conversation: Conversation) -> None:
        member = conversation.members.get(sender_id)
        if member is None:
            raise NexoError("not_group_member")
        if not member.is_active:
            raise NexoError("member_not_active")
        for user_id in conversation.members:
            if not conversation.is_group and (user_id, sender_id) in self.blocked:
                raise NexoError("blocked")

    def sent_before(self, sender_id: str, client_msg_id: str) -> Message | None:
        return self._sent.get((sender_id, client_msg_id))

    def append(
        self,
        conversation: Conversation,
        sender_id: str,
        msg_type: int,
        content: Any,
        *,
        client_msg_id: str | None = None,
        server_msg_id: str | None = None,
        mentions: list[str] | None = None,
        reply_to: str | None = None,
        extra: Any = None,
        expires_ms: int | None = None,
    ) -> Message:
        message = Message(
            server_msg_id or self.new_id(),
            client_msg_id,
            conversation.conversation_id,
            conversation.head_seq + 1,
            sender_id,
            msg_type,
            content,
            self.now_ms(),
            [user for user in mentions or [] if user == "@all" or user in conversation.active],
            reply_to,
            extra,
        )
        if expires_ms is not None:
            message.expires_at = message.send_at + expires_ms
        conversation.messages.append(message)
        if client_msg_id is not None:
            self._sent[sender_id, client_msg_id] = message
        self._step_over_own(conversation, sender_id)
        return message

    def recall(self, server_msg_id: str, by: str) -> Message:
        """Blank it and append the event; the event's message."""
        target = self.find(server_msg_id)
        if target is None:
            raise NexoError("message_not_found")
        if target.sender_id != by:
            raise NexoError("not_message_sender")
        conversation = self.of(target.conversation_id)
        if target.status:
            return next(m for m in conversation.messages if m.msg_type == RECALLED and m.content["seq"] == target.seq)
        content = {"server_msg_id": target.server_msg_id, "seq": target.seq, "by": by}
        event = self.append(conversation, by, RECALLED, content)
        target.status, target.recalled_at = 1, event.send_at
        target.content = "" if target.msg_type in TEXTS else {}
        target.mentions, target.reply_to, target.extra = [], None, None
        target.edited_at, target.reactions = None, {}
        return event

    def find(self, server_msg_id: str) -> Message | None:
        for conversation in self.conversations.values():
            for message in conversation.messages:
                if message.server_msg_id == server_msg_id:
                    return message
        return None

    # -- cursors -----------------------------------------------------------------------------------------

    def advance(self, conversation: Conversation, user_id: str, kind: str, seq: int) -> bool:
        """Whether the read cursor moved (delivered goes with it)."""
        member = conversation.members[user_id]
        seq = min(seq, conversation.visible_head(user_id))
        before = member.read_seq
        member.delivered_seq = max(member.delivered_seq, seq)
        if kind == "read":
            member.read_seq = max(member.read_seq, seq)
        self._step_over_own(conversation, user_id)
        return member.read_seq > before

    def _step_over_own(self, conversation: Conversation, user_id: str) -> None:
        member = conversation.members[user_id]
        for cursor in ("delivered_seq", "read_seq"):
            seq = getattr(member, cursor)
            while seq < conversation.head_seq:
                following = conversation.messages[seq]
                if following.sender_id != user_id or following.is_event or not member.sees(seq + 1):
                    break
                seq += 1
            setattr(member, cursor, seq)

    def unread(self, conversation: Conversation, user_id: str) -> int:
        return len(self._unread(conversation, user_id))

    def unread_mentions(self, conversation: Conversation, user_id: str) -> int:
        member = conversation.members[user_id]
        edits = [m for m in conversation.visible(user_id) if m.msg_type == EDITED and m.seq > member.read_seq]
        sent = [m for m in self._unread(conversation, user_id) if user_id not in self._added_later(conversation, m)]
        return sum(message.mentions_user(user_id) for message in (*sent, *edits))

    @staticmethod
    def _added_later(conversation: Conversation, message: Message) -> set[str]:
        """Who is mentioned by an edit only: that counts at the seq of its event."""
        edits = [m for m in conversation.messages if m.msg_type == EDITED and m.content["seq"] == message.seq]
        return {user_id for event in edits for user_id in event.mentions}

    def _unread(self, conversation: Conversation, user_id: str) -> list[Message]:
        """Above the cursor, of others, in the present span: a new span begins with both cursors below it."""
        member = conversation.members[user_id]
        return [
            message
            for message in conversation.visible(user_id)
            if message.seq > member.read_seq and not message.is_event and message.sender_id != user_id
        ]

    # -- as clients are told -----------------------------------------------------------------------------

    def entry(self, conversation: Conversation, user_id: str) -> Frame:
        member = conversation.members[user_id]
        return {
            "conversationId": conversation.conversation_id,
            "headSeq": conversation.visible_head(user_id),
            "minSeq": member.spans[-1][0],
            "readSeq": member.read_seq,
            "deliveredSeq": member.delivered_seq,
            "unread": self.unread(conversation, user_id),
            "deletedRev": len(member.deletions),
        } | {_SETTINGS[name]: value for name, value in member.settings.items()}

    def list_entry(self, conversation: Conversation, user_id: str) -> Frame:
        member, last = conversation.members[user_id], conversation.last(user_id)
        entry = {
            "conversation_id": conversation.conversation_id,
            "conversation_type": 2 if conversation.is_group else 1,
            "last_message": None if last is None else self.plain(last, user_id),
            "head_seq": conversation.visible_head(user_id),
            "min_seq": member.spans[-1][0],
            "read_seq": member.read_seq,
            "delivered_seq": member.delivered_seq,
            "unread": self.unread(conversation, user_id),
            "unread_mentions": self.unread_mentions(conversation, user_id),
            "pinned": False,
            "recv_msg_opt": 0,
            "updated_at": self._updated_at(conversation),
            "deleted_rev": len(member.deletions),
        } | {name: value for name, value in member.settings.items() if name != "hidden"}
        if conversation.is_group:
            return entry | {"group_id": conversation.conversation_id[3:]}
        peer_id = next(user for user in conversation.members if user != user_id)
        peer = conversation.members[peer_id]
        return entry | {
            "peer_user_id": peer_id,
            "peer_read_seq": peer.read_seq,
            "peer_delivered_seq": peer.delivered_seq,
        }

    def quote(self, message: Message, reader_id: str) -> Frame | None:
        target = None if message.reply_to is None else self.find(message.reply_to)
        if target is None or target.status or not self.of(target.conversation_id).members[reader_id].shows(target):
            return None
        text = target.content if isinstance(target.content, str) else ""
        return {
            "server_msg_id": target.server_msg_id,
            "sender_id": target.sender_id,
            "msg_type": target.msg_type,
            "text": text[:QUOTE_CHARS],
        }

    def plain(self, message: Message, reader_id: str) -> Frame:
        """As the HTTP API tells it."""
        conversation = self.of(message.conversation_id)
        shape: Frame = {
            "server_msg_id": message.server_msg_id,
            "client_msg_id": message.client_msg_id,
            "conversation_id": message.conversation_id,
            "seq": message.seq,
            "sender_id": message.sender_id,
            "msg_type": message.msg_type,
            "content": message.content,
            "mentions": message.mentions,
            "reply_to": message.reply_to,
            "extra": message.extra,
            "status": message.status,
            "send_at": message.send_at,
        }
        if conversation.is_group:
            shape["group_id"] = conversation.conversation_id[3:]
        else:
            shape["recv_id"] = next(user for user in conversation.members if user != message.sender_id)
        for name in ("recalled_at", "edited_at", "expires_at"):
            if getattr(message, name) is not None:
                shape[name] = getattr(message, name)
        if message.reactions:
            shape["reactions"] = [
                {"emoji": emoji, "count": len(users), "mine": reader_id in users}
                for emoji, users in message.reactions.items()
            ]
        target = self.find(message.content["server_msg_id"]) if message.msg_type == EDITED else None
        if target is not None and not target.status and conversation.members[reader_id].shows(target):
            shape["content"] = message.content | {"content": target.content, "mentions": target.mentions}
        if (quote := self.quote(message, reader_id)) is not None:
            shape["quote"] = quote
        return shape

    def frame(self, message: Message, reader_id: str, *, pushed: bool = False) -> Frame:
        """As the envelope dialect tells it; a recall is pushed as what it means."""
        if pushed and message.msg_type == RECALLED:
            return {
                "type": "MESSAGE_REVOKED",
                "serverMsgId": message.content["server_msg_id"],
                "conversationId": message.conversation_id,
                "msgSeq": message.seq,
                "from": message.sender_id,
                "ts": message.send_at,
            }
        if pushed and message.msg_type in QUIET:
            return _change_frame(self.plain(message, reader_id))
        return envelope(self.plain(message, reader_id))


_NAMES = {
    "server_msg_id": "serverMsgId",
    "client_msg_id": "clientMsgId",
    "conversation_id": "conversationId",
    "seq": "msgSeq",
    "sender_id": "from",
    "recv_id": "to",
    "group_id": "groupId",
    "msg_type": "msgType",
    "content": "body",
    "reply_to": "replyToServerMsgId",
    "recalled_at": "recalledAt",
    "edited_at": "editedAt",
    "expires_at": "expiresAt",
    "send_at": "ts",
    "text": "text",
}


_SETTINGS = {
    "pinned": "pinned",
    "archived": "archived",
    "marked_unread": "markedUnread",
    "hidden": "hidden",
    "draft": "draft",
}
_CHANGES = {EDITED: "MESSAGE_EDITED", REACTIONS: "REACTIONS", PINNED: "PINNED"}


def _change_frame(shape: Frame) -> Frame:
    """An edit, reactions or a pin, as it is pushed."""
    content = shape["content"]
    frame = {
        "type": _CHANGES[shape["msg_type"]],
        "serverMsgId": content["server_msg_id"],
        "conversationId": shape["conversation_id"],
        "msgSeq": shape["seq"],
        "ts": shape["send_at"],
    }
    names = {"by": "from", "on": "on", "edited_at": "editedAt", "content": "body", "mentions": "mentions"}
    frame |= {there: content[name] for name, there in names.items() if name in content}
    if "reactions" in content:
        frame["reactions"] = content["reactions"]
        for change in ("added", "removed"):
            frame[change] = [{"emoji": one["emoji"], "userId": one["user_id"]} for one in content[change]]
    return frame


def envelope(shape: Frame) -> Frame:
    frame = {_NAMES.get(name, name): value for name, value in shape.items()}
    if "quote" in frame:
        frame["quote"] = {_NAMES[name]: value for name, value in frame["quote"].items()}
    kind = "GROUP_EVENT" if shape["msg_type"] >= FIRST_EVENT else "GROUP_CHAT" if "group_id" in shape else "SINGLE_CHAT"
    return {"type": kind} | frame

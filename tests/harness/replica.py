"""What a client knows from the frames it got, and how that differs from what the server tells when asked.

A replica does what the documentation asks of a client and nothing more: it orders by seq, drops duplicates,
applies recalls and receipts, and remembers of which conversations it was told that there is more to pull. A
message that it was told of in no way at all shows up as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Frame = dict[str, Any]

FIRST_EVENT = 100
CALL = 120  # the record of a call: a message of the caller that the server makes
RECALLED = 100
DISMISSED = 108
TEXTS = (1, 7)

# What a push says besides the message: how it came, not what it is.
_FLAGS = ("type", "important", "silent", "resend")
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
    "mentions": "mentions",
    "reply_to": "replyToServerMsgId",
    "extra": "extra",
    "status": "status",
    "recalled_at": "recalledAt",
    "expires_at": "expiresAt",
    "send_at": "ts",
}
_QUOTE_NAMES = {"server_msg_id": "serverMsgId", "sender_id": "from", "msg_type": "msgType", "text": "text"}


def from_http(message: Mapping[str, Any]) -> Frame:
    """A message of the HTTP API as the envelope dialect names its parts."""
    frame = {_NAMES[name]: value for name, value in message.items() if name != "quote"}
    if "quote" in message:
        frame["quote"] = {_QUOTE_NAMES[name]: value for name, value in message["quote"].items()}
    return frame


def plain(frame: Mapping[str, Any]) -> Frame:
    return {name: value for name, value in frame.items() if name not in _FLAGS}


class Conversation:
    def __init__(self, conversation_id: str) -> None:
        self.conversation_id = conversation_id
        self.base = 0  # the head when the connection began: what lies below is history
        self.head_seq = 0
        self.min_seq = 1
        self.read_seq = 0
        self.told_head = 0  # up to here it was told by a notice, by heads or by SYNC that there is something
        self.messages: dict[int, Frame] = {}
        self.guessed: set[int] = set()  # own messages, known from what was sent and its ACK
        self.receipts: dict[str, dict[str, int]] = {"delivered": {}, "read": {}}
        self.deleted: set[str] = set()  # ids of messages that the user deleted
        self.gone: set[int] = set()  # their seqs, as far as they are known
        self.cleared = 0

    @property
    def is_single(self) -> bool:
        return self.conversation_id.startswith("si_")

    @property
    def is_dismissed(self) -> bool:
        last = self.messages.get(self.head_seq)
        return last is not None and last["msgType"] == DISMISSED

    def missing(self) -> list[int]:
        """Seqs that the client should have and does not."""
        first = max(self.base + 1, self.min_seq)
        return [seq for seq in range(first, self.head_seq + 1) if seq not in self.messages and not self.is_gone(seq)]

    def is_gone(self, seq: int) -> bool:
        return seq <= self.cleared or seq in self.gone

    def read_up_to(self, seq: int, me: str) -> None:
        """Move the read cursor; it goes on over one's own messages that follow."""
        self.read_seq = max(self.read_seq, seq)
        while (following := self.messages.get(self.read_seq + 1)) is not None and is_own(following, me):
            self.read_seq += 1


def is_own(message: Frame, me: str) -> bool:
    return bool(message["from"] == me and (message["msgType"] < FIRST_EVENT or message["msgType"] == CALL))


class Replica:
    def __init__(self, me: str) -> None:
        self.me = me
        self.conversations: dict[str, Conversation] = {}
        self.must_sync = False
        self.duplicates = 0
        self._sent: dict[str, Frame] = {}
        self._first_sync_over = False

    def of(self, conversation_id: str) -> Conversation:
        return self.conversations.setdefault(conversation_id, Conversation(conversation_id))

    # -- what the client does ----------------------------------------------------------------------------

    def sends(self, frame: Frame) -> None:
        kind = frame.get("type")
        if kind in ("SINGLE_CHAT", "GROUP_CHAT") and isinstance(frame.get("clientMsgId"), str):
            self._sent[frame["clientMsgId"]] = frame
        elif kind == "ACK" and str(frame.get("ackType")).lower() in ("read", "ack_read"):
            self._reads(frame)

    def _reads(self, frame: Frame) -> None:
        if frame.get("serverMsgId") is not None:
            found = self.find(str(frame["serverMsgId"]))
            if found is not None:
                self.of(found["conversationId"]).read_up_to(found["msgSeq"], self.me)
        elif frame.get("conversationId") in self.conversations:
            conversation = self.of(frame["conversationId"])
            conversation.read_up_to(min(int(frame["msgSeq"]), conversation.head_seq), self.me)

    # -- what the server tells ---------------------------------------------------------------------------

    def receives(self, frame: Frame) -> None:
        match frame["type"]:
            case "SINGLE_CHAT" | "GROUP_CHAT" | "GROUP_EVENT":
                self._put(frame)
            case "ACK":
                self._acknowledged(frame)
            case "MESSAGE_REVOKED":
                self._revoked(frame)
            case "SYNC":
                self._synced(frame)
            case "GROUP_NOTIFY":
                self._told(frame["conversationId"], frame["headSeq"])
            case "HEADS":
                for entry in frame["conversations"]:
                    self._told(entry["conversationId"], entry["headSeq"])
            case "PULL_OK":
                for message in frame["messages"]:
                    self._put(message)
            case "DELETED":
                self._deleted(frame)
            case "RESYNC":
                self.must_sync = True

    def _deleted(self, frame: Frame) -> None:
        """What the user deleted on another device, also before its message came."""
        conversation = self.of(frame["conversationId"])
        conversation.deleted |= set(frame.get("serverMsgIds", ()))
        conversation.cleared = max(conversation.cleared, frame.get("upToSeq", 0))
        for seq, message in list(conversation.messages.items()):
            if message["serverMsgId"] in conversation.deleted or seq <= conversation.cleared:
                conversation.gone.add(seq)
                del conversation.messages[seq]
        for message in conversation.messages.values():
            self._drop_quote(conversation, message)

    def _drop_quote(self, conversation: Conversation, message: Frame) -> None:
        """A quote shows nothing of what the user deleted, or of what is not known because it was cleared."""
        target = message.get("quote", {}).get("serverMsgId")
        if target in conversation.deleted or (conversation.cleared and target and self.find(target) is None):
            del message["quote"]

    def _told(self, conversation_id: str, head_seq: int) -> None:
        conversation = self.of(conversation_id)
        conversation.head_seq = max(conversation.head_seq, head_seq)
        conversation.told_head = max(conversation.told_head, head_seq)

    def _synced(self, frame: Frame) -> None:
        for entry in frame["conversations"]:
            name = entry["conversationId"]
            is_new = name not in self.conversations
            conversation = self.of(name)
            if is_new and not self._first_sync_over:
                conversation.base = entry["headSeq"]
            conversation.min_seq = entry["minSeq"]
            conversation.read_up_to(entry["readSeq"], self.me)
            self._told(name, entry["headSeq"])
        if not frame["hasMore"]:
            self._first_sync_over = True
            self.must_sync = False

    def _put(self, frame: Frame, *, guessed: bool = False) -> None:
        message = plain(frame)
        conversation = self.of(message["conversationId"])
        seq = message["msgSeq"]
        known = conversation.messages.get(seq)
        if known is not None and seq not in conversation.guessed:
            self.duplicates += 1
            assert known["serverMsgId"] in (message["serverMsgId"], ""), f"two messages have seq {seq}"
            if known["serverMsgId"]:
                return
        conversation.head_seq = max(conversation.head_seq, seq)
        if message["serverMsgId"] in conversation.deleted or seq <= conversation.cleared:
            conversation.gone.add(seq)
            return
        self._drop_quote(conversation, message)
        conversation.messages[seq] = message
        (conversation.guessed.add if guessed else conversation.guessed.discard)(seq)
        conversation.head_seq = max(conversation.head_seq, seq)
        conversation.read_up_to(conversation.read_seq, self.me)
        if message["msgType"] == RECALLED:
            self._blank(message["body"]["server_msg_id"], message["ts"])

    def _acknowledged(self, frame: Frame) -> None:
        kind = frame["ackType"]
        if kind == "saved":
            self._saved(frame)
        elif kind in ("delivered", "read"):
            conversation = self.of(frame["conversationId"])
            if frame["from"] == self.me:
                conversation.read_up_to(frame["msgSeq"], self.me)
            else:
                told = conversation.receipts[kind]
                told[frame["from"]] = max(told.get(frame["from"], 0), frame["msgSeq"])

    def _saved(self, ack: Frame) -> None:
        sent = self._sent.get(ack["clientMsgId"])
        if sent is None or ack["msgSeq"] in self.of(ack["conversationId"]).messages:
            return
        where = "groupId" if "groupId" in sent else "to"
        self._put(
            {
                "serverMsgId": ack["serverMsgId"],
                "clientMsgId": ack["clientMsgId"],
                "conversationId": ack["conversationId"],
                "msgSeq": ack["msgSeq"],
                "from": self.me,
                where: sent[where],
                "msgType": sent.get("msgType", 1),
                "body": ack.get("body", sent.get("body")),
                "mentions": sent.get("mentions", []),
                "replyToServerMsgId": sent.get("replyToServerMsgId"),
                "extra": sent.get("extra"),
                "status": 0,
                "ts": ack["ts"],
            }
            | ({"expiresAt": ack["expiresAt"]} if "expiresAt" in ack else {}),
            guessed=True,
        )

    def _revoked(self, frame: Frame) -> None:
        target = self.find(frame["serverMsgId"])
        conversation = self.of(frame["conversationId"])
        known = conversation.messages.get(frame["msgSeq"])
        if known is None:
            # the event's own id is not told; it is the one thing that is not compared
            conversation.messages[frame["msgSeq"]] = {
                "serverMsgId": "",
                "conversationId": frame["conversationId"],
                "msgSeq": frame["msgSeq"],
                "from": frame["from"],
                "msgType": RECALLED,
                "ts": frame["ts"],
                "status": 0,
                "body": {"server_msg_id": frame["serverMsgId"], "by": frame["from"]}
                | ({} if target is None else {"seq": target["msgSeq"]}),
            }
        conversation.head_seq = max(conversation.head_seq, frame["msgSeq"])
        self._blank(frame["serverMsgId"], frame["ts"])

    def _blank(self, server_msg_id: str, recalled_at: int) -> None:
        for message in self.messages():
            if message["serverMsgId"] == server_msg_id:
                message |= {
                    "status": 1,
                    "recalledAt": recalled_at,
                    "body": "" if message["msgType"] in TEXTS else {},
                    "extra": None,
                    "mentions": [],
                    "replyToServerMsgId": None,
                }
                message.pop("quote", None)
            if message.get("quote", {}).get("serverMsgId") == server_msg_id:
                del message["quote"]

    # -- looking -----------------------------------------------------------------------------------------

    def messages(self) -> Iterator[Frame]:
        for conversation in self.conversations.values():
            yield from conversation.messages.values()

    def find(self, server_msg_id: str) -> Frame | None:
        return next((message for message in self.messages() if message["serverMsgId"] == server_msg_id), None)

    def to_pull(self) -> list[tuple[str, int]]:
        """Conversations with something that the client was told of and does not have, and from where."""
        wanted = []
        for conversation in self.conversations.values():
            gaps = [seq for seq in conversation.missing() if seq <= conversation.told_head]
            if gaps:
                wanted.append((conversation.conversation_id, gaps[0]))
        return wanted


class Fetched:
    """What the server tells when asked: the list, and every message of every conversation in it."""

    def __init__(
        self,
        entries: list[dict[str, Any]],
        messages: dict[str, list[Frame]],
        receipts: dict[str, dict[str, Any]],
    ) -> None:
        self.entries = {entry["conversation_id"]: entry for entry in entries}
        self.messages = {name: {message["msgSeq"]: message for message in found} for name, found in messages.items()}
        self.receipts = receipts  # by server_msg_id, of the last own message in each group


def differences(replica: Replica, fetched: Fetched) -> list[str]:
    found: list[str] = []
    for name, conversation in replica.conversations.items():
        if name not in fetched.entries:
            if conversation.head_seq and not conversation.is_dismissed:
                found.append(f"{name}: told by frames, not in the list")
            continue
        found += (f"{name}: {text}" for text in _compare(replica.me, conversation, fetched))
    for name, entry in fetched.entries.items():
        if name not in replica.conversations:
            found.append(f"{name}: in the list with head {entry['head_seq']}, never told by a frame")
    return found


def _counts(message: Mapping[str, Any]) -> bool:
    """Returns whether it counts as unread for others: messages do, and records of missed and canceled calls."""
    if message["msgType"] == CALL:
        return message["body"]["outcome"] in ("missed", "canceled")
    return bool(message["msgType"] < FIRST_EVENT)


def _compare(me: str, mine: Conversation, fetched: Fetched) -> Iterator[str]:
    entry, theirs = fetched.entries[mine.conversation_id], fetched.messages[mine.conversation_id]
    for name, known in (("head_seq", mine.head_seq), ("min_seq", mine.min_seq), ("read_seq", mine.read_seq)):
        if entry[name] != known:
            yield f"{name} is {entry[name]}, by frames {known}"
    for seq in mine.missing():
        yield f"seq {seq} was never told"
    for seq, message in mine.messages.items():
        if seq not in theirs:
            yield f"seq {seq} was told and cannot be fetched"
        else:
            yield from _compare_message(message, theirs[seq], seq in mine.guessed)
    everything = theirs | mine.messages
    if entry["last_message"] is not None:
        last, newest = from_http(entry["last_message"]), theirs.get(max(theirs, default=0))
        if last != newest:
            yield f"last_message is {last}, pulled it is {newest}"
    countable = (m for m in everything.values() if _counts(m) and m["from"] != me)
    unread = sum(1 for message in countable if message["msgSeq"] > mine.read_seq)
    if unread != entry["unread"]:
        yield f"unread is {entry['unread']}, by frames {unread}"
    yield from _compare_receipts(me, mine, entry, everything, fetched)


def _compare_message(pushed: Frame, pulled: Frame, guessed: bool) -> Iterator[str]:
    names: Iterable[str] = pushed.keys() | pulled.keys()
    if not pushed["serverMsgId"]:  # a recall, told as what it means
        names = ("conversationId", "msgSeq", "from", "msgType", "ts", "status")
    for name in names:
        if guessed and name in ("quote", "mentions"):  # made by the server, and not part of the ACK
            continue
        if pushed.get(name) != pulled.get(name):
            yield f"seq {pulled['msgSeq']}: {name} is {pulled.get(name)!r}, by frames {pushed.get(name)!r}"


def _compare_receipts(
    me: str, mine: Conversation, entry: dict[str, Any], everything: dict[int, Frame], fetched: Fetched
) -> Iterator[str]:
    """Only what was sent since the connection began: receipts for older messages came before it."""
    own = sorted(seq for seq, m in everything.items() if is_own(m, me) and seq > mine.base)
    if not own:
        return
    for kind in ("delivered", "read"):
        told = mine.receipts[kind]
        if mine.is_single:
            covered = max((seq for seq in own if seq <= entry[f"peer_{kind}_seq"]), default=0)
            known = max((seq for seq in told.values() if seq > mine.base), default=0)
            if covered != known:
                yield f"{kind} up to {covered}, by receipts {known}"
        elif (listed := fetched.receipts.get(everything[own[-1]]["serverMsgId"])) is not None:
            everybody = {*listed["read"], *listed["delivered"], *listed["pending"]}
            covered_by = set(listed["read"]) | (set(listed["delivered"]) if kind == "delivered" else set())
            known_by = {user for user, seq in told.items() if seq >= own[-1]} & everybody
            if covered_by != known_by:
                yield f"{kind} by {sorted(covered_by)}, by receipts {sorted(known_by)}"

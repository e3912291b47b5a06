"""What the scripted server is at a given moment, and how it answers its client: by the contract, or by a rule."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter

from harness.scripted_faults import Frame, Line, Rules
from harness.scripted_steps import Steps
from harness.scripted_truth import Conversation, Message, Truth
from nexo.errors import ERRORS, NexoError
from nexo.ids import now_ms

ME = "alice"
PASSWORD = "secret horse"
SETTINGS: Frame = {
    "sync_page": 100,
    "pull_limit": 200,
    "resend": True,
    "resend_limit": 200,
    "two_phase": False,
    "token_ms": 1_800_000,
    "heartbeat_ms": 30_000,
}


class Knowledge:
    """What the client was given of a conversation: acknowledging more than its contiguous part is a lie."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.given: set[int] = set()

    def contiguous(self) -> int:
        while self.base + 1 in self.given:
            self.base += 1
        return self.base


class Connection:
    def __init__(self, world: World, line: Line) -> None:
        self.world = world
        self.line = line
        self.user_id = ""
        self.muted = False  # what it asks is done, and the answers are lost
        self.refused: dict[str, str] = {}  # conversation → client_msg_id that must come first

    def tell(self, frame: Frame) -> None:
        """Send a frame, or what a rule makes of it."""
        if self.muted or not self.world.thawed.is_set():
            return
        rule = self.world.rules.apply("out", frame)
        match None if rule is None else rule.do:
            case None:
                self.put(frame)
            case "duplicate":
                self.put(frame)
                self.put(frame)
            case "delay":
                assert rule is not None
                asyncio.get_running_loop().call_later(rule.options["ms"] / 1000, self.put, frame)
            case "hold":
                self.world.held.append((self, frame))
            case "cut":
                self.line.cut()
            case "cut_after":
                self.put(frame)
                self.line.cut()
            case "cut_inside":
                self.line.send_half(frame)

    def put(self, frame: Frame) -> None:
        if self.line.send(frame):
            self.world.note_given(frame)

    def fail(self, error: NexoError, frame: Frame) -> None:
        answer: Frame = {"type": "ERROR", "reason": error.name, "detail": error.detail}
        answer |= {name: frame[name] for name in ("clientMsgId", "serverMsgId") if name in frame}
        if error.retry_after_ms is not None:
            answer["retryAfterMs"] = error.retry_after_ms
        self.tell(answer)


class World:
    def __init__(self) -> None:
        self.connections: set[Connection] = set()
        self.steps = Steps(self)
        self.is_down = False
        self.thawed = asyncio.Event()
        self.load({})

    def load(self, scenario: Frame) -> Frame:
        """Forget everything and begin with what this scenario gives."""
        for connection in list(self.connections):
            connection.line.cut()
        self.truth = Truth()
        self.rules = Rules()
        self.held: list[tuple[Connection, Frame]] = []
        self.waiting: list[tuple[Connection | None, str, Frame, str]] = []  # accepted and not saved (two-phase)
        self.settings = SETTINGS | scenario.get("server", {})
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        self.known: dict[str, Knowledge] = {}
        self.first_bases: dict[str, int] = {}  # from where on the client is to be told
        self.provisional: dict[str, tuple[str, Conversation, Frame]] = {}
        self.edits: dict[tuple[str, str], Message] = {}  # by author and client_msg_id: the event
        self.access: dict[str, str] = {}
        self.refresh: dict[str, str] = {}
        self.expired: set[str] = set()
        self.is_down = False
        self.thawed.set()
        self.steps.prepare(scenario.get("given", {}))
        return {"user_id": ME, "password": PASSWORD, "options": scenario.get("options", {})}

    # -- what the client knows ---------------------------------------------------------------------------

    def note_given(self, frame: Frame) -> None:
        match frame["type"]:
            case "SYNC":
                for entry in frame["conversations"]:
                    self.note_entry(entry)
            case "PULL_OK":
                for message in frame["messages"]:
                    self._note_seq(message["conversationId"], message["msgSeq"])
                # what is not given below `nextSeq` does not exist for this client
                member = self.truth.of(frame["conversationId"]).members[ME]
                messages = self.truth.of(frame["conversationId"]).messages
                for seq in range(1, frame["nextSeq"]):
                    if not member.sees(seq) or not member.shows(messages[seq - 1]):
                        self._note_seq(frame["conversationId"], seq)
            case "ACK" if frame["ackType"] != "saved":
                pass
            case _ if "msgSeq" in frame:
                self._note_seq(frame["conversationId"], frame["msgSeq"])

    def note_entry(self, entry: Frame) -> None:
        name, base = entry["conversationId"], max(entry["minSeq"] - 1, entry["deliveredSeq"])
        known = self.known.setdefault(name, Knowledge(0))
        if name not in self.first_bases:
            self.first_bases[name] = known.base = base
        else:  # came back in: what was between is not theirs to have
            known.base = max(known.base, entry["minSeq"] - 1)

    def _note_seq(self, name: str, seq: int) -> None:
        if seq == 1:  # a chat that begins now has no entry before it
            self.first_bases.setdefault(name, 0)
        self.known.setdefault(name, Knowledge(0)).given.add(seq)

    def check_ack(self, name: str, seq: int) -> None:
        known = self.known.get(name)
        have = 0 if known is None else known.contiguous()
        if seq > have:
            self.violations.append(f"acknowledged {name} up to {seq} with {have} as the contiguous part")

    # -- frames of the client ----------------------------------------------------------------------------

    def receive(self, connection: Connection, frame: Frame) -> None:
        kind = frame.get("type", "?")
        self.counts[kind] += 1
        rule = self.rules.apply("in", frame)
        match None if rule is None else rule.do:
            case "drop":
                return
            case "cut":
                connection.line.cut()
                return
            case "refuse":
                assert rule is not None
                error = NexoError(rule.options["reason"], retry_after_ms=rule.options.get("retryAfterMs"))
                if error.row.retry and kind in ("SINGLE_CHAT", "GROUP_CHAT"):
                    connection.refused.setdefault(self._target(connection, frame), frame["clientMsgId"])
                connection.fail(error, frame)
                return
            case "cut_after":
                connection.muted = True
        try:
            self._answer(connection, kind, frame)
        except NexoError as error:
            connection.fail(error, frame)
        if connection.muted:
            connection.line.cut()

    def _answer(self, connection: Connection, kind: str, frame: Frame) -> None:
        if not connection.user_id and kind not in ("AUTH", "PING", "PONG"):
            self.violations.append(f"{kind} before AUTH_OK")
            self.drop(connection, "unauthorized")
            return
        match kind:
            case "AUTH":
                self._auth(connection, frame)
            case "REAUTH":
                self.check_token(frame["token"])
                connection.tell(self._auth_ok(connection.user_id))
            case "PING":
                connection.tell({"type": "PONG"})
            case "SINGLE_CHAT" | "GROUP_CHAT":
                self._send(connection, frame)
            case "ACK":
                self._acknowledge(connection, frame)
            case "PULL":
                self._pull(connection, frame)
            case "SYNC":
                self._sync(connection, frame)
            case "RESEND":
                self._resend(connection, frame.get("baselines") or {})
            case "MESSAGE_REVOKE":
                self._revoke(connection, frame)
            case "PRESENCE":
                self.steps.watched = set(frame["subscribe"])
                self.steps.tell_presence(connection, frame["subscribe"])
            case "PONG" | "TYPING":
                pass
            case _:
                self.violations.append(f"a frame of type {kind}")

    def check_token(self, token: str) -> str:
        if token in self.expired:
            raise NexoError("token_expired")
        if token not in self.access:
            raise NexoError("unauthorized")
        return self.access[token]

    def _auth_ok(self, user_id: str) -> Frame:
        heartbeat_ms = self.settings["heartbeat_ms"]
        return {"type": "AUTH_OK", "userId": user_id, "connId": secrets.token_hex(4), "heartbeatMs": heartbeat_ms}

    def _auth(self, connection: Connection, frame: Frame) -> None:
        try:
            user_id = self.check_token(frame["token"])
        except NexoError as error:
            connection.tell({"type": "AUTH_FAIL", "reason": error.name, "detail": error.detail})
            connection.line.close(error.row.close_code, error.name)
            return
        connection.user_id = user_id
        baselines = frame.get("baselines") or {}
        for name in [name for name in self.known if name not in baselines]:  # it sees them for the first time
            del self.known[name]
            self.first_bases.pop(name, None)
        connection.tell(self._auth_ok(user_id))
        self._sync(connection, {})
        if self.settings["resend"]:
            self._resend(connection, baselines)

    def _target(self, connection: Connection, frame: Frame) -> str:
        if frame.get("groupId"):
            return f"sg_{frame['groupId']}"
        return self.truth.single(connection.user_id, frame["to"]).conversation_id

    def _send(self, connection: Connection, frame: Frame) -> None:
        user_id, client_msg_id = connection.user_id, frame["clientMsgId"]
        name = self._target(connection, frame)
        if connection.refused.get(name) == client_msg_id:
            del connection.refused[name]  # it came back
        before = self.truth.sent_before(user_id, client_msg_id)
        if before is not None:
            if (before.conversation_id, before.content) != (name, frame["body"]) and not before.status:
                self.violations.append(f"{client_msg_id} used again for something else")
                raise NexoError("client_msg_id_reused")
            connection.tell(self._saved(before))
            return
        if name in connection.refused:
            raise NexoError("server_busy", retry_after_ms=20)
        if frame.get("to") is not None and frame["to"] not in self.truth.passwords:
            raise NexoError("user_not_found")
        self.truth.check_may_send(user_id, self.truth.of(name))
        if self.settings["two_phase"]:
            self._accept(connection, user_id, name, frame)
            return
        connection.tell(self._saved(self.store(user_id, name, frame)))

    def _accept(self, connection: Connection, user_id: str, name: str, frame: Frame) -> None:
        known = [i for i, (_, who, other, _) in enumerate(self.waiting) if other["clientMsgId"] == frame["clientMsgId"]]
        server_msg_id = self.waiting[known[0]][3] if known else self.truth.new_id()
        entry = (connection, user_id, frame | {"conversationId": name}, server_msg_id)
        if known:  # its `saved` goes to where it was asked last
            self.waiting[known[0]] = entry
        else:
            self.waiting.append(entry)
        connection.tell(
            {
                "type": "ACK",
                "ackType": "accepted",
                "clientMsgId": frame["clientMsgId"],
                "serverMsgId": server_msg_id,
                "conversationId": name,
            }
        )

    def store(self, user_id: str, name: str, frame: Frame, server_msg_id: str | None = None) -> Message:
        message = self.truth.append(
            self.truth.of(name),
            user_id,
            frame.get("msgType", 1),
            frame["body"],
            client_msg_id=frame["clientMsgId"],
            server_msg_id=server_msg_id,
            mentions=frame.get("mentions"),
            reply_to=frame.get("replyToServerMsgId"),
            extra=frame.get("extra"),
        )
        self.counts["stored"] += 1
        return message

    def _saved(self, message: Message) -> Frame:
        return {
            "type": "ACK",
            "ackType": "saved",
            "clientMsgId": message.client_msg_id,
            "serverMsgId": message.server_msg_id,
            "conversationId": message.conversation_id,
            "msgSeq": message.seq,
            "ts": message.send_at,
        }

    def save_accepted(self) -> None:
        """Two-phase: what waits is written now, and its senders are told if they are still there."""
        waiting, self.waiting = self.waiting, []
        for connection, user_id, frame, server_msg_id in waiting:
            message = self.store(user_id, frame["conversationId"], frame, server_msg_id)
            if connection in self.connections:
                assert connection is not None
                connection.tell(self._saved(message))

    def _acknowledge(self, connection: Connection, frame: Frame) -> None:
        kind = frame["ackType"].lower()
        if frame.get("serverMsgId") is not None:
            if frame["serverMsgId"] in {shape["serverMsgId"] for _, _, shape in self.provisional.values()}:
                self.violations.append("acknowledged a provisional copy")
                return
            message = self.truth.find(str(frame["serverMsgId"]))
            if message is None:
                raise NexoError("message_not_found")
            name, seq = message.conversation_id, message.seq
        else:
            name, seq = frame["conversationId"], int(frame["msgSeq"])
        self.check_ack(name, seq)
        self.truth.advance(self.truth.of(name, connection.user_id), connection.user_id, kind, seq)

    def _pull(self, connection: Connection, frame: Frame) -> None:
        begin = int(frame.get("beginSeq") or 1)
        end = int(frame["endSeq"]) if frame.get("endSeq") is not None else 1 << 60
        page = self.page(connection.user_id, frame["conversationId"], begin, end, frame.get("limit"))
        conversation_id = frame["conversationId"]
        answer = {
            "type": "PULL_OK",
            "conversationId": conversation_id,
            "messages": [self.truth.frame(message, connection.user_id) for message in page["messages"]],
            "headSeq": page["head_seq"],
            "nextSeq": page["next_seq"],
            "hasMore": page["has_more"],
        }
        connection.tell(answer)

    def page(self, user_id: str, name: str, begin: int, end: int, limit: int | None) -> Frame:
        most = min(limit or 200, self.settings["pull_limit"])
        conversation = self.truth.of(name, user_id)
        found = [message for message in conversation.visible(user_id) if begin <= message.seq <= end]
        page = found[:most]
        has_more = len(found) > most
        head_seq = conversation.visible_head(user_id)
        next_seq = page[-1].seq + 1 if has_more else max(begin, min(end, head_seq) + 1)
        return {"messages": page, "head_seq": head_seq, "next_seq": next_seq, "has_more": has_more}

    def _sync(self, connection: Connection, frame: Frame) -> None:
        user_id = connection.user_id
        names = frame.get("conversations")
        mine = [c for c in self.truth.mine(user_id) if names is None or c.conversation_id in names]
        start = int(frame.get("cursor") or 0)
        most = self.settings["sync_page"]
        page = mine[start : start + most]
        has_more = len(mine) > start + most
        entries = [self.truth.entry(c, user_id) for c in page]
        answer: Frame = {"type": "SYNC", "conversations": entries, "hasMore": has_more}
        connection.tell(answer | ({"cursor": str(start + most)} if has_more else {}))

    def _resend(self, connection: Connection, baselines: Frame) -> None:
        user_id, left = connection.user_id, self.settings["resend_limit"]
        for conversation in self.truth.mine(user_id):
            base = int(baselines.get(conversation.conversation_id, conversation.members[user_id].delivered_seq))
            known = self.known.get(conversation.conversation_id)
            if conversation.conversation_id in baselines and known is not None and base > known.contiguous():
                self.violations.append(f"baseline {base} of {conversation.conversation_id} is more than it was given")
            for message in conversation.visible(user_id):
                if message.seq <= base:
                    continue
                if not left:
                    connection.tell({"type": "RESEND_DONE", "hasMore": True})
                    return
                left -= 1
                connection.tell(self.push_frame(message, user_id) | {"resend": True})
        connection.tell({"type": "RESEND_DONE", "hasMore": False})

    def _revoke(self, connection: Connection, frame: Frame) -> None:
        event = self.truth.recall(str(frame["serverMsgId"]), connection.user_id)
        answer = {"type": "ACK", "ackType": "revoked", "serverMsgId": frame["serverMsgId"], "msgSeq": event.seq}
        echoed = {"clientMsgId": frame["clientMsgId"]} if "clientMsgId" in frame else {}
        connection.tell(answer | {"conversationId": event.conversation_id} | echoed)
        self.push(event)

    # -- tokens ----------------------------------------------------------------------------------------

    def new_tokens(self, user_id: str) -> Frame:
        access, refresh = f"access-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self.access[access] = self.refresh[refresh] = user_id
        return {
            "user_id": user_id,
            "access_token": access,
            "refresh_token": refresh,
            "expires_at": now_ms() + self.settings["token_ms"],
            "platform_id": 5,
            "device_id": "",
        }

    # -- pushing -----------------------------------------------------------------------------------------

    def push_frame(self, message: Message, user_id: str) -> Frame:
        frame = self.truth.frame(message, user_id, pushed=True)
        return frame | ({"important": True} if message.mentions_user(user_id) else {})

    def push(self, message: Message, origin: Connection | None = None) -> None:
        conversation = self.truth.of(message.conversation_id)
        for connection in list(self.connections):
            member = conversation.members.get(connection.user_id)
            if connection is origin or member is None or not member.sees(message.seq):
                continue
            if not member.shows(message):
                continue
            if conversation.mode == "push" or message.is_event:
                connection.tell(self.push_frame(message, connection.user_id))
            elif conversation.mode == "notify":
                important = {"important": True} if message.mentions_user(connection.user_id) else {}
                name = conversation.conversation_id
                notice = {"type": "GROUP_NOTIFY", "conversationId": name, "groupId": name[3:], "headSeq": message.seq}
                connection.tell(notice | important)

    def introduce(self, conversation: Conversation, user_id: str) -> None:
        """Who comes in first gets the conversation's SYNC entry."""
        entry = self.truth.entry(conversation, user_id)
        for connection in list(self.connections):
            if connection.user_id == user_id:
                connection.tell({"type": "SYNC", "conversations": [entry], "hasMore": False})

    def drop(self, connection: Connection, reason: str, code: int | None = None, retry_ms: int | None = None) -> None:
        if reason in ERRORS:
            connection.fail(NexoError(reason, retry_after_ms=retry_ms), {})
        connection.line.close(code or ERRORS[reason].close_code, reason)

"""The steps of a scenario that the server takes: what others do, and what goes wrong."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Protocol

from harness import scripted_changes as changes
from harness.scripted_faults import Frame, Line, Rules
from harness.scripted_truth import Conversation, Message, Truth

ME = "alice"


class Connection(Protocol):
    line: Line
    user_id: str

    def tell(self, frame: Frame) -> None: ...

    def put(self, frame: Frame) -> None: ...


class Server(Protocol):
    truth: Truth
    rules: Rules
    connections: Any
    held: Any
    settings: Frame
    provisional: dict[str, tuple[str, Conversation, Frame]]
    access: dict[str, str]
    refresh: dict[str, str]
    expired: set[str]
    is_down: bool
    thawed: asyncio.Event

    def push(self, message: Message) -> None: ...

    def introduce(self, conversation: Conversation, user_id: str) -> None: ...

    def save_accepted(self) -> None: ...

    def drop(self, connection: Any, reason: str, code: int | None = None, retry_ms: int | None = None) -> None: ...


class Steps:
    def __init__(self, server: Server) -> None:
        self._server = server
        self.watched: set[str] = set()
        self.present: set[str] = set()

    def prepare(self, given: Frame) -> None:
        """What there is before the client comes."""
        truth = self._server.truth
        self.watched, self.present = set(), set()
        for user_id in (ME, *given.get("users", ("bob", "carol"))):
            truth.add_user(user_id)
        for group_id, about in given.get("groups", {}).items():
            truth.create_group(
                group_id, about.get("name", ""), about["by"], about["members"], about.get("mode", "push")
            )
        for said in given.get("messages", ()):
            self._write(said)
        for kind in ("delivered", "read"):
            for name, seq in given.get(kind, {}).items():
                truth.advance(truth.of(name), ME, kind, seq)

    def run(self, step: Frame) -> None:
        ((name, options),) = step.items()
        getattr(self, f"_{name}")(
            **({} if options is None else {"in_" if n == "in" else n: v for n, v in options.items()})
        )

    def _of(self, name: str) -> Conversation:
        """By id; a single chat with the client also comes to be by being written to."""
        if name.startswith("si_"):
            a, b = name[3:].split(":")
            return self._server.truth.single(a, b)
        return self._server.truth.of(name)

    # -- what others do ----------------------------------------------------------------------------------

    def _write(self, said: Frame) -> list[Message]:
        """`{in, from, text, count?, mentions?, reply_to?}`; `reply_to` is the text of the message replied to."""
        truth, conversation = self._server.truth, self._of(said["in"])
        texts = [said["text"]] if "count" not in said else [f"{said['text']} {n + 1}" for n in range(said["count"])]
        target = None if "reply_to" not in said else self._by_text(said["reply_to"]).server_msg_id
        return [
            truth.append(
                conversation,
                said["from"],
                1,
                text,
                client_msg_id=f"other-{secrets.token_hex(6)}",
                mentions=said.get("mentions"),
                reply_to=target,
                expires_ms=said.get("expires_ms"),
            )
            for text in texts
        ]

    def _by_text(self, text: str) -> Message:
        for conversation in self._server.truth.conversations.values():
            for message in conversation.messages:
                if message.content == text:
                    return message
        raise ValueError(f"nobody has said {text!r}")

    def _say(self, push: bool = True, **said: Any) -> None:
        for message in self._write({"in" if name == "in_" else name: value for name, value in said.items()}):
            if push:
                self._server.push(message)

    def _recall(self, text: str) -> None:
        target = self._by_text(text)
        self._server.push(self._server.truth.recall(target.server_msg_id, target.sender_id))

    def _edit(self, text: str, to: str, mentions: list[str] | None = None) -> None:
        target = self._by_text(text)
        truth = self._server.truth
        self._server.push(changes.edit(truth, target.server_msg_id, target.sender_id, to, mentions))

    def _react(self, text: str, by: str, emoji: str, on: bool = True) -> None:
        self._server.push(changes.react(self._server.truth, self._by_text(text).server_msg_id, by, emoji, on))

    def _pin(self, text: str, by: str, on: bool = True) -> None:
        self._server.push(changes.pin(self._server.truth, self._by_text(text).server_msg_id, by, on))

    def _expire(self, text: str) -> None:
        """Its time is over: no frame is sent."""
        changes.expire(self._by_text(text))

    def _delete_elsewhere(self, texts: list[str]) -> None:
        """The client's user has deleted them on another device."""
        targets = [self._by_text(text) for text in texts]
        conversation = self._server.truth.of(targets[0].conversation_id)
        self.tell_deleted(conversation, [target.server_msg_id for target in targets])

    def _clear_elsewhere(self, in_: str) -> None:
        self.tell_deleted(self._of(in_), [], self._of(in_).head_seq)

    def tell_deleted(self, conversation: Conversation, server_msg_ids: list[str], up_to_seq: int | None = None) -> None:
        self._tell_all(changes.delete(conversation, ME, server_msg_ids, up_to_seq))

    def _settings_elsewhere(self, in_: str, **settings: Any) -> None:
        self.update_settings(in_, settings)

    def update_settings(self, conversation_id: str, settings: Frame) -> Frame:
        """The settings of the client's user, here or on another device; what is false or null has its default."""
        truth, conversation = self._server.truth, self._of(conversation_id)
        member = conversation.members[ME]
        member.settings = {name: value for name, value in (member.settings | settings).items() if value}
        self._tell_all({"type": "SYNC", "conversations": [truth.entry(conversation, ME)], "hasMore": False})
        return truth.list_entry(conversation, ME)

    def _ack(self, in_: str, by: str, kind: str, seq: int | None = None) -> None:
        """Somebody else has got or read what the client wrote."""
        truth, conversation = self._server.truth, self._of(in_)
        upto = conversation.head_seq if seq is None else seq
        truth.advance(conversation, by, kind, upto)
        own = [m for m in conversation.messages if m.sender_id == ME and m.seq <= upto and not m.is_event]
        if own:
            receipt = {"conversationId": in_, "serverMsgId": own[-1].server_msg_id, "msgSeq": own[-1].seq, "from": by}
            for ack_type in ("delivered",) if kind == "delivered" else ("delivered", "read"):
                self._tell_all({"type": "ACK", "ackType": ack_type} | receipt)

    def _read_elsewhere(self, in_: str, seq: int) -> None:
        """The client's user has read it on another device."""
        truth, conversation = self._server.truth, self._of(in_)
        truth.advance(conversation, ME, "read", seq)
        last = conversation.messages[conversation.members[ME].read_seq - 1]
        receipt = {"conversationId": in_, "serverMsgId": last.server_msg_id, "msgSeq": last.seq, "from": ME}
        self._tell_all({"type": "ACK", "ackType": "read"} | receipt)

    def _create_group(self, group_id: str, by: str, members: list[str], mode: str = "push") -> None:
        made = self._server.truth.create_group(group_id, "", by, members, mode)
        self._server.introduce(made, ME)
        self._server.push(made.messages[0])

    def create_group_of(self, by: str, name: str, members: list[str]) -> Frame:
        """The client founds one itself, by HTTP."""
        group_id = f"g_{secrets.token_hex(6)}"
        made = self._server.truth.create_group(group_id, name, by, members)
        self._server.introduce(made, by)
        self._server.push(made.messages[0])
        return {"group_id": group_id, "conversation_id": made.conversation_id, "name": name, "owner_id": by}

    def _join(self, in_: str, user: str) -> None:
        event = self._server.truth.join(self._of(in_), user)
        if user == ME:
            self._server.introduce(self._of(in_), user)
        self._server.push(event)

    def _leave(self, in_: str, user: str, by: str | None = None) -> None:
        self._server.push(self._server.truth.leave(self._of(in_), user, by))

    def _block(self, by: str) -> None:
        self._server.truth.blocked.add((by, ME))

    def _unblock(self, by: str) -> None:
        self._server.truth.blocked.discard((by, ME))

    def _typing(self, in_: str, by: str, on: bool = True) -> None:
        self._tell_all({"type": "TYPING", "from": by, "conversationId": in_, "on": on})

    def _presence(self, user: str, online: bool) -> None:
        (self.present.add if online else self.present.discard)(user)
        if user in self.watched:
            for connection in self._clients():
                self.tell_presence(connection, [user])

    def tell_presence(self, connection: Connection, users: list[str]) -> None:
        told = [
            {"userId": u, "online": u in self.present, "platforms": [5] if u in self.present else []} for u in users
        ]
        connection.tell({"type": "PRESENCE", "users": told})

    # -- copies that are not final -----------------------------------------------------------------------

    def _provisional(self, in_: str, by: str, text: str, name: str) -> None:
        conversation = self._of(in_)
        frame: Frame = {
            "type": "GROUP_CHAT" if conversation.is_group else "SINGLE_CHAT",
            "serverMsgId": self._server.truth.new_id(),
            "clientMsgId": f"other-{secrets.token_hex(6)}",
            "conversationId": in_,
            "from": by,
            "groupId" if conversation.is_group else "to": in_[3:] if conversation.is_group else ME,
            "msgType": 1,
            "body": text,
            "mentions": [],
            "replyToServerMsgId": None,
            "extra": None,
            "status": 0,
            "provisional": True,
            "ts": self._server.truth.now_ms(),
        }
        self._server.provisional[name] = (by, conversation, frame)
        self._tell_all(frame)

    def _finalize(self, name: str, push: bool = True) -> None:
        by, conversation, frame = self._server.provisional.pop(name)
        ids = {"client_msg_id": frame["clientMsgId"], "server_msg_id": frame["serverMsgId"]}
        message = self._server.truth.append(conversation, by, 1, frame["body"], **ids)
        if push:
            self._server.push(message)

    def _withdraw(self, name: str, reason: str = "speak_muted", push: bool = True) -> None:
        _, conversation, frame = self._server.provisional.pop(name)
        told = {"serverMsgId": frame["serverMsgId"], "conversationId": conversation.conversation_id, "reason": reason}
        if push:
            self._tell_all({"type": "MESSAGE_WITHDRAWN"} | told)

    def _forget(self, name: str) -> None:
        """Nobody will ever hear of this copy again."""
        del self._server.provisional[name]

    def _save(self) -> None:
        self._server.save_accepted()

    # -- what goes wrong ---------------------------------------------------------------------------------

    def _clients(self) -> list[Any]:
        return [connection for connection in self._server.connections if connection.user_id == ME]

    def _tell_all(self, frame: Frame) -> None:
        for connection in self._clients():
            connection.tell(frame)

    def _rule(self, **given: Any) -> None:
        self._server.rules.add({"in" if name == "in_" else name: value for name, value in given.items()})

    def _clear_rules(self) -> None:
        self._server.rules.clear()

    def _release(self, order: str = "as held") -> None:
        held, self._server.held = self._server.held, []
        for connection, frame in held if order == "as held" else reversed(held):
            connection.put(frame)

    def _set(self, **settings: Any) -> None:
        self._server.settings |= settings

    def _cut(self) -> None:
        for connection in list(self._server.connections):
            connection.line.cut()

    def _close(self, reason: str, code: int | None = None, retry_after_ms: int | None = None) -> None:
        for connection in list(self._server.connections):
            self._server.drop(connection, reason, code, retry_after_ms)

    def _down(self) -> None:
        self._server.is_down = True
        self._cut()

    def _up(self) -> None:
        self._server.is_down = False

    def _freeze(self) -> None:
        """Connections stay open, and nothing is read or answered any more."""
        self._server.thawed.clear()

    def _thaw(self) -> None:
        self._server.thawed.set()

    def _resync(self, **fields: Any) -> None:
        self._tell_all({"type": "RESYNC", "reason": "push_lost", "afterMs": 0} | fields)

    def _heads(self, *names: str, **_: Any) -> None:
        mine = self._server.truth.mine(ME)
        heads = [{"conversationId": c.conversation_id, "headSeq": c.visible_head(ME)} for c in mine]
        self._tell_all({"type": "HEADS", "conversations": heads})

    def _expire_tokens(self, close: bool = True) -> None:
        """All access tokens given so far have run out; the refresh tokens are good."""
        self._server.expired |= set(self._server.access)
        if close:
            self._close("token_expired")

    def _end_session(self, close: bool = True) -> None:
        self._server.access.clear()
        self._server.refresh.clear()
        if close:
            self._close("session_invalid")

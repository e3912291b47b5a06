"""One connection in each dialect, told in the same words: what tests say and what comes back does not depend on it.

ann = await SPEAKERS["nexo.command.v1"].connect(person)
sent = await ann.say("ben", "hello")
receipt = await ann.expect(Receipt, ack_type="read")
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeVar
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from harness.chat import PATIENCE_S, Person, Tokens, fresh_id

Frame = dict[str, Any]


class Said(NamedTuple):
    """A message. `chat` is the other's id, or the group's."""

    msg_id: str
    chat: str
    seq: int
    sender: str
    content: Any
    mentions: tuple[str, ...] = ()
    important: bool = False
    reply_to: str | None = None
    quote: str | None = None
    recalled: bool = False


class GroupEvent(NamedTuple):
    chat: str
    seq: int
    msg_type: int
    content: Any


class Recalled(NamedTuple):
    """`seq` is the event's."""

    msg_id: str
    chat: str
    seq: int
    by: str


class Receipt(NamedTuple):
    ack_type: str
    chat: str
    msg_id: str
    seq: int
    user_id: str


class Typing(NamedTuple):
    chat: str
    user_id: str
    on: bool


class Presence(NamedTuple):
    users: tuple[tuple[str, bool], ...]


class Deleted(NamedTuple):
    """What one deleted for oneself, on another device."""

    chat: str
    msg_ids: tuple[str, ...]
    up_to_seq: int | None
    deleted_rev: int


class Resync(NamedTuple):
    reason: str


class Problem(NamedTuple):
    """An error that answers nothing: kicked, shutdown and the like."""

    reason: str


class Notice(NamedTuple):
    """There is something new in a group."""

    chat: str
    head_seq: int
    important: bool


class Heads(NamedTuple):
    heads: tuple[tuple[str, int], ...]


class Joined(NamedTuple):
    """The entry of a conversation one has come into."""

    chat: str
    head_seq: int
    min_seq: int


class Accepted(NamedTuple):
    """Two-phase: it is in a queue."""

    client_msg_id: str
    msg_id: str


class Provisional(NamedTuple):
    """Two-phase: a message that has no place yet."""

    msg_id: str
    chat: str
    sender: str
    content: Any


class Withdrawn(NamedTuple):
    """Two-phase: a provisional message that never got a place."""

    msg_id: str
    chat: str
    reason: str


Early = Accepted | Provisional | Withdrawn
Note = Said | GroupEvent | Recalled | Receipt | Typing | Presence | Resync | Problem | Notice | Heads | Joined | Deleted
N = TypeVar("N", bound=tuple[Any, ...])
T = TypeVar("T")


def type_of(content: Any) -> int:
    """The msg_type of what is said: a picture if it names a file, else a text."""
    return 2 if isinstance(content, dict) and "file_id" in content else 1


class Sent(NamedTuple):
    msg_id: str
    seq: int


class Refused(Exception):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def peer_in(conversation_id: str, me: str) -> str:
    """The chat behind `si_a:b` or `sg_g_…`."""
    if conversation_id.startswith("sg_"):
        return conversation_id[3:]
    low, high = conversation_id[3:].split(":")
    return high if low == me else low


def conversation_of(chat: str, me: str) -> str:
    return f"sg_{chat}" if chat.startswith("g_") else "si_{}:{}".format(*sorted((chat, me)))


class Speaker(ABC):
    """A signed-in connection. What is pushed is kept as notes, in order; `expect` takes them one by one."""

    dialect: ClassVar[str]
    accepts_apart: ClassVar[bool] = False  # `accepted` is a frame of its own, and no answer

    def __init__(self, person: Person) -> None:
        self.person = person
        self.me = person.user_id
        self.notes: list[Note] = []
        self.early: list[Early] = []
        self.frames: list[Frame] = []
        self.close_code: int | None = None
        self._answers: list[Frame] = []
        self._changed = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._numbers = itertools.count(1)
        self._asked: dict[str, str] = {}  # client_msg_id → the request it went with
        self._socket: ClientConnection
        self._reader: asyncio.Task[None]

    @classmethod
    async def connect(
        cls, person: Person, tokens: Tokens | None = None, have: Mapping[str, int] | None = None, **options: Any
    ) -> Self:
        """A new connection, up to date: what came since `have` (chat: seq) is in its notes."""
        speaker = cls(person)
        await speaker._open((tokens or person.tokens).access, options)
        await speaker._sign_in((tokens or person.tokens).access, have or {})
        return speaker

    # -- what differs ------------------------------------------------------------------------------------

    @abstractmethod
    def _address(self, token: str) -> str: ...

    @abstractmethod
    async def _sign_in(self, token: str, have: Mapping[str, int]) -> None: ...

    @abstractmethod
    def _note(self, frame: Frame) -> Note | None:
        """What a frame tells, or None for an answer."""

    @abstractmethod
    def _early(self, frame: Frame) -> Early | None:
        """What a frame tells that is not certain yet."""

    @abstractmethod
    async def offer(self, to: str, content: Any, mentions: tuple[str, ...] = (), reply_to: str | None = None) -> str:
        """Send, and wait for nothing; its client_msg_id."""

    @abstractmethod
    async def outcome(self, client_msg_id: str) -> Sent:
        """What became of it in the end; raises Refused."""

    @abstractmethod
    async def recall(self, msg_id: str) -> int: ...

    @abstractmethod
    async def delivered(self, said: Said) -> None: ...

    @abstractmethod
    async def read(self, said: Said) -> None: ...

    @abstractmethod
    async def history(self, chat: str) -> list[Note]:
        """All that is visible of a chat, ascending."""

    @abstractmethod
    async def typing(self, chat: str, on: bool) -> None: ...

    @abstractmethod
    async def watch(self, *user_ids: str) -> None: ...

    # -- what does not -----------------------------------------------------------------------------------

    async def _open(self, token: str, options: dict[str, Any]) -> None:
        self._socket = await connect(
            self.person.world.server.ws_address + self._address(token),
            compression=None,
            ping_interval=None,
            open_timeout=PATIENCE_S,
            close_timeout=PATIENCE_S,
            max_size=None,
            proxy=None,
            **options,
        )
        self._reader = asyncio.create_task(self._read())
        self.person.world.speakers.append(self)

    async def _read(self) -> None:
        try:
            async for data in self._socket:
                await self._may_read.wait()
                self._take(json.loads(data))
                self._changed.set()
        except ConnectionClosed:
            pass
        finally:
            self.close_code = self._socket.close_code
            self._changed.set()

    async def say(self, to: str, content: Any, *, mentions: tuple[str, ...] = (), reply_to: str | None = None) -> Sent:
        return await self.outcome(await self.offer(to, content, mentions, reply_to))

    def _take(self, frame: Frame) -> None:
        self.frames.append(frame)
        early = self._early(frame)
        if early is not None:
            self.early.append(early)
            if self.accepts_apart or not isinstance(early, Accepted):
                return
        note = self._note(frame)
        if note is None:
            self._answers.append(frame)
        else:
            self.notes.append(note)

    async def close(self) -> None:
        self.resume()
        await self._socket.close()
        await self._reader

    async def closed(self) -> int:
        """The close code, once the server has ended the connection."""
        await asyncio.wait_for(asyncio.shield(self._reader), PATIENCE_S)
        assert self.close_code is not None
        return self.close_code

    def pause(self) -> None:
        """Take nothing more, so that what is sent piles up on the way."""
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()

    async def expect(self, kind: type[N], **fields: Any) -> N:
        """The first note of that kind with these fields that was not taken yet; waits for it."""

        def look() -> N | None:
            heard: list[Any] = self.early if issubclass(kind, Early) else self.notes
            for i, note in enumerate(heard):
                if isinstance(note, kind) and all(getattr(note, name) == value for name, value in fields.items()):
                    del heard[i]
                    return note
            return None

        return await self._wait(look, f"{kind.__name__} {fields}")

    async def answer(self, **fields: Any) -> Frame:
        """The first answer with these fields that was not taken yet; waits for it."""

        def look() -> Frame | None:
            for i, frame in enumerate(self._answers):
                if all(frame.get(name) == value for name, value in fields.items()):
                    return self._answers.pop(i)
            return None

        return await self._wait(look, f"an answer {fields}")

    async def _late_answer(self, client_msg_id: str) -> Frame:
        """The push that tells what became of a message that was accepted."""

        def look() -> Frame | None:
            for i, frame in enumerate(self._answers):
                if frame["data"] and frame["data"].get("client_msg_id") == client_msg_id:
                    return self._answers.pop(i)
            return None

        return await self._wait(look, f"what became of {client_msg_id}")

    async def _wait(self, look: Callable[[], T | None], what: str) -> T:
        deadline = time.monotonic() + PATIENCE_S
        while (found := look()) is None:
            self._changed.clear()
            wait_s = deadline - time.monotonic()
            if self._reader.done() or wait_s <= 0:
                raise AssertionError(
                    f"{self.dialect} of {self.me} waits for {what}; closed {self.close_code}; notes {self.notes[-5:]};"
                    f" last {self.frames[-3:]}"
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
        return found

    async def send(self, frame: Frame) -> None:
        await self._socket.send(json.dumps(frame))


class EnvelopeSpeaker(Speaker):
    dialect = "nexo.envelope.v1"
    accepts_apart = True

    def _address(self, token: str) -> str:
        return ""

    async def _sign_in(self, token: str, have: Mapping[str, int]) -> None:
        baselines = {conversation_of(chat, self.me): seq for chat, seq in have.items()}
        await self.send({"type": "AUTH", "token": token, "baselines": baselines})
        await self.answer(type="AUTH_OK")
        await self.answer(type="SYNC")
        while (await self.answer(type="RESEND_DONE"))["hasMore"]:
            for note in self.notes:
                if isinstance(note, Said | GroupEvent | Recalled):
                    baselines[conversation_of(note.chat, self.me)] = note.seq
            await self.send({"type": "RESEND", "baselines": baselines})

    def _chat(self, frame: Frame) -> str:
        return peer_in(frame["conversationId"], self.me)

    def _note(self, frame: Frame) -> Note | None:
        match frame["type"]:
            case "SINGLE_CHAT" | "GROUP_CHAT" | "GROUP_EVENT":
                return self._message(frame)
            case "MESSAGE_REVOKED":
                return Recalled(frame["serverMsgId"], self._chat(frame), frame["msgSeq"], frame["from"])
            case "ACK" if "from" in frame:
                return Receipt(
                    frame["ackType"], self._chat(frame), frame["serverMsgId"], frame["msgSeq"], frame["from"]
                )
            case "DELETED":
                ids = tuple(frame.get("serverMsgIds", ()))
                return Deleted(self._chat(frame), ids, frame.get("upToSeq"), frame["deletedRev"])
            case "RESYNC":
                return Resync(frame["reason"])
            case "TYPING":
                return Typing(self._chat(frame), frame["from"], frame["on"])
            case "PRESENCE":
                return Presence(tuple((user["userId"], user["online"]) for user in frame["users"]))
            case "GROUP_NOTIFY":
                return Notice(self._chat(frame), frame["headSeq"], frame.get("important", False))
            case "HEADS":
                return Heads(tuple((self._chat(head), head["headSeq"]) for head in frame["conversations"]))
            case "ERROR" if "clientMsgId" not in frame and "serverMsgId" not in frame:
                return Problem(frame["reason"])
            case "SYNC" if len(frame["conversations"]) == 1 and not self._is_asked_for():
                entry = frame["conversations"][0]
                return Joined(self._chat(entry), entry["headSeq"], entry["minSeq"])
        return None

    def _early(self, frame: Frame) -> Early | None:
        if frame.get("ackType") == "accepted":
            return Accepted(frame["clientMsgId"], frame["serverMsgId"])
        if frame.get("provisional"):
            assert "msgSeq" not in frame
            return Provisional(frame["serverMsgId"], self._chat(frame), frame["from"], frame["body"])
        if frame["type"] == "MESSAGE_WITHDRAWN":
            return Withdrawn(frame["serverMsgId"], self._chat(frame), frame["reason"])
        return None

    def _is_asked_for(self) -> bool:
        return all(frame["type"] != "RESEND_DONE" for frame in self.frames)

    def _message(self, frame: Frame) -> Note:
        chat = self._chat(frame)
        if frame["type"] == "GROUP_EVENT":
            if frame["msgType"] == 100:
                return Recalled(frame["body"]["server_msg_id"], chat, frame["msgSeq"], frame["from"])
            return GroupEvent(chat, frame["msgSeq"], frame["msgType"], frame["body"])
        return Said(
            frame["serverMsgId"],
            chat,
            frame["msgSeq"],
            frame["from"],
            frame["body"],
            tuple(frame["mentions"]),
            frame.get("important", False),
            frame["replyToServerMsgId"],
            frame["quote"]["text"] if "quote" in frame else None,
            frame["status"] == 1,
        )

    async def offer(self, to: str, content: Any, mentions: tuple[str, ...] = (), reply_to: str | None = None) -> str:
        kind, where = ("GROUP_CHAT", "groupId") if to.startswith("g_") else ("SINGLE_CHAT", "to")
        name = fresh_id()
        frame = {"type": kind, "clientMsgId": name, where: to, "body": content, "mentions": list(mentions)}
        await self.send({**frame, "msgType": type_of(content), "replyToServerMsgId": reply_to})
        return name

    async def outcome(self, client_msg_id: str) -> Sent:
        done = await self.answer(clientMsgId=client_msg_id)
        if done["type"] == "ERROR":
            raise Refused(done["reason"])
        return Sent(done["serverMsgId"], done["msgSeq"])

    async def recall(self, msg_id: str) -> int:
        await self.send({"type": "MESSAGE_REVOKE", "serverMsgId": msg_id})
        done = await self.answer(serverMsgId=msg_id)
        if done["type"] == "ERROR":
            raise Refused(done["reason"])
        return int(done["msgSeq"])

    async def delivered(self, said: Said) -> None:
        await self.send({"type": "ACK", "ackType": "delivered", "serverMsgId": said.msg_id})

    async def read(self, said: Said) -> None:
        await self.send({"type": "ACK", "ackType": "read", "serverMsgId": said.msg_id})

    async def history(self, chat: str) -> list[Note]:
        await self.send({"type": "PULL", "conversationId": conversation_of(chat, self.me), "beginSeq": 1})
        page = await self.answer(type="PULL_OK")
        return [self._message(frame) for frame in page["messages"]]

    async def typing(self, chat: str, on: bool) -> None:
        await self.send({"type": "TYPING", "groupId" if chat.startswith("g_") else "to": chat, "on": on})

    async def watch(self, *user_ids: str) -> None:
        await self.send({"type": "PRESENCE", "subscribe": list(user_ids)})


class RequestSpeaker(Speaker):
    dialect = "nexo.request.v1"

    def _address(self, token: str) -> str:
        query = {"token": token, "send_id": self.me, "operation_id": "tests", "sdk_type": "python"}
        return "?" + urlencode({**query, "is_msg_resp": "true"})

    async def _sign_in(self, token: str, have: Mapping[str, int]) -> None:
        await self.answer(err_code=0, err_msg="")
        for head in (await self.ask(1001))["conversations"]:
            name = head["conversation_id"]
            start = have.get(peer_in(name, self.me))
            if start is not None and head["max_seq"] > start:
                self.notes += await self._pull(name, start + 1)

    async def _pull(self, conversation_id: str, begin_seq: int) -> list[Note]:
        found: list[Note] = []
        has_more = True
        while has_more:
            page = await self.ask(1005, conversation_id=conversation_id, begin_seq=begin_seq)
            found += [self._message(message) for message in page["messages"]]
            begin_seq, has_more = page["next_seq"], page["has_more"]
        return found

    async def _request(self, number: int, data: Frame) -> str:
        incr = str(next(self._numbers))
        await self.send(
            {"req_identifier": number, "msg_incr": incr, "operation_id": f"op{incr}", "send_id": self.me, "data": data}
        )
        return incr

    async def ask(self, number: int, **data: Any) -> Any:
        return await self._reply(number, await self._request(number, data))

    async def _reply(self, number: int, incr: str) -> Any:
        done = await self.answer(msg_incr=incr)
        assert (done["req_identifier"], done["operation_id"]) == (number, f"op{incr}")
        if done["err_code"]:
            raise Refused(done["err_msg"])
        return done["data"]

    async def pushed(self, number: int) -> Frame:
        """The data of the first push of that number, as it came."""

        def look() -> Frame | None:
            return next((frame["data"] for frame in self.frames if frame.get("req_identifier") == number), None)

        return await self._wait(look, str(number))

    def _note(self, frame: Frame) -> Note | None:
        if frame.get("req_identifier", 0) < 2000:
            return None
        assert (frame["msg_incr"], frame["err_code"]) == ("", 0)
        data = frame["data"]
        chat = peer_in(data["conversation_id"], self.me) if "conversation_id" in data else ""
        match frame["req_identifier"]:
            case 2001:
                return self._message(data)
            case 2009 | 2017 | 2020 | 2021 | 2024 | 2025 | 2026:
                return None
            case 2010 if "client_msg_id" in data:
                return None
            case 2002 | 2010:
                return Problem(data["reason"])
            case 2003 | 2008 as number:
                kind = "read" if number == 2003 else "delivered"
                return Receipt(kind, chat, data["server_msg_id"], data["seq"], data["user_id"])
            case 2004:
                return Resync(data["reason"])
            case 2005:
                return Presence(tuple((user["user_id"], user["online"]) for user in data["users"]))
            case 2006:
                assert data["group_id"] == chat
                return Notice(chat, data["head_seq"], data.get("important", False))
            case 2007:
                return Recalled(data["server_msg_id"], chat, data["seq"], data["by"])
            case 2018:
                ids = tuple(data.get("server_msg_ids", ()))
                return Deleted(chat, ids, data.get("up_to_seq"), data["deleted_rev"])
            case 2012:
                return Typing(chat, data["user_id"], data["on"])
            case 2013 if "min_seq" not in data["conversations"][0]:
                heads = data["conversations"]
                return Heads(tuple((peer_in(head["conversation_id"], self.me), head["head_seq"]) for head in heads))
            case 2013:
                (entry,) = data["conversations"]
                return Joined(peer_in(entry["conversation_id"], self.me), entry["head_seq"], entry["min_seq"])
        raise AssertionError(f"an unknown push: {frame}")

    def _message(self, data: Frame) -> Note:
        chat = peer_in(data["conversation_id"], self.me)
        if data["msg_type"] == 100:
            return Recalled(data["content"]["server_msg_id"], chat, data["seq"], data["sender_id"])
        if data["msg_type"] > 100:
            return GroupEvent(chat, data["seq"], data["msg_type"], data["content"])
        return Said(
            data["server_msg_id"],
            chat,
            data["seq"],
            data["sender_id"],
            data["content"],
            tuple(data["mentions"]),
            data.get("important", False),
            data["reply_to"],
            data["quote"]["text"] if "quote" in data else None,
            data["status"] == 1,
        )

    def _early(self, frame: Frame) -> Early | None:
        data = frame.get("data") or {}
        if data.get("status") == "accepted":
            assert "seq" not in data
            return Accepted(data["client_msg_id"], data["server_msg_id"])
        if data.get("provisional"):
            assert "seq" not in data
            chat = peer_in(data["conversation_id"], self.me)
            return Provisional(data["server_msg_id"], chat, data["sender_id"], data["content"])
        if frame.get("req_identifier") == 2011:
            return Withdrawn(data["server_msg_id"], peer_in(data["conversation_id"], self.me), data["reason"])
        return None

    async def offer(self, to: str, content: Any, mentions: tuple[str, ...] = (), reply_to: str | None = None) -> str:
        fields = {"client_msg_id": fresh_id(), "content": content, "mentions": list(mentions), "reply_to": reply_to}
        where = "group_id" if to.startswith("g_") else "recv_id"
        typed = {**fields, "msg_type": type_of(content), where: to}
        self._asked[fields["client_msg_id"]] = await self._request(1003, typed)
        return str(fields["client_msg_id"])

    async def outcome(self, client_msg_id: str) -> Sent:
        done = await self._reply(1003, self._asked.pop(client_msg_id))
        if done["status"] == "accepted":
            push = await self._late_answer(client_msg_id)
            done = push["data"]
            if push["req_identifier"] == 2010:
                raise Refused(done["reason"])
        return Sent(done["server_msg_id"], done["seq"])

    async def recall(self, msg_id: str) -> int:
        return int((await self.ask(1009, server_msg_id=msg_id))["seq"])

    async def delivered(self, said: Said) -> None:
        await self.ask(1008, conversation_id=conversation_of(said.chat, self.me), seq=said.seq)

    async def read(self, said: Said) -> None:
        await self.ask(1004, conversation_id=conversation_of(said.chat, self.me), seq=said.seq)

    async def history(self, chat: str) -> list[Note]:
        return await self._pull(conversation_of(chat, self.me), 1)

    async def typing(self, chat: str, on: bool) -> None:
        await self.ask(1010, **{"group_id" if chat.startswith("g_") else "recv_id": chat}, on=on)

    async def watch(self, *user_ids: str) -> None:
        users = (await self.ask(1011, user_ids=list(user_ids)))["users"]
        self.notes.append(Presence(tuple((user["user_id"], user["online"]) for user in users)))


class CommandSpeaker(Speaker):
    dialect = "nexo.command.v1"

    def _address(self, token: str) -> str:
        return "/cmd"

    async def _sign_in(self, token: str, have: Mapping[str, int]) -> None:
        await self.ask("auth.token", token=token)
        baselines = [{**self._named(chat), "seq": seq} for chat, seq in have.items()]
        cursor, has_more = "", bool(have)
        while has_more:
            page = await self.ask("chat.pull_offline", cursor=cursor, baselines=baselines)
            self.notes += [self._message(message) for message in page["messages"]]
            cursor, has_more = page["next_cursor"], page["has_more"]

    def _named(self, chat: str) -> dict[str, Any]:
        return {"chat_type": 2 if chat.startswith("g_") else 1, "chat_id": chat}

    async def _request(self, cmd: str, data: Frame) -> str:
        request_id = str(next(self._numbers))
        await self.send({"cmd": cmd, "request_id": request_id, "data": data})
        return request_id

    async def ask(self, cmd: str, **data: Any) -> Any:
        return await self._reply(cmd, await self._request(cmd, data))

    async def _reply(self, cmd: str, request_id: str) -> Any:
        done = await self.answer(request_id=request_id)
        assert done["cmd"] == cmd
        if done["code"]:
            raise Refused(done["message"])
        return done["data"]

    async def pushed(self, cmd: str) -> Frame:
        """The data of the first push of that name, as it came."""

        def look() -> Frame | None:
            return next((frame["data"] for frame in self.frames if frame["cmd"] == cmd), None)

        return await self._wait(look, cmd)

    async def all_pushed(self, cmd: str, count: int) -> list[Frame]:
        """The data of the pushes of that name, once there are so many."""

        def look() -> list[Frame] | None:
            found = [frame["data"] for frame in self.frames if frame["cmd"] == cmd]
            return found if len(found) >= count else None

        return await self._wait(look, f"{count} of {cmd}")

    def _chat(self, data: Frame) -> str:
        if "group_id" in data:
            return str(data["group_id"])
        low, high = data["user_ids"]
        return str(high if low == self.me else low)

    def _note(self, frame: Frame) -> Note | None:
        if frame["request_id"]:
            return None
        data = frame["data"]
        match frame["cmd"]:
            case "chat.message" | "group.event":
                return self._message(data)
            case "chat.recalled":
                return Recalled(data["msg_id"], self._chat(data), data["seq"], data["by"])
            case "chat.read_receipt" | "chat.delivered_receipt" as cmd:
                kind = "read" if cmd == "chat.read_receipt" else "delivered"
                return Receipt(kind, self._chat(data), data["msg_id"], data["seq"], data["user_id"])
            case "chat.typing":
                return Typing(self._chat(data), data["user_id"], data["on"])
            case "presence.changed":
                return Presence(tuple((user["user_id"], user["online"]) for user in data["users"]))
            case "chat.deleted":
                ids = tuple(data.get("msg_ids", ()))
                return Deleted(self._chat(data), ids, data.get("up_to_seq"), data["deleted_rev"])
            case "sync.resync":
                return Resync(data["reason"])
            case "chat.saved" | "contact.event":
                return None
            case "call.invite" | "call.accept" | "call.ice" | "call.end" | "call.timeout":
                return None
            case "session.error" if "client_msg_id" in data:
                return None
            case "session.kicked" | "session.error":
                return Problem(data["reason"])
            case "chat.notify":
                return Notice(self._chat(data), data["head_seq"], data.get("important", False))
            case "chat.heads" if "min_seq" not in data["conversations"][0]:
                return Heads(tuple((self._chat(head), head["head_seq"]) for head in data["conversations"]))
            case "chat.heads":
                (entry,) = data["conversations"]
                return Joined(self._chat(entry), entry["head_seq"], entry["min_seq"])
        raise AssertionError(f"an unknown push: {frame}")

    def _message(self, data: Frame) -> Note:
        peer = data["to_id"] if data["chat_type"] == 2 or data["from_user_id"] == self.me else data["from_user_id"]
        if data["msg_type"] == 100:
            return Recalled(data["content"]["server_msg_id"], peer, data["seq"], data["from_user_id"])
        if data["msg_type"] > 100:
            return GroupEvent(peer, data["seq"], data["msg_type"], data["content"])
        return Said(
            data["msg_id"],
            peer,
            data["seq"],
            data["from_user_id"],
            data["content"],
            tuple(data["mentions"]),
            data.get("important", False),
            data["reply_to"],
            data["quote"]["text"] if "quote" in data else None,
            data["status"] == 1,
        )

    def _early(self, frame: Frame) -> Early | None:
        data = frame["data"] or {}
        if data.get("status") == "accepted":
            assert "seq" not in data
            return Accepted(data["client_msg_id"], data["msg_id"])
        if data.get("provisional"):
            assert "seq" not in data
            mine = data["chat_type"] == 2 or data["from_user_id"] == self.me
            chat = data["to_id"] if mine else data["from_user_id"]
            return Provisional(data["msg_id"], chat, data["from_user_id"], data["content"])
        if frame["cmd"] == "chat.withdrawn":
            return Withdrawn(data["msg_id"], self._chat(data), data["reason"])
        return None

    async def offer(self, to: str, content: Any, mentions: tuple[str, ...] = (), reply_to: str | None = None) -> str:
        name = fresh_id()
        fields = {"client_msg_id": name, "content": content, "mentions": list(mentions), "reply_to": reply_to}
        chat_type = self._named(to)["chat_type"]
        typed = {**fields, "msg_type": type_of(content), "chat_type": chat_type, "to_id": to}
        self._asked[name] = await self._request("chat.send_message", typed)
        return name

    async def outcome(self, client_msg_id: str) -> Sent:
        done = await self._reply("chat.send_message", self._asked.pop(client_msg_id))
        if done["status"] == "accepted":
            push = await self._late_answer(client_msg_id)
            done = push["data"]
            if push["cmd"] == "session.error":
                raise Refused(done["reason"])
        return Sent(done["msg_id"], done["seq"])

    async def recall(self, msg_id: str) -> int:
        return int((await self.ask("chat.recall_message", msg_id=msg_id))["seq"])

    async def delivered(self, said: Said) -> None:
        await self.ask("chat.ack", msg_id=said.msg_id)

    async def read(self, said: Said) -> None:
        await self.ask("chat.mark_read", **self._named(said.chat), last_msg_id=said.msg_id)

    async def history(self, chat: str) -> list[Note]:
        page = await self.ask("chat.get_history", **self._named(chat))
        return [self._message(message) for message in reversed(page["messages"])]

    async def typing(self, chat: str, on: bool) -> None:
        await self.ask("chat.typing", **self._named(chat), on=on)

    async def watch(self, *user_ids: str) -> None:
        users = (await self.ask("presence.subscribe", user_ids=list(user_ids)))["users"]
        self.notes.append(Presence(tuple((user["user_id"], user["online"]) for user in users)))


SPEAKERS: dict[str, type[Speaker]] = {speaker.dialect: speaker for speaker in Speaker.__subclasses__()}

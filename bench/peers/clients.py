"""Three clients for the same load: Nexo, Socket.IO and XMPP. All of them are plain asyncio protocols.

A client sends with `say(target, text)` and is called at `on_stored` (the server answered that it keeps the message) and
`on_text` (a message of another user arrived). XMPP servers do not answer a message: there, and only there, a place in
the window becomes free when the receiver has it.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from nexo.bench.http import ServerAddress
from nexo.bench.websocket import BenchConnection, open_connection, upgrade_request

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def ignore(*_: object) -> None:
    return


class Client:
    answers = True  # whether the server says that it stored a message

    def __init__(self, port: int, user: str, token: str = "") -> None:
        self.port = port
        self.user = user
        self.token = token
        self.on_text: Callable[[str], None] = ignore
        self.on_stored: Callable[[], None] = ignore
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self) -> None:
        raise NotImplementedError

    def say(self, target: str, text: str) -> None:
        raise NotImplementedError

    def say_to_room(self, room: str, text: str) -> None:
        raise NotImplementedError

    async def enter(self, room: str) -> None:
        """Become a member that receives the messages of the room."""

    async def settle(self) -> None:
        """Until the server has worked through what this client sent, where that is not answered."""

    def ask_for_missed(self) -> None:
        """After connecting: whatever the server does not send by itself."""

    def close(self) -> None:
        raise NotImplementedError

    def _let_go(self) -> None:
        if not self.ready.done():
            self.ready.set_result(None)


class NexoClient(Client):
    """Envelope dialect. Messages of single chats are acknowledged `delivered` one by one; those of groups are not,
    because no other server in this comparison does, and Nexo's clients acknowledge them a few times a second."""

    async def connect(self) -> None:
        address = ServerAddress(f"http://127.0.0.1:{self.port}")
        upgrade = upgrade_request(address, "/ws", "nexo.envelope.v1")

        def make() -> BenchConnection:
            self.connection = BenchConnection(upgrade, self._opened, self._heard, ignore)
            return self.connection

        await open_connection(address, make)
        await self.ready

    def _opened(self) -> None:
        self.connection.send(_encode({"type": "AUTH", "token": self.token, "deviceId": "peer"}))

    def _heard(self, payload: bytes) -> None:
        frame = _decode(payload)
        kind = frame["type"]
        if kind == "ACK":
            if frame["ackType"] == "saved":
                self.on_stored()
        elif kind in ("SINGLE_CHAT", "GROUP_CHAT"):
            self.on_text(frame["body"])
            self.last = (frame["conversationId"], frame["msgSeq"])
            if kind == "SINGLE_CHAT":
                self._acknowledge(frame["serverMsgId"])
        elif kind == "RESEND_DONE":
            self._more = frame["hasMore"]
            self._let_go()
            if self._more:
                self._pull(*self.last)
        elif kind == "PULL_OK":
            for message in frame["messages"]:
                self.on_text(message["body"])
            if frame["messages"]:
                self._acknowledge(frame["messages"][-1]["serverMsgId"])
            if frame["hasMore"]:
                self._pull(frame["conversationId"], frame["nextSeq"] - 1)
        elif kind in ("ERROR", "AUTH_FAIL"):
            raise AssertionError(frame)

    def _acknowledge(self, server_msg_id: str) -> None:
        self.connection.send(b'{"type":"ACK","ackType":"delivered","serverMsgId":"%b"}' % server_msg_id.encode())

    def _pull(self, conversation_id: str, after: int) -> None:
        self.connection.send(_encode({"type": "PULL", "conversationId": conversation_id, "beginSeq": after + 1}))

    def say(self, target: str, text: str) -> None:
        frame = {"type": "SINGLE_CHAT", "clientMsgId": _id_of(text), "to": target, "body": text}
        self.connection.send(_encode(frame))

    def say_to_room(self, room: str, text: str) -> None:
        frame = {"type": "GROUP_CHAT", "clientMsgId": _id_of(text), "groupId": room, "body": text}
        self.connection.send(_encode(frame))

    def close(self) -> None:
        self.connection.cut()


def _id_of(text: str) -> str:
    """Random to an index, as figures for Nexo are taken everywhere."""
    return f"{hash(text) & 0xFFFFFFFFFFFFFFFF:016x}"


class SocketIoClient(Client):
    """Engine.IO 4 over WebSocket: 0 open, 2 ping, 3 pong, 40 connected, 42 event, 43 answer."""

    async def connect(self) -> None:
        address = ServerAddress(f"http://127.0.0.1:{self.port}")
        upgrade = upgrade_request(address, "/socket.io/?EIO=4&transport=websocket", "none")
        upgrade = upgrade.replace(b"Sec-WebSocket-Protocol: none\r\n", b"")
        self._asked = 0
        self._catching_up = False

        def make() -> BenchConnection:
            self.connection = BenchConnection(upgrade, ignore, self._heard, ignore)
            return self.connection

        await open_connection(address, make)
        await self.ready

    def _heard(self, payload: bytes) -> None:
        if payload.startswith(b"42"):
            self.on_text(_decode(payload[2:])[3])
        elif payload.startswith(b"43"):
            self._answered(_decode(payload[payload.index(b"[") :])[0])
        elif payload == b"2":
            self.connection.send(b"3")
        elif payload.startswith(b"0"):
            self.connection.send(b"40" + _encode({"user": self.user}))
        elif payload.startswith(b"40"):
            self._let_go()

    def _answered(self, value: Any) -> None:
        if isinstance(value, list):
            for _, _, body in value:
                self.on_text(body)
            if len(value) == 200:
                self._emit("since", value[-1][0])
        else:
            self.on_stored()

    def _emit(self, *event: object) -> None:
        self._asked += 1
        self.connection.send(b"42%d" % self._asked + _encode(event))

    def say(self, target: str, text: str) -> None:
        self._emit("say", target, text)

    def say_to_room(self, room: str, text: str) -> None:
        self._emit("say", room, text)

    async def enter(self, room: str) -> None:
        self._emit("enter", room)

    def ask_for_missed(self) -> None:
        self._emit("since", 0)

    def close(self) -> None:
        self.connection.cut()


_BODY = re.compile(r"<body>([^<]*)</body>")
_STREAM = (
    "<stream:stream to='localhost' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
)
_LAST = re.compile(r"<last>([^<]*)</last>")


class XmppClient(Client, asyncio.Protocol):
    """As much XMPP as a message needs: registering, signing in, presence, messages, rooms and the archive."""

    answers = False

    async def connect(self) -> None:
        self._buffer = ""
        self._step = 0
        self._entered: asyncio.Future[None] | None = None
        self._settled: asyncio.Future[None] | None = None
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self.port)
        await self.ready

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._write(_STREAM)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(f"{self.user}: {self._buffer[-300:]}"))

    def _write(self, text: str) -> None:
        self.transport.write(text.encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data.decode()
        if self._step < 5:
            self._sign_in()
        if self._step >= 5:
            self._read()

    def _sign_in(self) -> None:
        buffer = self._buffer
        if self._step == 0 and "</stream:features>" in buffer:
            self._next(
                f"<iq type='set' id='r'><query xmlns='jabber:iq:register'><username>{self.user}</username>"
                "<password>benchmark</password></query></iq>"
            )
        elif self._step == 1 and ("</iq>" in buffer or "id='r'/>" in buffer or "type='result'" in buffer):
            secret = base64.b64encode(f"\0{self.user}\0benchmark".encode()).decode()
            self._next(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{secret}</auth>")
        elif self._step == 2 and "<success" in buffer:
            self._next(_STREAM)
        elif self._step == 3 and "</stream:features>" in buffer:
            bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>p</resource></bind>"
            self._next(f"<iq type='set' id='b'>{bind}</iq>")
        elif self._step == 4 and "</iq>" in buffer:
            self._next("<presence/>")
            self._let_go()

    def _next(self, text: str) -> None:
        self._step += 1
        self._buffer = ""
        self._write(text)

    async def settle(self) -> None:
        """A question behind the messages; stanzas of one connection are worked on in order."""
        self._settled = asyncio.get_running_loop().create_future()
        self._write("<iq type='get' id='settle' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>")
        await asyncio.wait_for(self._settled, 120)

    def _read(self) -> None:
        if self._settled is not None and not self._settled.done() and "id='settle'" in self._buffer:
            self._settled.set_result(None)
        if self._entered is not None and not self._entered.done() and "code='110'" in self._buffer:
            self._entered.set_result(None)
        end = self._buffer.rfind("</message>")
        last = _LAST.search(self._buffer)
        done = self._buffer.rfind("</iq>")
        if end >= 0:
            for body in _BODY.findall(self._buffer[:end]):
                self.on_text(body)
        if done > end:
            if last is not None and "complete='true'" not in self._buffer:
                self._ask_archive(last.group(1))
            self._buffer = self._buffer[done + 5 :]
        elif end >= 0:
            self._buffer = self._buffer[end + 10 :]
        if "</presence>" in self._buffer:
            self._buffer = self._buffer[self._buffer.rfind("</presence>") + 11 :]

    def say(self, target: str, text: str) -> None:
        self._write(f"<message to='{target}@localhost' type='chat'><body>{text}</body></message>")

    async def enter(self, room: str) -> None:
        self._entered = asyncio.get_running_loop().create_future()
        nothing = "<x xmlns='http://jabber.org/protocol/muc'><history maxstanzas='0'/></x>"
        self._write(f"<presence to='{room}@conference.localhost/{self.user}'>{nothing}</presence>")
        await asyncio.wait_for(self._entered, 60)

    def say_to_room(self, room: str, text: str) -> None:
        self._write(f"<message to='{room}@conference.localhost' type='groupchat'><body>{text}</body></message>")

    def ask_for_missed(self) -> None:
        self._ask_archive("")

    def _ask_archive(self, after: str) -> None:
        page = f"<set xmlns='http://jabber.org/protocol/rsm'><max>250</max><after>{after}</after></set>"
        if not after:
            page = "<set xmlns='http://jabber.org/protocol/rsm'><max>250</max></set>"
        self._write(f"<iq type='set' id='m'><query xmlns='urn:xmpp:mam:2'>{page}</query></iq>")

    def close(self) -> None:
        self.transport.abort()

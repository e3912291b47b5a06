"""A person that sends over HTTP and receives nothing: a service that writes to users."""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from nexo.bench.frame import Frame
from nexo.bench.http import BenchHttpConnection, decode_answer, header, with_body
from nexo.bench.numbering import client_msg_id_of
from nexo.bench.person import Person, SendTarget, Stage

TRIES = 6
TRIES_OVER_RESTARTS = 25


class _Sent(msgspec.Struct):
    server_msg_id: str
    seq: int = 0


_decode_sent = msgspec.json.Decoder(_Sent).decode


class HttpSender(Person):
    """One kept-alive connection with one request on it at a time; what is to be sent meanwhile waits in line.
    A request whose connection ended is sent again: the server knows it by its client_msg_id."""

    def __init__(self, stage: Stage, number: int, user_id: str, token: str) -> None:
        super().__init__(stage, number, user_id, token)
        self._head = self.address.request_head("POST", "/msg/send", token)
        self._line: deque[tuple[str, bytes]] = deque()
        self._link: BenchHttpConnection | None = None
        self._asking = False  # for an answer, or for a connection

    @property
    def is_connected(self) -> bool:
        return self._link is not None and self._link.open

    async def connect(self) -> None:
        """Only when there is something to send: a server closes connections that are not used for some seconds."""
        self.online = True

    def renew(self, token: str) -> None:
        self.token = token
        self._head = self.address.request_head("POST", "/msg/send", token)

    def leave(self) -> None:
        self.online = False
        self._line.clear()
        if self._link is not None:
            self._link.cut()

    def _send(self, number: int, due: float, target: SendTarget) -> None:
        client_msg_id = client_msg_id_of(self.stage.plan.seed, self.number, number)
        to = "group_id" if target.is_group else "recv_id"
        body = f'{{"client_msg_id":"{client_msg_id}","{to}":"{target.to}","content":"{self.stage.body(due)}"}}'
        self._line.append((client_msg_id, body.encode()))
        self._next()

    def _next(self) -> None:
        if self._asking or not self._line:
            return
        self._asking = True
        if self._link is None:
            self.stage.spawn(self._open())
        else:
            self._link.send(with_body(self._head, self._line[0][1]))

    async def _open(self) -> None:
        pause_s = 0.05
        restarts = self.stage.plan.allow_restarts
        for _ in range(TRIES_OVER_RESTARTS if restarts else TRIES):
            try:
                _, self._link = await self.stage.loop.create_connection(
                    lambda: BenchHttpConnection(self._answered, self._gone),
                    self.address.host,
                    self.address.port,
                    ssl=self.address.tls,
                )
            except OSError as error:
                self._count(self.stage.counts.ended if restarts else self.stage.counts.errors, str(error))
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, 3.2)
            else:
                self._asking = False
                self._next()
                return

    def _gone(self) -> None:
        self._link = None
        if self._asking and self._line:
            counts = self.stage.counts
            is_fault = self.stage.settled and not self.stage.plan.allow_restarts
            self._count(counts.lost if is_fault else counts.ended, "an HTTP request was not answered")
        self._asking = False
        self._next()

    def _answered(self, status: int, head: bytes, body: bytes) -> None:
        client_msg_id, _ = self._line.popleft()
        self._asking = False
        answer = decode_answer(body)
        if status == 200:
            sent = _decode_sent(answer.data)
            self._saved(Frame("ACK", client_msg_id, sent.server_msg_id, msg_seq=sent.seq, ack_type="saved"))
        else:
            # a two-phase server accepts (202); its outcome is not reported over HTTP
            reason = "accepted" if status == 202 else answer.err_msg
            retry_after = header(head, b"retry-after")
            pause_ms = int(retry_after) * 1000 if retry_after.isdigit() else 0
            self._error(Frame("ERROR", client_msg_id, reason=reason, retry_after_ms=pause_ms))
        self._next()

"""The sends of one connection: limits, the order of their answers, and what waits after a transient refusal.

Answers leave in the order of the sends, per conversation. After a transient refusal, later sends of the connection to
that conversation are refused too, until the refused message is sent again or some seconds have passed: a retry must not
be stored behind messages that were sent after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import structlog

from nexo.core import commands, events
from nexo.core.model import Message, Sent, Session
from nexo.errors import NexoError
from nexo.gateway.host import Host
from nexo.ids import is_conversation_id
from nexo.logs import delivery_lines
from nexo.ports import Outcome
from nexo.wire.dialect import Dialect

log = structlog.get_logger()

HOLD_S = 5.0
HELD_MAX = 1000
ECHOES_MAX = 1000  # pushes that wait to be made to the sender of a message
ECHO_GRAIN_S = 0.01  # those that are due within it are pushed together


class Sender(Protocol):
    """The connection, as its sends need it."""

    host: Host[Any]
    dialect: Dialect
    session: Session
    conn_id: str

    @property
    def closing(self) -> bool: ...

    def write(self, frame: bytes) -> None:
        """Hand over a frame that is an answer."""

    later: Callable[[bytes], bool] | None  # takes pushes that wait behind the client's own messages

    def push(self, frame: bytes) -> bool:
        """Hand over a frame that is no answer."""

    def drop(self, error_name: str, detail: str | None = None) -> None: ...


class Hold(NamedTuple):
    """A send that was refused for now: its successors wait for it."""

    client_msg_id: str
    until: float
    error: NexoError
    number: int  # which send of the connection it was


class SendOrigin:
    """One send of a connection, from being taken to its answer (`ports.Origin`); its place in the order of answers."""

    __slots__ = ("_sends", "client_msg_id", "conversation_id", "frame", "number", "output", "ref")

    address = None

    def __init__(self, sends: ConnectionSends, conversation_id: str, client_msg_id: str, number: int, ref: Any) -> None:
        self._sends = sends
        self.output: Any = sends.connection
        self.conversation_id = conversation_id
        self.client_msg_id = client_msg_id
        self.number = number
        self.ref = ref
        self.frame: bytes | None = None  # the answer, once it is known and waits for earlier ones

    def decided(self, outcome: Outcome) -> None:
        sends, connection = self._sends, self.output
        sends.inflight -= 1
        if connection.closing:
            return
        event: events.Event
        if isinstance(outcome, Sent):
            event = events.Saved(outcome.message, outcome.content_changed)
        elif isinstance(outcome, NexoError):
            if outcome.row.retry:
                sends.hold(self.conversation_id, self.client_msg_id, outcome, self.number)
            connection.host.traffic.errors.add(outcome.name)
            event = events.Failed(outcome)
        else:
            event = outcome
        if delivery_lines.is_on or (isinstance(outcome, NexoError) and outcome.name == "internal_error"):
            sends.log_outcome(self, outcome)
        sends.answer(self, event)


class ConnectionSends:
    __slots__ = ("_answers", "_count", "_echoes", "_holds", "connection", "inflight")

    def __init__(self, connection: Sender) -> None:
        self.connection = connection
        self.inflight = 0  # sends that wait for their answer
        self._count = 0  # sends so far
        self._answers: dict[str, deque[SendOrigin]] = {}  # by conversation, in the order of the sends
        self._holds: dict[str, Hold] = {}  # by conversation
        self._echoes: deque[tuple[float, bytes]] | None = None  # when due, and the frame

    def send(self, command: commands.Send, ref: Any) -> None:
        """Check a send and submit it, or refuse it at its place in the order of answers."""
        connection = self.connection
        host, user_id = connection.host, connection.session.user_id
        try:
            draft = host.sending.draft(user_id, command)
        except NexoError as error:
            self._refuse(command.place(user_id), error, ref)
            return
        conversation_id, client_msg_id = draft.conversation_id, draft.client_msg_id
        number = self._number_of(conversation_id, client_msg_id) if self._holds else None
        if number is None:
            number = self._count = self._count + 1
        refusal = self._refusal(conversation_id, client_msg_id)
        if refusal is None:
            origin = SendOrigin(self, conversation_id, client_msg_id, number, ref)
            try:
                sending = host.sending
                if sending.gate is None and sending.acceptor is None:
                    sending.store(draft, origin)
                else:
                    sending.submit(draft, connection.conn_id, origin)
            except NexoError as error:
                refusal = error
            else:
                self.inflight += 1
                queue = self._answers.get(conversation_id)
                if queue is None:
                    queue = self._answers[conversation_id] = deque()
                queue.append(origin)
                return
        self.hold(conversation_id, client_msg_id, refusal, number)
        self._refuse(conversation_id, refusal, ref)

    def refuse_over_rate(self, command: commands.Send, error: NexoError, ref: Any) -> None:
        """The connection sends frames too fast: refuse this one, and its successors until it is back."""
        user_id = self.connection.session.user_id
        conversation_id = command.place(user_id)
        with contextlib.suppress(NexoError):  # a send that can never succeed is not waited for
            draft = self.connection.host.sending.draft(user_id, command)
            number = self._number_of(conversation_id, draft.client_msg_id)
            if number is None:
                number = self._count = self._count + 1
            self.hold(conversation_id, draft.client_msg_id, error, number)
        self._refuse(conversation_id, error, ref)

    def _refusal(self, conversation_id: str, client_msg_id: str) -> NexoError | None:
        """Returns why this send cannot be taken now."""
        host = self.connection.host
        if self._holds:
            held = self._holds.get(conversation_id)
            if held is not None:
                if held.client_msg_id != client_msg_id and time.monotonic() < held.until:
                    return held.error
                del self._holds[conversation_id]
        if self.inflight >= host.rules.inflight_sends > 0:
            host.traffic.refusals.add("inflight_sends")
            return NexoError("too_many_requests", "Too many sends are waiting for their answer", retry_after_ms=100)
        wait_ms = host.send_limits.take(self.connection.session.user_id)
        if wait_ms:
            return NexoError("too_many_requests", "You send too fast", retry_after_ms=wait_ms)
        return None

    # -- the order after a refusal -------------------------------------------------------------------------

    def _number_of(self, conversation_id: str, client_msg_id: str) -> int | None:
        """Returns the number of a send that is repeated after a refusal: it keeps its place in the order."""
        held = self._holds.get(conversation_id)
        return held.number if held is not None and held.client_msg_id == client_msg_id else None

    def hold(self, conversation_id: str, client_msg_id: str, error: NexoError, number: int) -> None:
        """Hold back later sends. The earliest refusal counts: a send before this one may be refused only now."""
        held = self._holds.get(conversation_id)
        if held is None or number < held.number:
            now = time.monotonic()
            if len(self._holds) >= HELD_MAX:
                self._holds = {key: one for key, one in self._holds.items() if one.until > now}
            if len(self._holds) >= HELD_MAX:  # forgetting one could change the order of a sender's messages
                self.connection.drop("too_many_requests")
                return
            self._holds[conversation_id] = Hold(client_msg_id, now + HOLD_S, error, number)

    # -- the order of answers ------------------------------------------------------------------------------

    def answer(self, origin: SendOrigin, event: events.Event) -> None:
        """Write this answer if no earlier one is missing, and the later ones that waited for it."""
        connection, conversation_id = self.connection, origin.conversation_id
        try:
            dialect = connection.dialect
            frame = dialect.frame(dialect.encode(event, origin.ref))
        except Exception:  # the client connects again and repeats what was not answered
            log.exception("answer_not_encoded", conn=connection.conn_id, event_type=type(event).__name__)
            connection.drop("internal_error")
            return
        if dialect.echo_s and type(event) is events.Saved:
            self._echo_later(event.message, origin.ref)
        queue = self._answers[conversation_id]
        if queue[0] is not origin:
            origin.frame = frame
            return
        connection.write(frame)
        queue.popleft()
        while queue and (waiting := queue[0].frame) is not None:
            connection.write(waiting)
            queue.popleft()
        if not queue:
            del self._answers[conversation_id]

    def _echo_later(self, message: Message, ref: Any) -> None:
        """Push the sender's own message to it too, some time after the answer. Pushes that arrive in between wait
        behind it: clients count messages in the order in which they get them."""
        dialect = self.connection.dialect
        self._push_later(dialect.frame(dialect.echo(message, ref)))
        self.connection.later = self._push_later

    def _push_later(self, frame: bytes) -> bool:
        """Queue a push. One timer serves all that wait; when too many do, the oldest is pushed early."""
        if self._echoes is None:
            self._echoes = deque()
        loop, delay_s = asyncio.get_running_loop(), self.connection.dialect.echo_s
        if not self._echoes:
            loop.call_later(delay_s, self._push_due)
        elif len(self._echoes) >= ECHOES_MAX:
            self._push(self._echoes.popleft()[1])
        self._echoes.append((loop.time() + delay_s, frame))
        return True

    def _push_due(self) -> None:
        echoes, loop = self._echoes, asyncio.get_running_loop()
        if self.connection.closing or not echoes:
            self._echoes = self.connection.later = None
            return
        while echoes and echoes[0][0] <= loop.time() + ECHO_GRAIN_S:
            self._push(echoes.popleft()[1])
        if echoes:
            loop.call_later(max(0.0, echoes[0][0] - loop.time()), self._push_due)
        else:
            self.connection.later = None

    def _push(self, frame: bytes) -> None:
        later, self.connection.later = self.connection.later, None
        self.connection.push(frame)
        self.connection.later = later

    def log_outcome(self, origin: SendOrigin, outcome: Outcome) -> None:
        connection = self.connection
        fields: dict[str, Any] = {
            "conn": connection.conn_id,
            **connection.dialect.log_fields(origin.ref),
            "client_msg_id": origin.client_msg_id,
        }
        if isinstance(outcome, NexoError):
            fields["result"] = outcome.name
        elif isinstance(outcome, events.Accepted):
            fields |= {"result": "accepted", "server_msg_id": outcome.server_msg_id}
        else:
            message = outcome.message
            fields |= {"result": "saved", "server_msg_id": message.server_msg_id, "seq": message.seq}
        if fields["result"] == "internal_error":  # the line of its cause has the client_msg_id too
            log.warning("send_not_done", user=connection.session.user_id, **fields)
        else:
            delivery_lines.write("send", connection.session.user_id, origin.conversation_id, **fields)

    def _refuse(self, conversation_id: str, error: NexoError, ref: Any) -> None:
        """Answer with an error, behind the answers that are missing."""
        connection = self.connection
        if delivery_lines.is_on:
            fields = {**connection.dialect.log_fields(ref), "conn": connection.conn_id, "result": error.name}
            place = conversation_id if is_conversation_id(conversation_id) else None  # a client can send anything
            delivery_lines.write("send", connection.session.user_id, place, **fields)
        connection.host.traffic.errors.add(error.name)
        frame = connection.dialect.frame(connection.dialect.encode(events.Failed(error), ref))
        queue = self._answers.get(conversation_id)
        if queue:
            waiting = SendOrigin(self, conversation_id, "", 0, ref)
            waiting.frame = frame
            queue.append(waiting)
        else:
            connection.write(frame)

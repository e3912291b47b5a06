"""The question before a send: a service of the operator allows, rejects or replaces what is sent.

Questions of one connection about one conversation are asked concurrently, and the drafts are passed on in the order in
which they were sent. When a draft is refused for now, all drafts that wait behind it are refused too: a retry must not
be stored behind messages that were sent after it. A draft without an answer in time is passed on as it is, or refused,
depending on `fail_open`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import msgspec
import structlog
from msgspec import UNSET, Raw, Struct, UnsetType

from nexo.config.tree_hooks import BeforeSendConfig
from nexo.core.model import Draft
from nexo.core.webhook_signature import decode_secret, signed_headers
from nexo.errors import NexoError
from nexo.hooks.posting import AGENT, message_id
from nexo.ids import CANARY_IDS, group_of, now_ms, peer_of
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets, Tally
from nexo.outgoing.http_client import HttpClient, HttpFailure
from nexo.ports import Origin

log = structlog.get_logger()

REASON_MAX_CHARS = 500
LOG_EVERY_S = 10.0

IsTaken = Callable[[Draft], Awaitable[bool]]  # whether the same send was saved or accepted before
HandOn = Callable[[Draft, str, Origin], None]
ReplaceContent = Callable[[Draft, Any], None]


class BeforeSendQuestion(Struct):
    type: str
    sender_id: str
    conversation_id: str
    client_msg_id: str
    msg_type: int
    content: Raw
    mentions: tuple[str, ...]
    reply_to: str | None
    extra: Raw | None
    recv_id: str | UnsetType = UNSET
    group_id: str | UnsetType = UNSET


class BeforeSendAnswer(Struct):
    action: Literal["allow", "reject", "replace"]
    reason: str = ""
    content: Any = UNSET


class _Waiting:
    """A draft of a connection in its lane."""

    __slots__ = ("draft", "error", "is_decided", "origin", "task")

    def __init__(self, draft: Draft, origin: Origin) -> None:
        self.draft = draft
        self.origin = origin
        self.is_decided = False
        self.error: NexoError | None = None
        self.task: asyncio.Task[None] | None = None


class BeforeSend:
    """Implements `service.send.SendGate`."""

    def __init__(
        self, settings: BeforeSendConfig, is_taken: IsTaken, hand_on: HandOn, replace_content: ReplaceContent
    ) -> None:
        self._settings = settings
        self._types = frozenset(settings.types)
        self._timeout_s = settings.timeout_ms / 1000
        self._keys = (decode_secret(settings.secret),) if settings.secret else ()
        self._http = HttpClient(settings.url, allow_private=True, agent=AGENT)
        self._is_taken = is_taken
        self._hand_on = hand_on
        self._replace_content = replace_content
        self._slots = asyncio.Semaphore(settings.connections)
        self._lanes: dict[tuple[str, str], deque[_Waiting]] = {}
        self._count = 0
        self._results = Tally({"allowed": 0, "rejected": 0, "replaced": 0, "failed": 0, "overflow": 0})
        self._seconds = Buckets()
        self._logged_at = float("-inf")

    # -- sends of connections ------------------------------------------------------------------------------

    def takes(self, draft: Draft, conn_id: str) -> bool:
        return self._asks(draft) or (conn_id, draft.conversation_id) in self._lanes

    def submit(self, draft: Draft, conn_id: str, origin: Origin) -> None:
        place = (conn_id, draft.conversation_id)
        asks = self._asks(draft)
        if asks and self._count >= self._settings.queue_max:
            self._overflow()
            asks = False
        lane = self._lanes.get(place)
        if lane is None:
            if not asks:
                self._hand_on(draft, conn_id, origin)
                return
            lane = self._lanes[place] = deque()
        waiting = _Waiting(draft, origin)
        lane.append(waiting)
        if asks:
            waiting.task = asyncio.get_running_loop().create_task(self._ask(waiting, place))
        else:
            waiting.is_decided = True

    async def _ask(self, waiting: _Waiting, place: tuple[str, str]) -> None:
        try:
            await self.check(waiting.draft)
        except NexoError as error:
            waiting.error = error
        except Exception:
            log.exception("before_send_defect")
            waiting.error = NexoError("internal_error")
        waiting.is_decided = True
        self._release(place)

    def _release(self, place: tuple[str, str]) -> None:
        """Hand on what is decided, up to the first draft that is not."""
        lane = self._lanes.get(place)
        while lane and lane[0].is_decided:
            waiting = lane.popleft()
            error = waiting.error
            if error is None:
                try:
                    self._hand_on(waiting.draft, place[0], waiting.origin)
                except NexoError as refusal:
                    error = refusal
            if error is not None:
                waiting.origin.decided(error)
                if error.row.retry:
                    self._refuse_all(lane, error)
        if not lane:
            self._lanes.pop(place, None)

    def _refuse_all(self, lane: deque[_Waiting], error: NexoError) -> None:
        while lane:
            waiting = lane.popleft()
            if waiting.task is not None and not waiting.is_decided:
                waiting.task.cancel()
            waiting.origin.decided(error)

    # -- one question --------------------------------------------------------------------------------------

    def _asks(self, draft: Draft) -> bool:
        if draft.rejected or draft.sender_id in CANARY_IDS:
            return False
        return not self._types or draft.msg_type in self._types

    async def check(self, draft: Draft) -> None:
        if not self._asks(draft):
            return
        if self._count >= self._settings.queue_max:
            self._overflow()
            return
        self._count += 1
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s):
                if await self._is_taken(draft):
                    return  # a retry: its row is the answer, or will be
                async with self._slots:
                    answer = await self._question(draft)
        except (HttpFailure, TimeoutError, msgspec.DecodeError, NexoError) as error:
            self._failed(error)
            return
        finally:
            self._count -= 1
            self._seconds.observe(time.monotonic() - started)
        self._apply(draft, answer)

    async def _question(self, draft: Draft) -> BeforeSendAnswer:
        question = BeforeSendQuestion(
            "message.before_send",
            draft.sender_id,
            draft.conversation_id,
            draft.client_msg_id,
            draft.msg_type,
            Raw(draft.content.encode()),
            draft.mentions,
            None if draft.reply_to is None else str(draft.reply_to),
            None if draft.extra is None else Raw(draft.extra.encode()),
        )
        group_id = group_of(draft.conversation_id)
        if group_id is not None:
            question.group_id = group_id
        else:
            question.recv_id = peer_of(draft.conversation_id, draft.sender_id) or UNSET
        body = msgspec.json.encode(question)
        name = message_id("before_send", (draft.sender_id, draft.client_msg_id))
        headers = signed_headers(self._keys, name, now_ms() // 1000, body)
        answer = await self._http.post(body, headers, self._timeout_s)
        if not 200 <= answer.status < 300:
            raise HttpFailure(f"answered {answer.status}")
        return msgspec.json.decode(answer.body, type=BeforeSendAnswer)

    def _apply(self, draft: Draft, answer: BeforeSendAnswer) -> None:
        if answer.action == "allow":
            self._results.add("allowed")
        elif answer.action == "reject":
            self._results.add("rejected")
            raise NexoError("content_rejected", answer.reason[:REASON_MAX_CHARS] or None)
        else:
            self._results.add("replaced")
            try:
                self._replace_content(draft, None if answer.content is UNSET else answer.content)
            except NexoError as error:
                self._log(f"the replaced content is refused: {error}")
                detail = f"The content was replaced by one that is not allowed: {error.detail}"
                raise NexoError("content_rejected", detail) from None

    def _failed(self, error: Exception) -> None:
        """There is no answer: let the draft pass, or refuse it."""
        self._results.add("failed")
        self._log(str(error) or f"no answer within {self._settings.timeout_ms} ms")
        self._check_open()

    def _overflow(self) -> None:
        self._results.add("overflow")
        self._log(f"{self._settings.queue_max} sends wait for an answer already")
        self._check_open()

    def _check_open(self) -> None:
        if not self._settings.fail_open:
            raise NexoError("server_busy", "The content cannot be checked at present", retry_after_ms=1000)

    def _log(self, text: str) -> None:
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY_S:
            self._logged_at = now
            log.warning("before_send_failed", url=self._settings.url, error=text)

    def samples(self) -> Iterable[Sample]:
        yield from f.BEFORE_SENDS.each(self._results)
        yield f.BEFORE_SEND_SECONDS(self._seconds)
        yield f.QUEUE(self._count, "before_send")
        yield f.QUEUE_LIMIT(self._settings.queue_max, "before_send")

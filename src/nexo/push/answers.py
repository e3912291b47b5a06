"""What the answers of push services mean, as far as they agree."""

from __future__ import annotations

from collections.abc import Awaitable
from email.utils import parsedate_to_datetime

from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.outgoing.http_client import HttpAnswer, HttpFailure
from nexo.push.ports import Delivered

REASON_MAX_CHARS = 40
_AGAIN = frozenset((408, 425, 429))


def retry_after_s(value: str) -> float:
    """Returns the seconds of a `Retry-After` header, which has seconds or a date; 0 without one."""
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now_ms() / 1000)
    except (TypeError, ValueError):
        return 0.0


def judge(answer: HttpAnswer, reason: str = "") -> Delivered:
    """Returns what an answer means by its status alone."""
    status = answer.status
    detail = f"{status} {_plain(reason)}".strip()
    if 200 <= status < 300:
        return Delivered(True, detail)
    if status in (404, 410):
        return Delivered(False, detail, is_gone=True)
    if status in _AGAIN or status >= 500:
        return Delivered(False, detail, retry_s=retry_after_s(answer.retry_after))
    return Delivered(False, detail)


async def answer_of(request: Awaitable[HttpAnswer]) -> HttpAnswer | Delivered:
    """Returns the answer to a request, or what it means that there is none. What the error states is left out: it may
    name the address of a device."""
    try:
        return await request
    except HttpFailure as error:
        return Delivered(False, _failure(error), retry_s=0.0)
    except NexoError as error:  # an address that the server may not connect to
        return Delivered(False, error.name)


def _failure(error: HttpFailure) -> str:
    cause = error.__cause__
    return type(cause).__name__ if cause is not None else "no answer"


def _plain(reason: str) -> str:
    """Returns a reason as a word of the service: whatever else it may hold is left out."""
    return reason if reason.isascii() and reason.replace("_", "").isalnum() and len(reason) <= REASON_MAX_CHARS else ""

"""Permission to send, asked before a send is accepted: cached permissions, and one query at a time with a short limit.

A refusal given here is only earlier, never different: the lock under which a message is saved decides.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from nexo.core.model import Draft
from nexo.errors import NexoError
from nexo.ports import Permission

log = structlog.get_logger()

ASK_S = 0.1  # a slower answer is not waited for
BLIND_S = 5.0  # pause after a slow answer, without any query
ALLOWED_S = 60.0  # how long a permission is cached
ALLOWED_MAX = 50_000

SenderKey = tuple[str, str]  # sender, conversation


class SendPermissions:
    def __init__(self, may_send: Callable[[Sequence[Draft]], Awaitable[Sequence[Permission]]]) -> None:
        self._may_send = may_send
        self._allowed: OrderedDict[SenderKey, float] = OrderedDict()
        self._asking: asyncio.Task[None] | None = None
        self._blind_until = 0.0

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    def is_allowed(self, draft: Draft, now: float) -> bool:
        """Returns whether the sender is known to be allowed to send."""
        return self._allowed.get((draft.sender_id, draft.conversation_id), -ALLOWED_S) + ALLOWED_S > now

    def allow(self, key: SenderKey, now: float) -> None:
        self._allowed[key] = now
        self._allowed.move_to_end(key)
        if len(self._allowed) > ALLOWED_MAX:
            self._allowed.popitem(last=False)

    def forget(self, key: SenderKey) -> None:
        self._allowed.pop(key, None)

    async def find_refused(self, drafts: Mapping[SenderKey, Draft], now: float) -> set[SenderKey]:
        """Returns the senders that are known to be refused; none when the database does not answer in time."""
        if now < self._blind_until or (self._asking is not None and not self._asking.done()):
            return set()
        refused: set[SenderKey] = set()

        async def ask() -> None:
            try:
                answers = await self._may_send(list(drafts.values()))
                for key, answer in zip(drafts, answers, strict=True):
                    if answer.is_allowed:
                        self.allow(key, now)
                    elif answer.is_allowed is False:
                        refused.add(key)
            except NexoError:
                return
            except Exception:
                log.exception("permission_unknown")

        self._asking = asyncio.get_running_loop().create_task(ask())
        _, late = await asyncio.wait([self._asking], timeout=ASK_S)
        if late:
            self._blind_until = time.monotonic() + BLIND_S
        return set(refused)

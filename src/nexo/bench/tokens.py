"""Access tokens live shorter than a long run: every person gets a new one in time, as a client does."""

from __future__ import annotations

import asyncio
import time

import msgspec

from nexo.bench.api_requests import HttpCaller
from nexo.bench.person import Person, Stage

AT_SHARE = 0.6  # of a token's life


class LoginReply(msgspec.Struct):
    access_token: str
    refresh_token: str = ""
    expires_at: int = 0


class Tokens:
    def __init__(self, stage: Stage, caller: HttpCaller) -> None:
        self._stage = stage
        self._caller = caller
        self._timers: set[asyncio.TimerHandle] = set()

    def keep_fresh(self, login: LoginReply, people: list[Person]) -> None:
        """Renew the token of these persons, which share it. The list may still grow."""
        if not login.refresh_token:
            return
        life_s = max(1.0, login.expires_at / 1000 - time.time())
        timer = self._stage.loop.call_later(life_s * AT_SHARE, self._start, login, people)
        self._timers.add(timer)

    def _start(self, login: LoginReply, people: list[Person]) -> None:
        self._stage.spawn(self._renew(login, people))

    async def _renew(self, login: LoginReply, people: list[Person]) -> None:
        answer = await self._caller.call("POST", "/auth/refresh", body={"refresh_token": login.refresh_token})
        fresh = msgspec.json.decode(answer, type=LoginReply)
        for person in people:
            person.renew(fresh.access_token)
        self.keep_fresh(fresh, people)

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

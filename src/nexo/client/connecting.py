"""Whether there is a connection, why not, and when the next attempt is due. No I/O."""

from __future__ import annotations

import random

from nexo.client.model import State
from nexo.client.options import STEADY_S, Options
from nexo.errors import ERRORS

_SESSION_OVER = ("session_invalid", "unauthorized", "reauth_uid_mismatch")
_FINAL = range(4000, 4500)
_OURS = range(4000, 5000)


class Connecting:
    def __init__(self, options: Options, rng: random.Random) -> None:
        self.state: State = "offline"
        self.reason: str | None = None
        self.retry_at: float | None = None
        self.heartbeat_ms = 30_000
        self.heard_at = 0.0
        self.must_refresh = False  # the access token is known to have expired
        self._options = options
        self._rng = rng
        self._wanted = False
        self._attempts = 0
        self._online_since: float | None = None
        self._until: float | None = None  # for AUTH_OK to come
        self._error: tuple[str, int | None] | None = None  # what the server said before it closed
        self._hint_ms: int | None = None
        self._told: tuple[State, str | None, float | None] = ("offline", None, None)

    @property
    def is_signed_in(self) -> bool:
        return self.state in ("syncing", "online")

    def has_changed(self) -> bool:
        """Whether there is something new to tell since the last time this was asked."""
        now = (self.state, self.reason, self.retry_at)
        changed, self._told = now != self._told, now
        return changed

    def start(self, now: float) -> bool:
        """The user wants a connection; whether one has to be opened."""
        if self._wanted and self.state != "offline":
            return False
        self._wanted = True
        self._attempts = 0
        self._begin(now)
        return True

    def _begin(self, now: float) -> None:
        self.state, self.reason, self.retry_at = "connecting", None, None
        self._until = now + self._options.connect_timeout_ms / 1000
        self._error = None

    def stop(self) -> None:
        self._wanted = False
        self.state, self.reason, self.retry_at = "offline", None, None
        self._until = self._online_since = None

    def end(self, reason: str) -> bool:
        """For good; whether the session is over as well."""
        self._wanted = False
        self.state, self.reason, self.retry_at = "closed", reason, None
        self._until = self._online_since = None
        return reason in _SESSION_OVER

    def opened(self, now: float) -> None:
        self.heard_at = now

    def heard(self, now: float) -> None:
        self.heard_at = now

    def signed_in(self, now: float, heartbeat_ms: int) -> None:
        self.state, self.heartbeat_ms, self._until = "syncing", heartbeat_ms, None
        self.must_refresh = False

    def caught_up(self, now: float) -> None:
        self.state, self._online_since = "online", now

    def told_error(self, reason: str, retry_after_ms: int | None) -> None:
        """The server said why it will close."""
        self._error = (reason, retry_after_ms)

    def told_hint(self, retry_after_ms: int | None) -> None:
        """A refusal before there was a connection may say when to come back."""
        self._hint_ms = retry_after_ms

    def lost(self, now: float, code: int, close_reason: str) -> bool:
        """The connection has ended; whether the session is over as well."""
        if not self._wanted:
            return False
        named = close_reason if close_reason in ERRORS or close_reason == "timeout" else "network"
        told, hint_ms = self._error or (named, self._hint_ms)
        self._hint_ms = None
        if code not in _OURS and self._error is not None and ERRORS[told].closes:
            code = ERRORS[told].close_code  # it said so, and its close frame was lost
        if code in _FINAL:
            return self.end(told if told != "network" else f"close_{code}")
        if self._online_since is not None and now - self._online_since >= STEADY_S:
            self._attempts = 0
        self._online_since = self._until = self._error = None
        self.must_refresh = self.must_refresh or told == "token_expired"
        self.state, self.reason = "offline", told
        self.retry_at = now + self.pause_s(self._attempts, None, least=0.0) + (hint_ms or 0) / 1000
        self._attempts += 1
        return False

    def pause_s(self, failures: int, retry_after_ms: int | None, least: float = 0.5) -> float:
        """Exponential, with jitter over the whole range from `least` of it on."""
        if retry_after_ms is not None:
            return retry_after_ms / 1000 * (1 + self._rng.random() / 4)
        options = self._options
        longest_ms = min(options.backoff_max_ms, options.backoff_min_ms << min(failures, 20))
        return longest_ms * (least + (1 - least) * self._rng.random()) / 1000

    def deadline(self) -> float | None:
        return self.retry_at if self.state == "offline" and self._wanted else self._until

    def tick(self, now: float) -> bool:
        """Whether something has to happen: a new attempt (then the state is `connecting` from now on), or the
        end of one that took too long."""
        due = self.deadline()
        if due is None or now < due:
            return False
        if self.state == "offline":
            self._begin(now)
            return True
        self._until = None
        return True

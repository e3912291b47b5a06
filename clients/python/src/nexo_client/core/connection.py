"""The state of the connection: whether there is one, why not, and when the next attempt is due. No I/O."""

from __future__ import annotations

import random
import re

from nexo_client.core.backoff import Backoff
from nexo_client.core.options import RECENT_FAILURES, RECENT_S, STEADY_S, Options
from nexo_client.errors import reason_of
from nexo_client.types import State

_SESSION_OVER = ("session_invalid", "unauthorized", "reauth_uid_mismatch", "user_disabled", "user_deleted")
_OTHER_TOKEN_HELPS = ("session_invalid", "unauthorized")
_FINAL = range(4000, 4500)
_OWN_CODES = range(4000, 5000)
_ERROR_NAME = re.compile(r"[a-z][a-z_]*")  # a proxy may close with a text of its own


class Connection:
    def __init__(self, options: Options, rng: random.Random) -> None:
        self.state: State = "offline"
        self.reason: str | None = None
        self.retry_at: float | None = None
        self.heartbeat_ms = 30_000
        self.heard_at = 0.0
        self.must_refresh = False  # the access token is known to have expired
        self.can_ask_for_token = False  # the application gives another one when the server refuses it
        self._has_asked = False
        self.backoff = Backoff(options, rng)
        self._connect_timeout_s = options.connect_timeout_ms / 1000
        self._is_wanted = False
        self._attempts = 0
        self._online_since: float | None = None
        self._was_online_at: float | None = None  # when the last connection that was in use ended
        self._sign_in_by: float | None = None
        self._announced: tuple[str, int | None] | None = None  # error and hint that were received before the close
        self._hint_ms: int | None = None
        self._emitted: tuple[State, str | None, float | None] = ("offline", None, None)

    @property
    def is_signed_in(self) -> bool:
        return self.state in ("syncing", "online")

    def has_changed(self) -> bool:
        """Returns whether the state differs from the one at the last call."""
        now = (self.state, self.reason, self.retry_at)
        changed, self._emitted = now != self._emitted, now
        return changed

    def start(self, now: float) -> bool:
        """Begins to connect; returns whether a socket has to be opened."""
        if self._is_wanted and self.state != "offline":
            return False
        self._is_wanted = True
        self._has_asked = False
        self._attempts = 0
        self._begin(now)
        return True

    def _begin(self, now: float) -> None:
        self.state, self.reason, self.retry_at = "connecting", None, None
        self._sign_in_by = now + self._connect_timeout_s
        self._announced = None

    def stop(self) -> None:
        self._is_wanted = False
        self.state, self.reason, self.retry_at = "offline", None, None
        self._sign_in_by = self._online_since = None

    def end(self, reason: str) -> bool:
        """Stops for good; returns whether the session is over as well."""
        self._is_wanted = False
        self.state, self.reason, self.retry_at = "closed", reason, None
        self._sign_in_by = self._online_since = None
        return reason in _SESSION_OVER

    def opened(self, now: float) -> None:
        self.heard_at = now

    def heard(self, now: float) -> None:
        self.heard_at = now

    def signed_in(self, now: float, heartbeat_ms: int) -> None:
        self.state, self.heartbeat_ms, self._sign_in_by = "syncing", heartbeat_ms, None
        self.must_refresh = self._has_asked = False

    def caught_up(self, now: float) -> None:
        self.state, self._online_since = "online", now

    def explain(self, reason: str, retry_after_ms: int | None) -> None:
        """Notes the error with which the server announces that it will close the connection."""
        self._announced = (reason, retry_after_ms)

    def hint(self, retry_after_ms: int | None) -> None:
        """Notes the pause that the server asked for when it refused the connection."""
        self._hint_ms = retry_after_ms

    def lost(self, now: float, code: int, close_reason: str) -> bool:
        """Plans the next attempt after the connection has ended; returns whether the session is over."""
        if not self._is_wanted:
            return False
        named = close_reason if _ERROR_NAME.fullmatch(close_reason) else "network"
        reason, hint_ms = self._announced or (named, self._hint_ms)
        self._hint_ms = None
        if code not in _OWN_CODES and self._announced is not None:
            code = reason_of(reason).close_code or code  # the close frame itself was lost
        if self.can_ask_for_token and reason in _OTHER_TOKEN_HELPS and not self._has_asked:
            self._has_asked = self.must_refresh = True
        elif code in _FINAL:
            return self.end(reason if reason != "network" else f"close_{code}")
        if self._online_since is not None:
            self._was_online_at = now
            # a server that announces its stop gives a time to return: no reason to stay away for longer
            if now - self._online_since >= STEADY_S or reason == "server_shutdown":
                self._attempts = 0
        if self._was_online_at is not None and now - self._was_online_at < RECENT_S:
            self._attempts = min(self._attempts, RECENT_FAILURES)
        self._online_since = self._sign_in_by = self._announced = None
        self.must_refresh = self.must_refresh or reason == "token_expired"
        self.state, self.reason = "offline", reason
        self.retry_at = now + self.backoff.pause_s(self._attempts, least=0.0) + (hint_ms or 0) / 1000
        self._attempts += 1
        return False

    def deadline(self) -> float | None:
        return self.retry_at if self.state == "offline" and self._is_wanted else self._sign_in_by

    def tick(self, now: float) -> bool:
        """Returns whether a new attempt begins (the state is `connecting` from now on) or one took too long."""
        due = self.deadline()
        if due is None or now < due:
            return False
        if self.state == "offline":
            self._begin(now)
            return True
        self._sign_in_by = None
        return True

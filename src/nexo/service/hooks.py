"""Webhooks: adding, pausing, replaying and removing them, for the HTTP API and the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from nexo.config.tree_hooks import HooksConfig
from nexo.core.hooks import Hook, HookSecret, HookStatus, check_patterns, new_hook_id
from nexo.core.journal import check_types
from nexo.core.keys import check_name
from nexo.core.webhook_signature import new_secret
from nexo.errors import NexoError
from nexo.ids import now_ms

SECRETS_MAX = 2  # a third rotation within `hooks.rotation_h` ends the oldest secret at once
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000}


class HookStore(Protocol):
    """Every change is noted in the audit log under `actor`, and raises the revision of the hook."""

    async def add(self, hook: Hook, max_hooks: int, actor: str) -> Hook:
        """Store a webhook that starts with the next commit. Raises `bad_name` when the name is taken, and
        `too_many_hooks`."""

    async def find(self, name_or_id: str) -> Hook | None: ...

    async def all(self) -> list[Hook]: ...

    async def set_status(self, hook: Hook, status: HookStatus, actor: str) -> Hook: ...

    async def set_secrets(self, hook: Hook, secrets: tuple[HookSecret, ...], actor: str) -> Hook: ...

    async def replay(self, hook: Hook, start: str | int, actor: str) -> Hook:
        """Let a webhook begin again at a cursor, or at a time in milliseconds. Raises `bad_cursor`,
        `cursor_expired`."""

    async def remove(self, hook: Hook, actor: str) -> None: ...


class HookTrial(Struct, frozen=True):
    """The result of a test event."""

    taken: bool
    status: int  # of the answer; 0: there was none
    detail: str
    ms: int


class HookTester(Protocol):
    def check_url(self, url: str) -> None:
        """Raises `bad_url`."""

    async def test(self, hook: Hook) -> HookTrial:
        """Send a test event, once."""


class HookAdmin:
    def __init__(
        self, store: HookStore, tester: HookTester, settings: HooksConfig, changed: Callable[[], None] | None = None
    ) -> None:
        """`changed` is called after every change, so that this instance need not wait for its next look."""
        self._store = store
        self._tester = tester
        self._settings = settings
        self._changed = changed or (lambda: None)

    async def add(
        self, url: str, types: Iterable[str], conversations: Iterable[str], name: str, actor: str
    ) -> tuple[Hook, str]:
        """Returns the webhook and its secret, which is not shown again."""
        self._tester.check_url(url)
        secret = new_secret()
        hook_id = new_hook_id()
        hook = Hook(
            hook_id,
            check_name(name) if name else hook_id,
            url,
            check_types(types),
            check_patterns(conversations),
            (HookSecret(secret),),
        )
        added = await self._store.add(hook, self._settings.max_hooks, actor)
        self._changed()
        return added, secret

    async def all(self) -> list[Hook]:
        return await self._store.all()

    async def find(self, name_or_id: str) -> Hook:
        hook = await self._store.find(name_or_id)
        if hook is None:
            raise NexoError("hook_not_found", f"There is no webhook {name_or_id}")
        return hook

    async def test(self, name_or_id: str) -> HookTrial:
        return await self._tester.test(await self.find(name_or_id))

    async def pause(self, name_or_id: str, actor: str) -> Hook:
        return self._noted(await self._store.set_status(await self.find(name_or_id), HookStatus.PAUSED, actor))

    async def resume(self, name_or_id: str, actor: str) -> Hook:
        """Continue where the webhook was, and forget its failures."""
        return self._noted(await self._store.set_status(await self.find(name_or_id), HookStatus.ACTIVE, actor))

    async def rotate(self, name_or_id: str, actor: str) -> tuple[Hook, str]:
        """Returns the webhook and its new secret. The old one signs too for `hooks.rotation_h`."""
        hook = await self.find(name_or_id)
        secret = new_secret()
        ends_at = now_ms() + self._settings.rotation_h * 3_600_000
        old = [HookSecret(one.secret, ends_at) for one in hook.secrets[:1]] if self._settings.rotation_h else []
        kept = (HookSecret(secret), *old)[:SECRETS_MAX]
        return self._noted(await self._store.set_secrets(hook, kept, actor)), secret

    async def replay(self, name_or_id: str, start: str, actor: str) -> Hook:
        """Deliver again from a cursor, `begin`, a time (`2026-05-01T12:00`, UTC) or an age (`2h`)."""
        hook = await self.find(name_or_id)
        return self._noted(await self._store.replay(hook, parse_start(start, now_ms()), actor))

    async def remove(self, name_or_id: str, actor: str) -> Hook:
        hook = await self.find(name_or_id)
        await self._store.remove(hook, actor)
        return self._noted(hook)

    def _noted(self, hook: Hook) -> Hook:
        self._changed()
        return hook


def parse_start(text: str, at_ms: int) -> str | int:
    """Returns a time in milliseconds, or the cursor that the text is."""
    if not text:
        raise NexoError("missing_cursor", "Name a cursor, `begin`, a time or an age such as 2h")
    age = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    if age is not None:
        return at_ms - int(age[1]) * _UNITS_MS[age[2]]
    if re.match(r"\d{4}-\d\d-\d\d", text) is None:
        return text
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise NexoError("bad_cursor", f"{text!r} is not a time such as 2026-05-01T12:00") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)

"""The canary behind `/readyz`: requests share it, and its exception reaches each of them."""

from __future__ import annotations

import asyncio

import pytest

from harness.defects import raise_at
from nexo.api.health import Health
from nexo.background import Background


async def test_every_request_gets_the_exception_of_the_canary_they_share_and_the_next_one_is_tried_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def arrive() -> None:
        pass

    health = Health(arrive, lambda accept: (b"", ""), Background())
    raise_at(monkeypatch, health, "_send_canary")
    answers = await asyncio.gather(health.check_ready(), health.check_ready(), return_exceptions=True)
    assert [str(error) for error in answers] == ["a defect"] * 2
    await health.check_ready()
    assert health.is_ready

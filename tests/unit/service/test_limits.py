"""Limits on passwords: wrong ones count, right ones do not, and an address has a limit for all users together."""

from __future__ import annotations

import pytest

from harness.store import make_config
from nexo.errors import NexoError
from nexo.service.limits import Limits


async def try_one(limits: Limits, address: str, user_id: str, outcome: str = "") -> str:
    """Returns the error of a try whose check ends with `outcome`, or an empty text."""
    try:
        async with limits.try_password(address, user_id):
            if outcome:
                raise NexoError(outcome)
    except NexoError as error:
        return error.name
    return ""


async def test_right_passwords_do_not_count() -> None:
    limits = Limits(make_config(limits__logins_per_min=5, limits__login_failures_per_address_per_min=5))
    for _ in range(50):
        assert await try_one(limits, "203.0.113.7", "ann") == ""
    for _ in range(50):  # no password was checked
        assert await try_one(limits, "203.0.113.7", "ann", "server_busy") == "server_busy"
    for _ in range(5):
        assert await try_one(limits, "203.0.113.7", "ann", "invalid_credentials") == "invalid_credentials"
    assert await try_one(limits, "203.0.113.7", "ann") == "too_many_requests"
    assert await try_one(limits, "203.0.113.8", "ann") == ""


async def test_one_address_cannot_try_the_passwords_of_many_users() -> None:
    limits = Limits(make_config(limits__logins_per_min=5, limits__login_failures_per_address_per_min=60))
    outcomes = [await try_one(limits, "203.0.113.7", f"user{n}", "invalid_credentials") for n in range(100)]
    assert outcomes == ["invalid_credentials"] * 60 + ["too_many_requests"] * 40
    assert limits.refusals()["login_failures"] == 40
    assert await try_one(limits, "203.0.113.8", "user1") == ""


async def test_a_refused_user_costs_the_address_nothing() -> None:
    limits = Limits(make_config(limits__logins_per_min=5, limits__login_failures_per_address_per_min=20))
    for _ in range(100):
        await try_one(limits, "203.0.113.7", "ann", "invalid_credentials")
    assert await try_one(limits, "203.0.113.7", "ben") == ""


async def test_an_address_of_ipv6_is_its_network() -> None:
    limits = Limits(make_config(limits__login_failures_per_address_per_min=10))
    addresses = [f"2001:db8:0:1::{n:x}" for n in range(20)]
    outcomes = [await try_one(limits, address, f"user{address}", "invalid_credentials") for address in addresses]
    assert outcomes.count("too_many_requests") == 10


async def test_nothing_is_no_limit() -> None:
    limits = Limits(make_config(limits__logins_per_min=0, limits__login_failures_per_address_per_min=0))
    for _ in range(200):
        assert await try_one(limits, "203.0.113.7", "ann", "invalid_credentials") == "invalid_credentials"


async def test_tries_that_are_being_checked_count() -> None:
    limits = Limits(make_config(limits__logins_per_min=2))
    async with limits.try_password("203.0.113.7", "ann"), limits.try_password("203.0.113.7", "ann"):
        with pytest.raises(NexoError, match="too_many_requests"):
            async with limits.try_password("203.0.113.7", "ann"):
                pass
    assert await try_one(limits, "203.0.113.7", "ann") == ""

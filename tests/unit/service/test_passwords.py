"""Passwords: computed off the loop, bounded, and as slow for nobody as for somebody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from argon2 import PasswordHasher

from harness.store import make_config
from harness.waiting import loop_turns
from nexo.errors import NexoError
from nexo.service.passwords import Passwords


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    made = Passwords(make_config())
    yield made
    made.close()


async def test_a_password_matches_its_own_hash_only(passwords: Passwords) -> None:
    password_hash = await passwords.hash("pässword")
    assert password_hash.startswith("$argon2id$v=19$m=8,t=1,p=1$")
    assert password_hash != await passwords.hash("pässword")
    assert await passwords.matches("pässword", password_hash)
    assert not await passwords.matches("password", password_hash)
    assert not await passwords.matches("pässword", None)
    assert not await passwords.matches("pässword", "no hash at all")
    assert not passwords.is_outdated(password_hash)


async def test_nothing_is_computed_on_the_loop_and_at_most_two_at_a_time(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[threading.Thread] = set()

    def noting(work: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            threads.add(threading.current_thread())
            return work(*args, **kwargs)

        return noted

    monkeypatch.setattr(PasswordHasher, "hash", noting(PasswordHasher.hash))
    monkeypatch.setattr(PasswordHasher, "verify", noting(PasswordHasher.verify))
    hashes = await asyncio.gather(*(passwords.hash(f"password {number}") for number in range(20)))
    await asyncio.gather(*(passwords.matches("password 1", password_hash) for password_hash in hashes))
    assert await passwords.matches("password 1", hashes[1])
    await passwords.matches("password 1", None)
    assert threading.current_thread() not in threads
    assert 1 <= len(threads) <= 2


async def test_an_unknown_user_costs_a_whole_check(passwords: Passwords, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []
    verify = PasswordHasher.verify

    def noting(self: PasswordHasher, password_hash: str, password: str) -> bool:
        checked.append(password_hash)
        return verify(self, password_hash, password)

    real = await passwords.hash("password")
    monkeypatch.setattr(PasswordHasher, "verify", noting)
    for password_hash in (real, None, ""):
        assert not await passwords.matches("wrong", password_hash)
    assert len(checked) == 4
    known, unknown, unusable, instead = checked
    assert (known, unusable) == (real, "")
    assert unknown == instead  # well-formed, of the same costs and sizes: the same work
    assert unknown.rsplit("$", 2)[0] == real.rsplit("$", 2)[0]
    assert [len(part) for part in unknown.split("$")] == [len(part) for part in real.split("$")]
    assert not passwords.is_outdated(unknown)


async def test_too_many_at_once_are_refused(passwords: Passwords, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def waiting(*_: object) -> str:
        go_on.wait(10)
        return "hash"

    monkeypatch.setattr(PasswordHasher, "hash", waiting)
    under_way = [asyncio.ensure_future(passwords.hash("password")) for _ in range(66)]  # two are computed
    await loop_turns()
    assert passwords.waiting == 66
    with pytest.raises(NexoError) as caught:
        await passwords.hash("password")
    assert (caught.value.name, caught.value.retry_after_ms) == ("server_busy", 1000)
    go_on.set()
    assert set(await asyncio.gather(*under_way)) == {"hash"}
    assert passwords.waiting == 0


async def test_an_address_that_fills_the_queue_does_not_keep_others_out(
    passwords: Passwords, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = threading.Semaphore(0)
    order: list[str] = []

    def waiting(_: PasswordHasher, password: str) -> str:
        turns.acquire(timeout=10)
        order.append(password)
        return password

    monkeypatch.setattr(PasswordHasher, "hash", waiting)
    greedy = [asyncio.ensure_future(passwords.hash("greedy", "203.0.113.7")) for _ in range(66)]
    await loop_turns(5)
    honest = [asyncio.ensure_future(passwords.hash(f"honest {n}", f"198.51.100.{n}")) for n in range(12)]
    await loop_turns(5)
    assert sum(task.done() for task in greedy) == 12, "its last ones gave way"
    turns.release(200)
    assert await asyncio.gather(*honest) == [f"honest {n}" for n in range(12)]
    assert max(order.index(f"honest {n}") for n in range(12)) < 20, "each waited for about one turn of the others"
    results = await asyncio.gather(*greedy, return_exceptions=True)
    assert [error.name for error in results if isinstance(error, NexoError)] == ["server_busy"] * 12


@pytest.mark.parametrize("password", ["", "seven77", "x" * 129, "nul in it\0", "surrogate \ud800"])
def test_what_cannot_be_a_password_is_refused(passwords: Passwords, password: str) -> None:
    with pytest.raises(NexoError) as caught:
        passwords.check_new(password)
    assert caught.value.name == "bad_password"
    assert not password or password not in str(caught.value)


@pytest.mark.parametrize("password", ["eight888", "x" * 128, "日本語のパスワード", "🙂" * 8])
def test_what_can_be_a_password_is_taken(passwords: Passwords, password: str) -> None:
    passwords.check_new(password)

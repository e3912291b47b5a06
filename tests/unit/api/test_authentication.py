"""Genuine tokens are remembered, ended sessions are not."""

from __future__ import annotations

import pytest

from nexo.api.authentication import Authentication
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.service.session_cache import SessionCache


class FakeAccounts:
    """Tokens are named after their user; every look at one is counted."""

    def __init__(self) -> None:
        self.cache = SessionCache(ttl_s=30)
        self.read: list[str] = []
        self.versions: dict[str, int] = {}
        self.ttl_ms = 60_000

    async def authenticate(self, token: str) -> Session:
        self.read.append(token)
        if token not in self.versions:
            raise NexoError("session_invalid")
        session = Session(f"sid-{token}", token, 5, "", self.versions[token], now_ms() + self.ttl_ms)

        async def found() -> Session:
            return session

        await self.cache.load(session.sid, found)
        return session


def make(*users: str, max_tokens: int = 10) -> tuple[FakeAccounts, Authentication]:
    accounts = FakeAccounts()
    accounts.versions = dict.fromkeys(users, 1)
    return accounts, Authentication(accounts, max_tokens)  # type: ignore[arg-type]


async def test_a_genuine_token_is_read_once() -> None:
    accounts, authentication = make("ann")
    for _ in range(3):
        assert (await authentication.session_of(b"Bearer ann")).user_id == "ann"
    assert accounts.read == ["ann"]


async def test_an_ended_session_is_noticed_as_soon_as_the_accounts_know() -> None:
    accounts, authentication = make("ann")
    await authentication.session_of(b"Bearer ann")
    accounts.cache.forget("sid-ann")
    del accounts.versions["ann"]
    with pytest.raises(NexoError, match="session_invalid"):
        await authentication.session_of(b"Bearer ann")


async def test_a_token_of_an_older_version_is_asked_about() -> None:
    accounts, authentication = make("ann")
    await authentication.session_of(b"Bearer ann")

    async def newer() -> Session:
        return Session("sid-ann", "ann", 5, "", 2)

    await accounts.cache.load("sid-ann", newer)
    await authentication.session_of(b"Bearer ann")
    assert accounts.read == ["ann", "ann"]


async def test_an_expired_token_is_asked_about() -> None:
    accounts, authentication = make("ann")
    accounts.ttl_ms = 0
    await authentication.session_of(b"Bearer ann")
    await authentication.session_of(b"Bearer ann")
    assert accounts.read == ["ann", "ann"]


async def test_the_least_recently_used_token_is_forgotten() -> None:
    accounts, authentication = make("ann", "bob", "cat", max_tokens=2)
    for token in (b"ann", b"bob", b"ann", b"cat", b"ann", b"bob"):
        await authentication.session_of(b"Bearer " + token)
    assert accounts.read == ["ann", "bob", "cat", "bob"]


@pytest.mark.parametrize("header", [None, b"", b"Bearer", b"Bearer ", b"Basic ann", b"ann", b"Bearerann"])
async def test_anything_but_a_bearer_token_is_refused(header: bytes | None) -> None:
    accounts, authentication = make("ann")
    with pytest.raises(NexoError, match="unauthorized"):
        await authentication.session_of(header)
    assert accounts.read == []


async def test_one_token_is_one_entry_however_it_is_written_and_its_size_is_fixed() -> None:
    accounts, authentication = make("ann", max_tokens=100)
    for spaces in range(1, 2000, 40):
        header = b"Bearer" + b" " * spaces + b"ann" + b"\t" * spaces
        assert (await authentication.session_of(header)).user_id == "ann"
    assert accounts.read == ["ann"]
    assert next(sample.value for sample in authentication.samples()) == 1
    accounts.versions["b" * 4000] = 1
    await authentication.session_of(b"Bearer " + b"b" * 4000)
    assert max(map(len, authentication._genuine)) <= 32
    with pytest.raises(NexoError, match="unauthorized"):
        await authentication.session_of(b"Bearer " + b"c" * 5000)

"""Accounts, sessions and blocks, on every engine."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from structlog.testing import capture_logs

from harness.store import make_config, open_database
from nexo.core.model import Session
from nexo.errors import NexoError
from nexo.ids import is_user_id, now_ms, single_conversation_id
from nexo.service.accounts import Accounts
from nexo.service.tokens import TokenSession
from nexo.store.account_store import SqlAccounts
from nexo.store.conversations import read_member
from nexo.store.database import Database
from nexo.store.engine import CommitUnknown, Engine, MakeScript, Script, do
from nexo.store.engine import rows as query
from nexo.store.sessions import TOKENS_MAX

SECRET = "a secret of the tests, which nobody else uses"
PASSWORD = "correct horse"
OTHER_PASSWORD = "battery staple"


class Clock:
    def __init__(self) -> None:
        self.ahead_ms = 0

    def __call__(self) -> int:
        return now_ms() + self.ahead_ms


class World:
    """Accounts on an open database, and a look behind them."""

    def __init__(self, database: Database, **settings: object) -> None:
        self.database = database
        self.clock = Clock()
        self.ended: list[str] = []
        self.accounts = self.another_instance(**settings)

    def another_instance(self, **settings: object) -> Accounts:
        store = SqlAccounts(self.database)
        return Accounts(store, make_config("", **settings), SECRET, lambda sids, _: self.ended.extend(sids), self.clock)

    async def rows(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        def script() -> Script[list[tuple[Any, ...]]]:
            return [tuple(row) for row in (yield query(sql, *params))]

        return await self.database.read(script)

    async def change(self, sql: str, *params: object) -> None:
        def script() -> Script[None]:
            yield do(sql, *params)

        await self.database.write(script)

    async def sign_up(self, user_id: str = "ann", **fields: Any) -> TokenSession:
        await self.accounts.register(PASSWORD, user_id, **fields)
        return await self.accounts.login(user_id, PASSWORD)

    async def session_of(self, signed_in: TokenSession) -> Session:
        return await self.accounts.authenticate(signed_in.access_token)


@asynccontextmanager
async def open_world(store_url: str, **settings: object) -> AsyncIterator[World]:
    async with open_database(store_url) as database:
        world = World(database, **settings)
        try:
            yield world
        finally:
            world.accounts.close()


async def refusal(work: Awaitable[object]) -> str:
    with pytest.raises(NexoError) as caught:
        await work
    return caught.value.name


class LosesCommits:
    """An engine whose every first attempt is committed without the caller hearing of it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name
        self.read = engine.read
        self._told = False

    async def write_once(self, make: MakeScript[Any], uncertain: bool = False) -> Any:
        result = await self._engine.write_once(make, uncertain)
        self._told = not self._told
        if self._told:
            raise CommitUnknown("lost")
        return result


@asynccontextmanager
async def commits_unheard(database: Database) -> AsyncIterator[None]:
    engine = database.engine
    database.engine = LosesCommits(engine)  # type: ignore[assignment]
    try:
        yield
    finally:
        database.engine = engine


# -- registering and profiles ----------------------------------------------------------------------------


async def test_a_registered_user_is_given_back_as_stored(store_url: str) -> None:
    async with open_world(store_url) as world:
        extra = {"lang": "de", "n": [1, None]}
        user = await world.accounts.register(PASSWORD, "ann", "Ännchen 🙂", "https://x/y.png", extra)
        assert (user.user_id, user.nickname, user.avatar) == ("ann", "Ännchen 🙂", "https://x/y.png")
        assert user.extra == '{"lang":"de","n":[1,null]}'
        assert not user.is_admin
        assert abs(user.created_at - now_ms()) < 60_000
        assert await world.accounts.info("ann") == user


async def test_an_id_is_made_when_none_is_given(store_url: str) -> None:
    async with open_world(store_url) as world:
        user = await world.accounts.register(PASSWORD)
        assert is_user_id(user.user_id)
        assert (user.nickname, user.avatar, user.extra) == ("", "", None)


async def test_an_id_is_given_once_also_to_many_at_the_same_time(store_url: str) -> None:
    async with open_world(store_url) as world:
        outcomes = await asyncio.gather(
            *(world.accounts.register(PASSWORD, "ann", str(number)) for number in range(8)), return_exceptions=True
        )
        refused = [outcome.name for outcome in outcomes if isinstance(outcome, NexoError)]
        assert refused == ["user_exists"] * 7
        assert await refusal(world.accounts.register(PASSWORD, "ann")) == "user_exists"


async def test_ids_differ_by_case(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "Ab", "upper")
        await world.accounts.register(OTHER_PASSWORD, "ab", "lower")
        assert (await world.accounts.info("Ab")).nickname == "upper"
        assert await refusal(world.accounts.info("aB")) == "user_not_found"
        assert await refusal(world.accounts.login("ab", PASSWORD)) == "invalid_credentials"
        assert (await world.accounts.login("ab", OTHER_PASSWORD)).user_id == "ab"
        assert [user.user_id for user in await world.accounts.search("A")] == ["Ab"]


@pytest.mark.parametrize("engine_name", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"user_id": ""}, "bad_user_id"),
        ({"user_id": "has space"}, "bad_user_id"),
        ({"user_id": "@all"}, "bad_user_id"),
        ({"user_id": "x" * 65}, "bad_user_id"),
        ({"password": "seven77"}, "bad_password"),
        ({"password": ""}, "bad_password"),
        ({"password": "x" * 129}, "bad_password"),
        ({"password": "lone \ud800 surrogate"}, "bad_password"),
        ({"nickname": "x" * 129}, "bad_nickname"),
        ({"nickname": "nul\0"}, "bad_nickname"),
        ({"nickname": None}, "bad_nickname"),
        ({"avatar": "x" * 513}, "bad_avatar"),
        ({"extra": float("nan")}, "bad_extra"),
        ({"extra": "x" * 16_384}, "body_too_long"),
    ],
)
async def test_what_cannot_be_registered_is_named(store_url: str, fields: dict[str, Any], error: str) -> None:
    async with open_world(store_url) as world:
        assert await refusal(world.accounts.register(**{"password": PASSWORD, "user_id": "ann"} | fields)) == error
        assert await world.accounts.page() == []


async def test_the_longest_of_everything_is_stored(store_url: str) -> None:
    async with open_world(store_url) as world:
        avatar, extra = "https://" + "é" * 504, {"k": "y" * 16_376}
        user = await world.accounts.register("🙂" * 128, "x" * 64, "🙂" * 128, avatar, extra)
        assert await world.accounts.info("x" * 64) == user
        # folding makes one character eighteen: the key is cut, and still found
        await world.accounts.update("x" * 64, nickname="\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 128)
        assert len(await world.accounts.search("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 100)) == 1
        signed_in = await world.accounts.login("x" * 64, "🙂" * 128, 10, "🙂" * 128)
        session = await world.session_of(signed_in)
        assert (session.platform_id, session.device_id) == (10, "🙂" * 128)


async def test_an_update_changes_what_it_names(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "ann", "Ann", "https://a.png", {"a": 1})
        user = await world.accounts.update("ann", nickname="Anna")
        assert (user.nickname, user.avatar, user.extra) == ("Anna", "https://a.png", '{"a":1}')
        user = await world.accounts.update("ann", avatar="", extra=None)
        assert (user.nickname, user.avatar, user.extra) == ("Anna", "", None)
        assert await world.accounts.update("ann") == user == await world.accounts.info("ann")
        assert [found.user_id for found in await world.accounts.search("anna")] == ["ann"]
        assert await refusal(world.accounts.update("bob", nickname="Bob")) == "user_not_found"
        assert await refusal(world.accounts.update("ann", nickname="x" * 129)) == "bad_nickname"
        assert await refusal(world.accounts.update("ann", avatar="x" * 513)) == "bad_avatar"
        assert await refusal(world.accounts.update("ann", extra=2**64)) == "bad_extra"


async def test_users_are_found_by_the_beginning_of_id_or_nickname(store_url: str) -> None:
    async with open_world(store_url) as world:
        for user_id, nickname in [
            ("ann", "Zoë"),
            ("anton", "x_y"),
            ("bob", "ANNABEL"),
            ("carl", "straße"),
            ("c_1", ""),
        ]:
            await world.accounts.register(PASSWORD, user_id, nickname)

        async def found(prefix: str, limit: int = 20) -> list[str]:
            return [user.user_id for user in await world.accounts.search(prefix, limit)]

        assert sorted(await found("ann")) == ["ann", "bob"]
        assert sorted(await found("an")) == ["ann", "anton", "bob"]
        assert set(await found("an", 2)) == {"ann", "bob"}  # one of each kind
        assert await found("zoe\N{COMBINING DIAERESIS}") == await found("ZOË") == ["ann"]
        assert await found("STRASSE") == ["carl"]
        assert await found("x_") == ["anton"]
        assert await found("c_") == ["c_1"]
        assert await found("%") == await found("nobody") == []
        assert await refusal(world.accounts.search("")) == "missing_query"
        assert await refusal(world.accounts.search("x" * 129)) == "bad_query"
        assert await refusal(world.accounts.search("\0")) == "bad_query"
        assert await refusal(world.accounts.search("a", 0)) == "bad_limit"
        assert await refusal(world.accounts.search("a", 101)) == "bad_limit"


async def test_search_can_be_switched_off(store_url: str) -> None:
    async with open_world(store_url, user__search=False) as world:
        assert await refusal(world.accounts.search("a")) == "no_permission"


async def test_many_users_are_read_at_once_and_listed_page_by_page(store_url: str) -> None:
    async with open_world(store_url) as world:
        ids = ["B", "a", "b", "c", "d"]
        for user_id in ids:
            await world.accounts.register(PASSWORD, user_id, is_admin=user_id == "c")
        found = await world.accounts.users(["d", "nobody", "B", "d", "not an id"])
        assert [user.user_id for user in found] == ["d", "B"]
        assert await world.accounts.users([]) == []
        assert [user.user_id for user in await world.accounts.users([f"u{n}" for n in range(1200)] + ids)] == ids
        first = await world.accounts.page(limit=3)
        rest = await world.accounts.page(first[-1].user_id, 3)
        assert [user.user_id for user in first + rest] == ids
        assert [user.user_id for user in first + rest if user.is_admin] == ["c"]
        assert (await world.accounts.set_admin("a", True)).is_admin
        assert not (await world.accounts.set_admin("c", False)).is_admin
        assert await refusal(world.accounts.set_admin("nobody", True)) == "user_not_found"


# -- signing in ------------------------------------------------------------------------------------------


async def test_a_login_answers_tokens_that_say_whose_they_are(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "ann")
        signed_in = await world.accounts.login("ann", PASSWORD, 2, "phone")
        session = await world.session_of(signed_in)
        assert (session.user_id, session.platform_id, session.device_id) == ("ann", 2, "phone")
        assert session.expires_at == signed_in.expires_at
        assert abs(signed_in.expires_at - now_ms() - 1_800_000) < 60_000
        claims = jwt.decode(signed_in.access_token, SECRET, ["HS256"])
        assert set(claims) == {"user_id", "platform_id", "device_id", "sid", "sv", "exp", "iat"}
        assert (claims["exp"] * 1000, claims["exp"] - claims["iat"]) == (signed_in.expires_at, 1800)
        assert (await world.accounts.login("ann", PASSWORD)).platform_id == 5


async def test_unknown_users_and_wrong_passwords_are_refused_alike(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "ann")
        for user_id, password in [
            ("bob", PASSWORD),
            ("ann", "wrong password"),
            ("ann", PASSWORD + " "),
            ("ann", ""),
            ("ann", "x" * 129),
            ("ann", "\ud800"),
            ("not an id\0", PASSWORD),
        ]:
            assert await refusal(world.accounts.login(user_id, password)) == "invalid_credentials"
        assert await world.rows("SELECT * FROM sessions") == []


async def test_a_login_checks_platform_and_device(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "ann")
        odd: list[Any] = [0, 11, -1, True, "5"]
        for platform_id in odd:
            assert await refusal(world.accounts.login("ann", PASSWORD, platform_id)) == "bad_platform_id"
        assert await refusal(world.accounts.login("ann", PASSWORD, 1, "x" * 129)) == "bad_device_id"


async def test_a_user_without_a_usable_hash_cannot_sign_in(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "ann")
        await world.change("UPDATE users SET password_hash=?", "")
        assert await refusal(world.accounts.login("ann", "")) == "invalid_credentials"
        assert await refusal(world.accounts.login("ann", PASSWORD)) == "invalid_credentials"


async def test_a_password_is_hashed_anew_when_its_cost_has_changed(store_url: str) -> None:
    async with open_world(store_url) as world:
        before = await world.sign_up()
        costlier = world.another_instance(auth__argon2_time_cost=2)
        await costlier.login("ann", PASSWORD)
        ((password_hash, version),) = await world.rows("SELECT password_hash,session_version FROM users")
        assert password_hash.startswith("$argon2id$v=19$m=8,t=2,p=1$")
        assert version == 1
        await world.session_of(before)
        await costlier.login("ann", PASSWORD)
        assert await world.rows("SELECT password_hash FROM users") == [(password_hash,)]
        costlier.close()


async def test_an_expired_access_token_is_told_apart_from_a_bad_one(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        token = signed_in.access_token
        world.clock.ahead_ms = 1_790_000
        await world.accounts.authenticate(token)
        world.clock.ahead_ms = 1_802_000
        assert await refusal(world.accounts.authenticate(token)) == "token_expired"
        world.clock.ahead_ms = 0
        head, body, signature = token.split(".")
        for bad in ["", "x", token + "x", f"{head}.{body}.", f"{head}.{body}", f"{head}..{signature}", "ä.ö.ü"]:
            assert await refusal(world.accounts.authenticate(bad)) == "unauthorized"


async def test_a_genuine_token_of_a_session_that_does_not_exist_is_refused(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        claims = jwt.decode(signed_in.access_token, SECRET, ["HS256"])
        for change in ({"sid": "none"}, {"sv": 2}, {"sv": 0}, {"user_id": "bob"}):
            assert await refusal(world.accounts.authenticate(jwt.encode(claims | change, SECRET))) == "session_invalid"


async def test_sessions_are_cached_for_a_while_and_forgotten_on_request(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        session = await world.session_of(signed_in)
        other = world.another_instance()
        await other.authenticate(signed_in.access_token)
        await world.accounts.logout(session)
        assert await refusal(world.accounts.authenticate(signed_in.access_token)) == "session_invalid"
        assert await refusal(world.accounts.check_session(session)) == "session_invalid"
        await other.authenticate(signed_in.access_token)  # it has not heard of it, and may rely on its cache
        await other.check_session(session)
        other.forget(session.sid)
        assert await refusal(other.authenticate(signed_in.access_token)) == "session_invalid"
        assert await refusal(other.check_session(session)) == "session_invalid"
        other.close()


async def test_without_a_cache_every_instance_knows_at_once(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        other = world.another_instance(auth__session_cache_s=0)
        session = await other.authenticate(signed_in.access_token)
        await world.accounts.logout(session)
        assert await refusal(other.authenticate(signed_in.access_token)) == "session_invalid"
        other.close()


async def test_a_logout_ends_one_session_and_its_tokens(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        second = await world.accounts.login("ann", PASSWORD)
        session = await world.session_of(first)
        await world.accounts.logout(session)
        await world.accounts.logout(session)
        assert set(world.ended) == {session.sid}
        assert await refusal(world.session_of(first)) == "session_invalid"
        assert await refusal(world.accounts.refresh(first.refresh_token)) == "session_invalid"
        await world.session_of(second)
        await world.accounts.refresh(second.refresh_token)


async def test_sessions_that_are_over_are_swept_away_by_the_next_login(store_url: str) -> None:
    async with open_world(store_url) as world:
        ended = await world.session_of(await world.sign_up())
        expired = await world.session_of(await world.accounts.login("ann", PASSWORD))
        alive = await world.session_of(await world.accounts.login("ann", PASSWORD))
        await world.accounts.logout(ended)
        await world.change("UPDATE sessions SET expires_at=? WHERE sid=?", now_ms() - 10_000, expired.sid)
        newest = await world.session_of(await world.accounts.login("ann", PASSWORD))
        for table in ("sessions", "refresh_tokens"):
            assert {row[0] for row in await world.rows(f"SELECT sid FROM {table}")} == {alive.sid, newest.sid}


# -- refreshing ------------------------------------------------------------------------------------------


async def test_a_refresh_exchanges_the_token_and_keeps_the_session(store_url: str) -> None:
    async with open_world(store_url) as world:
        await world.accounts.register(PASSWORD, "ann")
        first = await world.accounts.login("ann", PASSWORD, 9, "pad")
        second = await world.accounts.refresh(first.refresh_token)
        assert (second.user_id, second.platform_id, second.device_id) == ("ann", 9, "pad")
        assert second.refresh_token != first.refresh_token
        assert (await world.session_of(second)).sid == (await world.session_of(first)).sid
        third = await world.accounts.refresh(second.refresh_token)
        await world.session_of(third)


async def test_only_hashes_of_refresh_tokens_are_stored(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        stored = await world.rows("SELECT token_hash FROM refresh_tokens")
        assert stored == [(hashlib.sha256(signed_in.refresh_token.encode()).hexdigest(),)]


async def test_an_exchanged_token_yields_another_successor_for_a_while(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        a = await world.accounts.refresh(first.refresh_token)
        await world.change("UPDATE refresh_tokens SET rotated_at=rotated_at-25000 WHERE rotated_at>0")
        b = await world.accounts.refresh(first.refresh_token)
        assert len({first.refresh_token, a.refresh_token, b.refresh_token}) == 3
        for tab in (a, b):
            await world.session_of(await world.accounts.refresh(tab.refresh_token))


async def test_an_exchanged_token_that_comes_back_later_ends_the_session(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        bystander = await world.accounts.login("ann", PASSWORD)
        second = await world.accounts.refresh(first.refresh_token)
        sid = (await world.session_of(second)).sid
        await world.change("UPDATE refresh_tokens SET rotated_at=rotated_at-31000 WHERE rotated_at>0")
        with capture_logs() as logs:
            assert await refusal(world.accounts.refresh(first.refresh_token)) == "session_invalid"
        assert [entry["event"] for entry in logs] == ["refresh_token_reused"]
        assert world.ended == [sid]
        assert await refusal(world.session_of(second)) == "session_invalid"
        assert await refusal(world.accounts.refresh(second.refresh_token)) == "session_invalid"
        await world.session_of(bystander)


async def test_the_same_token_may_be_exchanged_by_many_at_once(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        successors = await asyncio.gather(*(world.accounts.refresh(first.refresh_token) for _ in range(8)))
        assert len({successor.refresh_token for successor in successors}) == 8
        for successor in successors:
            await world.accounts.refresh(successor.refresh_token)


async def test_without_grace_only_one_exchange_counts_and_the_session_ends(store_url: str) -> None:
    async with open_world(store_url, auth__refresh_grace_s=0) as world:
        first = await world.sign_up()
        outcomes = await asyncio.gather(
            *(world.accounts.refresh(first.refresh_token) for _ in range(4)), return_exceptions=True
        )
        won = [outcome for outcome in outcomes if isinstance(outcome, TokenSession)]
        assert len(won) == 1
        assert await refusal(world.session_of(won[0])) == "session_invalid"


@pytest.mark.parametrize("token", ["", "nonsense", "x" * 10_000, "ä", "\ud800"])
@pytest.mark.parametrize("engine_name", ["sqlite"], indirect=True)
async def test_an_unknown_refresh_token_is_refused(store_url: str, token: str) -> None:
    async with open_world(store_url) as world:
        assert await refusal(world.accounts.refresh(token)) == "session_invalid"


async def test_an_expired_refresh_token_is_refused(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        await world.change("UPDATE refresh_tokens SET expires_at=?", now_ms() - 10_000)
        assert await refusal(world.accounts.refresh(signed_in.refresh_token)) == "session_invalid"
        await world.session_of(signed_in)  # the access token has its own life


async def test_a_session_keeps_a_bounded_number_of_tokens(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        used = [signed_in.refresh_token]
        for _ in range(TOKENS_MAX + 5):
            signed_in = await world.accounts.refresh(signed_in.refresh_token)
            used.append(signed_in.refresh_token)
        kept = {row[0] for row in await world.rows("SELECT token_hash FROM refresh_tokens")}
        newest = [hashlib.sha256(token.encode()).hexdigest() for token in used[-TOKENS_MAX // 2 :]]
        assert len(kept) == TOKENS_MAX
        assert kept.issuperset(newest)
        await world.change("UPDATE refresh_tokens SET rotated_at=rotated_at-31000 WHERE rotated_at>0")
        signed_in = await world.accounts.refresh(signed_in.refresh_token)
        assert len(await world.rows("SELECT token_hash FROM refresh_tokens")) == 2


@pytest.mark.parametrize("nth", [0, 1, 69])
async def test_any_earlier_token_ends_the_session_however_many_exchanges_followed(store_url: str, nth: int) -> None:
    async with open_world(store_url) as world:
        used = [await world.sign_up()]
        for _ in range(TOKENS_MAX + 6):
            used.append(await world.accounts.refresh(used[-1].refresh_token))
        await world.change("UPDATE refresh_tokens SET rotated_at=rotated_at-31000 WHERE rotated_at>0")
        sid = (await world.session_of(used[-1])).sid
        assert await refusal(world.accounts.refresh(used[nth].refresh_token)) == "session_invalid"
        assert world.ended == [sid]
        assert await refusal(world.accounts.refresh(used[-1].refresh_token)) == "session_invalid"
        assert await refusal(world.session_of(used[-1])) == "session_invalid"


async def test_a_token_from_before_a_change_of_password_does_not_end_the_session(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        session = await world.session_of(first)
        changed = await world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
        assert await refusal(world.accounts.refresh(first.refresh_token)) == "session_invalid"
        await world.accounts.refresh(changed.refresh_token)


async def test_tokens_from_before_there_were_families_are_exchanged_and_watched(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        old = "a-token-of-release-0.1-without-a-family".replace(".", "-")
        digest = hashlib.sha256(old.encode()).hexdigest()
        await world.change("UPDATE refresh_tokens SET token_hash=?,generation=0", digest)
        await world.change("UPDATE sessions SET family_hash=''")
        second = await world.accounts.refresh(old)
        sid = (await world.session_of(second)).sid
        assert await refusal(world.accounts.refresh(first.refresh_token)) == "session_invalid"
        assert world.ended == []
        for _ in range(TOKENS_MAX + 5):
            await world.change("UPDATE refresh_tokens SET rotated_at=rotated_at-31000 WHERE rotated_at>0")
            second = await world.accounts.refresh(second.refresh_token)
        assert await refusal(world.accounts.refresh(old)) == "session_invalid"
        assert world.ended == [sid]


async def test_a_copied_token_cannot_fill_the_table_either(store_url: str) -> None:
    async with open_world(store_url) as world:
        first = await world.sign_up()
        for _ in range(TOKENS_MAX + 5):
            newest = await world.accounts.refresh(first.refresh_token)
        assert len(await world.rows("SELECT token_hash FROM refresh_tokens")) == TOKENS_MAX
        await world.accounts.refresh(newest.refresh_token)


# -- passwords -------------------------------------------------------------------------------------------


async def test_a_change_of_password_ends_all_other_sessions_and_keeps_this_one(store_url: str) -> None:
    async with open_world(store_url) as world:
        old = await world.sign_up()
        others = [await world.accounts.login("ann", PASSWORD) for _ in range(2)]
        stranger = await world.sign_up("bob")
        session = await world.session_of(old)
        sids = {(await world.session_of(other)).sid for other in others}
        new = await world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
        assert set(world.ended) == sids
        renewed = await world.session_of(new)
        assert (renewed.sid, renewed.version) == (session.sid, session.version + 1)
        await world.accounts.check_session(session)  # its sockets live on
        for ended in (*others, old):  # `old`: whoever copied tokens of this session is out as well
            assert await refusal(world.session_of(ended)) == "session_invalid"
            assert await refusal(world.accounts.refresh(ended.refresh_token)) == "session_invalid"
        await world.session_of(await world.accounts.refresh(new.refresh_token))
        await world.session_of(stranger)
        assert await refusal(world.accounts.login("ann", PASSWORD)) == "invalid_credentials"
        await world.session_of(await world.accounts.login("ann", OTHER_PASSWORD))


async def test_another_instance_learns_of_a_new_version_from_the_token_itself(store_url: str) -> None:
    async with open_world(store_url) as world:
        old = await world.sign_up()
        other = world.another_instance()
        session = await other.authenticate(old.access_token)
        new = await world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
        await other.authenticate(new.access_token)
        assert await refusal(other.authenticate(old.access_token)) == "session_invalid"
        other.close()


async def test_a_wrong_old_or_a_bad_new_password_changes_nothing(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        session = await world.session_of(signed_in)
        change = world.accounts.change_password
        assert await refusal(change(session, "wrong password", OTHER_PASSWORD)) == "invalid_credentials"
        assert await refusal(change(session, PASSWORD, "short")) == "bad_password"
        assert await refusal(change(session, PASSWORD, "x" * 129)) == "bad_password"
        await world.session_of(await world.accounts.refresh(signed_in.refresh_token))
        await world.accounts.login("ann", PASSWORD)


async def test_a_session_that_has_ended_cannot_change_the_password(store_url: str) -> None:
    async with open_world(store_url) as world:
        session = await world.session_of(await world.sign_up())
        await world.accounts.logout(session)
        work = world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
        assert await refusal(work) == "session_invalid"
        await world.accounts.login("ann", PASSWORD)


async def test_of_two_changes_at_once_one_counts(store_url: str) -> None:
    async with open_world(store_url) as world:
        sessions = [await world.session_of(await world.sign_up())]
        sessions.append(await world.session_of(await world.accounts.login("ann", PASSWORD)))
        passwords = ["first password", "second password"]
        outcomes = await asyncio.gather(
            *(
                world.accounts.change_password(session, PASSWORD, password)
                for session, password in zip(sessions, passwords, strict=True)
            ),
            return_exceptions=True,
        )
        won = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, TokenSession)]
        assert len(won) == 1
        loser = outcomes[1 - won[0]]
        assert isinstance(loser, NexoError)
        assert loser.name == "invalid_credentials"
        await world.accounts.login("ann", passwords[won[0]])


async def test_a_login_that_a_change_of_password_overtakes_gets_no_live_session(store_url: str) -> None:
    async with open_world(store_url) as world:
        session = await world.session_of(await world.sign_up())
        matches = world.accounts.passwords.matches

        async def overtaken(password: str, password_hash: str | None, address: str) -> bool:
            good = await matches(password, password_hash, address)
            world.accounts.passwords.matches = matches  # type: ignore[method-assign]
            await world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
            return good

        world.accounts.passwords.matches = overtaken  # type: ignore[method-assign]
        late = await world.accounts.login("ann", PASSWORD)
        assert await refusal(world.session_of(late)) == "session_invalid"
        assert await refusal(world.accounts.refresh(late.refresh_token)) == "session_invalid"


async def test_an_administrator_sets_a_password_and_every_session_ends(store_url: str) -> None:
    async with open_world(store_url) as world:
        signed_in = await world.sign_up()
        session = await world.session_of(signed_in)
        await world.accounts.set_password("ann", OTHER_PASSWORD)
        assert world.ended == [session.sid]
        assert await refusal(world.session_of(signed_in)) == "session_invalid"
        assert await refusal(world.accounts.refresh(signed_in.refresh_token)) == "session_invalid"
        await world.accounts.login("ann", OTHER_PASSWORD)
        assert await refusal(world.accounts.set_password("bob", PASSWORD)) == "user_not_found"
        assert await refusal(world.accounts.set_password("ann", "short")) == "bad_password"


async def test_no_secret_is_logged_or_told(store_url: str) -> None:
    with capture_logs() as logs:
        async with open_world(store_url) as world:
            first = await world.sign_up()
            second = await world.accounts.refresh(first.refresh_token)
            third = await world.accounts.change_password(await world.session_of(second), PASSWORD, OTHER_PASSWORD)
            told = [repr(first), str(second), f"{third}"]
            for work in (
                world.accounts.register(PASSWORD, "ann"),
                world.accounts.login("ann", PASSWORD),
                world.accounts.refresh(first.refresh_token),
                world.session_of(first),
                world.accounts.authenticate(first.access_token + "x"),
                world.accounts.set_password("bob", OTHER_PASSWORD),
                world.accounts.register("short", "bob"),
            ):
                with pytest.raises(NexoError) as caught:
                    await work
                told.append(repr(caught.value) + repr(caught.value.__cause__) + repr(caught.value.data))
            ((password_hash,),) = await world.rows("SELECT password_hash FROM users")
    secrets = [PASSWORD, OTHER_PASSWORD, "short", SECRET, password_hash]
    secrets += [token for one in (first, second, third) for token in (one.access_token, one.refresh_token)]
    said = "\n".join([*told, *map(str, logs)])
    assert [secret for secret in secrets if secret in said] == []


# -- blocking --------------------------------------------------------------------------------------------


async def blocked_mark(world: World, user_id: str, peer_id: str) -> int | None:
    chat = single_conversation_id(user_id, peer_id)
    _, member = await world.database.read(lambda: read_member(chat, user_id))
    return None if member is None else member.blocked


async def test_blocking_marks_the_other_in_the_chat_and_lists_them(store_url: str) -> None:
    async with open_world(store_url) as world:
        for user_id in ("ann", "bob", "Bob"):
            await world.accounts.register(PASSWORD, user_id)
        assert await world.accounts.blocks("ann") == []
        assert await world.accounts.block("ann", "bob") == ["bob"]
        assert await world.accounts.block("ann", "bob") == ["bob"]
        assert (await blocked_mark(world, "bob", "ann"), await blocked_mark(world, "ann", "bob")) == (1, 0)
        assert await blocked_mark(world, "Bob", "ann") is None
        assert await world.accounts.block("ann", "Bob") == ["Bob", "bob"]
        assert await world.accounts.block("bob", "ann") == ["ann"]
        assert await world.accounts.unblock("ann", "bob") == ["Bob"]
        assert await world.accounts.unblock("ann", "bob") == ["Bob"]
        assert (await blocked_mark(world, "bob", "ann"), await blocked_mark(world, "ann", "bob")) == (0, 1)
        assert await world.accounts.blocks("bob") == ["ann"]


async def test_who_cannot_be_blocked_is_named(store_url: str) -> None:
    async with open_world(store_url) as world:
        for user_id in ("ann", "bob"):
            await world.accounts.register(PASSWORD, user_id)
        for act in (world.accounts.block, world.accounts.unblock):
            assert await refusal(act("ann", "ann")) == "bad_user_id"
            assert await refusal(act("ann", "not an id")) == "bad_user_id"
            assert await refusal(act("ann", "nobody")) == "user_not_found"
        assert await world.accounts.unblock("ann", "bob") == []
        assert await world.rows("SELECT * FROM conversations") == []


async def test_blocking_takes_the_lock_that_sending_takes(store_url: str) -> None:
    async with open_world(store_url) as world:
        for user_id in ("ann", "bob"):
            await world.accounts.register(PASSWORD, user_id)
        await world.accounts.block("ann", "bob")
        await world.accounts.unblock("ann", "bob")
        order: list[str] = []
        held = asyncio.Event()
        loop = asyncio.get_running_loop()

        def send() -> Script[None]:
            """Holds the conversation as a send does, until the block has had time to slip in."""
            yield query(
                f"SELECT id FROM conversations WHERE conversation_id=?{world.database.sql.for_update}",
                single_conversation_id("ann", "bob"),
            )
            loop.call_soon_threadsafe(held.set)
            for _ in range(300):
                yield query("SELECT COUNT(*) FROM users")
            found = yield query("SELECT blocked FROM members WHERE user_id=?", "bob")
            order.append(f"sent, blocked={found[0][0]}")

        async def block() -> None:
            await held.wait()
            await world.accounts.block("ann", "bob")
            order.append("blocked")

        await asyncio.gather(world.database.write(send), block())
        assert order == ["sent, blocked=0", "blocked"]


# -- when the reply of a commit is lost ------------------------------------------------------------------


async def test_everything_may_run_twice(store_url: str, engine_name: str) -> None:
    # SQLite never loses the reply to a commit, so there the second run is not told of the first
    grace_s = 30 if engine_name == "sqlite" else 0
    async with open_world(store_url, auth__refresh_grace_s=grace_s) as world, commits_unheard(world.database):
        user = await world.accounts.register(PASSWORD, "ann")
        assert user == await world.accounts.info("ann")
        assert await refusal(world.accounts.register(PASSWORD, "ann")) == "user_exists"
        await world.accounts.register(PASSWORD, "bob")
        first = await world.accounts.login("ann", PASSWORD)
        second = await world.accounts.refresh(first.refresh_token)
        session = await world.session_of(second)
        other = await world.session_of(await world.accounts.login("ann", PASSWORD))
        third = await world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
        assert (await world.session_of(third)).version == 2
        assert world.ended == [other.sid]
        await world.session_of(await world.accounts.refresh(third.refresh_token))
        assert await world.accounts.block("ann", "bob") == ["bob"]
        assert await world.accounts.unblock("ann", "bob") == []
        await world.accounts.set_password("ann", PASSWORD)
        assert await refusal(world.session_of(third)) == "session_invalid"


# -- who may register ------------------------------------------------------------------------------------


async def test_where_registration_is_closed_only_the_operator_adds_users(store_url: str) -> None:
    async with open_world(store_url, auth__registration="closed") as world:
        code = (await world.accounts.new_code(1, 60_000)).code
        for given in ("", code):
            assert await refusal(world.accounts.sign_up(PASSWORD, "ann", code=given)) == "registration_closed"
        await world.accounts.register(PASSWORD, "ann")
        await world.accounts.login("ann", PASSWORD)


async def test_a_code_lets_as_many_register_as_it_has_uses_also_at_once(store_url: str) -> None:
    async with open_world(store_url, auth__registration="invite") as world:
        code = (await world.accounts.new_code(3, 60_000)).code
        for wrong in ("", "nonsense", code[:-1], "x" * 100, "\ud800"):
            assert await refusal(world.accounts.sign_up(PASSWORD, "ann", code=wrong)) == "registration_closed"
        await world.accounts.sign_up(PASSWORD, "ann", code=f" {code.upper()} ")
        assert await refusal(world.accounts.sign_up(PASSWORD, "ann", code=code)) == "user_exists"
        outcomes = await asyncio.gather(
            *(world.accounts.sign_up(PASSWORD, f"user{n}", code=code) for n in range(6)), return_exceptions=True
        )
        errors = [outcome.name for outcome in outcomes if isinstance(outcome, NexoError)]
        assert errors == ["registration_closed"] * 4
        assert len(await world.rows("SELECT 1 FROM users WHERE user_id LIKE 'user%'")) == 2


async def test_an_expired_code_is_useless(store_url: str) -> None:
    async with open_world(store_url, auth__registration="invite") as world:
        code = (await world.accounts.new_code(3, 0)).code
        assert await refusal(world.accounts.sign_up(PASSWORD, "ann", code=code)) == "registration_closed"


# -- what other instances find out -----------------------------------------------------------------------


async def test_every_end_and_renewal_of_a_session_is_found_in_the_database(store_url: str) -> None:
    async with open_world(store_url) as world:
        store = SqlAccounts(world.database)
        first = await world.sign_up()
        began_ms, found = await store.sessions_changed(0)
        assert found == []

        async def number() -> int:
            changes = dict((await store.sessions_changed(began_ms))[1])
            assert changes.keys() <= {"ann"}
            return changes.get("ann", 0)

        session = await world.session_of(first)
        changed = await world.accounts.change_password(session, PASSWORD, OTHER_PASSWORD)
        assert await number() == 1
        await world.accounts.logout(await world.session_of(changed))
        assert await number() == 2
        await world.accounts.set_password("ann", PASSWORD)
        assert await number() == 3
        again = await world.accounts.login("ann", PASSWORD)
        await world.accounts.refresh(again.refresh_token)
        assert await number() == 3
        await world.change("UPDATE refresh_tokens SET rotated_at=rotated_at-31000 WHERE rotated_at>0")
        assert await refusal(world.accounts.refresh(again.refresh_token)) == "session_invalid"
        assert await number() == 4
        at_ms, _ = await store.sessions_changed(0)
        assert (await store.sessions_changed(at_ms + 60_000))[1] == []

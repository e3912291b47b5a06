"""Where settings come from, which one wins, and what is said about those that cannot be."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexo.config import (
    Config,
    StoreUrl,
    describe,
    load,
    load_with_sources,
    parse_store_url,
    redact_url,
    resolve_store_url,
    show,
)
from nexo.config.loading import _typed
from nexo.config.tree import AuthConfig, DataConfig, StoreConfig
from nexo.errors import StartupError

FIELDS = {field.key: field for field in describe()}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def toml(tmp_path: Path, text: str, name: str = "some.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


# sources


def test_without_any_source_everything_has_its_default() -> None:
    assert load(env={}) == Config()


def test_the_defaults_are_the_ones_of_the_contract() -> None:
    config = load(env={})
    assert config.send.deadline_ms == 3000
    assert config.receipts.flush_ms == 100
    assert config.receipts.group_push_max_members == 100
    assert config.pull.max_bytes == 256 * 1024
    assert (config.group.min_create_members, config.group.max_members) == (3, 100_000)
    assert (config.recall.window_s, config.recall.admin) == (120, True)
    assert config.filter.mode == "mask"
    assert (config.auth.access_ttl_s, config.auth.refresh_ttl_s) == (30 * 60, 30 * 24 * 3600)
    assert (config.auth.refresh_grace_s, config.auth.session_cache_s) == (30, 30)
    assert config.cache.ttl_s == 300


def test_flags_win_over_the_environment_over_the_file_over_defaults(tmp_path: Path) -> None:
    path = toml(tmp_path, "[store]\npool_size = 1\nbatch_max = 1\nqueue_max = 1\n")
    env = {"NEXO_STORE__BATCH_MAX": "2", "NEXO_STORE__QUEUE_MAX": "2"}
    loaded = load_with_sources(path, env, {"store.queue_max": 3, "store.linger_ms": None})
    store = loaded.config.store
    assert (store.pool_size, store.batch_max, store.queue_max, store.linger_ms) == (1, 2, 3, 0)
    assert loaded.sources == {
        "store.pool_size": f"file {path}",
        "store.batch_max": "environment variable NEXO_STORE__BATCH_MAX",
        "store.queue_max": "flag",
    }


def test_the_file_is_the_given_one_else_the_variables_else_nexo_toml(tmp_path: Path) -> None:
    toml(tmp_path, "cache.ttl_s = 1", "nexo.toml")
    named = toml(tmp_path, "cache.ttl_s = 2", "named.toml")
    given_ = toml(tmp_path, "cache.ttl_s = 3", "given.toml")
    assert load(env={}).cache.ttl_s == 1
    assert load(env={"NEXO_CONFIG": ""}).cache.ttl_s == 1
    assert load(env={"NEXO_CONFIG": str(named)}).cache.ttl_s == 2
    assert load(given_, env={"NEXO_CONFIG": str(named)}).cache.ttl_s == 3


def test_the_real_environment_is_used_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXO_CACHE__TTL_S", "7")
    assert load().cache.ttl_s == 7


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("On", True),
        ("1", True),
        ("yes", True),
        ("false", False),
        ("off", False),
        ("0", False),
    ],
)
def test_a_switch_can_be_written_in_the_usual_ways_in_the_environment(text: str, value: bool) -> None:
    assert load(env={"NEXO_USER__SEARCH": text}).user.search is value


def test_text_that_looks_like_a_number_stays_text() -> None:
    assert load(env={"NEXO_DATA__DIR": "007", "NEXO_AUTH__SECRET": "true"}).data.dir == "007"


def test_lists_are_separated_by_commas_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    field = msgspec.structs.replace(FIELDS["data.dir"], annotation=list[str])
    monkeypatch.setitem(_typed.__globals__["_FIELDS"], "data.dir", field)
    assert _typed("10.0.0.0/8, ::1,", "data.dir") == ["10.0.0.0/8", "::1"]


# problems


def problem(path: Path | None = None, env: dict[str, str] | None = None, flags: dict[str, object] | None = None) -> str:
    with pytest.raises(StartupError) as caught:
        load(path, env or {}, flags)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[stroe]\npool_size = 1", "stroe.pool_size (file {path}) is unknown; did you mean store.pool_size?"),
        ("store.pol_size = 1", "store.pol_size (file {path}) is unknown; did you mean store.pool_size?"),
        ("[zebra]", "zebra (file {path}) is unknown"),
        ("colour = 1", "colour (file {path}) is unknown"),
        ("store = 1", "store (file {path}) is a section, not a single value"),
        (
            "store.pool_size = '8'",
            "store.pool_size (file {path}) must be a whole number from 1 to 1000, not '8'",
        ),
        (
            "store.pool_size = true",
            "store.pool_size (file {path}) must be a whole number from 1 to 1000, not True",
        ),
        ("recall.admin = 1", "recall.admin (file {path}) must be true or false, not 1"),
        ("[data.dir]\nx = 1", "data.dir (file {path}) must be text, not {{'x': 1}}"),
    ],
)
def test_a_wrong_key_in_the_file_is_named_with_the_file(tmp_path: Path, text: str, expected: str) -> None:
    path = toml(tmp_path, text)
    assert problem(path) == expected.format(path=path)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NEXO_STORE__POOLSIZE", "1", "is unknown; did you mean NEXO_STORE__POOL_SIZE?"),
        ("NEXO_STORE_POOL_SIZE", "1", "is unknown; did you mean NEXO_STORE__POOL_SIZE?"),
        ("NEXO_store__pool_size", "1", "is unknown"),
        ("NEXO_CONFG", "x", "is unknown; did you mean NEXO_CONFIG?"),
        ("NEXO_SECRET_OF_MINE", "hush", "is unknown"),
    ],
)
def test_an_unknown_variable_is_named(name: str, value: str, expected: str) -> None:
    said = problem(env={name: value})
    assert said == f"{name} (environment variable) {expected}"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("NEXO_SEND__DEADLINE_MS", "soon", "send.deadline_ms ({}) must be a whole number from 1, not 'soon'"),
        ("NEXO_SEND__DEADLINE_MS", "", "send.deadline_ms ({}) must be a whole number from 1, not ''"),
        ("NEXO_SEND__DEADLINE_MS", "0", "send.deadline_ms ({}) must be a whole number from 1, not 0"),
        (
            "NEXO_AUTH__SESSION_CACHE_S",
            "31",
            "auth.session_cache_s ({}) must be a whole number from 0 to 30, not 31",
        ),
        ("NEXO_FILTER__MODE", "Mask", "filter.mode ({}) must be one of mask, off, reject, not 'Mask'"),
        ("NEXO_USER__SEARCH", "maybe", "user.search ({}) must be true or false, not 'maybe'"),
    ],
)
def test_a_wrong_value_is_named_with_its_variable(name: str, value: str, expected: str) -> None:
    assert problem(env={name: value}) == expected.format(f"environment variable {name}")


def test_other_programs_variables_are_none_of_our_business() -> None:
    assert load(env={"PATH": "/bin", "NEXOTHING": "1", "nexo_x": "1"}) == Config()


def test_wrong_flags_are_named() -> None:
    assert problem(flags={"data.dri": "x"}) == "data.dri (flag) is unknown; did you mean data.dir?"
    assert problem(flags={"cache.ttl_s": "x"}) == "cache.ttl_s (flag) must be a whole number from 1, not 'x'"


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    path = toml(tmp_path, "colour = 1")
    said = problem(path, {"NEXO_CACHE__TTL_S": "x"}, {"zebra": 1})
    assert [line.split()[0] for line in said.splitlines()] == ["colour", "zebra", "cache.ttl_s"]


def test_a_wrong_value_in_a_weaker_source_is_told_although_it_would_not_win(tmp_path: Path) -> None:
    path = toml(tmp_path, "cache.ttl_s = 'x'")
    assert "cache.ttl_s" in problem(path, {"NEXO_CACHE__TTL_S": "5"})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    assert problem(missing) == f"cannot read the config file {missing}: No such file or directory"
    broken = toml(tmp_path, "a = ")
    assert problem(broken).startswith(f"the config file {broken} is not valid TOML: ")
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'data.dir = "\xe9"')
    assert problem(latin) == f"the config file {latin} is not UTF-8 text"


@pytest.mark.parametrize(
    ("env", "key"),
    [
        ({"NEXO_DATA__DIR": "~nobody-of-that-name"}, "data.dir (environment variable NEXO_DATA__DIR): "),
        ({"NEXO_STORE__URL": "oracle://h/d"}, "store.url (environment variable NEXO_STORE__URL): "),
        (
            {"NEXO_GROUP__MAX_MEMBERS": "2"},
            "group.max_members (environment variable NEXO_GROUP__MAX_MEMBERS): ",
        ),
        ({"NEXO_AUTH__ACCESS_TTL_S": "99999999"}, "auth.refresh_ttl_s (default): "),
        (
            {"NEXO_AUTH__ARGON2_MEMORY_KIB": "8", "NEXO_AUTH__ARGON2_PARALLELISM": "2"},
            "auth.argon2_memory_kib (environment variable NEXO_AUTH__ARGON2_MEMORY_KIB): ",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(env: dict[str, str], key: str) -> None:
    assert problem(env=env).startswith(key)


# descriptions and secrets


def test_every_field_is_described_and_its_own_default_is_valid() -> None:
    for field in describe():
        assert field.help.endswith("."), field.key
        assert field.type, field.key
        assert msgspec.convert(field.default, field.annotation) == field.default


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("NEXO_HTTP__TRUSTED_PROXIES", "10.0.0.0/8, proxy.example", "'proxy.example' is no address"),
        ("NEXO_HTTP__TRUSTED_PROXIES", "10.0.0.1/8", "'10.0.0.1/8' is no address"),
        ("NEXO_HTTP__CORS_ORIGINS", "https://app.example/", "'https://app.example/' is no origin"),
        ("NEXO_HTTP__CORS_ORIGINS", "app.example", "'app.example' is no origin"),
        ("NEXO_HTTP__CORS_ORIGINS", "https://*.example.com", "'https://*.example.com' never matches: name each origin"),
    ],
)
def test_proxies_and_origins_that_cannot_be_are_named(variable: str, value: str, complaint: str) -> None:
    with pytest.raises(StartupError) as caught:
        load(env={variable: value})
    assert complaint in str(caught.value)
    assert variable in str(caught.value)


def test_proxies_and_origins_are_lists() -> None:
    env = {"NEXO_HTTP__TRUSTED_PROXIES": "10.0.0.0/8, ::1", "NEXO_HTTP__CORS_ORIGINS": "https://a.example:8443,*"}
    http = load(env=env).http
    assert (http.trusted_proxies, http.cors_origins) == (["10.0.0.0/8", "::1"], ["https://a.example:8443", "*"])


def test_every_field_can_be_set_by_the_variable_that_its_description_names() -> None:
    for field in describe():
        text = ",".join(field.default) if isinstance(field.default, list) else str(field.default)
        if field.is_optional:
            text = ""
        loaded = load_with_sources(env={field.env: text})
        assert loaded.config == Config()
        assert loaded.sources == {field.key: f"environment variable {field.env}"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://nexo:hush@db/nexo", "mysql://nexo:***@db/nexo"),
        ("mysql://nexo:hu@sh@db/nexo", "mysql://nexo:***@db/nexo"),
        ("mysql://nexo:hu/sh@db/nexo", "mysql://nexo:***@db/nexo"),
        ("redis://:hush@cache:6379/0", "redis://:***@cache:6379/0"),
        ("postgresql://db/nexo?password=hush&ssl=on", "postgresql://db/nexo?password=***&ssl=on"),
        ("postgresql://nexo@db/nexo", "postgresql://nexo@db/nexo"),
        ("sqlite:///nexo.db", "sqlite:///nexo.db"),
        ("", ""),
    ],
)
def test_urls_are_shown_without_their_password(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_neither_showing_nor_printing_the_tree_gives_a_secret_away() -> None:
    config = Config(store=StoreConfig(url="mysql://u:hush@h/d"), auth=AuthConfig(secret="hush"))
    assert show(config)["auth.secret"] == "***"
    assert show(config)["store.url"] == "mysql://u:***@h/d"
    for printed in (repr(config), str(config.auth), repr(config.store), repr(resolve_store_url(config))):
        assert "hush" not in printed


def test_an_empty_secret_is_shown_as_empty() -> None:
    assert show(Config())["auth.secret"] == ""


def test_problems_never_quote_a_secret(tmp_path: Path) -> None:
    assert "1234" not in problem(toml(tmp_path, "auth.secret = 1234\nstore.url = 1234"))
    for url in ("mysql://u:hu/sh@h/d", "mysql://u:hu#sh@h/d", "mysql://u:hu[sh@h/d", "mysql://u:hush@h"):
        assert "hu" not in problem(env={"NEXO_STORE__URL": url})


# store.url


def test_without_a_url_the_store_is_a_file_in_the_data_folder() -> None:
    config = Config(data=DataConfig(dir="/var/lib/nexo"))
    assert resolve_store_url(config) == StoreUrl(engine="sqlite", path=Path("/var/lib/nexo/nexo.db"))


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("sqlite:///some/nexo.db", StoreUrl(engine="sqlite", path=Path("some/nexo.db"))),
        ("sqlite:////srv/nexo.db", StoreUrl(engine="sqlite", path=Path("/srv/nexo.db"))),
        ("sqlite:///my%20chat.db", StoreUrl(engine="sqlite", path=Path("my chat.db"))),
        ("mysql://h/d", StoreUrl(engine="mysql", host="h", port=3306, database="d")),
        ("mariadb://u@h/d", StoreUrl(engine="mysql", host="h", port=3306, user="u", database="d")),
        (
            "postgres://u:p%40%2Fw@[::1]:6543/d?sslmode=require",
            StoreUrl(
                engine="postgresql",
                host="::1",
                port=6543,
                user="u",
                password="p@/w",
                database="d",
                params={"sslmode": "require"},
            ),
        ),
        (
            "postgresql://u@/d?host=/run/postgresql",
            StoreUrl(engine="postgresql", port=5432, user="u", database="d", params={"host": "/run/postgresql"}),
        ),
        (
            "postgresql://u:a%2Cb@one:6001,[::1],three:6003/d?target_session_attrs=read-write",
            StoreUrl(
                engine="postgresql",
                host="one",
                port=6001,
                more_hosts=[("::1", 5432), ("three", 6003)],
                user="u",
                password="a,b",
                database="d",
            ),
        ),
        (
            "mysql://one,two:3307/d?target_session_attrs=any",
            StoreUrl(
                engine="mysql", host="one", port=3306, more_hosts=[("two", 3307)], needs_primary=False, database="d"
            ),
        ),
    ],
)
def test_urls_are_parsed(url: str, parsed: StoreUrl) -> None:
    assert parse_store_url(url) == parsed


@pytest.mark.parametrize(
    ("url", "is_embedded"),
    [("sqlite:///nexo.db", True), ("mysql://h/d", False), ("mariadb://h/d", False), ("postgres://h/d", False)],
)
def test_only_a_file_is_an_embedded_database(url: str, is_embedded: bool) -> None:
    assert parse_store_url(url).is_embedded is is_embedded


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nexo.db", "use one of sqlite, mysql, mariadb, postgresql, postgres"),
        ("mysql+asyncmy://u@h/d", "write mysql://"),
        ("sqlite://nexo.db", "three slashes"),
        ("sqlite:///", "the path of a file"),
        ("sqlite:///:memory:", "the path of a file"),
        ("sqlite:///x.db?mode=ro", "no parameters"),
        ("sqlite:///~nobody-of-that-name/nexo.db", "home folder"),
        ("mysql:///d", "the host is missing"),
        ("mysql://h", "one database name"),
        ("mysql://h/", "one database name"),
        ("mysql://h/d/e", "one database name"),
        ("mysql://h:port/d", "cannot be read"),
        ("mysql://h:99999/d", "cannot be read"),
        ("mysql://u:a[b@h/d", "%5B"),
        ("mysql://u@h/d#x", "%23"),
        ("mysql://h/d?ssl", "cannot be read"),
        ("mysql://h/d?a=1&a=2", "twice"),
        ("mysql://one,,two/d", "one of several hosts is empty"),
        ("mysql://one,two:99999/d", "cannot be read"),
        ("postgresql://one,two/d?target_session_attrs=standby", "read-write, primary, any"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_the_way_out(url: str, reason: str) -> None:
    with pytest.raises(StartupError) as caught:
        parse_store_url(url)
    assert reason in str(caught.value)


@settings(deadline=None)
@given(st.text(max_size=60), st.sampled_from(["", "sqlite://", "sqlite:///~", "mysql://", "postgres://u:p@h/"]))
def test_any_text_is_parsed_or_refused(rest: str, start: str) -> None:
    with contextlib.suppress(StartupError):
        parse_store_url(start + rest).redacted()


_names = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())


@settings(deadline=None)
@given(user=_names, password=_names, database=_names)
def test_a_redacted_url_says_the_same_but_for_the_password(user: str, password: str, database: str) -> None:
    url = StoreUrl(engine="mysql", host="h", port=1, user=user, password=password, database=database)
    assert parse_store_url(url.redacted()) == msgspec.structs.replace(url, password="***")

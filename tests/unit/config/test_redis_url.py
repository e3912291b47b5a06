"""`redis.url`: what it can say, and what is refused without showing a password."""

from __future__ import annotations

import pytest

from nexo.config import load, parse_redis_url, show
from nexo.errors import StartupError


@pytest.mark.parametrize(
    ("url", "mode", "hosts", "rest"),
    [
        ("redis://cache", "single", [("cache", 6379)], {"db": 0, "tls": False}),
        ("redis://:p%40ss@cache:1234/3", "single", [("cache", 1234)], {"db": 3, "password": "p@ss", "user": ""}),
        ("rediss://ann:secret@[::1]:7000", "single", [("::1", 7000)], {"tls": True, "user": "ann"}),
        ("redis+cluster://a:1,b:2,c", "cluster", [("a", 1), ("b", 2), ("c", 6379)], {}),
        ("rediss+cluster://:pw@a", "cluster", [("a", 6379)], {"tls": True, "password": "pw"}),
        ("redis+sentinel://a,b:5/main/2", "sentinel", [("a", 26379), ("b", 5)], {"service": "main", "db": 2}),
        (
            "redis+sentinel://:pw@a/main?sentinel_password=spw",
            "sentinel",
            [("a", 26379)],
            {"password": "pw", "sentinel_password": "spw"},
        ),
        (
            "rediss://a?ssl_ca_certs=/etc/ca.pem&ssl_verify=false",
            "single",
            [("a", 6379)],
            {"files": {"ssl_ca_certs": "/etc/ca.pem"}, "ssl_verify": False},
        ),
    ],
)
def test_a_url_says_where_redis_is(url: str, mode: str, hosts: list[tuple[str, int]], rest: dict[str, object]) -> None:
    found = parse_redis_url(url)
    assert (found.mode, found.hosts) == (mode, hosts)
    assert {name: getattr(found, name) for name in rest} == rest


@pytest.mark.parametrize(
    "url",
    [
        "cache:6379",
        "http://cache",
        "redis+what://a",
        "redis://",
        "redis://a:0",
        "redis://a:port",
        "redis://a/db",
        "redis://a/1/2",
        "redis+sentinel://a",
        "redis+cluster://a/1",
        "redis://a?timeout=3",
        "redis://:hidden@a:port",
    ],
)
def test_what_cannot_be_read_is_refused_by_the_name_of_the_key(url: str) -> None:
    with pytest.raises(StartupError) as refused:
        load(env={}, flags={"redis.url": url})
    assert "redis.url" in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_passwords_are_not_shown() -> None:
    url = "redis+sentinel://ann:hidden@a/main?sentinel_password=hidden"
    config = load(env={}, flags={"redis.url": url})
    assert "hidden" not in repr(config)
    assert "hidden" not in str(show(config))
    assert "hidden" not in repr(parse_redis_url(url))

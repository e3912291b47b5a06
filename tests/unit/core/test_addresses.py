"""Whose address counts, behind proxies that are trusted and others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexo.core.addresses import client_address, limit_key, parse_networks

PROXIES = parse_networks(["10.0.0.0/8", "192.0.2.7", "fd00::/8"])


@pytest.mark.parametrize(
    ("remote", "forwarded_for", "expected"),
    [
        ("203.0.113.5", "", "203.0.113.5"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("192.0.2.7", "203.0.113.5", "203.0.113.5"),
        ("192.0.2.8", "203.0.113.5", "192.0.2.8"),
        ("fd00::1", "203.0.113.5", "203.0.113.5"),
        ("10.0.0.1", "203.0.113.5, 10.1.1.1, 10.2.2.2", "203.0.113.5"),
        ("10.0.0.1", "10.3.3.3, 10.1.1.1", "10.3.3.3"),
        ("10.0.0.1", "203.0.113.5:4711", "203.0.113.5"),
        ("10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("10.0.0.1", "2001:db8::1", "2001:db8::1"),
        ("::ffff:10.0.0.1", "203.0.113.5", "203.0.113.5"),
        ("::ffff:203.0.113.5", "", "203.0.113.5"),
        ("10.0.0.1", "::ffff:203.0.113.5", "203.0.113.5"),
    ],
)
def test_the_nearest_address_that_is_no_trusted_proxy_counts(remote: str, forwarded_for: str, expected: str) -> None:
    assert client_address(remote, forwarded_for, PROXIES) == expected


def test_what_a_stranger_wrote_is_not_believed() -> None:
    assert client_address("10.0.0.1", "1.1.1.1, 203.0.113.5", PROXIES) == "203.0.113.5"
    assert client_address("203.0.113.5", "1.1.1.1", PROXIES) == "203.0.113.5"


def test_without_trusted_proxies_the_header_is_ignored() -> None:
    assert client_address("10.0.0.1", "203.0.113.5", ()) == "10.0.0.1"


@pytest.mark.parametrize("nonsense", ["unknown", "203.0.113.5 x", "", "a,b", "[", ":", "999.1.1.1", "\x00"])
def test_where_an_entry_makes_no_sense_the_proxy_that_passed_it_on_counts(nonsense: str) -> None:
    assert client_address("10.0.0.1", f"{nonsense},10.9.9.9", PROXIES) == "10.9.9.9"


def test_a_remote_without_an_address_stays_as_it_is() -> None:
    assert client_address("", "203.0.113.5", PROXIES) == ""


@given(st.text(max_size=300), st.text(max_size=60))
def test_arbitrary_headers_raise_nothing(forwarded_for: str, remote: str) -> None:
    assert isinstance(client_address(remote, forwarded_for, PROXIES), str)
    assert isinstance(client_address("10.0.0.1", forwarded_for, PROXIES), str)


@given(st.integers(min_value=0, max_value=8), st.text(max_size=20))
def test_a_client_cannot_choose_its_address(hops: int, forged: str) -> None:
    """Whatever a client writes in front, the proxy's own entry behind it decides."""
    chain = ", ".join(["203.0.113.5", *(f"10.0.{i}.1" for i in range(hops))])
    assert client_address("10.0.0.1", f"{forged}, {chain}", PROXIES) == "203.0.113.5"


@pytest.mark.parametrize("text", ["10.0.0.1/8", "nowhere", "10.0.0.0/33"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_networks([text])


def test_limits_see_a_whole_ipv6_network_as_one() -> None:
    assert limit_key("203.0.113.5") == "203.0.113.5"
    assert limit_key("2001:db8:1:2::1") == limit_key("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert limit_key("2001:db8:1:3::1") != limit_key("2001:db8:1:2::1")
    assert limit_key("not:an:address") == "not:an:address"

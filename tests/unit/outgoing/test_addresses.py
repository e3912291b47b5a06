"""Which addresses the server connects to by itself."""

from __future__ import annotations

import pytest

from harness.core import refused
from nexo.outgoing.addresses import check_target, is_global, parse_target, resolve


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.0.3", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254",
        "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)  # fmt: skip
def test_what_is_not_global_is_recognised(address: str) -> None:
    assert not is_global(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_what_is_global_is_allowed(address: str) -> None:
    assert is_global(address)


def test_a_url_is_taken_apart() -> None:
    target = parse_target("https://shop.example:8443/in?a=1")
    assert target == (True, "shop.example", 8443, "/in?a=1")
    assert target.host_header == "shop.example:8443"
    assert parse_target("http://[2606:4700::1]").host_header == "[2606:4700::1]"
    assert parse_target("https://shop.example").path == "/"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:192.168.0.1]"])
def test_an_address_in_the_url_is_checked_without_a_look_up(host: str) -> None:
    with refused("bad_url"):
        check_target(f"http://{host}/", allow_private=False)
    check_target(f"http://{host}/", allow_private=True)


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1"])
async def test_a_name_is_checked_after_it_was_resolved(host: str) -> None:
    target = check_target(f"http://{host}/", allow_private=False)
    with refused("bad_url"):
        await resolve(target, allow_private=False)
    assert await resolve(target, allow_private=True)

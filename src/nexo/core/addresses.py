"""The client address of a request: the peer of the socket, or the address that trusted proxies report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Networks = tuple[IPv4Network | IPv6Network, ...]

_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")
_FORWARDED_MAX = 20  # hops looked at; a longer list was not made by proxies


def parse_networks(texts: Iterable[str]) -> Networks:
    return tuple(ip_network(text) for text in texts)


def client_address(remote: str, forwarded_for: str, trusted: Networks) -> str:
    """Returns the nearest address that is not a trusted proxy.

    `X-Forwarded-For` is read from right to left, because each proxy appends the address it saw: entries left of
    the first untrusted address were written by that client and prove nothing. For an entry that cannot be parsed, the
    proxy that passed it on is returned.
    """
    known = _parse(remote)
    if known is None or not trusted or not forwarded_for or not _is_trusted(known, trusted):
        return remote if known is None else str(known)
    for entry in reversed(forwarded_for.split(",")[-_FORWARDED_MAX:]):
        hop = _parse(_without_port(entry.strip()))
        if hop is None:
            break
        known = hop
        if not _is_trusted(hop, trusted):
            break
    return str(known)


def is_trusted(remote: str, trusted: Networks) -> bool:
    """Returns whether the peer of a socket is a trusted proxy."""
    known = _parse(remote) if trusted else None
    return known is not None and _is_trusted(known, trusted)


def limit_key(address: str) -> str:
    """Returns the key for limits per address: the /64 for IPv6, because one client can use all of its addresses."""
    if ":" not in address:
        return address
    known = _parse(address)
    if not isinstance(known, IPv6Address):
        return address
    return str(IPv6Network((int(known) >> 64 << 64, 64)))


def _parse(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        return found.ipv4_mapped or found
    return found


def _is_trusted(address: IPv4Address | IPv6Address, trusted: Networks) -> bool:
    return any(address in network for network in trusted if network.version == address.version)


def _without_port(entry: str) -> str:
    """Removes the port: some proxies write 192.0.2.1:4711 or [2001:db8::1]:4711."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


def address_of(headers: Mapping[str, str]) -> str:
    """Returns the address by which a client reaches the server, by what it or its proxy says; empty if unknown."""
    host = headers.get("host", "")
    if not _HOST.fullmatch(host):
        return ""
    scheme = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return f"{'https' if scheme == 'https' else 'http'}://{host}"

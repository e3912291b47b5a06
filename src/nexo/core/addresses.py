"""Whose address a request has: the socket's other end, or what proxies that are trusted say of it."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Networks = tuple[IPv4Network | IPv6Network, ...]

_FORWARDED_MAX = 20  # hops looked at; a longer list was not made by proxies


def parse_networks(texts: Iterable[str]) -> Networks:
    return tuple(ip_network(text) for text in texts)


def client_address(remote: str, forwarded_for: str, trusted: Networks) -> str:
    """The nearest address that is not a trusted proxy's.

    `X-Forwarded-For` is read from right to left, because each proxy adds whom it saw on the right: what is
    left of the first stranger was written by that stranger. Where an entry makes no sense, the proxy that
    passed it on is the best that is known.
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


def limit_key(address: str) -> str:
    """What limits per address count: one household or server has a whole IPv6 /64 to choose from."""
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
    """Some proxies write 192.0.2.1:4711 or [2001:db8::1]:4711."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry

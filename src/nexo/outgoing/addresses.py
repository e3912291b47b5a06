"""Which addresses the server may connect to by itself: global ones, unless private ones are allowed.

The check is on addresses, after the name was resolved, and the connection goes to the address that was checked: a name
that resolves to something else a moment later gains nothing.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from nexo.errors import NexoError
from nexo.outgoing.lookups import OPERATORS, NameLookups

URL_MAX_CHARS = 2048
_PORTS = {"http": 80, "https": 443}
# IPv6 networks that carry an IPv4 address in their last 32 bits
_EMBEDDING = (IPv6Network("::ffff:0:0/96"), IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))


class HttpTarget(NamedTuple):
    """The parts of a URL that a request needs."""

    is_tls: bool
    host: str
    port: int
    path: str  # with the query

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.is_tls else "http"] else f"{host}:{self.port}"


def parse_target(url: str) -> HttpTarget:
    """Returns the parts of an http(s) URL. Raises `bad_url`."""
    if len(url) > URL_MAX_CHARS or not url.isascii() or not url.isprintable() or " " in url:
        raise NexoError("bad_url", f"A URL has at most {URL_MAX_CHARS} characters of ASCII, without spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NexoError("bad_url", "This is not a URL") from None
    if parts.scheme not in _PORTS:
        raise NexoError("bad_url", "The URL begins with http:// or https://")
    if not parts.hostname or port == 0:
        raise NexoError("bad_url", "The URL names no host")
    if "@" in parts.netloc or parts.fragment:
        raise NexoError("bad_url", "The URL has neither a user nor a fragment: calls are signed instead")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return HttpTarget(parts.scheme == "https", parts.hostname, port or _PORTS[parts.scheme], path)


def check_target(url: str, *, allow_private: bool) -> HttpTarget:
    """As `parse_target`; an address that stands in the URL itself is checked already."""
    target = parse_target(url)
    literal = _literal(target.host)
    if literal is not None and not allow_private:
        check_address(literal)
    return target


async def resolve(target: HttpTarget, *, allow_private: bool, lookups: NameLookups = OPERATORS) -> list[str]:
    """Returns the addresses of a host. Raises `bad_url` if one of them is not global, OSError if there is none."""
    literal = _literal(target.host)
    if literal is not None:
        found = [literal]
    else:
        found = await lookups.find(target.host, target.port)
    if not found:
        raise OSError(f"{target.host} has no address")
    if not allow_private:
        for address in found:
            check_address(address)
    return found


def check_address(address: str) -> None:
    """Raises `bad_url` for an address that is private, loopback, link-local or otherwise not global."""
    if not is_global(address):
        detail = f"{address} is not a global address; hooks.allow_private allows private ones"
        raise NexoError("bad_url", detail)


def is_global(address: str) -> bool:
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        for network in _EMBEDDING:
            if found in network:
                found = IPv4Address(int(found) & 0xFFFFFFFF)
                break
        else:
            if found.sixtofour is not None and not is_global(str(found.sixtofour)):
                return False
            if found.teredo is not None or found.is_site_local:  # the latter is "global" to `ipaddress`
                return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)


def _literal(host: str) -> str | None:
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        return None

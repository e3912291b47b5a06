"""Credentials for TURN servers that expire, by the shared-secret scheme of coturn (`use-auth-secret`): the user name is
the end of their validity and the user, the password its HMAC-SHA1 with the secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

from nexo.config.tree_calls import CallsConfig


class IceServer(NamedTuple):
    urls: tuple[str, ...]
    username: str | None = None
    credential: str | None = None


class IceServers(NamedTuple):
    servers: list[IceServer]
    expires_at: int  # ms


def sign(secret: str, user_id: str, expires_s: int) -> tuple[str, str]:
    """Returns user name and password."""
    username = f"{expires_s}:{user_id}"
    digest = hmac.new(secret.encode(), username.encode(), hashlib.sha1).digest()
    return username, base64.b64encode(digest).decode()


def ice_servers(config: CallsConfig, user_id: str, now_ms: int) -> IceServers:
    """Returns what a device of this user may use from now on."""
    expires_s = now_ms // 1000 + config.turn_ttl_s
    servers = [IceServer(tuple(config.stun))] if config.stun else []
    if config.turn:
        named = sign(config.turn_secret, user_id, expires_s) if config.turn_secret else (None, None)
        servers.append(IceServer(tuple(config.turn), *named))
    return IceServers(servers, expires_s * 1000)

"""Calls for a product's backend: admin tokens, users, tokens of users, ending sessions.

They are opened by a key of Nexo (in `token`, `Authorization: Bearer` or `secret`), or by an admin token, which a
backend gets for the configured secret.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import Any

from msgspec import UNSET

from nexo.core.keys import is_key
from nexo.errors import NexoError
from nexo.ids import now_ms
from nexo.openim.request import Call, Handler, plain
from nexo.openim.shapes import user_info

ADMIN = "nexo_openim_admin"  # how an admin token begins
ADMIN_TOKEN_S = 86_400
_DAY_S = 86_400


def admin_token(secret: str, now_s: int) -> tuple[str, int]:
    """Returns an admin token and its end."""
    ends_at = now_s + ADMIN_TOKEN_S
    return f"{ADMIN}.{ends_at}.{_sign(secret, ends_at)}", ends_at


def is_admin_token(secret: str, token: str, now_s: int) -> bool:
    begin, _, rest = token.partition(".")
    ends_at, _, signature = rest.partition(".")
    if begin != ADMIN or not secret or not (ends_at.isascii() and ends_at.isdigit() and len(ends_at) < 12):
        return False
    expected = _sign(secret, int(ends_at))
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace")) and now_s < int(ends_at)


def _sign(secret: str, ends_at: int) -> str:
    key = hmac.digest(secret.encode(), b"nexo openim admin", hashlib.sha256)
    return urlsafe_b64encode(hmac.digest(key, str(ends_at).encode(), hashlib.sha256)).decode().rstrip("=")


async def check_backend(call: Call, scope: str) -> str:
    """Returns the caller's name for the audit log. Raises unless it is a backend that may do this."""
    secret, now_s = call.facade.config.secret, now_ms() // 1000
    if is_admin_token(secret, call.token, now_s):
        return "openim:admin"
    given = call.text("secret")
    if secret and given and hmac.compare_digest(given.encode(), secret.encode()):
        return "openim:admin"
    text = call.token if is_key(call.token) else given
    if not is_key(text):
        raise NexoError("unauthorized", "This call needs a key of the server, or an admin token")
    key = await call.facade.backend.keys.authenticate(text)
    key.check_scope(scope)
    return f"key:{key.name}"


async def get_admin_token(call: Call) -> Any:
    secret = call.facade.config.secret
    given = call.text("secret")
    call.facade.actions.limits.request_from(call.address)
    if not secret or not hmac.compare_digest(given.encode(), secret.encode()):
        raise NexoError("no_permission", "The secret is not that of this server")
    token, _ = admin_token(secret, now_ms() // 1000)
    return {"token": token, "expireTimeSeconds": ADMIN_TOKEN_S}


async def get_user_token(call: Call) -> Any:
    await check_backend(call, "tokens")
    seconds = call.facade.config.token_days * _DAY_S
    platform_id = call.number("platformID", 5)
    issued = await call.facade.backend.accounts.issue_tokens(call.text("userID"), platform_id or 5, "", seconds)
    return {"token": issued.access_token, "expireTimeSeconds": seconds}


async def parse_token(call: Call) -> Any:
    session = await call.facade.actions.accounts.authenticate(call.text("token") or call.token)
    return {
        "userID": session.user_id,
        "platformID": session.platform_id,
        "expireTimeSeconds": max(0, (session.expires_at - now_ms()) // 1000),
    }


async def force_logout(call: Call) -> Any:
    actor = await check_backend(call, "tokens")
    await call.facade.backend.accounts.revoke_sessions(call.text("userID"), None, actor)
    return {}


async def user_register(call: Call) -> Any:
    await check_backend(call, "users")
    users = call.body.get("users")
    if not isinstance(users, list):
        raise NexoError("bad_request", "users is a list")
    drafts = []
    for user in users:
        if not isinstance(user, dict) or not isinstance(user.get("userID"), str):
            raise NexoError("bad_user", "A user has a userID")
        nickname, avatar = plain(user.get("nickname")), plain(user.get("faceURL"))
        ex = plain(user.get("ex"))
        extra: Any = {"openim": {"ex": ex}} if isinstance(ex, str) and ex else UNSET
        drafts.append((user["userID"], UNSET if nickname is None else nickname, avatar or UNSET, extra))
    await call.facade.backend.accounts.put_users(drafts)
    return {}


async def account_check(call: Call) -> Any:
    await check_backend(call, "users")
    names = call.names("checkUserIDs")
    known = await call.facade.directory.users(names)
    return {"results": [{"userID": name, "accountStatus": 1 if name in known else 0} for name in names]}


async def get_users(call: Call) -> Any:
    await check_backend(call, "users")
    start, count = call.page()
    found = await call.facade.actions.accounts.page("", start + count)
    return {"total": len(found), "users": [user_info(user, call.base_url) for user in found[start:]]}


ROUTES: dict[str, Handler] = {
    "/auth/get_admin_token": get_admin_token,
    "/auth/get_user_token": get_user_token,
    "/auth/user_token": get_user_token,
    "/auth/parse_token": parse_token,
    "/auth/force_logout": force_logout,
    "/user/user_register": user_register,
    "/user/account_check": account_check,
    "/user/get_users": get_users,
}

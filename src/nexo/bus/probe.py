"""Whether Redis can be used as configured: for `nexo config check --connect`."""

from __future__ import annotations

from nexo.bus.redis_client import BusDown, RedisClient, RedisCommand
from nexo.config import RedisUrl

PROBE_KEY = "nexo:probe"


async def probe_redis(url: RedisUrl, timeout_s: float) -> str:
    """Sign in, write and read. Returns what is wrong, for an operator; empty when nothing is."""
    client = RedisClient(url, timeout_s)
    try:
        await client.run([RedisCommand(("SET", PROBE_KEY, "1", "EX", 1)), RedisCommand(("GET", PROBE_KEY))])
    except BusDown as error:
        return f"Redis at {url.redacted()} cannot be used: {error.__cause__}; {_advice(str(error.__cause__))}"
    finally:
        await client.close()
    return ""


def _advice(words: str) -> str:
    if "WRONGPASS" in words or "NOAUTH" in words or "invalid username-password" in words or "without any" in words:
        return "the user or the password in redis.url is wrong"
    if "NOPERM" in words or "no permissions" in words:
        return "its user needs all rights on the keys of Nexo"
    if "OOM" in words or "MISCONF" in words or "READONLY" in words:
        return "it takes no writes: look at its memory, its disk and its role"
    return "is it running, and are host and port in redis.url right?"

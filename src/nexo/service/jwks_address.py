"""Reads a set of keys from its address."""

from __future__ import annotations

import asyncio

import httpx

TIMEOUT_S = 5.0
MAX_BYTES = 1 << 20


async def load_address(url: str) -> bytes:
    """Returns what the address answers; raises OSError if it does not answer well, or not in time."""
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(timeout=TIMEOUT_S) as client,
            client.stream("GET", url, headers={"accept": "application/json"}) as answer,
        ):
            if answer.status_code != 200:
                raise OSError(f"the answer has the status {answer.status_code}")
            data = b""
            async for part in answer.aiter_bytes():
                data += part
                if len(data) > MAX_BYTES:
                    raise OSError(f"the answer has more than {MAX_BYTES} bytes")
            return data
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(f"{type(error).__name__}: {error}") from error

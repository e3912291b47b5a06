"""Connections for commands that move everything: from a source as it is at one moment, to a target in batches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from nexo.config import StoreUrl
from nexo.store.engines.registry import engine_kind
from nexo.store.engines.transfer_connection import TransferConnection
from nexo.store.failures import startup_errors


@asynccontextmanager
async def open_source(url: StoreUrl) -> AsyncIterator[TransferConnection]:
    """Yields a connection that only reads, in one snapshot from its first statement to its last."""
    with startup_errors(url):
        connection = await engine_kind(url).connect_source(url)
    try:
        await connection.do(connection.begin_snapshot)
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def open_target(url: StoreUrl) -> AsyncIterator[TransferConnection]:
    """Yields a connection to write to; transactions are begun and ended by the caller (`transaction`)."""
    with startup_errors(url):
        connection = await engine_kind(url).connect_target(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def transaction(connection: TransferConnection) -> AsyncIterator[None]:
    """Commit everything in the block, or nothing. After a failure `open_target` closes the connection, and the
    database rolls back."""
    await connection.do(connection.begin)
    yield
    await connection.do("COMMIT")

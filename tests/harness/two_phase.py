"""A server with two-phase acknowledgement for everything, and the Redis that it needs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from harness.server_process import ServerProcess
from harness.servers import Redis


@contextlib.contextmanager
def two_phase(
    *, deliver_before_saved: bool = False, redis: Redis | None = None, **settings: Any
) -> Iterator[ServerProcess]:
    with contextlib.ExitStack() as stack:
        if redis is None:
            redis = stack.enter_context(Redis("appendonly no"))
        yield stack.enter_context(
            ServerProcess(
                redis__url=redis.url,
                two_phase__enabled=True,
                two_phase__scope="all",
                two_phase__deliver_before_saved=deliver_before_saved,
                **settings,
            )
        )

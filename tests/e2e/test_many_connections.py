"""A thousand connections, half of them sending: all of it is saved and received, once and in order.

The full scenario (5,000 connections for a minute) is `bench/five_thousand.py`.
"""

from __future__ import annotations

import os

from harness.pair_load import run_pairs
from harness.server_process import ServerProcess

LONG = os.environ.get("NEXO_LONG_TESTS") == "1"


async def test_a_thousand_connections_lose_repeat_and_reorder_nothing() -> None:
    with ServerProcess() as server:
        report = await run_pairs(
            server.address, server.ws_address, 500, interval_s=3.0, duration_s=60.0 if LONG else 15.0
        )
        print(report)
        report.check()
        assert report.connections == 1000
        assert "Traceback" not in server.output
        server.kill()  # at the latest now it is on the disk
        server.check()

"""What a caller may choose. The names and defaults are those of docs/clients.md, for both SDKs."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct, frozen=True, kw_only=True):
    gap_wait_ms: int = 150
    ack_delay_ms: int = 50
    ack_timeout_ms: int = 10_000
    heartbeat_ms: int | None = None
    connect_timeout_ms: int = 10_000
    backoff_min_ms: int = 500
    backoff_max_ms: int = 30_000
    provisional_ms: int = 60_000
    window_size: int = 500
    max_conversations: int = 200
    max_in_flight: int = 32
    max_pending: int = 10_000


# Not worth an option.
STEADY_S = 10.0  # online that long, and the next attempts to connect start from the beginning
TYPING_S = 6.0
TYPING_AGAIN_S = 3.0
AHEAD_MAX = 1000  # messages above a hole that are kept; the rest comes with the pull
PULLS_MAX = 8  # under way at once
BASELINES_MAX_BYTES = 48 << 10  # of a frame's 64 KiB
BASELINES_MAX = 2000
BASELINE_PAUSE_S = 1.0
RECALLED_MAX = 500  # remembered, for pages of history that were read before the recall
RECEIPTS_MAX = 200  # own messages per conversation whose sender waits for `read`
EVENTS_MAX = 10_000  # events that an iterator may have waiting
PRESENCE_MAX = 100

"""The options of a client, and limits that are no options. docs/clients.md lists the options of both SDKs."""

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


STEADY_S = 3.0  # after so long online the next attempts to connect start with the shortest pause
RECENT_S = 60.0  # a server that was there so recently is back soon:
RECENT_FAILURES = 3  # the pauses do not grow further than after so many failures
TYPING_S = 6.0
TYPING_AGAIN_S = 3.0
AHEAD_MAX = 1000  # messages above a gap that are kept; a pull brings the rest
PULLS_MAX = 8  # without an answer at a time
BASELINES_MAX_BYTES = 48 << 10  # of a frame's 64 KiB
BASELINES_MAX = 2000
BASELINE_PAUSE_S = 1.0
RECALLED_MAX = 500  # recalls that are remembered, for pages of history that were read before them
EDITED_MAX = 500  # edits likewise
REACTED_MAX = 500  # reactions likewise
DELETED_MAX = 10_000  # deletions by this user, of one conversation; as many as the server keeps
RECEIPTS_MAX = 200  # own messages per conversation that wait for `read`
EVENTS_MAX = 10_000  # events that an iterator may have waiting
PRESENCE_MAX = 100

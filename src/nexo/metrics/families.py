"""Every metric by name: what it means and which labels it has. docs/metrics.md is made of this table.

To add one: a row here, and a sample of it from the part that knows (a `Source`, named in `nexo/app.py`). The
values of a label are few and known: never an id, an address or anything a client says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from nexo.metrics.measures import Buckets, Tally


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(NamedTuple):
    name: str
    kind: Kind
    meaning: str
    labels: Mapping[str, str]  # name → which values there are
    chapter: str

    def __call__(self, value: float | Buckets, *labels: str) -> Sample:
        return Sample(self.name, labels, value)

    def each(self, values: Mapping[str, float] | Tally) -> Iterable[Sample]:
        """One sample per word, for a family with one label."""
        return [Sample(self.name, (word,), value) for word, value in values.items()]


class Sample(NamedTuple):
    name: str
    labels: tuple[str, ...]
    value: float | Buckets


Source = Callable[[], Iterable[Sample]]

FAMILIES: dict[str, Family] = {}


def _family(chapter: str, kind: Kind, name: str, meaning: str, /, **labels: str) -> Family:
    if name in FAMILIES:
        raise ValueError(f"{name} is there twice")
    family = FAMILIES[name] = Family(name, kind, meaning, labels, chapter)
    return family


C, G, H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

_S = "Sending"
SENDS = _family(
    _S, C, "nexo_sends_total", "Sends that were decided.",
    result="`saved` (a new row), `repeated` (a retry that found its row), `refused` (not allowed), "
    "`late` (over `send.deadline_ms`, not saved), `failed` (could not be written)",
)  # fmt: skip
SEND_SECONDS = _family(
    _S, H, "nexo_send_seconds", "From taking a send to handing its ACK to the sender's socket.",
)  # fmt: skip
SEND_STAGES = _family(
    _S, H, "nexo_send_stage_seconds", "The same by stages.",
    stage="`queue` (until a transaction takes it), `write` (until it is committed), `ack` (until the ACK is handed "
    "over), `push` (from the commit until the frames for all receivers here are handed over)",
)  # fmt: skip
BATCH_SIZE = _family(_S, H, "nexo_batch_size", "Sends decided by one transaction.")
BATCHES = _family(
    _S, C, "nexo_batch_troubles_total", "Transactions with sends that did not end well at once.",
    outcome="`again` (deadlock, lock or time-out: repeated), `unknown` (connection lost while committing: looked up), "
    "`conflict` (unique key: repeated), `divided` (to find the send that cannot be written)",
)  # fmt: skip

_T = "Two-phase acknowledgement"
ACCEPT_WRITE_SECONDS = _family(
    _T, H, "nexo_accept_write_seconds", "Writing a batch of sends into its streams in Redis."
)
ACCEPT_ACK_SECONDS = _family(_T, H, "nexo_accept_ack_seconds", "From taking a send to answering that it is accepted.")
ACCEPTS = _family(
    _T, C, "nexo_accepts_total", "Sends that went to Redis first.",
    result="`accepted`, `known` (a retry of what is accepted and not saved yet), `saved` (a retry: answered from the "
    "database), "
    "`refused` (a retry of what was refused for good), `reused` (another message under the same client_msg_id), "
    "`busy` (over `two_phase.max_backlog`), `direct` (the same, and nothing before it: saved at once), "
    "`without` (Redis could not be reached), `restored` (Redis had lost it: accepted once more)",
)  # fmt: skip
SAVE_LAG_SECONDS = _family(_T, H, "nexo_save_lag_seconds", "From accepting a message to having saved it.")
TWO_PHASE_FAILURES = _family(
    _T, C, "nexo_two_phase_failures_total", "What went wrong between accepting and saving.",
    kind="`deliver_fail` (a provisional copy could not be pushed), `publish_fail` (Redis could not be told of an "
    "outcome; repeated), `save_fail` (refused for good, or buried), `dup_db` (another row has the client_msg_id)",
)  # fmt: skip
STREAM_LENGTH = _family(
    _T, G, "nexo_stream_length", "Entries in the shards that this process saves.",
    stream="`accepted`, `to_save`, `dead`",
)  # fmt: skip
STREAM_PENDING = _family(
    _T, G, "nexo_stream_pending", "Of those, taken by this process and not finished.", stream="`accepted`, `to_save`"
)  # fmt: skip
SHARDS_OWNED = _family(_T, G, "nexo_shards_owned", "Shards that this process saves.")

_Q = "Queues and their limits"
QUEUE = _family(
    _Q, G, "nexo_queue_length", "What waits.",
    queue="`sends` (to be written), `lanes` (conversations that are written by themselves), `cursors` (to be written), "
    "`audiences` (pushes that wait for a member list), `requests` (of connections, for the database), "
    "`passwords` (to be hashed), `reads` (for a thread that reads SQLite), "
    "`bus` (to be told to other instances), `accepting` (sends on their way into Redis), "
    "`unsaved` (sends of connections here that are accepted and not known to be saved)",
)  # fmt: skip
QUEUE_LIMIT = _family(
    _Q, G, "nexo_queue_limit", "How much may wait; none of a queue that others bound.", queue="as `nexo_queue_length`"
)

_R = "Cursors and receipts"
ACKS = _family(
    _R, C, "nexo_acks_total", "Acknowledgements that clients sent.",
    type="`delivered`, `read`", result="`noted`, `refused`",
)  # fmt: skip
DELIVERY_SECONDS = _family(
    _R, H, "nexo_delivery_seconds", "From the commit of a message to a receiver's delivered ACK, where both came here."
)
READ_SECONDS = _family(
    _R, H, "nexo_read_seconds", "From a receiver's first delivered and unread message to the read cursor passing it."
)
CURSOR_BATCH = _family(_R, H, "nexo_cursor_batch_size", "Cursors written by one transaction.")
CURSOR_FLUSH = _family(_R, H, "nexo_cursor_flush_seconds", "How long such a transaction took.")
CURSOR_FAILURES = _family(
    _R, C, "nexo_cursor_flush_failures_total", "Such transactions that failed; the cursors wait for the next one."
)

_P = "Pushing"
PUSHES = _family(
    _P, C, "nexo_pushes_total", "What was to be told to a connection of a receiver.",
    kind="`message`, `notice` (without the body), `head` (noted for the next HEADS frame)",
)  # fmt: skip
PUSHES_DROPPED = _family(
    _P, C, "nexo_pushes_dropped_total", "Frames that a connection could not take; RESYNC follows.",
    reason="`slow_consumer` (its buffer is full), `overflow` (too many while it signed in)",
)  # fmt: skip
PUSHES_LOST = _family(
    _P, C, "nexo_pushes_lost_total", "Times that nobody could find out who was to be told; all here got RESYNC."
)
RESYNCS = _family(
    _P, C, "nexo_resyncs_total", "RESYNC frames.",
    reason="`slow_consumer`, `overflow`, `push_lost`, `sync_failed`, `joined`, and those of the bus",
)  # fmt: skip
RESENT = _family(_P, C, "nexo_resent_messages_total", "Messages sent again after signing in or on request.")

_W = "Connections"
CONNECTIONS = _family(
    _W, G, "nexo_connections", "Open WebSocket connections.",
    dialect="`envelope`, `request`, `command`", state="`signed_in`, `new`", policy="the setting `session.policy`",
)  # fmt: skip
CONNECTIONS_LIMIT = _family(_W, G, "nexo_connections_limit", "The setting `limits.connections_total`; 0: none.")
USERS = _family(_W, G, "nexo_users_online", "Users with a connection here.")
BLOCKED = _family(_W, G, "nexo_connections_blocked", "Connections above the high-water mark: not read, not pushed to.")
BUFFERED = _family(_W, G, "nexo_write_buffer_bytes", "Bytes written to all connections and not taken by the kernel.")
OPENED = _family(_W, C, "nexo_connections_opened_total", "Connections that were let in.", dialect="as above")
CLOSED = _family(
    _W, C, "nexo_connections_closed_total", "Connections that have ended.",
    reason="the error they were closed with, `idle`, or `left` (the client went)",
)  # fmt: skip
FRAMES = _family(
    _W, C, "nexo_websocket_frames_total", "WebSocket messages, control frames apart.", direction="`in`, `out`"
)
BYTES = _family(_W, C, "nexo_websocket_bytes_total", "Bytes on WebSockets, framing included.", direction="`in`, `out`")
REQUESTS = _family(
    _W, C, "nexo_requests_total", "Requests on WebSockets that need the database, sends and ACKs apart.",
    command="`Pull`, `Sync`, … (the commands)",
)  # fmt: skip

_E = "Errors and limits"
ERRORS = _family(
    _E, C, "nexo_errors_total", "Errors that clients were told.",
    way="`websocket`, `http`", reason="a name of docs/errors.md",
)  # fmt: skip
REFUSALS = _family(
    _E, C, "nexo_limit_refusals_total", "How often a limit was exceeded.",
    limit="`frames`, `acks`, `sends`, `inflight_sends`, `queued_requests`, `send_queue`, `logins`, `registers`, "
    "`group_creates`, `connections_total`, `connections_per_ip`, `connections_per_user`",
)  # fmt: skip

_A = "HTTP"
HTTP_REQUESTS = _family(
    _A, C, "nexo_http_requests_total", "HTTP requests.",
    route="method and path of a route, or `other`", status="the HTTP status",
)  # fmt: skip
HTTP_SECONDS = _family(_A, H, "nexo_http_request_seconds", "How long they took.", route="as above")

_D = "Database"
SCRIPTS = _family(
    _D, H, "nexo_script_seconds", "How long a script (a transaction, or a read of one or more statements) took.",
    script="module and function, say `history.pull`",
)  # fmt: skip
SCRIPT_FAILURES = _family(
    _D, C, "nexo_script_failures_total", "Attempts at a script that failed; most are repeated.",
    reason="`transient` (deadlock, time-out, lost connection, full disk), `unknown` (lost while committing), "
    "`conflict` (unique key), `failed`",
)  # fmt: skip

_B = "Many instances"
BUS_UP = _family(_B, G, "nexo_bus_up", "Whether other instances can be heard; while not, the database is watched.")
BUS_PEERS = _family(_B, G, "nexo_bus_peers", "Other instances that are alive.")
BUS_FRAMES = _family(_B, C, "nexo_bus_frames_total", "Frames on the bus, heartbeats apart.", direction="`in`, `out`")
BUS_LOSSES = _family(
    _B, C, "nexo_bus_losses_total", "Times that something from other instances may have been missed; RESYNC followed.",
    reason="`push_lost` (a hole in the numbers), `instance_lost`, `presence_lost`, `bus_back`, `bad_frame`",
)  # fmt: skip
REDIS_SECONDS = _family(_B, H, "nexo_redis_seconds", "Round trips to Redis, each with everything that waited.")
REDIS_FAILURES = _family(
    _B, C, "nexo_redis_failures_total", "Those that failed; Redis is left alone for a moment then."
)

_K = "Caches"
CACHE = _family(
    _K, G, "nexo_cache_entries", "What is remembered.",
    cache="`sessions`, `tokens`, `audiences` (members), `places` (messages that may be acknowledged), `authors`, "
    "`origins`, `read_clocks`, `rates` (keys of rate limits)",
)  # fmt: skip
CACHE_LIMIT = _family(
    _K, G, "nexo_cache_limit", "How much may be; at the limit the oldest is forgotten.", cache="as `nexo_cache_entries`"
)
CACHE_LOOKUPS = _family(
    _K, C, "nexo_cache_lookups_total", "How often it was asked.", cache="`sessions`", result="`hit`, `miss`"
)

_M = "The process"
INFO = _family(
    _M, G, "nexo_info", "1; what runs here is in the labels.",
    version="of Nexo", engine="`sqlite`, `mysql`, `postgresql`", websocket="the setting `gateway.websocket`",
)  # fmt: skip
READY = _family(_M, G, "nexo_ready", "Whether the last message sent on trial (by /readyz or /admin) arrived.")
CANARY = _family(_M, G, "nexo_canary_seconds", "How long it took.")
LOOP_LAG = _family(
    _M, H, "nexo_loop_lag_seconds", "How late a timer was, four times a second: how long everybody waits for a turn."
)
CPU = _family(_M, C, "process_cpu_seconds_total", "CPU time of the process.")
MEMORY = _family(_M, G, "process_resident_memory_bytes", "Memory of the process.")
FILES = _family(_M, G, "process_open_fds", "Open files and sockets.")
FILES_LIMIT = _family(_M, G, "process_max_fds", "How many may be open.")
STARTED = _family(_M, G, "process_start_time_seconds", "When the process started, as a Unix time.")
COLLECTIONS = _family(_M, C, "python_gc_collections_total", "Runs of the cycle collector.", generation="`0`, `1`, `2`")

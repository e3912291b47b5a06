"""Every metric by name: what it means and which labels it has. docs/metrics.md is made of this table.

To add one: a row here, and a sample of it from the part that knows (a `Source`, given to `metrics.add`, mostly in
`assembly/server.py`). The values of a label are few and known: never a text of a client, a user or an address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from nexo.metrics.measures import Buckets, Tally


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(NamedTuple):
    name: str
    kind: MetricKind
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


def _family(chapter: str, kind: MetricKind, name: str, meaning: str, /, **labels: str) -> Family:
    if name in FAMILIES:
        raise ValueError(f"{name} is there twice")
    family = FAMILIES[name] = Family(name, kind, meaning, labels, chapter)
    return family


C, G, H = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

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
    "`conflict` (unique key: repeated), `divided` (to find the send that cannot be written), "
    "`abandoned` (an unexpected error, with which its sends are answered)",
)  # fmt: skip

_T = "Two-phase acknowledgement"
ACCEPT_WRITE_SECONDS = _family(
    _T, H, "nexo_accept_write_seconds", "Writing a batch of sends into its streams in Redis."
)
ACCEPT_ACK_SECONDS = _family(_T, H, "nexo_accept_ack_seconds", "From taking a send to answering that it is accepted.")
ACCEPTS = _family(
    _T, C, "nexo_accepts_total", "Sends that were written to Redis first.",
    result="`accepted`, `known` (a retry of what is accepted and not saved yet), `saved` (a retry: answered from the "
    "database), "
    "`refused` (a retry of what was refused for good), `reused` (another message under the same client_msg_id), "
    "`busy` (over `two_phase.max_backlog`), `direct` (the same, and nothing before it: saved at once), "
    "`without` (Redis could not be reached), `restored` (Redis had lost it: accepted once more); only "
    "measured by `nexo two-phase observe`: `observed`, `unobserved` (too many at once, or without Redis)",
)  # fmt: skip
SAVE_LAG_SECONDS = _family(_T, H, "nexo_save_lag_seconds", "From accepting a message to having saved it.")
TWO_PHASE_FAILURES = _family(
    _T, C, "nexo_two_phase_failures_total", "Failures between accepting and saving.",
    kind="`deliver_fail` (a provisional copy could not be pushed), `publish_fail` (Redis did not take an "
    "outcome; repeated), `save_fail` (refused for good, or buried), `dup_db` (another row has the client_msg_id)",
)  # fmt: skip
STREAM_LENGTH = _family(
    _T, G, "nexo_stream_length", "Entries in all shards; every instance reports the same.",
    stream="`accepted`, `to_save`, `dead`",
)  # fmt: skip
DEAD_LETTERS_FILL = _family(
    _T, G, "nexo_dead_letters_fill", "Dead letters of the fullest shard as a share of `two_phase.dead_max`; at 1 the "
    "oldest are dropped.",
)  # fmt: skip
UNSAVED_OLDEST = _family(
    _T, G, "nexo_unsaved_oldest_seconds", "Age of the oldest accepted message of a shard that is not saved; 0: none.",
    shard="its number",
)  # fmt: skip
STREAM_PENDING = _family(
    _T, G, "nexo_stream_pending", "Entries taken by this process and not finished.", stream="`accepted`, `to_save`"
)  # fmt: skip
SHARDS_OWNED = _family(_T, G, "nexo_shards_owned", "Shards that this process saves.")

_Q = "Queues and their limits"
QUEUE = _family(
    _Q, G, "nexo_queue_length", "What waits.",
    queue="`sends` (to be written), `lanes` (conversations that are written by themselves), `cursors` (to be written), "
    "`audiences` (pushes that wait for a member list), "
    "`fanout` (users to whom a push is still to be made), `requests` (of connections, for the database), "
    "`passwords` (to be hashed), "
    "`history`, `heads` and `search` (reads of messages, of heads and of the index, for their turn), "
    "`reads` (for a thread that reads SQLite), "
    "`bus` (to be published to other instances), `accepting` (sends on their way into Redis), "
    "`uploads` (requests that bring files), "
    "`unsaved` (sends of connections here that are accepted and not known to be saved), "
    "`before_send` (sends that wait for an answer of `hooks.before_send.url`), "
    "`reactions` (to be written), `reaction_events` (messages whose changed reactions are to be announced), "
    "`openim_notices` (pushes to OpenIM's clients that are being completed), "
    "`media` (files that are examined or wait for it)",
)  # fmt: skip
QUEUE_LIMIT = _family(
    _Q, G, "nexo_queue_limit", "How much may wait; none of a queue that others bound.", queue="as `nexo_queue_length`"
)

_R = "Cursors and receipts"
ACKS = _family(
    _R, C, "nexo_acks_total", "Acknowledgements that clients sent.",
    type="`delivered`, `read`", result="`noted`, `refused`",
)  # fmt: skip
ACKS_BY_KIND = _family(
    _R, C, "nexo_acks_by_kind_total", "Acknowledgements that were noted, by what they acknowledge and from where.",
    type="`delivered`, `read`", chat="`single`, `group`", msg_type="its number; `event`; `other`: not in memory",
    platform="the number of the client's platform, 1 to 10",
)  # fmt: skip
DELIVERY_SECONDS = _family(
    _R,
    H,
    "nexo_delivery_seconds",
    "From the commit of a message to a receiver's delivered ACK, where both happened on this instance.",
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
    _P, C, "nexo_pushes_total", "Frames that were due to a connection of a receiver.",
    kind="`message`, `notice` (without the body), `head` (noted for the next HEADS frame)",
)  # fmt: skip
PUSHES_DROPPED = _family(
    _P, C, "nexo_pushes_dropped_total", "Frames that a connection could not take; RESYNC follows.",
    reason="`slow_consumer` (its buffer is full), `overflow` (too many while it signed in)",
)  # fmt: skip
PUSHES_LOST = _family(
    _P,
    C,
    "nexo_pushes_lost_total",
    "Times that the receivers could not be looked up; all connections of this instance got RESYNC.",
)
RESYNCS = _family(
    _P, C, "nexo_resyncs_total", "RESYNC frames.",
    reason="`slow_consumer`, `overflow`, `push_lost`, `sync_failed`, `joined`, and those of the bus",
)  # fmt: skip
RESENT = _family(_P, C, "nexo_resent_messages_total", "Messages sent again after signing in or on request.")

_W = "Connections"
CONNECTIONS = _family(
    _W, G, "nexo_connections", "Open WebSocket connections.",
    dialect="`envelope`, `request`, `command`, `openim`", state="`signed_in`, `new`",
    policy="the setting `session.policy`",
)  # fmt: skip
CONNECTIONS_LIMIT = _family(_W, G, "nexo_connections_limit", "The setting `limits.connections_total`; 0: none.")
USERS = _family(_W, G, "nexo_users_online", "Users with a connection here.")
BLOCKED = _family(_W, G, "nexo_connections_blocked", "Connections above the high-water mark: not read, not pushed to.")
BUFFERED = _family(_W, G, "nexo_write_buffer_bytes", "Bytes written to all connections and not taken by the kernel.")
OPENED = _family(_W, C, "nexo_connections_opened_total", "Connections that were let in.", dialect="as above")
CLOSED = _family(
    _W, C, "nexo_connections_closed_total", "Connections that have ended.",
    reason="the error they were closed with, `idle`, or `left` (the client closed it)",
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
    _E, C, "nexo_errors_total", "Errors that were sent to clients.",
    way="`websocket`, `http`", reason="a name of docs/errors.md",
)  # fmt: skip
REFUSALS = _family(
    _E, C, "nexo_limit_refusals_total", "How often a limit was exceeded.",
    limit="`frames`, `acks`, `sends`, `inflight_sends`, `queued_requests`, `send_queue`, `logins`, "
    "`login_failures`, `refreshes`, `registers`, `group_creates`, `membership`, `presence`, `requests`, "
    "`connections_total`, `connections_per_ip`, `connections_per_user`",
)  # fmt: skip

_A = "HTTP"
HTTP_REQUESTS = _family(
    _A, C, "nexo_http_requests_total", "HTTP requests.",
    route="method and path of a route, or `other`", status="the HTTP status",
)  # fmt: skip
KEY_CALLS = _family(
    _A, C, "nexo_key_calls_total", "Calls with a key of a backend.", key="the key's short id",
)  # fmt: skip
HTTP_SECONDS = _family(_A, H, "nexo_http_request_seconds", "How long they took.", route="as above")
HTTP_CONNECTIONS = _family(_A, G, "nexo_http_connections", "Open connections that are no WebSockets.")
HTTP_ENDED = _family(
    _A, C, "nexo_http_connections_ended_total", "HTTP connections that the server ended at a bound.",
    reason="`arrival` (a request took longer than `http.arrival_s`), `stalled` (nothing was taken of an answer for "
    "`http.stalled_s`), `head` (a head too large), `pipelined` (over `http.pipelined_max`), `malformed` (not HTTP)",
)  # fmt: skip

_D = "Database"
SCRIPTS = _family(
    _D, H, "nexo_script_seconds", "How long a script (a transaction, or a read of one or more statements) took.",
    script="module and function, say `history.pull`",
)  # fmt: skip
REPLICA_READS = _family(
    _D, C, "nexo_replica_reads_total", "Pages of history that were asked of the replica in `store.read_url`.",
    result="`used`, `behind` (older than the primary, which was read instead), `failed`",
)  # fmt: skip
SCRIPT_FAILURES = _family(
    _D, C, "nexo_script_failures_total", "Attempts at a script that failed; most are repeated.",
    reason="`transient` (deadlock, time-out, lost connection, full disk), `unknown` (lost while committing), "
    "`conflict` (unique key), `failed`",
)  # fmt: skip

_J = "The journal"
JOURNAL_NEWEST = _family(
    _J, G, "nexo_journal_newest", "Number of the newest row. This and the lags come from one instance at a time."
)
JOURNAL_ROWS = _family(
    _J, G, "nexo_journal_rows", "Rows that are kept, one for each transaction that changed something."
)
JOURNAL_LAG_ROWS = _family(
    _J, G, "nexo_journal_consumer_lag_rows", "Rows that a consumer has not read.", consumer="its name"
)
JOURNAL_LAG_SECONDS = _family(
    _J, G, "nexo_journal_consumer_lag_seconds", "Age of the oldest row that a consumer has not read.",
    consumer="its name",
)  # fmt: skip
JOURNAL_ENTRIES = _family(
    _J, C, "nexo_journal_entries_total", "Entries that a consumer has taken.", consumer="its name"
)
JOURNAL_FAILURES = _family(
    _J, C, "nexo_journal_failures_total", "Times that a consumer failed; it is given the same again.",
    consumer="its name",
)  # fmt: skip
JOURNAL_LOST = _family(
    _J, C, "nexo_journal_lost_rows_total", "Rows that were trimmed before a consumer had read them.",
    consumer="its name",
)  # fmt: skip
MESSAGES_ERASED = _family(_J, C, "nexo_messages_erased_total", "Messages whose time was over, erased by this instance.")
ERASING_FAILURES = _family(_J, C, "nexo_erasing_failures_total", "Times that erasing failed; it is tried again.")
JOURNAL_HOLES = _family(
    _J, C, "nexo_journal_holes_closed_total", "Numbers of rows that no transaction had used, closed by a reader."
)
EVENT_POLLERS = _family(_J, G, "nexo_event_pollers", "Calls of `GET /server/events` under way.")
EVENT_POLLERS_LIMIT = _family(_J, G, "nexo_event_pollers_limit", "The setting `journal.pollers_max`.")
EVENT_POLLERS_REFUSED = _family(
    _J, C, "nexo_event_pollers_refused_total", "Such calls that were refused because there were too many."
)

_W = "Webhooks"
HOOKS = _family(
    _W, G, "nexo_hooks", "Webhooks by state; every instance reports the same.",
    state="`active`, `paused` (by an operator), `given_up` (by the server, after `hooks.give_up_h` of failures)",
)  # fmt: skip
HOOK_EVENTS = _family(_W, C, "nexo_hook_events_total", "Events that a receiver has taken.", hook="its name")
HOOK_REQUESTS = _family(
    _W, C, "nexo_hook_requests_total", "Requests to a receiver.", hook="its name",
    result="`taken`, `refused` (another answer than 2xx), `failed` (no answer)",
)  # fmt: skip
HOOK_LAG = _family(
    _W, G, "nexo_hook_lag_seconds", "Age of the oldest event that was read and not taken, on the instance that "
    "delivers.", hook="its name",
)  # fmt: skip
HOOK_WAITING = _family(_W, G, "nexo_hook_waiting_events", "Events that were read and not taken.", hook="its name")
HOOK_WAITING_LIMIT = _family(_W, G, "nexo_hook_waiting_events_limit", "How many there may be.", hook="its name")
HOOK_LOST = _family(
    _W, C, "nexo_hook_lost_rows_total", "Rows of the journal that were trimmed before they were delivered.",
    hook="its name",
)  # fmt: skip
BEFORE_SENDS = _family(
    _W, C, "nexo_before_sends_total", "Questions before a send.",
    result="`allowed`, `rejected`, `replaced`, `failed` (no usable answer), `overflow` (too many wait)",
)  # fmt: skip
BEFORE_SEND_SECONDS = _family(_W, H, "nexo_before_send_seconds", "How long an answer took, the wait for it included.")

_X = "Search"
SEARCH_QUESTIONS = _family(_X, H, "nexo_search_seconds", "How long questions took that were answered.")
SEARCH_MESSAGES = _family(_X, C, "nexo_search_messages_total", "Messages that this instance has read for the index.")
SEARCH_ENTRIES = _family(
    _X, G, "nexo_search_entries", "Messages in the index. This and the next ones: of the instance that fills it."
)
SEARCH_LAG = _family(
    _X, G, "nexo_search_lag_seconds", "How long the oldest message of the last batch had waited to be indexed."
)
SEARCH_BUILDING = _family(
    _X, G, "nexo_search_building", "1 while older messages are being indexed, and are not all found yet."
)
SEARCH_REBUILDS = _family(_X, C, "nexo_search_rebuilds_total", "Times that the index was begun anew by the server.")
SEARCH_FAILURES = _family(
    _X, C, "nexo_search_failures_total", "Failures; sends do not depend on them.",
    what="`index` (filling it, which is tried again), `question`",
)  # fmt: skip

_FILES = "Files"
MEDIA_EXAMINED = _family(
    _FILES, C, "nexo_media_examined_total", "Pictures and recordings that were examined by a process of their own.",
    result="`read`, `refused` (damaged, or too many pixels), `late` (over `files.media.timeout_s`), `crashed` (the "
    "process ended without an answer, mostly for want of memory), `busy` (over `files.media.queue_max`, or the "
    "machine has no room or no time for it)",
)  # fmt: skip
MEDIA_SECONDS = _family(_FILES, H, "nexo_media_examine_seconds", "From handing over a picture or recording to its end.")
FILE_UPLOADS = _family(
    _FILES, C, "nexo_file_uploads_total", "Uploads that became a file, or could not.",
    result="`stored`, or the name of the error",
)  # fmt: skip
FILE_BYTES_STORED = _family(_FILES, C, "nexo_file_bytes_stored_total", "Bytes of uploads that became a file.")
FILE_DOWNLOADS = _family(
    _FILES, C, "nexo_file_downloads_total", "Requests for a file.",
    result="`whole`, `part`, `unchanged` (the client has it), `cut` (the client or the storage failed), or the name of "
    "the error",
)  # fmt: skip
FILE_BYTES_SENT = _family(_FILES, C, "nexo_file_bytes_sent_total", "Bytes of files that were sent to clients.")
FILES_KEPT = _family(_FILES, G, "nexo_files", "Files, on the instance that does the chores of the database.")
FILE_BLOBS = _family(_FILES, G, "nexo_file_blobs", "Different contents of files, each stored once; on that instance.")
FILE_BYTES = _family(_FILES, G, "nexo_file_bytes", "Bytes of those contents, without previews; on that instance.")
FILES_COLLECTED = _family(
    _FILES, C, "nexo_files_collected_total", "What the collection of unused files did.",
    what="`looked_at` (rows), `blobs` (contents whose bytes were deleted), `orphans` (left in the storage by a crash)",
)  # fmt: skip

_B = "Many instances"
BUS_UP = _family(_B, G, "nexo_bus_up", "Whether other instances can be heard; while not, the database is watched.")
BUS_PEERS = _family(_B, G, "nexo_bus_peers", "Other instances that are alive.")
BUS_FRAMES = _family(_B, C, "nexo_bus_frames_total", "Frames on the bus, heartbeats apart.", direction="`in`, `out`")
BUS_LOSSES = _family(
    _B, C, "nexo_bus_losses_total", "Times that something from other instances may have been missed; RESYNC followed.",
    reason="`push_lost` (a hole in the numbers), `instance_lost`, `presence_lost`, `bus_back`, `bad_frame`",
)  # fmt: skip
DATABASE_WATCHED = _family(
    _B, G, "nexo_database_watched", "Whether the database is asked for new messages, because an instance is not heard."
)
INSTANCES = _family(
    _B, G, "nexo_instances", "Other instances by their rows in the database.",
    state="`heard`, `missed` (alive and not heard on the bus)",
)  # fmt: skip
DRAINING = _family(_B, G, "nexo_draining", "Whether clients are sent to other instances; /readyz has the reason.")
REDIS_SECONDS = _family(_B, H, "nexo_redis_seconds", "Round trips to Redis, each with everything that waited.")
REDIS_FAILURES = _family(
    _B, C, "nexo_redis_failures_total", "Those that failed; Redis is left alone for a moment then."
)

_N = "Push notifications"
PUSH_NOTIFICATIONS = _family(
    _N, C, "nexo_push_notifications_total", "What became of notifications.",
    kind="`web`, `apns`, `fcm`, `hook`",
    result="`sent`, `cleared` (closed, because it was read), `not_needed` (read, muted, recalled … meanwhile), "
    "`online` (a connection took it), `ended` (the session has), `gone` (the service does not know the device), "
    "`refused`, `failed` (tried again), `given_up`, `rung`, `not_rung` (calls)",
)  # fmt: skip
PUSH_SECONDS = _family(_N, H, "nexo_push_seconds", "Requests to push services.", kind="as above")
PUSH_IN_FLIGHT = _family(_N, G, "nexo_push_in_flight", "Notifications that are being sent.", kind="as above")
PUSH_IN_FLIGHT_LIMIT = _family(_N, G, "nexo_push_in_flight_limit", "The setting `push.connections`.", kind="as above")
PUSH_WAITING = _family(
    _N, G, "nexo_push_waiting", "Notifications in the database that are to be sent, on the instance that sends.",
    kind="as above",
)  # fmt: skip
PUSH_LAG = _family(
    _N, G, "nexo_push_lag_seconds", "How long the last one had waited when it was sent, on the instance that sends.",
    kind="as above",
)  # fmt: skip
PUSH_PLANNED = _family(
    _N,
    G,
    "nexo_push_planned",
    "Conversations with new messages that connections have time to take, before they are pushed.",
)
PUSH_PLANNED_LIMIT = _family(_N, G, "nexo_push_planned_limit", "How many may be; above it the journal is not read on.")
PUSH_FAILURES = _family(
    _N, C, "nexo_push_failures_total", "Steps that failed because of the database; they are repeated."
)
PUSH_LOST = _family(
    _N, C, "nexo_push_lost_rows_total", "Rows of the journal that were trimmed before they were looked at."
)
PUSH_RINGS = _family(_N, G, "nexo_push_rings", "Calls for which devices are being made to ring.")
PUSH_RINGS_LIMIT = _family(_N, G, "nexo_push_rings_limit", "How many may be.")
PUSH_RINGS_DROPPED = _family(_N, C, "nexo_push_rings_dropped_total", "Those that were too many.")

_K = "Caches"
CACHE = _family(
    _K, G, "nexo_cache_entries", "What is remembered.",
    cache="`sessions`, `tokens`, `audiences` (members), `places` (messages that may be acknowledged), `authors`, "
    "`origins`, `read_clocks`, `rates` (keys of rate limits), `openim_names` (nicknames), "
    "`openim_tips` (notifications)",
)  # fmt: skip
CACHE_LIMIT = _family(
    _K, G, "nexo_cache_limit", "How much may be; at the limit the oldest is forgotten.", cache="as `nexo_cache_entries`"
)
CACHE_LOOKUPS = _family(
    _K, C, "nexo_cache_lookups_total", "How often it was asked.", cache="`sessions`", result="`hit`, `miss`"
)

_CALLS = "Calls"
CALLS_BEGUN = _family(_CALLS, C, "nexo_calls_begun_total", "Calls that began to ring.")
CALLS_REFUSED = _family(_CALLS, C, "nexo_calls_refused_total", "Invitations that were refused.", reason="the error")
CALLS_ENDED = _family(
    _CALLS, C, "nexo_calls_ended_total", "Calls that ended through this instance.",
    outcome="`completed`, `missed`, `rejected`, `canceled`, `failed`",
)  # fmt: skip
CALLS_OPEN = _family(_CALLS, G, "nexo_calls_open", "Calls of all instances that ring or are answered.")

_O = "OpenIM's clients"
OPENIM_NOTICES = _family(
    _O, C, "nexo_openim_notices_total", "Pushes that needed more than their event has (notifications and the like).",
    result="`pushed`, `nothing` (there was nothing to tell), `failed` (the connection is closed)",
)  # fmt: skip

_M = "The process"
INFO = _family(
    _M, G, "nexo_info", "1; what runs here is in the labels.",
    version="of Nexo", engine="`sqlite`, `mysql`, `postgresql`", websocket="the setting `gateway.websocket`",
)  # fmt: skip
READY = _family(
    _M, G, "nexo_ready", "Whether this process can store and deliver: tried every five seconds, and by /readyz.",
)  # fmt: skip
CANARY = _family(_M, G, "nexo_canary_seconds", "How long it took.")
TASK_RESTARTS = _family(
    _M, C, "nexo_task_restarts_total", "Long-lived tasks that ended unexpectedly and were started again.",
    task="the task's name",
)  # fmt: skip
TASKS_FAILING = _family(_M, G, "nexo_tasks_failing", "Long-lived tasks that failed lately; /readyz names them.")
JOB_FAILURES = _family(
    _M, C, "nexo_job_failures_total", "Background jobs that failed; the log has the cause.", task="the job's name",
)  # fmt: skip
LOOP_LAG = _family(
    _M,
    H,
    "nexo_loop_lag_seconds",
    "How late a timer was, four times a second: how long all work waits for the event loop.",
)
CPU = _family(_M, C, "process_cpu_seconds_total", "CPU time of the process.")
MEMORY = _family(_M, G, "process_resident_memory_bytes", "Memory of the process.")
FILES = _family(_M, G, "process_open_fds", "Open files and sockets.")
FILES_LIMIT = _family(_M, G, "process_max_fds", "How many may be open.")
STARTED = _family(_M, G, "process_start_time_seconds", "When the process started, as a Unix time.")
COLLECTIONS = _family(_M, C, "python_gc_collections_total", "Runs of the cycle collector.", generation="`0`, `1`, `2`")

# What every instance sees as a whole: their samples are not added up.
SEEN_BY_ALL = frozenset({STREAM_LENGTH.name, DEAD_LETTERS_FILL.name, UNSAVED_OLDEST.name, CALLS_OPEN.name})

"""Every setting: its default, its bounds and its help text, here or in the modules beside it that this one names.

To add one, add a field or a section here; loading, `nexo config` and docs/config.md follow.
"""

from __future__ import annotations

from typing import Annotated, Literal

from nexo.config.fields import Section, about
from nexo.config.tree_calls import CallsConfig
from nexo.config.tree_files import FilesConfig
from nexo.config.tree_hooks import HooksConfig
from nexo.config.tree_journal import JournalConfig, SearchConfig
from nexo.config.tree_openim import OpenimConfig
from nexo.config.tree_people import ContactConfig, ExportConfig, PolicyConfig, ReportConfig, UserConfig
from nexo.config.tree_push import PushConfig

LogLevel = Literal["debug", "info", "warning", "error"]


class DataConfig(Section, frozen=True):
    dir: Annotated[str, about("Folder of the embedded default: the database file and the secret.")] = "data"


class StoreConfig(Section, frozen=True):
    url: Annotated[
        str,
        about(
            "Where messages are kept: `sqlite:///relative/path`, `sqlite:////absolute/path`, "
            "`mysql://user:password@host:port/database` (or `mariadb://`), `postgresql://…` "
            "(or `postgres://`). Several hosts, `host:port,host:port`, of which the one that takes writes is used. "
            "Empty: SQLite, `nexo.db` in `data.dir`.",
            secret="url",
        ),
    ] = ""
    read_url: Annotated[
        str,
        about(
            "A replica of the database in `store.url`, or several hosts: pages of history are read there when it is as "
            "new as the primary. Empty: none.",
            secret="url",
        ),
    ] = ""
    pool_size: Annotated[int, about("Connections to a server database.", ge=1, le=1000)] = 8
    start_wait_s: Annotated[
        int, about("How long a start waits for a database server that is away, then it ends; 0: for ever.", ge=0)
    ] = 0
    reader_threads: Annotated[int, about("Threads that read from SQLite.", ge=1, le=64)] = 2
    lock_timeout_ms: Annotated[
        int,
        about(
            "How long a transaction waits for a lock; on PostgreSQL and MariaDB also how long one statement of it may "
            "take, and how long it may be idle. MySQL and MariaDB: whole seconds, at least 1.",
            ge=50,
            le=60_000,
        ),
    ] = 2000
    batch_max: Annotated[int, about("Sends written in one transaction at most.", ge=1, le=10_000)] = 1024
    linger_ms: Annotated[
        int,
        about("How long a transaction waits for more sends to join it; 0 writes at once.", ge=0, le=1000),
    ] = 0
    queue_max: Annotated[int, about("Sends that may wait to be written; more are refused `server_busy`.", ge=1)] = (
        20_000
    )


class LogConfig(Section, frozen=True):
    level: Annotated[
        LogLevel,
        about("What is logged. This section is read again on SIGHUP; `nexo log` changes it without a restart."),
    ] = "info"
    ack_sample: Annotated[
        float,
        about("Share of acknowledgements, resends and refused pushes that are logged at level info.", ge=0, le=1),
    ] = 0.0
    ack_users: Annotated[list[str], about("All acknowledgements and resends of these users are logged.")] = []
    ack_conversations: Annotated[list[str], about("All acknowledgements in these conversations are logged.")] = []


class SendConfig(Section, frozen=True):
    deadline_ms: Annotated[
        int, about("A send that waits longer than this to be written is refused `server_busy`.", ge=1)
    ] = 3000


class ReceiptsConfig(Section, frozen=True):
    flush_ms: Annotated[
        int,
        about("How often advanced cursors are written; a crash loses at most this much.", ge=1, le=10_000),
    ] = 100
    group_push_max_members: Annotated[
        int, about("Receipts are pushed to authors only in groups up to this size; 0 for none.", ge=0)
    ] = 100


class PullConfig(Section, frozen=True):
    # One message (16 KiB of content and as much around it) must always fit, or a client could not continue.
    max_bytes: Annotated[int, about("A reply with messages is cut at this size.", ge=65_536)] = 262_144


class StrategyConfig(Section, frozen=True):
    mode: Annotated[
        Literal["push", "notify", "none", "auto"],
        about("How a group message reaches those online: whole, as a notice to pull, not at all, or by size."),
    ] = "auto"
    group_size_threshold: Annotated[int, about("`auto`: from this many members on, notify.", ge=1)] = 2000
    online_user_threshold: Annotated[int, about("`auto`: from this many members online on, notify.", ge=1)] = 500
    notify_max_online_user: Annotated[int, about("`auto`: from this many members online on, none.", ge=1)] = 2000
    huge_group_no_notify_size: Annotated[int, about("`auto`: from this many members on, none.", ge=1)] = 10_000


class GroupConfig(Section, frozen=True):
    min_create_members: Annotated[int, about("Members a new group needs, its creator included.", ge=1)] = 3
    max_members: Annotated[int, about("Members a group may have.", ge=1)] = 100_000
    max_links: Annotated[int, about("Invite links that a group may have at a time.", ge=1, le=10_000)] = 100
    strategy: StrategyConfig = StrategyConfig()


class RecallConfig(Section, frozen=True):
    window_s: Annotated[int, about("How long senders may recall a message of theirs.", ge=0)] = 120
    admin: Annotated[bool, about("Group owners and admins may recall any message at any time.")] = True
    keep_days: Annotated[
        int, about("How long moderators can read recalled messages; 0: not at all.", ge=0, le=3650)
    ] = 30


class EditConfig(Section, frozen=True):
    window_s: Annotated[int, about("How long senders may edit a message of theirs; 0: never.", ge=0)] = 86_400


class FilterConfig(Section, frozen=True):
    file: Annotated[str, about("Word list of the content filter, one word per line; empty: none.")] = ""
    mode: Annotated[
        Literal["mask", "reject", "off"],
        about("What happens to a message with a listed word: its words become `***`, or it is refused."),
    ] = "mask"


class ExternalConfig(Section, frozen=True):
    issuer: Annotated[
        str,
        about("A product's own tokens (JWT) are accepted as access tokens if their `iss` is this. Empty: none are."),
    ] = ""
    audience: Annotated[str, about("What `aud` of such a token must name.")] = ""
    algorithms: Annotated[
        list[Literal["HS256", "RS256", "ES256", "EdDSA"]],
        about("Which of them tokens may use; empty: those of the configured keys. A key takes its own algorithm only."),
    ] = []
    secret: Annotated[str, about("Shared secret of HS256, at least 32 characters.", secret="value")] = ""
    public_key: Annotated[
        str, about("Public key of RS256, ES256 or EdDSA: PEM text, or the path of a file that holds it.")
    ] = ""
    jwks_file: Annotated[str, about("File with public keys (JWKS). It is read again when a token names a new key.")] = (
        ""
    )
    jwks_url: Annotated[
        str,
        about(
            "Address of public keys (JWKS); asked again when a token names a new key, at most once a minute.",
            secret="url",
        ),
    ] = ""
    user_claim: Annotated[str, about("The claim that holds the user id.")] = "sub"
    create_users: Annotated[bool, about("Create users whom such a token names and who do not exist yet.")] = False

    @property
    def is_used(self) -> bool:
        return bool(self.issuer or self.audience or self.has_key)

    @property
    def has_key(self) -> bool:
        return bool(self.secret or self.public_key or self.jwks_file or self.jwks_url)


class AuthConfig(Section, frozen=True):
    secret: Annotated[
        str,
        about(
            "Key that signs access tokens. Empty: made on first start and kept in `data.dir`; "
            "required with a server database.",
            secret="value",
        ),
    ] = ""
    access_ttl_s: Annotated[int, about("Life of an access token.", ge=1)] = 1800
    refresh_ttl_s: Annotated[int, about("Life of a refresh token.", ge=1)] = 2_592_000
    refresh_grace_s: Annotated[
        int, about("How long a refresh token still works after it was exchanged.", ge=0, le=600)
    ] = 30
    session_cache_s: Annotated[
        int, about("How long a session found valid is trusted without asking the database.", ge=0, le=30)
    ] = 30
    # Argon2id as OWASP recommends it for one lane: 19 MiB, two passes.
    argon2_memory_kib: Annotated[int, about("Memory for hashing one password.", ge=8, le=4_194_304)] = 19_456
    argon2_time_cost: Annotated[int, about("Passes when hashing a password.", ge=1, le=100)] = 2
    argon2_parallelism: Annotated[int, about("Lanes when hashing a password.", ge=1, le=64)] = 1
    registration: Annotated[
        Literal["open", "invite", "closed"],
        about(
            "Who may register: any visitor, holders of a code (`nexo invite`, `POST /server/invites`), or only the "
            "operator."
        ),
    ] = "open"
    min_password_length: Annotated[int, about("Characters a new password needs.", ge=1, le=128)] = 8
    passwords: Annotated[
        bool, about("Users register and sign in by passwords. Off: only by tokens of a backend or a product.")
    ] = True
    reset_ttl_s: Annotated[int, about("How long a code that resets a password is valid.", ge=60, le=604_800)] = 3600
    fresh_s: Annotated[int, about("How long after signing in a user may export or close the account.", ge=1)] = 300
    external: ExternalConfig = ExternalConfig()


class CacheConfig(Section, frozen=True):
    ttl_s: Annotated[int, about("How long users, members and heads stay cached.", ge=1)] = 300


class RedisConfig(Section, frozen=True):
    url: Annotated[
        str,
        about(
            "Joins instances to one server: `redis://user:password@host:port/0`, `rediss://…` (TLS), "
            "`redis+sentinel://host:26379,host:26379/service`, `redis+cluster://host:port,host:port`. "
            "Empty: this is the only instance.",
            secret="url",
        ),
    ] = ""
    timeout_ms: Annotated[
        int, about("How long an answer of Redis is waited for before it counts as gone.", ge=20, le=10_000)
    ] = 500
    prefix: Annotated[str, about("Put before every key, for deployments that share a Redis.")] = ""


class BusConfig(Section, frozen=True):
    detect_s: Annotated[
        int, about("Within this time an instance notices lost pushes, lost presence and dead instances.", ge=1, le=60)
    ] = 3
    presence_ttl_s: Annotated[
        int, about("A presence entry that is not renewed expires after this time.", ge=5, le=3600)
    ] = 60
    breaker_ms: Annotated[
        int,
        about("After a failure Redis is not used for this long, so that no request waits for it.", ge=50, le=60_000),
    ] = 1000
    queue_max: Annotated[
        int, about("Entries that may wait to be published to other instances; beyond this, clients get RESYNC.", ge=100)
    ] = 50_000
    lookup_max_members: Annotated[
        int,
        about("In larger groups a message goes to every instance, without asking where each member is.", ge=1),
    ] = 1000


class TwoPhaseConfig(Section, frozen=True):
    enabled: Annotated[
        bool, about("A send is acknowledged `accepted` from a stream of Redis before it is saved. Needs `redis.url`.")
    ] = False
    observe: Annotated[
        bool, about("Only measure how fast sends would be accepted; they are saved directly. Wins over `enabled`.")
    ] = False
    deliver_before_saved: Annotated[
        bool, about("Receivers get a provisional copy at once; the saved one replaces it, or it is withdrawn.")
    ] = False
    fail_open: Annotated[
        bool, about("While Redis cannot be reached, sends are saved directly; otherwise they are refused.")
    ] = True
    workers: Annotated[
        bool, about("This server also saves what was accepted; switch it off where `nexo worker` does.")
    ] = True
    share: Annotated[
        float, about("Share of the conversations, always the same ones, that it is used for; to try it.", ge=0, le=1)
    ] = 1.0
    scope: Annotated[Literal["single", "all"], about("Which chats: single ones, or groups too.")] = "single"
    accepted_stream: Annotated[str, about("What was accepted. `{shard}` becomes a hash tag.")] = (
        "nexo:stream:{shard}:accepted"
    )
    to_save_stream: Annotated[str, about("What was delivered and is not saved.")] = "nexo:stream:{shard}:to_save"
    dead_stream: Annotated[str, about("What could not be saved; see `nexo streams`.")] = "nexo:stream:{shard}:dead"
    deliver_group: Annotated[str, about("Consumer group of the readers of `accepted_stream`.")] = "nexo-deliver"
    save_group: Annotated[str, about("Consumer group of the readers of `to_save_stream`.")] = "nexo-save"
    shards: Annotated[
        int, about("Streams side by side. Change it only while nothing waits to be saved.", ge=1, le=256)
    ] = 8
    batch_size: Annotated[int, about("Entries taken from a stream at once.", ge=1, le=10_000)] = 256
    block_ms: Annotated[int, about("How long a worker waits for entries before it asks again.", ge=10, le=10_000)] = 500
    max_backlog: Annotated[int, about("Messages accepted and not saved, in all shards, before no more are.", ge=1)] = (
        50_000
    )
    max_tries: Annotated[int, about("Failed attempts to save an entry before it becomes a dead letter.", ge=1)] = 5
    dead_max: Annotated[int, about("Dead letters kept per shard.", ge=1)] = 10_000
    claim_ttl_s: Annotated[int, about("How long Redis remembers what was accepted and never saved.", ge=60)] = 86_400
    stall_s: Annotated[
        int,
        about("A shard whose oldest entry is not saved for this long is stalled: `/readyz` reports it.", ge=1, le=60),
    ] = 5
    owner_ttl_s: Annotated[
        int, about("A worker that does not renew its hold on a shard loses it after this time.", ge=1, le=300)
    ] = 10


class RetentionConfig(Section, frozen=True):
    days: Annotated[
        int,
        about(
            "The content of messages is erased after this many days, for all; rows, seqs and events stay. 0: kept.",
            ge=0,
            le=36_500,
        ),
    ] = 0


class ServerConfig(Section, frozen=True):
    host: Annotated[str, about("Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, about("Port for everything: HTTP and WebSocket.", ge=0, le=65_535)] = 8900
    shutdown_s: Annotated[
        int, about("How long a graceful stop may take; what is left then is cut off.", ge=1, le=600)
    ] = 10


class WorkerConfig(Section, frozen=True):
    host: Annotated[str, about("Address on which `nexo worker` serves `/healthz`, `/readyz` and `/metrics`.")] = (
        "127.0.0.1"
    )
    port: Annotated[
        int,
        about(
            "Its port; 0: none. A worker that finds it taken reports that in the log and saves all the same.",
            ge=0,
            le=65_535,
        ),
    ] = 8901


class GatewayConfig(Section, frozen=True):
    websocket: Annotated[
        Literal["picows", "websockets"], about("The WebSocket implementation; both do the same, picows is faster.")
    ] = "picows"
    heartbeat_s: Annotated[int, about("How often the server pings a connection.", ge=1, le=3600)] = 30
    idle_s: Annotated[int, about("A connection without any frame for this long is closed.", ge=2, le=7200)] = 90
    auth_timeout_s: Annotated[int, about("Time for the first valid AUTH.", ge=1, le=60)] = 3


class BackpressureConfig(Section, frozen=True):
    high_water_bytes: Annotated[
        int, about("Unsent bytes above which a connection gets no more pushes and is not read.", ge=4096)
    ] = 524_288
    low_water_bytes: Annotated[int, about("Unsent bytes below which it continues.", ge=0)] = 262_144
    drop_when_unwritable: Annotated[
        bool,
        about(
            "Above high water a connection gets no more pushes, but RESYNC when it is writable again. Off: they are "
            "queued, up to eight times `high_water_bytes`."
        ),
    ] = True
    close_after_ms: Annotated[
        int, about("Above high water without any progress for this long: closed `slow_consumer`.", ge=100)
    ] = 3000


class SessionsConfig(Section, frozen=True):
    policy: Annotated[
        Literal["multi", "per_platform", "single"],
        about("Connections a user may have: any number, one per platform, or one."),
    ] = "multi"


class ResendConfig(Section, frozen=True):
    after_auth: Annotated[bool, about("Send undelivered messages by itself after signing in.")] = True


class SyncConfig(Section, frozen=True):
    heads_s: Annotated[
        int, about("How often a connection gets the changed heads of conversations that are not pushed.", ge=1, le=3600)
    ] = 30


class HttpConfig(Section, frozen=True):
    cors_origins: Annotated[
        list[str],
        about("Web pages of these origins may call the API, e.g. `https://app.example`; `*` for any. Empty: none."),
    ] = []
    trusted_proxies: Annotated[
        list[str],
        about(
            "Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For` is believed, "
            "for HTTP and WebSocket alike."
        ),
    ] = []
    arrival_s: Annotated[
        int,
        about("Time for a request to arrive, from its first byte on; every 8 KiB of a body add a second.", ge=1),
    ] = 60
    keep_alive_s: Annotated[
        int, about("A connection that waits for its next request is closed after this time.", ge=1)
    ] = 30
    stalled_s: Annotated[
        int, about("A client that takes nothing of an answer for this long is disconnected.", ge=1)
    ] = 10
    pipelined_max: Annotated[
        int,
        about("Requests that may wait behind the one that is answered; a connection that sends more is closed.", ge=0),
    ] = 16


class LimitsConfig(Section, frozen=True):
    sends_per_s: Annotated[int, about("Sends of one user through one instance; 0: any number.", ge=0)] = 30
    sends_burst: Annotated[int, about("Sends that a user may make at once after a pause.", ge=0)] = 60
    frames_per_s: Annotated[int, about("Frames on one connection, ACK and PONG apart; 0: any number.", ge=0)] = 60
    frames_burst: Annotated[int, about("Frames that a connection may bring at once after a pause.", ge=0)] = 120
    acks_per_s: Annotated[int, about("ACK and PONG frames on one connection; 0: any number.", ge=0)] = 2000
    inflight_sends: Annotated[
        int, about("Sends of one connection that may wait for their answer; 0: any number.", ge=0)
    ] = 256
    connections_per_user: Annotated[
        int, about("Connections of one user, to all instances together; 0: any number.", ge=0)
    ] = 100
    # Whole companies and every user behind a proxy that is not in http.trusted_proxies share one address.
    connections_per_ip: Annotated[int, about("Connections from one address; 0: any number.", ge=0)] = 20_000
    connections_total: Annotated[int, about("Connections to one instance; 0: any number.", ge=0)] = 100_000
    logins_per_min: Annotated[int, about("Wrong passwords for one user from one address; 0: any number.", ge=0)] = 5
    login_failures_per_address_per_min: Annotated[
        int, about("Wrong passwords from one address, for all users together; 0: any number.", ge=0)
    ] = 60
    refreshes_per_min: Annotated[int, about("Exchanges of refresh tokens of one session; 0: any number.", ge=0)] = 30
    registers_per_min: Annotated[int, about("Users that may be registered from one address; 0: any number.", ge=0)] = (
        600
    )
    requests_per_s: Annotated[
        int, about("HTTP requests of one user, or from one address before signing in; 0: any number.", ge=0)
    ] = 100
    requests_burst: Annotated[int, about("HTTP requests that may be made at once after a pause.", ge=0)] = 200
    membership_per_min: Annotated[
        int, about("Changes of groups and their members that one user may make; 0: any number.", ge=0)
    ] = 60
    group_creates_per_min: Annotated[int, about("Groups that one user may create; 0: any number.", ge=0)] = 60
    key_requests_per_s: Annotated[
        int, about("Calls with one key of a backend to one instance; 0: any number.", ge=0)
    ] = 1000
    key_requests_burst: Annotated[int, about("Calls that a key may make at once after a pause.", ge=0)] = 2000
    presence_per_min: Annotated[
        int, about("Changes of presence subscriptions by one user through one instance; 0: any number.", ge=0)
    ] = 240


class Config(Section, frozen=True):
    data: DataConfig = DataConfig()
    store: StoreConfig = StoreConfig()
    log: LogConfig = LogConfig()
    send: SendConfig = SendConfig()
    receipts: ReceiptsConfig = ReceiptsConfig()
    pull: PullConfig = PullConfig()
    group: GroupConfig = GroupConfig()
    recall: RecallConfig = RecallConfig()
    retention: RetentionConfig = RetentionConfig()
    policy: PolicyConfig = PolicyConfig()
    contact: ContactConfig = ContactConfig()
    calls: CallsConfig = CallsConfig()
    report: ReportConfig = ReportConfig()
    export: ExportConfig = ExportConfig()
    edit: EditConfig = EditConfig()
    filter: FilterConfig = FilterConfig()
    auth: AuthConfig = AuthConfig()
    cache: CacheConfig = CacheConfig()
    redis: RedisConfig = RedisConfig()
    bus: BusConfig = BusConfig()
    two_phase: TwoPhaseConfig = TwoPhaseConfig()
    journal: JournalConfig = JournalConfig()
    hooks: HooksConfig = HooksConfig()
    search: SearchConfig = SearchConfig()
    push: PushConfig = PushConfig()
    files: FilesConfig = FilesConfig()
    user: UserConfig = UserConfig()
    openim: OpenimConfig = OpenimConfig()
    server: ServerConfig = ServerConfig()
    worker: WorkerConfig = WorkerConfig()
    gateway: GatewayConfig = GatewayConfig()
    backpressure: BackpressureConfig = BackpressureConfig()
    session: SessionsConfig = SessionsConfig()
    resend: ResendConfig = ResendConfig()
    sync: SyncConfig = SyncConfig()
    http: HttpConfig = HttpConfig()
    limits: LimitsConfig = LimitsConfig()

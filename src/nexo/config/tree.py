"""Every setting: its default, its bounds and its help text, and nowhere else.

To add one, add a field or a section here; loading, `nexo config` and docs/config.md follow.
"""

from __future__ import annotations

from typing import Annotated, Literal

from nexo.config.fields import Section, about


class Data(Section, frozen=True):
    dir: Annotated[str, about("Folder of the embedded default: the database file and the secret.")] = "data"


class Store(Section, frozen=True):
    url: Annotated[
        str,
        about(
            "Where messages are kept: `sqlite:///relative/path`, `sqlite:////absolute/path`, "
            "`mysql://user:password@host:port/database` (or `mariadb://`), `postgresql://…` "
            "(or `postgres://`). Empty: SQLite, `nexo.db` in `data.dir`.",
            secret="url",
        ),
    ] = ""
    pool_size: Annotated[int, about("Connections to a server database.", ge=1, le=1000)] = 8
    reader_threads: Annotated[int, about("Threads that read from SQLite.", ge=1, le=64)] = 2
    lock_timeout_ms: Annotated[
        int, about("How long a transaction waits for a lock or a statement.", ge=50, le=60_000)
    ] = 2000
    batch_max: Annotated[int, about("Sends written in one transaction at most.", ge=1, le=10_000)] = 1024
    linger_ms: Annotated[
        int,
        about("How long a transaction waits for more sends to join it; 0 writes at once.", ge=0, le=1000),
    ] = 0
    queue_max: Annotated[int, about("Sends that may wait to be written; more are refused `server_busy`.", ge=1)] = (
        20_000
    )


class Send(Section, frozen=True):
    deadline_ms: Annotated[
        int, about("A send that waits longer than this to be written is refused `server_busy`.", ge=1)
    ] = 3000


class Receipts(Section, frozen=True):
    flush_ms: Annotated[
        int,
        about("How often advanced cursors are written; a crash loses at most this much.", ge=1, le=10_000),
    ] = 100
    group_push_max_members: Annotated[
        int, about("Receipts are pushed to authors only in groups up to this size; 0 for none.", ge=0)
    ] = 100


class Pull(Section, frozen=True):
    # One message (16 KiB of content and as much around it) must always fit, or a client could not go on.
    max_bytes: Annotated[int, about("A reply with messages is cut at this size.", ge=65_536)] = 262_144


class Strategy(Section, frozen=True):
    mode: Annotated[
        Literal["push", "notify", "none", "auto"],
        about("How a group message reaches those online: whole, as a notice to pull, not at all, or by size."),
    ] = "auto"
    group_size_threshold: Annotated[int, about("`auto`: from this many members on, notify.", ge=1)] = 2000
    online_user_threshold: Annotated[int, about("`auto`: from this many members online on, notify.", ge=1)] = 500
    notify_max_online_user: Annotated[int, about("`auto`: from this many members online on, none.", ge=1)] = 2000
    huge_group_no_notify_size: Annotated[int, about("`auto`: from this many members on, none.", ge=1)] = 10_000


class Group(Section, frozen=True):
    min_create_members: Annotated[int, about("Members a new group needs, its creator included.", ge=1)] = 3
    max_members: Annotated[int, about("Members a group may have.", ge=1)] = 100_000
    strategy: Strategy = Strategy()


class Recall(Section, frozen=True):
    window_s: Annotated[int, about("How long senders may recall a message of theirs.", ge=0)] = 120
    admin: Annotated[bool, about("Group owners and admins may recall any message at any time.")] = True


class Filter(Section, frozen=True):
    file: Annotated[str, about("Word list of the content filter, one word per line; empty: none.")] = ""
    mode: Annotated[
        Literal["mask", "reject", "off"],
        about("What happens to a message with a listed word: its words become `***`, or it is refused."),
    ] = "mask"


class Auth(Section, frozen=True):
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
    min_password_length: Annotated[int, about("Characters a new password needs.", ge=1, le=128)] = 8


class Cache(Section, frozen=True):
    ttl_s: Annotated[int, about("How long users, members and heads stay cached.", ge=1)] = 300


class Redis(Section, frozen=True):
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


class Bus(Section, frozen=True):
    detect_s: Annotated[
        int, about("Within this time an instance notices lost pushes, lost presence and dead instances.", ge=1, le=60)
    ] = 3
    presence_ttl_s: Annotated[
        int, about("A presence entry that nobody renews is gone after this time.", ge=5, le=3600)
    ] = 60
    breaker_ms: Annotated[
        int, about("After a failure Redis is left alone for this long; nobody waits for it.", ge=50, le=60_000)
    ] = 1000
    queue_max: Annotated[int, about("What may wait to be told to other instances; more is told by RESYNC.", ge=100)] = (
        50_000
    )
    lookup_max_members: Annotated[
        int,
        about("In larger groups a message goes to every instance, without asking where each member is.", ge=1),
    ] = 1000


class TwoPhase(Section, frozen=True):
    enabled: Annotated[
        bool, about("A send is acknowledged `accepted` from a stream of Redis before it is saved. Needs `redis.url`.")
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
    scope: Annotated[Literal["single", "all"], about("Which chats: single ones, or groups too.")] = "single"
    accepted_stream: Annotated[str, about("What was accepted. `{shard}` becomes a hash tag.")] = (
        "nexo:stream:{shard}:accepted"
    )
    to_save_stream: Annotated[str, about("What was delivered and is not saved.")] = "nexo:stream:{shard}:to_save"
    dead_stream: Annotated[str, about("What could not be saved; see `nexo streams`.")] = "nexo:stream:{shard}:dead"
    deliver_group: Annotated[str, about("The consumer group of those who take from `accepted_stream`.")] = (
        "nexo-deliver"
    )
    save_group: Annotated[str, about("The consumer group of those who take from `to_save_stream`.")] = "nexo-save"
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
    owner_ttl_s: Annotated[
        int, about("A worker that does not renew its hold on a shard loses it after this time.", ge=1, le=300)
    ] = 10


class User(Section, frozen=True):
    search: Annotated[bool, about("Users may look for others by the beginning of id or nickname.")] = True


class Server(Section, frozen=True):
    host: Annotated[str, about("Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, about("Port for everything: HTTP and WebSocket.", ge=0, le=65_535)] = 8900
    shutdown_s: Annotated[
        int, about("How long a graceful stop may take; what is left then is cut off.", ge=1, le=600)
    ] = 10


class Gateway(Section, frozen=True):
    websocket: Annotated[
        Literal["picows", "websockets"], about("The WebSocket implementation; both do the same, picows is faster.")
    ] = "picows"
    heartbeat_s: Annotated[int, about("How often the server pings a connection.", ge=1, le=3600)] = 30
    idle_s: Annotated[int, about("A connection without any frame for this long is closed.", ge=2, le=7200)] = 90
    auth_timeout_s: Annotated[int, about("Time for the first valid AUTH.", ge=1, le=60)] = 3


class Backpressure(Section, frozen=True):
    high_water_bytes: Annotated[
        int, about("Unsent bytes above which a connection gets no more pushes and is not read.", ge=4096)
    ] = 524_288
    low_water_bytes: Annotated[int, about("Unsent bytes below which it goes on.", ge=0)] = 262_144
    close_after_ms: Annotated[
        int, about("Above high water without any progress for this long: closed `slow_consumer`.", ge=100)
    ] = 3000


class Sessions(Section, frozen=True):
    policy: Annotated[
        Literal["multi", "per_platform", "single"],
        about("Connections a user may have: any number, one per platform, or one."),
    ] = "multi"


class Resend(Section, frozen=True):
    after_auth: Annotated[bool, about("Send undelivered messages by itself after signing in.")] = True


class Sync(Section, frozen=True):
    heads_s: Annotated[
        int, about("How often changed heads of unpushed conversations are told to a connection.", ge=1, le=3600)
    ] = 30


class Http(Section, frozen=True):
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


class Limits(Section, frozen=True):
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
    logins_per_min: Annotated[
        int, about("Passwords that may be tried for one user from one address; 0: any number.", ge=0)
    ] = 5
    registers_per_min: Annotated[int, about("Users that may be registered from one address; 0: any number.", ge=0)] = (
        600
    )
    group_creates_per_min: Annotated[int, about("Groups that one user may create; 0: any number.", ge=0)] = 60


class Config(Section, frozen=True):
    data: Data = Data()
    store: Store = Store()
    send: Send = Send()
    receipts: Receipts = Receipts()
    pull: Pull = Pull()
    group: Group = Group()
    recall: Recall = Recall()
    filter: Filter = Filter()
    auth: Auth = Auth()
    cache: Cache = Cache()
    redis: Redis = Redis()
    bus: Bus = Bus()
    two_phase: TwoPhase = TwoPhase()
    user: User = User()
    server: Server = Server()
    gateway: Gateway = Gateway()
    backpressure: Backpressure = Backpressure()
    session: Sessions = Sessions()
    resend: Resend = Resend()
    sync: Sync = Sync()
    http: Http = Http()
    limits: Limits = Limits()

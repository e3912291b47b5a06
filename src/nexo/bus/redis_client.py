"""The connection to Redis (a single server, behind Sentinel, or a Cluster) with a circuit breaker.

After a failure only the probe of one periodic task is sent, so a Redis that is dead or hangs costs one timeout per
probe, and other callers fail at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from nexo.bus.redis_connections import RedisConnections
from nexo.bus.sentinels import Sentinels
from nexo.config import RedisUrl
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets

log = structlog.get_logger()

_FOLDER = Path(__file__).parent / "lua"
KEYS_AT_ONCE = 500
SEARCH = 4  # times the time-out: how long a probe may look for another node while nothing else waits for it


class BusDown(Exception):
    """Redis cannot be reached now."""


class NoGroup(Exception):
    """A stream or its consumer group is not there: never made, or lost with everything else."""


class Script:
    """A file of `lua/`. Redis is sent its hash, and the text when it does not know it (any more)."""

    def __init__(self, name: str, folder: Path = _FOLDER) -> None:
        self.source = (folder / f"{name}.lua").read_bytes()
        self.sha = hashlib.sha1(self.source, usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[str], *arguments: str | int | bytes) -> RedisCommand:
        return RedisCommand(("EVALSHA", self.sha, len(keys), *keys, *arguments), self)


class RedisCommand(NamedTuple):
    words: tuple[Any, ...]
    script: Script | None = None


class RedisClient:
    def __init__(self, url: RedisUrl, timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self.is_cluster = url.mode == "cluster"
        self.is_broken = False
        self.on_break: Callable[[], None] = lambda: None
        self.taken = Buckets()
        self._failures = 0
        self._closings = 0
        self._options: dict[str, Any] = {
            "username": url.user or None,
            "password": url.password or None,
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
            "protocol": 2,
        } | _tls(url)
        self._client: Redis | RedisCluster | None = None
        self._lines: RedisConnections | None = None
        self._sentinel: Sentinels | None = None
        self._readers: dict[PubSub, Redis] = {}

    # -- asking ----------------------------------------------------------------------------------------

    async def run(self, commands: Sequence[RedisCommand], *, probe: bool = False) -> list[Any]:
        """Run all commands in one round trip per node, in order. Returns their answers. Raises BusDown: some may have
        been executed then. Raises NoGroup if a stream does not have the consumer group that a command names."""
        if self.is_broken and not probe:
            raise BusDown
        started, closings = time.monotonic(), self._closings
        try:
            async with asyncio.timeout(self._timeout_s * (SEARCH if self.is_broken else 1.5)):
                answers = await self._run(commands)
        except (RedisError, OSError, TimeoutError) as error:
            if isinstance(error, ResponseError) and str(error).startswith("NOGROUP"):
                raise NoGroup from error
            await self._break(error, probe)
            raise BusDown from error
        except Exception as error:  # whatever the library raises, every caller gets an answer
            if self._closings == closings:  # else its connections were closed in the middle of this, by `reload_slots`
                log.exception("redis_failed")
            await self._break(error, probe)
            raise BusDown from error
        self.taken.observe(time.monotonic() - started)
        if self.is_broken:
            self.is_broken = False
            log.info("redis_back", url=self._url.redacted())
        return answers

    async def _run(self, commands: Sequence[RedisCommand]) -> list[Any]:
        answers = await self._send([command.words for command in commands])
        unknown = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:  # Redis was restarted, or never had the script
            again = await self._send([_with_text(commands[i]) for i in unknown])
            for i, answer in zip(unknown, again, strict=True):
                answers[i] = answer
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    async def _send(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        if self._lines is None:
            client = await self._connected()
        if self._lines is not None:
            return await self._lines.send(commands)
        pipe: Any = client.pipeline()
        for words in commands:
            pipe.execute_command(*words)
        answers: list[Any] = await pipe.execute(raise_on_error=False)
        return answers

    def samples(self) -> Iterable[Sample]:
        yield f.REDIS_SECONDS(self.taken)
        yield f.REDIS_FAILURES(self._failures)

    async def _break(self, error: Exception, probe: bool) -> None:
        self._failures += 1
        if not self.is_broken:
            self.is_broken = True
            log.warning("redis_gone", url=self._url.redacted(), error=f"{type(error).__name__}: {error}")
            self.on_break()
        # other connections lead to the same server, or to where the slots were: the next probe looks anew
        if self._lines is not None:
            await self._lines.drop()
        if probe:
            await self.reload_slots()

    # -- connecting ------------------------------------------------------------------------------------

    async def _connected(self) -> Redis | RedisCluster:
        if self._client is None:
            self._client = self._make_client()
            self._lines = RedisConnections(self._client) if isinstance(self._client, Redis) else None
        if isinstance(self._client, RedisCluster):
            await self._client.initialize()
        return self._client

    def _make_client(self) -> Redis | RedisCluster:
        url = self._url
        if url.mode == "single":
            return self._plain(*url.hosts[0])
        if url.mode == "cluster":
            return RedisCluster(
                startup_nodes=[ClusterNode(host, port) for host, port in url.hosts],
                retry=Retry(NoBackoff(), 1),
                **self._options,
            )
        return self._behind_sentinel()

    def _plain(self, host: str, port: int) -> Redis:
        return Redis(host=host, port=port, db=self._url.db, retry=Retry(NoBackoff(), 0), **self._options)

    def _behind_sentinel(self) -> Redis:
        url = self._url
        if self._sentinel is None:
            options = self._options | {
                "username": url.sentinel_user or None,
                "password": url.sentinel_password or None,
                "retry": Retry(NoBackoff(), 0),  # the default of ten takes longer than a probe
            }
            self._sentinel = Sentinels(url.hosts, options)
        client: Redis = self._sentinel.master_for(url.service, db=url.db, retry=Retry(NoBackoff(), 0), **self._options)
        return client

    # -- listening -------------------------------------------------------------------------------------

    async def subscribe(self, channel: str) -> PubSub:
        """Returns a connection that receives this channel; the caller closes it by `unsubscribe`."""
        client: Redis
        if self.is_cluster:
            cluster = await self._connected()
            assert isinstance(cluster, RedisCluster)
            node = cluster.get_node_from_key(channel)
            if node is None:
                raise ConnectionError("no node has the slot of this channel")
            client = self._plain(str(node.host), int(node.port))
        elif self._url.mode == "sentinel":
            client = self._behind_sentinel()
        else:
            client = self._plain(*self._url.hosts[0])
        pubsub = client.pubsub()
        self._readers[pubsub] = client
        try:
            if self.is_cluster:
                await pubsub.ssubscribe(channel)
            else:
                await pubsub.subscribe(channel)
        except BaseException:
            await self.unsubscribe(pubsub)
            raise
        return pubsub

    async def unsubscribe(self, pubsub: PubSub) -> None:
        client = self._readers.pop(pubsub)
        await _quietly(pubsub.aclose())  # type: ignore[no-untyped-call]
        await _quietly(client.aclose())

    async def reload_slots(self) -> None:
        """Read the slots of the cluster again before the next attempt: they may have moved."""
        if isinstance(self._client, RedisCluster):
            self._closings += 1
            await _quietly(self._client.aclose())

    def publish(self, channel: str, data: bytes) -> RedisCommand:
        return RedisCommand(("SPUBLISH" if self.is_cluster else "PUBLISH", channel, data))

    async def close(self) -> None:
        if self._client is not None:
            await _quietly(self._client.aclose())
        if self._sentinel is not None:
            for client in self._sentinel.sentinels:
                await _quietly(client.aclose())


def _tls(url: RedisUrl) -> dict[str, Any]:
    if not url.tls:
        return {}
    verify = {} if url.ssl_verify else {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return {"ssl": True} | url.files | verify


def _with_text(command: RedisCommand) -> tuple[Any, ...]:
    assert command.script is not None
    return ("EVAL", command.script.source, *command.words[2:])


async def end_tasks(*tasks: asyncio.Task[None] | None) -> None:
    """Cancel tasks until they are done: the client library may take a cancellation for a time-out of its own."""
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)


async def _quietly(closing: Any) -> None:
    """Close without errors: a connection that is broken already may raise."""
    try:
        async with asyncio.timeout(1):
            await closing
    except (RedisError, OSError, TimeoutError):
        pass

"""The connection to Redis (a single one, behind Sentinel, or a Cluster) with a breaker in front of it.

After a failure nothing is tried but the probe of whoever looks after the link, so a Redis that is dead or hangs
costs one timeout per probe and nobody else anything.
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
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from nexo.bus.redis_lines import Lines
from nexo.config import RedisUrl
from nexo.metrics import families as f
from nexo.metrics.families import Sample
from nexo.metrics.measures import Buckets

log = structlog.get_logger()

_FOLDER = Path(__file__).parent / "lua"
KEYS_AT_ONCE = 500


class BusDown(Exception):
    """Redis cannot be asked now."""


class NoGroup(Exception):
    """A stream or its consumer group is not there: never made, or lost with everything else."""


class Script:
    """A file of `lua/`. Redis is sent its hash, and the text when it does not know it (any more)."""

    def __init__(self, name: str, folder: Path = _FOLDER) -> None:
        self.source = (folder / f"{name}.lua").read_bytes()
        self.sha = hashlib.sha1(self.source, usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[str], *arguments: str | int | bytes) -> Command:
        return Command(("EVALSHA", self.sha, len(keys), *keys, *arguments), self)


class Command(NamedTuple):
    words: tuple[Any, ...]
    script: Script | None = None


class RedisLink:
    def __init__(self, url: RedisUrl, timeout_s: float) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self.is_cluster = url.mode == "cluster"
        self.is_broken = False
        self.on_break: Callable[[], None] = lambda: None
        self.taken = Buckets()
        self._failures = 0
        self._options: dict[str, Any] = {
            "username": url.user or None,
            "password": url.password or None,
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
            "protocol": 2,
        } | _tls(url)
        self._client: Redis | RedisCluster | None = None
        self._lines: Lines | None = None
        self._sentinel: Sentinel | None = None
        self._readers: list[Redis] = []

    # -- asking ----------------------------------------------------------------------------------------

    async def run(self, commands: Sequence[Command], *, probe: bool = False) -> list[Any]:
        """All of them in one round trip per node, in order. Raises BusDown; some may have been done then.
        Raises NoGroup where a stream has not the consumer group that a command names."""
        if self.is_broken and not probe:
            raise BusDown
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s * 1.5):
                answers = await self._run(commands)
        except (RedisError, OSError, TimeoutError) as error:
            if isinstance(error, ResponseError) and str(error).startswith("NOGROUP"):
                raise NoGroup from error
            self._break(error)
            raise BusDown from error
        except Exception as error:  # whatever the library does, nobody who waits for an answer is left alone
            log.exception("redis_failed")
            self._break(error)
            raise BusDown from error
        self.taken.observe(time.monotonic() - started)
        if self.is_broken:
            self.is_broken = False
            log.info("redis_back", url=self._url.redacted())
        return answers

    async def _run(self, commands: Sequence[Command]) -> list[Any]:
        answers = await self._send([command.words for command in commands])
        unknown = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
        if unknown:  # it was restarted, or never told
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

    def _break(self, error: Exception) -> None:
        self._failures += 1
        if not self.is_broken:
            self.is_broken = True
            log.warning("redis_gone", url=self._url.redacted(), error=f"{type(error).__name__}: {error}")
            self.on_break()

    # -- connecting ------------------------------------------------------------------------------------

    async def _connected(self) -> Redis | RedisCluster:
        if self._client is None:
            self._client = self._make_client()
            self._lines = Lines(self._client) if isinstance(self._client, Redis) else None
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
            }
            self._sentinel = Sentinel(url.hosts, sentinel_kwargs=options)  # type: ignore[no-untyped-call]
        client: Redis = self._sentinel.master_for(url.service, db=url.db, retry=Retry(NoBackoff(), 0), **self._options)
        return client

    # -- listening -------------------------------------------------------------------------------------

    async def subscribe(self, channel: str) -> PubSub:
        """A connection that hears this channel; whoever asked for it closes it (`unsubscribe`)."""
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
        self._readers.append(client)
        pubsub = client.pubsub()
        if self.is_cluster:
            await pubsub.ssubscribe(channel)
        else:
            await pubsub.subscribe(channel)
        return pubsub

    async def unsubscribe(self, pubsub: PubSub) -> None:
        await _quietly(pubsub.aclose())  # type: ignore[no-untyped-call]
        readers, self._readers = self._readers, []
        for client in readers:
            await _quietly(client.aclose())

    async def look_around(self) -> None:
        """Where a slot is may have changed: ask the cluster again before the next try."""
        if isinstance(self._client, RedisCluster):
            await _quietly(self._client.aclose())

    def publish(self, channel: str, data: bytes) -> Command:
        return Command(("SPUBLISH" if self.is_cluster else "PUBLISH", channel, data))

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


def _with_text(command: Command) -> tuple[Any, ...]:
    assert command.script is not None
    return ("EVAL", command.script.source, *command.words[2:])


async def end_tasks(*tasks: asyncio.Task[None] | None) -> None:
    """Cancel them until they are done: the client library may take a cancellation for a time-out of its own."""
    left = {task for task in tasks if task is not None and not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)


async def _quietly(closing: Any) -> None:
    """A connection that is broken already may complain about being closed."""
    try:
        async with asyncio.timeout(1):
            await closing
    except (RedisError, OSError, TimeoutError):
        pass

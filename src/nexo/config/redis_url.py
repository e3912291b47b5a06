"""Where Redis is: `redis.url`, parsed."""

from __future__ import annotations

from typing import Literal
from urllib.parse import parse_qsl, unquote

import msgspec

from nexo.config.fields import REDACTED
from nexo.config.tree import Config
from nexo.errors import StartupError

Mode = Literal["single", "sentinel", "cluster"]
_MODES: dict[str, Mode] = {"": "single", "sentinel": "sentinel", "cluster": "cluster"}
_PORTS: dict[Mode, int] = {"single": 6379, "sentinel": 26_379, "cluster": 6379}
_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PARAMS = (*_FILES, "ssl_verify", "sentinel_user", "sentinel_password")


class RedisUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `redis.url`. `service` is the name that the sentinels know; files are for TLS."""

    mode: Mode
    hosts: list[tuple[str, int]]
    tls: bool = False
    user: str = ""
    password: str = ""
    db: int = 0
    service: str = ""
    sentinel_user: str = ""
    sentinel_password: str = ""
    ssl_verify: bool = True
    files: dict[str, str] = {}

    def redacted(self) -> str:
        scheme = ("rediss" if self.tls else "redis") + ("" if self.mode == "single" else f"+{self.mode}")
        account = f"{self.user}:{REDACTED}@" if self.password else f"{self.user}@" if self.user else ""
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"{scheme}://{account}{hosts}/{f'{self.service}/' if self.service else ''}{self.db}"

    def __repr__(self) -> str:
        return f"RedisUrl({self.redacted()})"


def resolve_redis_url(config: Config) -> RedisUrl | None:
    """None: there is no Redis, and this is the only instance."""
    return parse_redis_url(config.redis.url) if config.redis.url else None


def parse_redis_url(url: str) -> RedisUrl:
    """Messages of the errors raised here never quote the URL: it may hold a password."""
    scheme, separator, rest = url.partition("://")
    family, _, kind = scheme.lower().partition("+")
    mode = _MODES.get(kind)
    if not separator or family not in ("redis", "rediss") or mode is None:
        raise StartupError("not a Redis URL: use redis://, rediss:// (TLS), redis+sentinel:// or redis+cluster://")
    rest, _, query = rest.partition("?")
    place, _, path = rest.partition("/")
    account, _, hosts = place.rpartition("@")
    user, _, password = account.partition(":")
    params = _parse_params(query)
    service, db = _parse_path(mode, path)
    return RedisUrl(
        mode=mode,
        hosts=[_parse_host(host, _PORTS[mode]) for host in hosts.split(",")],
        tls=family == "rediss",
        user=unquote(user),
        password=unquote(password),
        db=db,
        service=service,
        sentinel_user=params.get("sentinel_user", ""),
        sentinel_password=params.get("sentinel_password", ""),
        ssl_verify=params.get("ssl_verify", "true").lower() not in ("0", "false", "no", "off"),
        files={name: params[name] for name in _FILES if name in params},
    )


def _parse_params(query: str) -> dict[str, str]:
    try:
        params = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise StartupError("its parameters cannot be read") from None
    if unknown := sorted(params.keys() - set(_PARAMS)):
        raise StartupError(f"unknown parameter {unknown[0]}; there are {', '.join(_PARAMS)}")
    return params


def _parse_path(mode: Mode, path: str) -> tuple[str, int]:
    """The sentinels' service and the number of the database."""
    parts = [unquote(part) for part in path.split("/") if part]
    service = ""
    if mode == "sentinel":
        if not parts:
            raise StartupError("the service is missing: redis+sentinel://host:26379/service")
        service = parts.pop(0)
    if len(parts) > 1 or (parts and not parts[0].isdecimal()):
        raise StartupError("it ends with the number of a database, or with nothing")
    db = int(parts[0]) if parts else 0
    if mode == "cluster" and db:
        raise StartupError("a Redis Cluster has only database 0")
    return service, db


def _parse_host(text: str, default_port: int) -> tuple[str, int]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not host or (port and not (port.isdecimal() and 0 < int(port) < 65_536)):
        raise StartupError(
            "host or port cannot be read; characters like / ? # @ in a password are written as %2F %3F %23 %40"
        )
    return unquote(host), int(port) if port else default_port

"""Where the data is: `data.dir` and `store.url`, parsed. What an engine can do is decided in `store/engines`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from nexo.config.fields import REDACTED, redact_url
from nexo.config.tree import Config
from nexo.errors import StartupError

EngineName = Literal["sqlite", "mysql", "postgresql"]
_ENGINES: dict[str, EngineName] = {
    "sqlite": "sqlite",
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgresql": "postgresql",
    "postgres": "postgresql",
}
_PORTS = {"mysql": 3306, "postgresql": 5432}
_ATTRIBUTE = "target_session_attrs"  # known from PostgreSQL's own clients; its value is the same for all hosts
_ATTRIBUTES = ("read-write", "primary", "any")
# A server reached through a socket file has no host in its URL but this parameter.
_SOCKET_PARAMS = {"mysql": "unix_socket", "postgresql": "host"}


class StoreUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed `store.url`: `path` for the embedded database, the rest for a server database."""

    engine: EngineName
    path: Path = Path()
    host: str = ""
    port: int = 0
    more_hosts: list[tuple[str, int]] = []  # of the same database, which one of the hosts serves at a time
    needs_primary: bool = True  # a host that takes no writes is not used
    user: str = ""
    password: str = ""
    database: str = ""
    params: dict[str, str] = {}

    @property
    def is_embedded(self) -> bool:
        """Whether the database is a file in a folder of Nexo's own: one server at a time uses it, which migrates it
        and makes its secret beside it. A database server is shared, and prepared by its administrator."""
        return self.engine == "sqlite"

    @property
    def hosts(self) -> list[tuple[str, int]]:
        return [(self.host, self.port), *self.more_hosts]

    def redacted(self) -> str:
        if self.is_embedded:
            return f"sqlite:///{self.path}"
        user = quote(self.user, safe="") + (f":{REDACTED}" if self.password else "")
        places = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        place = ",".join(places) if self.host else ""
        params = f"?{urlencode(self.params, safe='/')}" if self.params else ""
        return redact_url(f"{self.engine}://{user}{'@' if user else ''}{place}/{quote(self.database, safe='')}{params}")

    def __repr__(self) -> str:
        return f"StoreUrl({self.redacted()})"


def resolve_data_dir(config: Config) -> Path:
    return _expanded(config.data.dir)


def resolve_store_url(config: Config) -> StoreUrl:
    if not config.store.url:
        return StoreUrl(engine="sqlite", path=resolve_data_dir(config) / "nexo.db")
    return parse_store_url(config.store.url)


def parse_store_url(url: str) -> StoreUrl:
    """Messages of the errors raised here never quote the URL: it may hold a password."""
    scheme, separator, rest = url.partition("://")
    engine = _ENGINES.get(scheme.lower())
    if not separator or engine is None:
        driver_less = scheme.partition("+")[0].lower()
        hint = f"write {driver_less}://…" if driver_less in _ENGINES else f"use one of {', '.join(_ENGINES)}"
        raise StartupError(f"not a database URL that Nexo knows; {hint}")
    if engine == "sqlite":
        return StoreUrl(engine=engine, path=_sqlite_path(rest))
    return _server_url(engine, rest)


def _sqlite_path(rest: str) -> Path:
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/"):
        raise StartupError("sqlite needs three slashes before a relative path, four before an absolute one")
    if not path or path == ":memory:":
        raise StartupError("sqlite needs the path of a file: an in-memory database would lose messages")
    if "?" in rest or "#" in rest:
        raise StartupError("sqlite takes no parameters (write ? as %3F and # as %23 in a file's name)")
    return _expanded(path)


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError) as error:
        raise StartupError(f"the home folder in {path!r} cannot be found") from error


def _server_url(engine: EngineName, rest: str) -> StoreUrl:
    escape_hint = "characters like / ? # [ ] in a user or password are written as %2F %3F %23 %5B %5D"
    before, _, after = rest.partition("/")
    account, at, hosts = before.rpartition("@")
    first, *more = hosts.split(",")
    try:
        parts = urlsplit(f"{engine}://{account}{at}{first}/{after}")
        port = parts.port
        others = [urlsplit(f"{engine}://{host}") for host in more]
        places = [(other.hostname or "", other.port or _PORTS[engine]) for other in others]
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        # The cause is dropped on purpose: its text can hold a piece of the password.
        raise StartupError(f"host, port or parameters cannot be read; {escape_hint}") from None
    if parts.fragment or "#" in rest:
        raise StartupError(f"there is a # in it; {escape_hint}")
    params = dict(pairs)
    if len(params) != len(pairs):
        raise StartupError("a parameter is given twice")
    host = parts.hostname or ""
    if not host and not params.get(_SOCKET_PARAMS[engine]):
        raise StartupError(f"the host is missing: {engine}://user:password@host/database")
    if places and (not host or not all(name for name, _ in places)):
        raise StartupError(f"one of several hosts is empty: {engine}://user:password@host:port,host:port/database")
    database = unquote(parts.path.removeprefix("/"))
    if not database or "/" in parts.path[1:]:
        raise StartupError(f"it must end with one database name: {engine}://user:password@host/database")
    attribute = params.pop(_ATTRIBUTE, _ATTRIBUTES[0])
    if attribute not in _ATTRIBUTES:
        raise StartupError(f"{_ATTRIBUTE} is one of {', '.join(_ATTRIBUTES)}")
    return StoreUrl(
        engine=engine,
        host=host,
        port=port or _PORTS[engine],
        more_hosts=places,
        needs_primary=attribute != "any",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=database,
        params=params,
    )

"""Loads the configuration: defaults < nexo.toml < environment < flags. An unknown or wrong setting is reported with its
source."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as shapes

from nexo.config.fields import ENV_PREFIX, SettingField, bare, leaves
from nexo.config.redis_url import resolve_redis_url
from nexo.config.store_url import resolve_data_dir, resolve_store_url
from nexo.config.tree import Config
from nexo.errors import StartupError

DEFAULT_FILE = Path("nexo.toml")
FILE_VARIABLE = "NEXO_CONFIG"

_FIELDS: dict[str, SettingField] = {field.key: field for field in leaves(Config)}
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s,]+")
_SECTIONS = {key[: match.start()] for key in _FIELDS for match in re.finditer(r"\.", key)}


class Loaded(msgspec.Struct, frozen=True):
    config: Config
    sources: dict[str, str]  # dotted key → where its value comes from; keys with their default are absent


def load(
    path: Path | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The configuration, or a StartupError with a line per problem, each naming the key and its source.

    `flags` has dotted keys; None stands for a flag that was not given. Without `path`, NEXO_CONFIG names
    the file; without that, nexo.toml in the working directory is used if it is there.
    """
    return load_with_sources(path, env, flags).config


def load_with_sources(
    path: Path | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Loaded:
    env = os.environ if env is None else env
    problems: list[str] = []
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for key, value, source in (
        *_from_file(_config_file(path, env), problems),
        *_from_environment(env, problems),
        *_from_flags(flags or {}, problems),
    ):
        field = _FIELDS[key]
        try:
            values[key] = msgspec.convert(value, field.annotation)
            sources[key] = source
        except msgspec.ValidationError:
            shown = "" if field.secret else f", not {value!r}"
            problems.append(f"{key} ({source}) must be {field.type}{shown}")
    if not problems:
        config = msgspec.convert(_nested(values), Config)
        problems = [f"{key} ({sources.get(key, 'default')}): {problem}" for key, problem in _contradictions(config)]
    if problems:
        raise StartupError("\n".join(problems))
    return Loaded(config, sources)


def describe() -> list[SettingField]:
    return list(_FIELDS.values())


_Entries = Iterator[tuple[str, object, str]]


def _config_file(path: Path | None, env: Mapping[str, str]) -> Path | None:
    if path is None and env.get(FILE_VARIABLE):
        path = Path(env[FILE_VARIABLE])
    if path is None:
        return DEFAULT_FILE if DEFAULT_FILE.is_file() else None
    return path


def _from_file(path: Path | None, problems: list[str]) -> _Entries:
    if path is None:
        return
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StartupError(f"cannot read the config file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise StartupError(f"the config file {path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise StartupError(f"the config file {path} is not valid TOML: {error}") from error

    def walk(table: dict[str, Any], parents: tuple[str, ...]) -> _Entries:
        for name, value in table.items():
            key = ".".join((*parents, name))
            if key in _FIELDS:
                yield key, value, f"file {path}"
            elif isinstance(value, dict) and (value or key in _SECTIONS):
                yield from walk(value, (*parents, name))
            elif key in _SECTIONS:
                problems.append(f"{key} (file {path}) is a section, not a single value")
            else:
                problems.append(f"{key} (file {path}) is unknown{_did_you_mean(key, _FIELDS)}")

    yield from walk(tree, ())


def _from_environment(env: Mapping[str, str], problems: list[str]) -> _Entries:
    known = {field.env: field.key for field in _FIELDS.values()}
    for name, value in sorted(env.items()):
        if not name.startswith(ENV_PREFIX) or name == FILE_VARIABLE:
            continue
        if name in known:
            yield known[name], _typed(value, known[name]), f"environment variable {name}"
        else:
            hint = _did_you_mean(name, [*known, FILE_VARIABLE])
            problems.append(f"{name} (environment variable) is unknown{hint}")


def _from_flags(flags: Mapping[str, object], problems: list[str]) -> _Entries:
    for key, value in flags.items():
        if key not in _FIELDS:
            problems.append(f"{key} (flag) is unknown{_did_you_mean(key, _FIELDS)}")
        elif value is not None:
            yield key, _typed(value, key), "flag"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def _typed(value: object, key: str) -> object:
    """Text of the environment or a flag as the field's type, or unchanged, to be refused, if it is none. Empty text
    leaves out what may be left out."""
    if not isinstance(value, str):
        return value
    if not value.strip() and _FIELDS[key].is_optional:
        return None
    try:
        match bare(shapes.type_info(_FIELDS[key].annotation)):
            case shapes.BoolType():
                word = value.strip().lower()
                return word in _TRUE if word in _TRUE + _FALSE else value
            case shapes.IntType():
                return int(value)
            case shapes.FloatType():
                return float(value)
            case shapes.ListType(item_type=item_type) | shapes.VarTupleType(item_type=item_type):
                items = [item.strip() for item in value.split(",") if item.strip()]
                return [int(item) for item in items] if isinstance(bare(item_type), shapes.IntType) else items
            case _:
                return value
    except ValueError:
        return value


def _nested(values: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in values.items():
        *parents, name = key.split(".")
        table = tree
        for parent in parents:
            table = table.setdefault(parent, {})
        table[name] = value
    return tree


def _contradictions(config: Config) -> Iterator[tuple[str, str]]:
    """What no single field can check: (key to name, what is wrong)."""
    try:
        resolve_data_dir(config)
    except StartupError as error:
        yield "data.dir", str(error)
        return
    try:
        resolve_store_url(config)
    except StartupError as error:
        yield "store.url", str(error)
    try:
        if resolve_redis_url(config) is None and (config.two_phase.enabled or config.two_phase.observe):
            yield "two_phase.enabled", "needs a Redis: set redis.url, or switch two-phase off"
    except StartupError as error:
        yield "redis.url", str(error)
    if config.group.max_members < config.group.min_create_members:
        yield "group.max_members", "is less than group.min_create_members"
    if config.auth.refresh_ttl_s <= config.auth.access_ttl_s:
        yield "auth.refresh_ttl_s", "must be longer than auth.access_ttl_s"
    if config.auth.argon2_memory_kib < 8 * config.auth.argon2_parallelism:
        yield "auth.argon2_memory_kib", "must be at least 8 for each lane (auth.argon2_parallelism)"
    external = config.auth.external
    if external.is_used:
        for name in ("issuer", "audience", "user_claim"):
            if not getattr(external, name):
                yield f"auth.external.{name}", "must be set for a product's own tokens to be accepted"
        if not external.has_key:
            yield "auth.external.issuer", "needs a key: set auth.external.secret, public_key, jwks_file or jwks_url"
        if external.jwks_file and external.jwks_url:
            yield "auth.external.jwks_file", "leave it out, or auth.external.jwks_url: keys come from one place"
        if external.secret and external.secret == config.auth.secret:
            yield "auth.external.secret", "must differ from auth.secret, which signs this server's own tokens"
        if external.jwks_url and not external.jwks_url.startswith(("https://", "http://")):
            yield "auth.external.jwks_url", "is an address that begins with https:// or http://"
    for network in config.http.trusted_proxies:
        try:
            ip_network(network)
        except ValueError:
            yield "http.trusted_proxies", f"{network!r} is no address and no network such as 10.0.0.0/8"
    for origin in config.http.cors_origins:
        if origin != "*" and "*" in origin:
            yield "http.cors_origins", f"{origin!r} never matches: name each origin in full, or `*` for any"
        elif origin != "*" and not _ORIGIN.fullmatch(origin):
            yield "http.cors_origins", f"{origin!r} is no origin such as https://app.example"

"""A product's own tokens, as configured. Loaded only where they are: its libraries take long to import."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path

from nexo.config import Config
from nexo.service.external_keys import ExternalKeys, Load, configured_keys, load_file
from nexo.service.external_sessions import ExternalSessions, ExternalSessionStore
from nexo.service.external_tokens import ExternalTokens


def make_external(config: Config, store: ExternalSessionStore) -> ExternalSessions:
    settings = config.auth.external
    load: Load | None = None
    if settings.jwks_url:
        load = partial(import_module("nexo.service.jwks_address").load_address, settings.jwks_url)
    elif settings.jwks_file:
        load = partial(load_file, Path(settings.jwks_file))
    tokens = ExternalTokens(config, ExternalKeys(configured_keys(config), load))
    ttl_ms = config.auth.refresh_ttl_s * 1000
    return ExternalSessions(tokens, store, ttl_ms, create_users=settings.create_users)

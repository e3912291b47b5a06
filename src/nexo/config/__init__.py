"""The configuration: one typed tree (`tree.py`), filled from defaults < nexo.toml < environment < flags."""

from nexo.config.fields import SettingField, redact_url, show
from nexo.config.loading import Loaded, describe, load, load_with_sources
from nexo.config.redis_url import RedisUrl, parse_redis_url, resolve_redis_url
from nexo.config.store_url import EngineName, StoreUrl, parse_store_url, resolve_data_dir, resolve_store_url
from nexo.config.tree import Config

__all__ = [
    "Config",
    "EngineName",
    "Loaded",
    "RedisUrl",
    "SettingField",
    "StoreUrl",
    "describe",
    "load",
    "load_with_sources",
    "parse_redis_url",
    "parse_store_url",
    "redact_url",
    "resolve_data_dir",
    "resolve_redis_url",
    "resolve_store_url",
    "show",
]

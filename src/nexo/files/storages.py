"""Makes the storage that `files.url` names."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nexo.config import Config, resolve_data_dir
from nexo.errors import StartupError
from nexo.files.folder import FolderStorage
from nexo.files.ports import Storage

DEFAULT_FOLDER = "files"
SCRATCH = "files-scratch"


def make_storage(config: Config, url: str | None = None) -> Storage:
    """Returns the storage of `files.url`, or of another address. Raises StartupError for one that cannot be."""
    address = config.files.url if url is None else url
    if not address:
        return FolderStorage((resolve_data_dir(config) / DEFAULT_FOLDER).absolute())
    parts = urlsplit(address)
    if parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise StartupError("files.url: a folder is file:/// and an absolute path")
        return FolderStorage(Path(parts.path))
    if parts.scheme == "s3":
        return _make_s3(config, parts.netloc, parts.path.strip("/"))
    raise StartupError("files.url begins with file:/// or s3://")


def _make_s3(config: Config, bucket: str, prefix: str) -> Storage:
    s3 = config.files.s3
    if not bucket:
        raise StartupError("files.url names no bucket: s3://bucket/prefix")
    for name, value in (("endpoint", s3.endpoint), ("key", s3.key), ("secret", s3.secret)):
        if not value:
            raise StartupError(f"files.s3.{name} is not set, which s3:// needs: set NEXO_FILES__S3__{name.upper()}")
    if urlsplit(s3.endpoint).scheme not in ("http", "https"):
        raise StartupError("files.s3.endpoint begins with http:// or https://")
    # importing the HTTP client takes a tenth of a second, which only servers with S3 need
    module: Any = import_module("nexo.files.s3")
    settings = module.S3Settings(bucket, f"{prefix}/" if prefix else "", s3.endpoint, s3.region, s3.key, s3.secret)
    storage: Storage = module.S3Storage(settings, (resolve_data_dir(config) / SCRATCH).absolute())
    return storage

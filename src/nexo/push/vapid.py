"""The server's own key of Web Push: configured, or made at the first start and kept, because subscriptions name it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from nexo.config import Config, resolve_data_dir, resolve_store_url
from nexo.errors import StartupError
from nexo.push.key_files import read_key_file
from nexo.push.web_crypto import new_key, read_private

FILE_NAME = "push_key.pem"

KeepKey = Callable[[str], Awaitable[str]]


async def load_vapid(config: Config, keep: KeepKey) -> EllipticCurvePrivateKey:
    """Returns the key. `keep` stores one in a database that several instances share, and returns the one kept first."""
    configured = config.push.web.private_key
    if configured:
        pem = configured if "-----BEGIN" in configured else read_key_file("push.web.private_key", configured)
        return _read(pem, "push.web.private_key")
    if not resolve_store_url(config).is_embedded:
        return _read(await keep(new_key()), "the key of Web Push in the table push_keys")
    path = resolve_data_dir(config) / FILE_NAME
    try:
        return _read(_kept(path), f"the key file {path}")
    except OSError as error:
        raise StartupError(f"the key file {path} cannot be read or made: {error.strerror}") from error


def _read(pem: str, name: str) -> EllipticCurvePrivateKey:
    try:
        return read_private(pem)
    except ValueError as error:
        raise StartupError(f"{name} is not a private key of the curve P-256 in PEM") from error


def _kept(path: Path) -> str:
    """Returns the text of the file; makes it if there is none."""
    try:
        file = open(path, encoding="ascii", errors="replace")  # noqa: SIM115
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path, new_key())
        file = open(path, encoding="ascii", errors="replace")  # noqa: SIM115
    with file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise StartupError(f"the key file {path} can be read by others (mode {mode:04o}): run `chmod 600 {path}`")
        return file.read(4096)


def _create(path: Path, text: str) -> None:
    """A crash leaves a whole file or none: it is written under another name, and gets its own only if that is free."""
    draft = path.with_name(f"{FILE_NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()

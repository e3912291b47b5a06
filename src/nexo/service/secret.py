"""The key that signs access tokens: configured, or made on first start beside the embedded database."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from pathlib import Path

from nexo.config import Config, resolve_data_dir, resolve_store_url
from nexo.errors import StartupError

MIN_CHARS = 32
FILE_NAME = "secret"
SALT_BYTES = 16
DIGEST_BYTES = 16
DIGEST_ROUNDS = 50_000
HOW_TO_MAKE_ONE = "make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"

# What examples, tutorials and tired people write. Enough of a key must be left without these words.
_PLACEHOLDERS = re.compile(
    "secret|password|passwd|passphrase|change|replace|insert|default|example|sample|placeholder|your|this|with|"
    "please|must|should|random|string|token|signing|private|super|very|long|some|text|value|here|test|admin|"
    "nexo|auth|jwt|hs256|key|foo|bar|qwerty|abcdefghijklmnopqrstuvwxyz|abcdef|0?123456789?0?|12345|me|my|in|to|it|x{3,}"
)


def check_secret(config: Config) -> None:
    """Raises a StartupError that states what to do; creates nothing. The secret itself is never quoted."""
    if config.auth.secret:
        _check_configured(config.auth.secret)
    elif not resolve_store_url(config).is_embedded:
        raise StartupError(
            "auth.secret is not set, and with a server database every instance needs the same one: "
            f"set NEXO_AUTH__SECRET; {HOW_TO_MAKE_ONE}"
        )


def load_secret(config: Config) -> str:
    """The signing secret, made if need be, or a StartupError as `check_secret` raises it."""
    check_secret(config)
    if config.auth.secret:
        return config.auth.secret
    folder = resolve_data_dir(config)
    path = folder / FILE_NAME
    try:
        kept = _read(path)
        if kept is None:
            folder.mkdir(parents=True, exist_ok=True)
            _create(path)
            kept = _read(path)
    except OSError as error:
        raise StartupError(f"the secret file {path} cannot be read or made: {error.strerror}") from error
    if kept is None or len(kept) < MIN_CHARS:
        raise StartupError(
            f"the secret file {path} is damaged: bring it back from a backup, or remove it "
            "(a new one is created, and every user has to sign in again)"
        )
    return kept


def digest_secret(secret: str, salt: bytes | None = None) -> str:
    """Returns a salted and stretched digest, by which instances compare their secrets without showing them."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    digest = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, DIGEST_ROUNDS, DIGEST_BYTES)
    return f"{salt.hex()}:{digest.hex()}"


def is_digest_of(digest: str, secret: str) -> bool:
    try:
        salt = bytes.fromhex(digest.partition(":")[0])
    except ValueError:
        return False
    return hmac.compare_digest(digest, digest_secret(secret, salt))


def _check_configured(secret: str) -> None:
    if len(secret) < MIN_CHARS:
        raise StartupError(f"auth.secret must have at least {MIN_CHARS} characters; {HOW_TO_MAKE_ONE}")
    left = _PLACEHOLDERS.sub("", re.sub(r"[\s._,:!/<>-]", "", secret.casefold()))
    repeats = secret in (secret + secret)[1:-1]
    if repeats or len(left) < MIN_CHARS // 2 or len(set(secret)) < 8:
        raise StartupError(f"auth.secret is a placeholder or easy to guess; {HOW_TO_MAKE_ONE}")


def _read(path: Path) -> str | None:
    """Returns the content of the file, or None when there is none. Other users of the machine must not be able to read
    it."""
    try:
        file = open(path, encoding="ascii", errors="replace")  # noqa: SIM115
    except FileNotFoundError:
        return None
    with file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise StartupError(
                f"the secret file {path} can be read by others (mode {mode:04o}): run `chmod 600 {path}`, "
                "and if another user may have read it, remove it (every user has to sign in again)"
            )
        return file.read(4096).strip()


def _create(path: Path) -> None:
    """Two processes that start together end up with one secret, and a crash leaves a whole one or none:
    it is written under another name, and gets its own only if that is free."""
    draft = path.with_name(f"{FILE_NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

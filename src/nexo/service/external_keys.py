"""The keys that a product signs its tokens with: configured, from a file, or from an address (JWKS).

A key belongs to one algorithm, by its kind: a public key is never taken for a shared secret. A key that cannot be used
(private, of an unknown kind, too short) is left out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.exceptions import PyJWTError

from nexo.config import Config
from nexo.errors import NexoError, StartupError

log = structlog.get_logger()

SECRET_MIN_CHARS = 32
RSA_MIN_BITS = 2048
REFRESH_S = 60.0  # at most so often
OLD_S = 3600.0  # keys that were withdrawn are forgotten after this time
KEYS_MAX = 100

_FROM_JWK: dict[str, Callable[[dict[str, Any]], Any]] = {
    "RSA": RSAAlgorithm.from_jwk,
    "EC": ECAlgorithm.from_jwk,
    "OKP": OKPAlgorithm.from_jwk,
}

Load = Callable[[], Awaitable[bytes]]


class VerifyKey(NamedTuple):
    algorithm: str
    key: Any
    key_id: str | None = None  # None: of a key that has no name, which is tried for every token


class ExternalKeys:
    def __init__(
        self, configured: Sequence[VerifyKey], load: Load | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`load` reads a set of keys, or raises OSError; it is called when a token needs it."""
        self._configured = configured
        self._load = load
        self._clock = clock
        self._loaded: list[VerifyKey] = []
        self._tried_at: float | None = None
        self._loaded_at = 0.0
        self._loading: asyncio.Task[bool] | None = None

    async def find(self, key_id: str | None, algorithm: str) -> list[VerifyKey]:
        """Returns the keys that may have signed a token with this head. Raises `server_busy` when there is none and
        the set of keys cannot be read."""
        found = self._named(key_id, algorithm)
        if found:
            if self._clock() - self._loaded_at > OLD_S:
                self._refresh()
        elif self._load is not None:
            loading = self._refresh()
            if loading is not None:
                await asyncio.shield(loading)
            found = self._named(key_id, algorithm)
        found += [key for key in self._configured if key.algorithm == algorithm]
        if not found and self._load is not None and not self._loaded_at:
            raise NexoError("server_busy", "The keys of the product cannot be read now", retry_after_ms=5000)
        return found

    def _named(self, key_id: str | None, algorithm: str) -> list[VerifyKey]:
        keys = [key for key in self._loaded if key.algorithm == algorithm]
        return [key for key in keys if key_id is None or key.key_id in (None, key_id)]

    def _refresh(self) -> asyncio.Task[bool] | None:
        """Reads the set of keys, unless that was tried a short time ago. Returns the attempt in progress, if any."""
        if self._loading is not None and not self._loading.done():
            return self._loading
        now = self._clock()
        if self._load is None or (self._tried_at is not None and now - self._tried_at < REFRESH_S):
            return None
        self._tried_at = now
        self._loading = asyncio.get_running_loop().create_task(self._read(self._load))
        return self._loading

    async def _read(self, load: Load) -> bool:
        try:
            self._loaded = read_key_set(await load())
        except (OSError, ValueError) as error:  # known keys stay
            log.warning("external_keys_not_read", error=f"{type(error).__name__}: {error}")
            return False
        self._loaded_at = self._clock()
        log.info("external_keys_read", keys=len(self._loaded))
        return True


def configured_keys(config: Config) -> list[VerifyKey]:
    """Returns the keys that the configuration holds; raises a StartupError that names a setting."""
    external = config.auth.external
    keys: list[VerifyKey] = []
    if external.secret:
        if len(external.secret) < SECRET_MIN_CHARS:
            raise StartupError(f"auth.external.secret must have at least {SECRET_MIN_CHARS} characters")
        keys.append(VerifyKey("HS256", external.secret))
    if external.public_key:
        keys.append(_pem_key(external.public_key))
    if external.jwks_file:
        try:
            read_key_set(Path(external.jwks_file).read_bytes())
        except (OSError, ValueError) as error:
            raise StartupError(f"auth.external.jwks_file cannot be used: {error}") from error
    return keys


async def load_file(path: Path) -> bytes:
    return await asyncio.to_thread(path.read_bytes)


def read_key_set(data: bytes) -> list[VerifyKey]:
    """Returns the usable keys of a JWKS; raises ValueError if it is none."""
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])["keys"]
    except (msgspec.MsgspecError, KeyError):
        raise ValueError("not a set of keys (JWKS)") from None
    if not isinstance(found, list):
        raise ValueError("not a set of keys (JWKS)")
    keys = (_jwk_key(entry) for entry in found[:KEYS_MAX] if isinstance(entry, dict))
    return [key for key in keys if key is not None]


def _jwk_key(jwk: dict[str, Any]) -> VerifyKey | None:
    """Returns the key, unless it is private, for another use, or of another kind."""
    make = _FROM_JWK.get(str(jwk.get("kty")))
    if make is None or "d" in jwk or jwk.get("use", "sig") != "sig" or "verify" not in jwk.get("key_ops", ["verify"]):
        return None
    try:
        key = make(jwk)
        algorithm = algorithm_of(key)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    key_id = jwk.get("kid")
    if jwk.get("alg", algorithm) != algorithm or not isinstance(key_id, str | None):
        return None
    return VerifyKey(algorithm, key, key_id)


def _pem_key(setting: str) -> VerifyKey:
    text = setting
    try:
        if "-----BEGIN" not in setting:
            text = Path(setting).read_text(encoding="ascii")
        key = load_pem_public_key(text.encode("ascii"))
        return VerifyKey(algorithm_of(key), key)
    except (OSError, ValueError) as error:
        raise StartupError(f"auth.external.public_key is no public key in PEM, nor a file with one: {error}") from error


def algorithm_of(key: Any) -> str:
    """Returns the one algorithm of a public key; raises ValueError for other kinds."""
    match key:
        case RSAPublicKey() if key.key_size >= RSA_MIN_BITS:
            return "RS256"
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            return "ES256"
        case Ed25519PublicKey():
            return "EdDSA"
    raise ValueError("only RSA of 2048 bits and more, P-256 and Ed25519 are supported")

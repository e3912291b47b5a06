"""The cryptography of Web Push: encryption of messages (RFC 8291, RFC 8188) and the server's key (RFC 8292)."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

RECORD_BYTES = 4096
PADDED_BYTES = 256  # lengths are multiples of it: the service does not learn how long a text is
TAG_BYTES = 16
_CURVE = ec.SECP256R1()


def decode_base64url(text: str) -> bytes:
    """Returns the bytes of a text in base64url, with or without padding. Raises ValueError."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64url") from error


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def read_public(point: bytes) -> ec.EllipticCurvePublicKey:
    """Returns the key of a browser, an uncompressed point of P-256. Raises ValueError."""
    if len(point) != 65:
        raise ValueError("a key has 65 bytes")
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, point)


def encrypt(text: bytes, browser_key: bytes, auth: bytes) -> bytes:
    """Returns the body of a push message: one record, which only the browser with this key can read."""
    browser = read_public(browser_key)
    own = ec.generate_private_key(_CURVE)
    own_point = _point(own)
    context = b"WebPush: info\x00" + browser_key + own_point
    key_material = _derive(own.exchange(ec.ECDH(), browser), auth, context, 32)
    salt = os.urandom(16)
    key = _derive(key_material, salt, b"Content-Encoding: aes128gcm\x00", 16)
    nonce = _derive(key_material, salt, b"Content-Encoding: nonce\x00", 12)
    header = salt + RECORD_BYTES.to_bytes(4, "big") + len(own_point).to_bytes(1, "big") + own_point
    size = len(text) + 1
    padded = min(-(-size // PADDED_BYTES) * PADDED_BYTES, RECORD_BYTES - len(header) - TAG_BYTES)
    if size > padded:
        raise ValueError("the text is too long for one record")
    record = text + b"\x02" + bytes(padded - size)
    return header + AESGCM(key).encrypt(nonce, record, None)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, point = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    return key.public_key().public_bytes(encoding, point)


def new_key() -> str:
    """Returns a new key as PEM text."""
    key = ec.generate_private_key(_CURVE)
    pkcs8, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, pkcs8, none).decode()


def read_private(pem: str) -> ec.EllipticCurvePrivateKey:
    """Returns a private key of P-256. Raises ValueError."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("the key has a password, or is of an unknown kind") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("the key is not of the curve P-256")
    return key


def public_of(key: ec.EllipticCurvePrivateKey) -> str:
    """Returns the public key as browsers take it."""
    return encode_base64url(_point(key))


def sign_es256(key: ec.EllipticCurvePrivateKey, claims: dict[str, Any], headers: dict[str, str] | None = None) -> str:
    return jwt.encode(claims, key, algorithm="ES256", headers=headers)

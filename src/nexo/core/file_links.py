"""Signed addresses of the files in messages: they work without signing in, for one to two hours.

A signature covers the file, the message and the time at which the address ends. This time is rounded up to the hour:
so the address is the same for all receivers, and a message is encoded once for all of them. A process has one key, set
when the server starts. Encoders call `shown_content`, so no encoder can leave the address out.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode

from nexo.core.files import ADDRESS, MEDIA_TYPES, file_named_by, with_addresses
from nexo.core.model import Message, MsgType
from nexo.ids import now_ms

VALID_S = 3600  # the shortest life of an address
ROUND_S = 3600  # its end is rounded up to a multiple of this: addresses of the same period are equal
SIGNATURE_CHARS = 32
_MERGED = int(MsgType.MERGED)
_PURPOSE = b"nexo files"


class FileLinks:
    """Signs addresses and checks them."""

    def __init__(self) -> None:
        self._key = b""

    def use_secret(self, secret: str) -> None:
        """Derive the key from the secret of the server, which all instances share."""
        self._key = hmac.digest(secret.encode(), _PURPOSE, hashlib.sha256)

    def address(self, file_id: str, server_msg_id: int, now_s: int) -> str:
        """Returns the path and query of a file in a message."""
        ends_at = -(-(now_s + VALID_S) // ROUND_S) * ROUND_S
        signature = self._sign(file_id, server_msg_id, ends_at)
        return f"{ADDRESS}{file_id}?msg={server_msg_id}&exp={ends_at}&sig={signature}"

    def is_valid(self, file_id: str, server_msg_id: int, ends_at: int, signature: str, now_s: int) -> bool:
        expected = self._sign(file_id, server_msg_id, ends_at)
        is_equal = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        return is_equal and bool(self._key) and now_s < ends_at

    def _sign(self, file_id: str, server_msg_id: int, ends_at: int) -> str:
        text = f"{file_id}\n{server_msg_id}\n{ends_at}".encode()
        return urlsafe_b64encode(hmac.digest(self._key, text, hashlib.sha256)).decode()[:SIGNATURE_CHARS]


LINKS = FileLinks()


def shown_content(message: Message) -> bytes:
    """Returns the content of a message as it is handed out: media that names a file gets its address."""
    content = message.content
    if message.msg_type == _MERGED:
        message_id, now_s = message.server_msg_id, now_ms() // 1000
        return with_addresses(content, lambda file_id: LINKS.address(file_id, message_id, now_s)).encode()
    file_id = file_named_by(content) if message.msg_type in MEDIA_TYPES else ""
    if not file_id:
        return content.encode()
    address = LINKS.address(file_id, message.server_msg_id, now_ms() // 1000)
    return f'{{"url":"{address}",{content[1:]}'.encode()

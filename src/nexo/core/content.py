"""The form of what people send: types, sizes, and the JSON that every engine can keep."""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any

import msgspec

from nexo.core.model import FIRST_EVENT, MsgType
from nexo.errors import NexoError
from nexo.ids import AT_ALL, is_user_id

TEXT_MAX_CHARS = 4096
CONTENT_MAX_BYTES = 16 * 1024
EXTRA_MAX_BYTES = 16 * 1024
URL_MAX_CHARS = 512
NAME_MAX_CHARS = 255
MENTIONS_MAX = 100
QUOTE_MAX_CHARS = 200
NESTING_MAX = 32

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_TEXT_TYPES = frozenset((MsgType.TEXT, MsgType.QUOTE))
_MEDIA_TYPES = frozenset((MsgType.IMAGE, MsgType.VIDEO, MsgType.AUDIO, MsgType.FILE))
_MEDIA_NUMBERS = ("size", "width", "height", "duration_ms")

_encode = msgspec.json.Encoder(order="deterministic").encode


def _is_storable(text: str) -> bool:
    # most texts are ASCII; to ask that is a tenth of the search
    return ("\0" not in text) if text.isascii() else _UNSTORABLE.search(text) is None


def check_text(value: object, field: str, max_chars: int) -> str:
    """A string that every engine stores as it is."""
    if not isinstance(value, str) or not _is_storable(value):
        raise NexoError(f"bad_{field}", f"{field} must be text without NUL or lone surrogates")
    if len(value) > max_chars:
        raise NexoError(f"bad_{field}", f"{field} must have at most {max_chars} characters")
    return value


def check_json(value: Any, field: str, depth: int = 0) -> None:
    """JSON that survives every engine: no NUL, lone surrogate, odd number or endless nesting."""
    if isinstance(value, str):
        if not _is_storable(value):
            raise NexoError(f"bad_{field}", f"{field} must not contain NUL or lone surrogates")
    elif value is None or isinstance(value, bool):
        pass
    elif isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise NexoError(f"bad_{field}", f"{field} has a number over 64 bits")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise NexoError(f"bad_{field}", f"{field} has a number that is not finite")
    elif isinstance(value, (dict, list)):
        if depth >= NESTING_MAX:
            raise NexoError(f"bad_{field}", f"{field} is nested deeper than {NESTING_MAX}")
        if isinstance(value, dict):
            for key, item in value.items():
                check_json(key, field, depth + 1)
                check_json(item, field, depth + 1)
        else:
            for item in value:
                check_json(item, field, depth + 1)
    else:
        raise NexoError(f"bad_{field}", f"{field} must be JSON")


def encode_json(value: Any, field: str, max_bytes: int) -> str:
    check_json(value, field)
    text = _encode(value)
    if len(text) > max_bytes:
        raise NexoError("body_too_long", f"{field} must have at most {max_bytes} bytes")
    return text.decode()


def check_content(msg_type: int, content: Any) -> None:
    """The content fits its type; the size of objects is checked when they are encoded."""
    if msg_type in _TEXT_TYPES:
        if content is None or content == "":
            raise NexoError("missing_content", "A text needs at least one character")
        if not isinstance(content, str) or not _is_storable(content):
            raise NexoError("bad_content", "The content of a text is a string without NUL or lone surrogates")
        if len(content) > TEXT_MAX_CHARS:
            raise NexoError("body_too_long", f"A text has at most {TEXT_MAX_CHARS} characters")
        return
    if msg_type not in _MEDIA_TYPES and msg_type != MsgType.CUSTOM:
        reason = "made by the server" if msg_type >= FIRST_EVENT else "unknown"
        raise NexoError("bad_msg_type", f"msg_type is 1 to 7; {msg_type} is {reason}")
    if content is None:
        raise NexoError("missing_content")
    if not isinstance(content, dict):
        raise NexoError("bad_content", "The content of this msg_type is an object")
    if msg_type in _MEDIA_TYPES:
        _check_media(content)


def _check_media(content: dict[str, Any]) -> None:
    for key, value in content.items():
        if key == "url":
            good = isinstance(value, str) and 1 <= len(value) <= URL_MAX_CHARS
        elif key == "name":
            good = value is None or (isinstance(value, str) and len(value) <= NAME_MAX_CHARS)
        elif key in _MEDIA_NUMBERS:
            good = value is None or (type(value) is int and 0 <= value < 1 << 53)
        else:
            raise NexoError("bad_content", f"Media has no field {key!r}; use extra for what is your own")
        if not good:
            raise NexoError("bad_content", f"The media field {key} has the wrong type or size")
    if "url" not in content:
        raise NexoError("missing_content", "Media needs a url")


def encode_content(msg_type: int, content: Any) -> str:
    if msg_type in _TEXT_TYPES:
        return _encode(content).decode()  # bounded by its characters; escapes in JSON do not count
    return encode_json(content, "content", CONTENT_MAX_BYTES)


def encode_stored(content: Any) -> str:
    """Content that was checked before the filter changed it; masking may make it a little longer."""
    return _encode(content).decode()


def check_mentions(mentions: object) -> tuple[str, ...]:
    """De-duplicated mentions; everybody includes anybody."""
    if not isinstance(mentions, (list, tuple)):
        raise NexoError("bad_mentions", 'mentions is a list of user ids, or ["@all"]')
    if len(mentions) > MENTIONS_MAX:
        raise NexoError("bad_mentions", f"At most {MENTIONS_MAX} users can be mentioned; use {AT_ALL} for all")
    for user_id in mentions:
        if not isinstance(user_id, str) or not (user_id == AT_ALL or is_user_id(user_id)):
            raise NexoError("bad_mentions", 'mentions is a list of user ids, or ["@all"]')
    return (AT_ALL,) if AT_ALL in mentions else tuple(dict.fromkeys(mentions))


def request_hash(
    conversation_id: str,
    msg_type: int,
    content: str,
    mentions: tuple[str, ...],
    reply_to: int | None,
    extra: str | None,
) -> bytes:
    """Tells a retry from another message under the same client_msg_id."""
    text = _encode((conversation_id, msg_type, content, mentions, reply_to, extra))
    return hashlib.blake2b(text, digest_size=16).digest()


def blank_content(msg_type: int) -> str:
    """What is left of the content of a recalled message: nothing, in the type's own form."""
    return '""' if msg_type in _TEXT_TYPES else "{}"


def quote_text(msg_type: int, content: str) -> str:
    """The line of a message that a reply shows of it."""
    value = msgspec.json.decode(content)
    if msg_type in _TEXT_TYPES:
        return str(value)[:QUOTE_MAX_CHARS]
    if msg_type in _MEDIA_TYPES:
        return str(value.get("name") or value.get("url") or "")[:QUOTE_MAX_CHARS]
    return ""

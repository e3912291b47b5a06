"""Checks of message content: types, sizes, and JSON that every engine can store."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from nexo.core.files import ADDRESS, SMALL, check_file_id, is_file_id, naming_content
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
EXPIRES_MIN_S, EXPIRES_MAX_S = 5, 604_800
TIME_MAX_DIGITS = 15  # exact in every JSON reader, and far beyond the year 9999

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ADDRESS = re.compile(r"(?:https?://|/files/)[^\s\x00-\x1f\x7f\\]+", re.IGNORECASE)
_OWN_FILE = re.compile(r"/files/|https?://[^/?#]*/files/f_[A-Za-z0-9]{22}(?:[/?#]|$)", re.IGNORECASE)
_TEXT = int(MsgType.TEXT)
_TEXT_TYPES = frozenset((MsgType.TEXT, MsgType.QUOTE))
_MEDIA_TYPES = frozenset((MsgType.IMAGE, MsgType.VIDEO, MsgType.AUDIO, MsgType.FILE))
_MEDIA_NUMBERS = ("size", "width", "height", "duration_ms")
_MEDIA_TEXTS = {"name": NAME_MAX_CHARS, "text": TEXT_MAX_CHARS, "mime": 127, "preview": 128}

_encode = msgspec.json.Encoder(order="deterministic").encode


def _is_storable(text: str) -> bool:
    # most texts are ASCII, and isascii() takes a tenth of the time of the search
    return ("\0" not in text) if text.isascii() else _UNSTORABLE.search(text) is None


def check_text(value: object, field: str, max_chars: int) -> str:
    """Returns a string that every engine stores unchanged; raises otherwise."""
    if not isinstance(value, str) or not _is_storable(value):
        raise NexoError(f"bad_{field}", f"{field} must be text without NUL or lone surrogates")
    if len(value) > max_chars:
        raise NexoError(f"bad_{field}", f"{field} must have at most {max_chars} characters")
    return value


def check_json(value: Any, field: str, depth: int = 0) -> None:
    """Raises for JSON that an engine could not store: NUL, lone surrogates, odd numbers, deep nesting."""
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


def encode_extra(extra: Any) -> str | None:
    """Returns the fields of a product's own as JSON; None stands for none."""
    if extra is None:
        return None
    text = encode_json(extra, "extra", EXTRA_MAX_BYTES)
    if not isinstance(extra, dict):
        raise NexoError("bad_extra", "extra is a JSON object")
    return text


def is_address(value: str) -> bool:
    """Returns whether a page may show what is at this address: http(s), or a file of this server. Clients put it into
    links and images, where another scheme could run code."""
    return _ADDRESS.fullmatch(value) is not None


def check_avatar(value: object, max_chars: int) -> str:
    """Returns the address of a picture; empty for none. A file_id becomes the address of its small preview, which is
    large enough, and has no metadata of the original."""
    avatar = check_text(value, "avatar", max_chars)
    if is_file_id(avatar):
        return f"{ADDRESS}{avatar}/{SMALL}"
    if avatar and not is_address(avatar):
        raise NexoError("bad_avatar", "avatar is a file_id, or an http or https address")
    return avatar


def check_content(msg_type: int, content: Any) -> None:
    """Raises where the content does not fit its type. The size of objects is checked when they are encoded."""
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
            good = "file_id" in content or _is_foreign(value)
        elif key == "file_id":
            check_file_id(value)
            good = True
        elif key in _MEDIA_TEXTS:
            good = value is None or (isinstance(value, str) and len(value) <= _MEDIA_TEXTS[key])
        elif key in _MEDIA_NUMBERS:
            good = value is None or (type(value) is int and 0 <= value < 1 << 53)
        else:
            raise NexoError("bad_content", f"Media has no field {key!r}; use extra for fields of your own")
        if not good:
            raise NexoError("bad_content", f"The media field {key} has the wrong type or size")
    if "url" not in content and "file_id" not in content:
        raise NexoError("missing_content", "Media needs a file_id, or a url")


def _is_foreign(url: object) -> bool:
    """Returns whether this is an address of another server. Raises for one of this server: its signature would end."""
    if not isinstance(url, str) or len(url) > URL_MAX_CHARS or not is_address(url):
        return False
    if _OWN_FILE.match(url):
        raise NexoError("bad_url", "A file of this server is named by its file_id")
    return True


def encode_content(msg_type: int, content: Any) -> str:
    """Check content and return it as JSON."""
    if (
        msg_type == _TEXT
        and type(content) is str
        and content.isascii()
        and 0 < len(content) <= TEXT_MAX_CHARS
        and "\0" not in content
    ):  # most messages are this: `check_content` without the calls
        return _encode(content).decode()
    check_content(msg_type, content)
    if msg_type in _TEXT_TYPES:
        return _encode(content).decode()  # bounded by its characters; escapes in JSON do not count
    return encode_json(content, "content", CONTENT_MAX_BYTES)


def encode_stored(content: Any) -> str:
    """Encodes content that was checked before the filter changed it; masking may make it slightly longer."""
    if isinstance(content, dict) and "file_id" in content:
        return naming_content(content)
    return _encode(content).decode()


def check_mentions(mentions: object) -> tuple[str, ...]:
    """Returns the mentions without duplicates; @all replaces all single ones."""
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
    """Returns the hash that distinguishes a retry from another message with the same client_msg_id."""
    text = _encode((conversation_id, msg_type, content, mentions, reply_to, extra))
    return hashlib.blake2b(text, digest_size=16).digest()


def edit_hash(server_msg_id: int, content: str, mentions: tuple[str, ...] | None) -> bytes:
    """Returns the hash that distinguishes the retry of an edit from another edit with the same client_msg_id."""
    text = _encode(("edit", server_msg_id, content, mentions))
    return hashlib.blake2b(text, digest_size=16).digest()


def forward_hash(server_msg_ids: list[int], targets: list[str], title: str | None) -> bytes:
    """Returns the hash of a request to forward, which all its copies have. `title` is that of a merged message."""
    text = _encode(("forward", server_msg_ids, targets, title))
    return hashlib.blake2b(text, digest_size=16).digest()


def copy_id(client_msg_id: str, target: int, number: int) -> str:
    """Returns the client_msg_id of a forwarded copy: it follows from that of the request and the copy's place in it."""
    text = _encode((client_msg_id, target, number))
    return f"fw.{hashlib.blake2b(text, digest_size=24).hexdigest()}"


def extended_hash(request_hash: bytes, plain: Mapping[str, Any]) -> bytes:
    """The hash of a message that has plain fields too. One without any keeps its hash when there are more."""
    return hashlib.blake2b(_encode(plain), key=request_hash, digest_size=16).digest()


def check_expires(value: object, field: str = "expires") -> int:
    """Returns how many seconds a message is shown; raises unless it is a whole number in bounds."""
    if type(value) is not int or not EXPIRES_MIN_S <= value <= EXPIRES_MAX_S:
        raise NexoError(f"bad_{field}", f"Messages are shown for {EXPIRES_MIN_S} to {EXPIRES_MAX_S} seconds")
    return value


def check_draft(text: object, reply_to: str | None) -> str:
    """Returns the draft of a user as JSON."""
    if not isinstance(text, str) or not _is_storable(text) or len(text) > TEXT_MAX_CHARS:
        raise NexoError("bad_draft", f"A draft has a text of at most {TEXT_MAX_CHARS} characters")
    return _encode({"text": text} if reply_to is None else {"reply_to": reply_to, "text": text}).decode()


def client_time(value: object) -> int:
    """Returns the milliseconds since 1970 that a client gave, as a number or as digits; 0 for anything else, because
    a wrong clock is no reason to refuse a message."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= TIME_MAX_DIGITS:
        value = int(value)
    return value if type(value) is int and 0 < value < 10**TIME_MAX_DIGITS else 0


def blank_content(msg_type: int) -> str:
    """Returns the content of a recalled message: the empty value of its type."""
    return '""' if msg_type in _TEXT_TYPES else "{}"


def quote_text(msg_type: int, content: str, max_chars: int = QUOTE_MAX_CHARS) -> str:
    """Returns the line that a reply shows of its target."""
    value = msgspec.json.decode(content)
    if msg_type in _TEXT_TYPES:
        return str(value)[:max_chars]
    if msg_type in _MEDIA_TYPES:
        return str(value.get("text") or value.get("name") or value.get("url") or "")[:max_chars]
    if msg_type == MsgType.MERGED:
        return str(value.get("title") or "")[:max_chars]
    return ""

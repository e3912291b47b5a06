"""Which text of a message is searched, and in which list of media the message is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import msgspec

from nexo.core.model import MsgType

_TEXTS = frozenset((int(MsgType.TEXT), int(MsgType.QUOTE)))
_NAMED = ("title", "name", "caption", "text")  # fields of an object that are searched
_has_link = re.compile(r"https?://[^\s/?#]", re.IGNORECASE).search
_decode = msgspec.json.decode


class MediaKind(IntEnum):
    PHOTO = 1
    VIDEO = 2
    VOICE = 3
    FILE = 4
    LINK = 5


KIND_NAMES = {kind.name.lower(): kind for kind in MediaKind}
_OF_TYPE = {
    int(MsgType.IMAGE): MediaKind.PHOTO,
    int(MsgType.VIDEO): MediaKind.VIDEO,
    int(MsgType.AUDIO): MediaKind.VOICE,
    int(MsgType.FILE): MediaKind.FILE,
}
TYPE_OF = {kind: msg_type for msg_type, kind in _OF_TYPE.items()}
LINKING_TYPES = tuple(sorted(_TEXTS))
SEARCHED_TYPES = frozenset((*_TEXTS, *_OF_TYPE, int(MsgType.CUSTOM), int(MsgType.MERGED)))


def search_text(msg_type: int, content: str, extra: str | None = None) -> str:
    """Returns the text in which a message is found: of files their name and caption. Each piece is on a line of its
    own."""
    if msg_type in _TEXTS:
        text = _decode(content)
        return text if isinstance(text, str) else ""
    if msg_type not in SEARCHED_TYPES:
        return ""
    pieces = list(_pieces(_decode(content)))
    if extra is not None and msg_type in _OF_TYPE:
        caption = _decode(extra).get("caption")
        pieces += [caption] if isinstance(caption, str) else []
    return "\n".join(pieces)


def _pieces(content: Any) -> Iterator[str]:
    if not isinstance(content, dict):
        return
    for name in _NAMED:
        value = content.get(name)
        if isinstance(value, str) and value:
            yield value
    items = content.get("items")
    for item in items if isinstance(items, list) else ():
        inner = item.get("content") if isinstance(item, dict) else None
        if isinstance(inner, str):
            yield inner
        else:
            yield from _pieces({} if not isinstance(inner, dict) else {**inner, "items": None})


def media_kind(msg_type: int, text: str) -> int:
    """Returns the media list of a message with this text; 0: none."""
    if msg_type in _TEXTS:
        return MediaKind.LINK if "://" in text and _has_link(text) is not None else 0
    return _OF_TYPE.get(msg_type, 0)

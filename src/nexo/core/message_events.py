"""Events about an earlier message: edits (110), reactions (111) and pins (112).

An event is stored bare: it names the message and holds none of its content. The content is added when the event is read
or pushed, for receivers that may see the message. Pure.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from nexo.core.model import Message, MsgType

EDITED, REACTIONS = int(MsgType.EDITED), int(MsgType.REACTIONS)
CHANGES_SHOWN_MAX = 100  # an event of more changes names none of them

_BARE = {EDITED: ("server_msg_id", "seq", "edited_at", "by"), REACTIONS: ("server_msg_id", "seq")}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def content_of(event: Message) -> dict[str, Any]:
    return _decode(event.content)


def target_of(event: Message) -> tuple[int, int]:
    """Returns id and seq of the message that the event is about."""
    content = _decode(event.content)
    return int(content["server_msg_id"]), content["seq"]


def add_edit(event: Message, content: str, mentions: tuple[str, ...]) -> None:
    """Add what the message is now; `content` is JSON text."""
    event.content = f'{event.content[:-1]},"content":{content},"mentions":{_encode(mentions).decode()}}}'


def add_reactions(event: Message, reactions: str, added: str | None, removed: str | None) -> None:
    """Add the counts after the event, and the changes unless they were too many; all as JSON text."""
    changes = "" if added is None or removed is None else f',"added":{added},"removed":{removed}'
    event.content = f'{event.content[:-1]},"reactions":{reactions}{changes}}}'


def bare(event: Message) -> Message:
    """Returns the event for receivers that may not see the message."""
    kept = _BARE.get(event.msg_type)
    if kept is None:
        return event
    content = _decode(event.content)
    text = _encode({name: content[name] for name in kept if name in content}).decode()
    return structs.replace(event, content=text, mentions=())

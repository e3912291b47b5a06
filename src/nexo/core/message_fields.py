"""The fields of a message: one row each, with what the parts of the server need to know about it.

Columns, streams and recalls are made from these rows. Frames, answers and the SDKs have code of their own for the
fields whose form differs from one to the next; `tests/unit/core/test_message_fields.py` holds them to the rows.

A **plain** field (text or a number) needs no such code: a client sends it, it is stored, and every dialect shows it as
it is, left out where a message has none. A new one takes a row here, its attribute in `Message` and `Draft`, and a
migration.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import wraps
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs


class FieldKind(Enum):
    """What a field holds."""

    ID = "a number; clients see its digits as text"
    NUMBER = "a number of 64 bits"
    SMALL = "a number of 16 bits"
    KEY = "text of at most 64 characters that is compared byte by byte"
    TEXT = "any text"
    JSON = "JSON as text; clients see its value"
    NAMES = "a tuple of identifiers, stored as JSON"
    QUOTE = "what a reply shows of its target"
    REACTIONS = "emojis and their counts; its column is a number that grows with every change"
    SOURCE = "sender and time of the message that was forwarded, stored as JSON"


class Stored(Enum):
    NEW = "written with the message"
    LATER = "written by a recall, an edit or a reaction, or only where there is one"
    NEVER = "made for every reader"


class MessageField(Struct, frozen=True):
    """`drafted`: part of a draft, and so of a stream entry. `blanked`: removed by a recall. The three names are those
    in HTTP and the request dialect, in the envelope dialect, and in the command dialect. `taken` is the type that
    clients may send for a plain field."""

    name: str
    kind: FieldKind
    stored: Stored = Stored.NEW
    drafted: bool = False
    blanked: bool = False
    envelope: str = ""
    command: str = ""
    taken: Any = None

    @property
    def http(self) -> str:
        return self.name

    @property
    def default(self) -> Any:
        """Returns the value of a message that does not have the field."""
        return () if self.kind is FieldKind.NAMES else None


def _field(name: str, kind: FieldKind, envelope: str = "", command: str = "", **rest: Any) -> MessageField:
    return MessageField(name, kind, envelope=envelope or camel(name), command=command or name, **rest)


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# In the order of `Message`, after which the plain ones follow.
FIELDS: tuple[MessageField, ...] = (
    _field("server_msg_id", FieldKind.ID, command="msg_id"),
    _field("client_msg_id", FieldKind.KEY, drafted=True),
    _field("conversation_id", FieldKind.KEY, stored=Stored.NEVER, drafted=True),  # its number is: `conv`
    _field("seq", FieldKind.NUMBER, "msgSeq"),
    _field("sender_id", FieldKind.KEY, "from", "from_user_id", drafted=True),
    _field("msg_type", FieldKind.SMALL, drafted=True),
    _field("content", FieldKind.JSON, "body", drafted=True),  # a recall leaves an empty one of its type
    _field("send_at", FieldKind.NUMBER, "ts", "timestamp"),
    _field("mentions", FieldKind.NAMES, drafted=True, blanked=True),
    _field("reply_to", FieldKind.ID, "replyToServerMsgId", drafted=True, blanked=True),
    _field("quote", FieldKind.QUOTE, stored=Stored.NEVER, blanked=True),
    _field("extra", FieldKind.JSON, drafted=True, blanked=True),
    _field("status", FieldKind.SMALL, stored=Stored.LATER),
    _field("recalled_at", FieldKind.NUMBER, command="recall_at", stored=Stored.LATER),
    _field("edited_at", FieldKind.NUMBER, stored=Stored.LATER, blanked=True),
    _field("reactions", FieldKind.REACTIONS, stored=Stored.LATER, blanked=True),
    _field("forwarded_from", FieldKind.SOURCE, drafted=True, blanked=True),
    _field("expires_at", FieldKind.NUMBER, stored=Stored.LATER),
)
PLAIN = tuple(field for field in FIELDS if field.taken is not None)
DRAFTED = tuple(field for field in FIELDS if field.drafted)
BLANKED = tuple(field for field in FIELDS if field.blanked)

_encode = msgspec.json.Encoder().encode
decode_names: Callable[[str], tuple[str, ...]] = msgspec.json.Decoder(tuple[str, ...]).decode


def encode_names(names: tuple[str, ...]) -> str:
    return _encode(names).decode()


# A value as text that any Redis client can show, and back.
TEXT_OF: dict[FieldKind, tuple[Callable[[Any], str], Callable[[str], Any]]] = {
    FieldKind.ID: (str, int),
    FieldKind.NUMBER: (str, int),
    FieldKind.SMALL: (str, int),
    FieldKind.KEY: (str, str),
    FieldKind.TEXT: (str, str),
    FieldKind.JSON: (str, str),
    FieldKind.NAMES: (encode_names, decode_names),
    FieldKind.SOURCE: (str, str),
}


# -- plain fields ------------------------------------------------------------------------------------------
# All of it is decided once, when the modules are loaded: while there are none, nothing is wrapped and nothing asked.

Form = TypeVar("Form", bound=type[Struct])
Build = TypeVar("Build", bound=Callable[..., Any])


def with_plain(*, shown: bool = False, in_camel_case: bool = False) -> Callable[[Form], Form]:
    """Returns the class of requests, or of answers (`shown`), with the plain fields behind its own."""
    fields: list[tuple[str, Any, Any]] = [
        (field.name, field.taken | UnsetType, UNSET) if shown else (field.name, field.taken, None) for field in PLAIN
    ]
    rename: Literal["camel"] | None = "camel" if in_camel_case else None

    def extend(form: Form) -> Form:
        if not fields:
            return form
        namespace = {"__doc__": form.__doc__}
        return msgspec.defstruct(  # type: ignore[return-value]
            form.__name__, fields, bases=(form,), module=form.__module__, namespace=namespace, rename=rename
        )

    return extend


def carries_plain(build: Build) -> Build:
    """A function from one stage of a message, its first argument, to the next: it copies the plain fields too."""
    if not PLAIN:
        return build

    @wraps(build)
    def build_all(source: Struct, *args: Any, **options: Any) -> Any:
        target = build(source, *args, **options)
        for field in PLAIN:
            structs.force_setattr(target, field.name, getattr(source, field.name))
        return target

    return build_all  # type: ignore[return-value]


def shows_plain(build: Build) -> Build:
    """A function from a message, its first argument, to an answer: it shows the plain fields that are there too."""
    if not PLAIN:
        return build

    @wraps(build)
    def build_all(message: Struct, *args: Any, **options: Any) -> Any:
        shape = build(message, *args, **options)
        for name, value in plain_values(message).items():
            setattr(shape, name, value)
        return shape

    return build_all  # type: ignore[return-value]


def plain_values(source: Struct) -> dict[str, Any]:
    """The plain fields that are there, by name."""
    found = ((field.name, getattr(source, field.name)) for field in PLAIN)
    return {name: value for name, value in found if value is not None}

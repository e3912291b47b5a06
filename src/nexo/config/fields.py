"""Descriptions of settings (`about`), and reading them back from the structs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args

import msgspec
from msgspec import inspect as shapes

REDACTED = "***"
ENV_PREFIX = "NEXO_"

# "value": never shown; "url": shown without its password.
Secrecy = Literal["value", "url"]


def about(text: str, *, ge: int | None = None, le: int | None = None, secret: Secrecy | None = None) -> msgspec.Meta:
    return msgspec.Meta(description=text, ge=ge, le=le, extra={"secret": secret})


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the tree. Printing one (in a log, in a traceback) never shows a secret."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in show(self).items())
        return f"{type(self).__name__}({shown})"


class SettingField(msgspec.Struct, frozen=True):
    """One setting, as the documentation and the loader see it."""

    key: str
    type: str
    default: Any
    help: str
    env: str
    secret: Secrecy | None
    annotation: Any  # what msgspec converts to
    is_optional: bool  # the server decides when it is left out


def leaves(section: type[Section], parents: tuple[str, ...] = ()) -> Iterator[SettingField]:
    for info in msgspec.structs.fields(section):
        path = (*parents, info.name)
        if isinstance(info.type, type) and issubclass(info.type, Section):
            yield from leaves(info.type, path)
            continue
        meta = next(part for part in get_args(info.type) if isinstance(part, msgspec.Meta))
        yield SettingField(
            key=".".join(path),
            type=_type_text(shapes.type_info(info.type)),
            default=info.default if info.default is not msgspec.NODEFAULT else info.default_factory(),
            help=meta.description or "",
            env=ENV_PREFIX + "__".join(path).upper(),
            secret=(meta.extra or {}).get("secret"),
            annotation=info.type,
            is_optional=info.default is None,
        )


def bare(shape: shapes.Type) -> shapes.Type:
    """Returns the type without its description; of one that may be left out, the type when it is there."""
    if isinstance(shape, shapes.UnionType):
        (shape,) = (part for part in shape.types if not isinstance(part, shapes.NoneType))
    return bare(shape.type) if isinstance(shape, shapes.Metadata) else shape


def _type_text(shape: shapes.Type) -> str:
    match bare(shape):
        case shapes.BoolType():
            return "true or false"
        case shapes.LiteralType(values=values):
            return "one of " + ", ".join(map(str, values))
        case shapes.IntType(ge=ge, le=le):
            return "a whole number" + _bounds_text(ge, le)
        case shapes.FloatType(ge=ge, le=le):
            return "a number" + _bounds_text(ge, le)
        case shapes.ListType(item_type=item) | shapes.VarTupleType(item_type=item):
            return f"a list of {_type_text(item)}"
        case _:
            return "text"


def _bounds_text(ge: float | None, le: float | None) -> str:
    match ge, le:
        case None, None:
            return ""
        case _, None:
            return f" from {ge}"
        case None, _:
            return f" up to {le}"
        case _:
            return f" from {ge} to {le}"


def show(section: Section) -> dict[str, Any]:
    """The leaves under a section by dotted key, fit for other eyes: secrets are redacted."""
    shown: dict[str, Any] = {}
    for field in leaves(type(section)):
        value: Any = section
        for name in field.key.split("."):
            value = getattr(value, name)
        if field.secret == "url":
            value = redact_url(value)
        elif field.secret == "value" and value:
            value = REDACTED
        shown[field.key] = value
    return shown


def redact_url(url: str) -> str:
    # Up to the last @: an unescaped one in a password must not leave half of it readable.
    url = re.sub(r"(?<=://)([^:/?#@]*):.*@", rf"\1:{REDACTED}@", url)
    return re.sub(r"([?&][^=&]*pass[^=&]*=)[^&]*", rf"\1{REDACTED}", url, flags=re.IGNORECASE)

"""Files of users: what is known about one, how messages name it, and its rows as plain values. Pure."""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from nexo.core.model import MsgType
from nexo.errors import NexoError

ADDRESS = "/files/"  # followed by a file_id
NAME_MAX_CHARS = 255
STAGED = "uploads/"  # where the storage keeps parts of uploads
SMALL, MEDIUM = "small", "medium"
PREVIEWS = (SMALL, MEDIUM)
NAMED = '{"file_id":"'  # how the stored content of a message begins that names a file

_ID = re.compile(r"f_[A-Za-z0-9]{22}")
_ID_CHARS = string.ascii_letters + string.digits
_UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff/\\\\\u202a-\u202e\u2066-\u2069]")
_NAMES = '"file_id":'
MEDIA_TYPES = frozenset(map(int, (MsgType.IMAGE, MsgType.VIDEO, MsgType.AUDIO, MsgType.FILE)))
FILE_TYPES = MEDIA_TYPES | {int(MsgType.MERGED)}  # whose content may name files
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def new_file_id() -> str:
    """Returns an id that cannot be guessed: 130 random bits."""
    return "f_" + "".join(secrets.choice(_ID_CHARS) for _ in range(22))


def is_file_id(value: object) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def check_file_id(value: object) -> str:
    if not isinstance(value, str):
        raise NexoError("bad_file_id", "A file_id is a text")
    if not is_file_id(value):  # no such file, as with an id of the right form
        raise NexoError("file_not_found")
    return value


def clean_name(name: str) -> str:
    """Returns a name without folders, control characters and marks that turn the direction of text."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return _UNSAFE.sub("", last).strip()[:NAME_MAX_CHARS]


class Measured(Struct, frozen=True):
    """What the bytes of a file show; equal for equal bytes."""

    mime: str
    width: int | None = None
    height: int | None = None
    duration_ms: int | None = None
    placeholder: str | None = None
    small_bytes: int | None = None  # sizes of the previews that exist
    medium_bytes: int | None = None


class StoredFile(Struct, frozen=True):
    """A complete file. `blob` is the name of its bytes in the storage."""

    file_id: str
    owner_id: str
    name: str
    size: int
    sha256: str
    blob: str
    created_at: int
    measured: Measured

    def preview_bytes(self, preview: str) -> int | None:
        return self.measured.small_bytes if preview == SMALL else self.measured.medium_bytes


class FileShape(Struct, omit_defaults=True):
    """A stored file as clients see it. What does not apply is left out; `preview` is a BlurHash."""

    file_id: str
    name: str
    mime: str
    size: int
    sha256: str
    width: int | UnsetType = UNSET
    height: int | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    preview: str | UnsetType = UNSET
    user_id: str | UnsetType = UNSET
    created_at: int | UnsetType = UNSET


def file_shape(file: StoredFile, *, with_owner: bool = False) -> FileShape:
    shape = FileShape(file.file_id, file.name, file.measured.mime, file.size, file.sha256)
    for name, value in _measures(file.measured).items():
        setattr(shape, name, value)
    if with_owner:
        shape.user_id, shape.created_at = file.owner_id, file.created_at
    return shape


def _measures(measured: Measured) -> dict[str, Any]:
    known = {
        "width": measured.width,
        "height": measured.height,
        "duration_ms": measured.duration_ms,
        "preview": measured.placeholder,
    }
    return {name: value for name, value in known.items() if value is not None}


# -- in messages -------------------------------------------------------------------------------------


def naming_content(content: dict[str, Any]) -> str:
    """Returns the content of a draft that names a file: only what a sender decides. The rest is filled in when the
    message is stored."""
    kept = {"file_id": content["file_id"]}
    if content.get("text"):
        kept["text"] = content["text"]
    return _encode(kept).decode()


def file_named_by(content: str) -> str:
    """Returns the file_id in the content of a draft or message; empty without one. As fast as a comparison."""
    return content[len(NAMED) : content.index('"', len(NAMED))] if content.startswith(NAMED) else ""


def files_in_items(content: str) -> list[str]:
    """Returns the file_ids in the content of a merged message."""
    return list(dict.fromkeys(found["file_id"] for found in _naming(_decode(content)))) if _NAMES in content else []


def with_addresses(content: str, address: Callable[[str], str]) -> str:
    """Returns the content of a merged message with the address of each file that it names."""
    if _NAMES not in content:
        return content
    shown = _decode(content)
    for found in _naming(shown):
        found["url"] = address(found["file_id"])
    return _encode(shown).decode()


def _naming(merged: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the contents of the items of a merged message, and of merged ones among them, that name a file."""
    for item in merged.get("items", ()):
        inside = item.get("content")
        if isinstance(inside, dict) and item.get("msg_type") in MEDIA_TYPES and "file_id" in inside:
            yield inside
        elif isinstance(inside, dict) and item.get("msg_type") == MsgType.MERGED:
            yield from _naming(inside)


def filled_content(content: str, file: StoredFile) -> str:
    """Returns the content that is stored: with everything about the file, without an address, which is made for each
    copy that is handed out."""
    found = _decode(content)
    filled: dict[str, Any] = {"file_id": file.file_id, "name": file.name, "mime": file.measured.mime, "size": file.size}
    filled |= _measures(file.measured)
    if "text" in found:
        filled["text"] = found["text"]
    return _encode(filled).decode()


class Upload(NamedTuple):
    """An upload in parts that is not complete."""

    file_id: str
    owner_id: str
    name: str
    length: int
    received: int
    expires_at: int
    parts: tuple[tuple[int, int, str], ...] = ()  # start, size and name of each stored part, in order


def staged_in(file_id: str) -> str:
    """Returns the folder of an upload's parts in the storage."""
    return f"{STAGED}{file_id}/"


class BlobClaim(NamedTuple):
    """The bytes with some hash, claimed by an upload that is about to store them. `measured` is None until they are
    stored completely."""

    blob: str
    measured: Measured | None


class FileTotals(NamedTuple):
    files: int
    blobs: int  # different contents
    bytes: int  # of those

"""Entries of a stream: accepted drafts as plain fields that any Redis client can read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nexo.core.message_fields import DRAFTED, TEXT_OF
from nexo.core.model import Draft, Kind, Message
from nexo.ports import Address

# per field of a draft: name, value that is left out, functions to text and back
_DRAFTED = [(field.name, field.default, *TEXT_OF[field.kind]) for field in DRAFTED]


class BadEntry(Exception):
    """An entry that cannot be decoded: foreign, or of a newer version."""


class StreamEntry(Struct):
    entry_id: str  # its place in the stream
    draft: Draft
    accepted_at: int
    delivered_at: int = 0  # when provisional copies were sent; 0: none were
    producer: str = ""  # the instance that accepted it
    address: Address | None = None  # of the sending connection

    @property
    def provisional(self) -> Message:
        """The message before it is saved: without a seq."""
        draft = self.draft
        assert draft.server_msg_id is not None
        message = draft.message(draft.server_msg_id, 0, self.accepted_at, draft.mentions)
        if draft.expires_s:
            message.expires_at = self.accepted_at + draft.expires_s * 1000
        return message


def encode_entry(entry: StreamEntry) -> list[str]:
    """Returns names and values, alternating."""
    draft = entry.draft
    fields = {
        "server_msg_id": str(draft.server_msg_id),
        "request_hash": draft.request_hash.hex(),
        "accepted_at": str(entry.accepted_at),
        "producer": entry.producer,
    }
    if entry.address is not None:
        fields["address"] = encode_address(entry.address)
    for name, default, to_text, _ in _DRAFTED:
        value = getattr(draft, name)
        if value != default:
            fields[name] = to_text(value)
    if draft.sent_at:
        fields["sent_at"] = str(draft.sent_at)
    if draft.expires_s:
        fields["expires_s"] = str(draft.expires_s)
    if draft.filtered:
        fields["filtered"] = "1"
    if draft.rejected:
        fields["rejected"] = "1"
    if entry.delivered_at:
        fields["delivered_at"] = str(entry.delivered_at)
    return [part for pair in fields.items() for part in pair]


def decode_entry(entry_id: str, raw: Mapping[bytes, bytes]) -> StreamEntry:
    try:
        fields = {name.decode(): value.decode() for name, value in raw.items()}
        return StreamEntry(
            entry_id,
            _draft(fields),
            int(fields["accepted_at"]),
            int(fields.get("delivered_at", 0)),
            fields.get("producer", ""),
            decode_address(fields.get("address", "")),
        )
    except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BadEntry(f"{type(error).__name__}: {error}") from error


def _draft(fields: Mapping[str, str]) -> Draft:
    values: dict[str, Any] = {name: from_text(fields[name]) for name, _, _, from_text in _DRAFTED if name in fields}
    return Draft(
        **values,
        kind=int(Kind.SINGLE if values["conversation_id"].startswith("si_") else Kind.GROUP),
        request_hash=bytes.fromhex(fields["request_hash"]),
        sent_at=int(fields.get("sent_at", 0)),
        accepted_at=int(fields["accepted_at"]),
        expires_s=int(fields.get("expires_s", 0)),
        filtered="filtered" in fields,
        rejected="rejected" in fields,
        server_msg_id=int(fields["server_msg_id"]),
    )


def encode_address(address: Address) -> str:
    # the ids of instances, users and connections contain no space
    return f"{address.instance_id} {address.user_id} {address.conn_id}"


def decode_address(text: str) -> Address | None:
    parts = text.split(" ")
    return Address(*parts) if len(parts) == 3 else None

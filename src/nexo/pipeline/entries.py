"""What a stream holds: a draft that was accepted, as plain fields that can be read with any Redis client. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from nexo.core.model import Draft, Kind, Message
from nexo.ports import Address

_MENTIONS = msgspec.json.Decoder(tuple[str, ...])
_encode = msgspec.json.Encoder().encode


class BadEntry(Exception):
    """Not an entry of ours, or one of a newer version: no draft can be made of it."""


class Entry(Struct):
    entry_id: str  # its place in the stream
    draft: Draft
    accepted_at: int
    delivered_at: int = 0  # when provisional copies were sent; 0: none were
    producer: str = ""  # the instance that accepted it
    address: Address | None = None  # who sent it

    @property
    def provisional(self) -> Message:
        """The message as it is before it has a place in its conversation."""
        draft = self.draft
        assert draft.server_msg_id is not None
        return Message(
            draft.server_msg_id,
            draft.client_msg_id,
            draft.conversation_id,
            0,
            draft.sender_id,
            draft.msg_type,
            draft.content,
            self.accepted_at,
            draft.mentions,
            draft.reply_to,
            None,
            draft.extra,
        )


def encode_entry(entry: Entry) -> list[str]:
    """Names and values in turn."""
    draft = entry.draft
    fields = {
        "server_msg_id": str(draft.server_msg_id),
        "client_msg_id": draft.client_msg_id,
        "sender_id": draft.sender_id,
        "conversation_id": draft.conversation_id,
        "msg_type": str(draft.msg_type),
        "content": draft.content,
        "request_hash": draft.request_hash.hex(),
        "sent_at": str(draft.sent_at),
        "accepted_at": str(entry.accepted_at),
        "producer": entry.producer,
    }
    if entry.address is not None:
        fields["address"] = encode_address(entry.address)
    if draft.mentions:
        fields["mentions"] = _encode(draft.mentions).decode()
    if draft.reply_to is not None:
        fields["reply_to"] = str(draft.reply_to)
    if draft.extra is not None:
        fields["extra"] = draft.extra
    if draft.filtered:
        fields["filtered"] = "1"
    if draft.rejected:
        fields["rejected"] = "1"
    if entry.delivered_at:
        fields["delivered_at"] = str(entry.delivered_at)
    return [part for pair in fields.items() for part in pair]


def decode_entry(entry_id: str, raw: Mapping[bytes, bytes]) -> Entry:
    try:
        fields = {name.decode(): value.decode() for name, value in raw.items()}
        return Entry(
            entry_id,
            _draft(fields),
            int(fields["accepted_at"]),
            int(fields.get("delivered_at", 0)),
            fields.get("producer", ""),
            decode_address(fields.get("address", "")),
        )
    except (KeyError, ValueError, msgspec.MsgspecError) as error:
        raise BadEntry(f"{type(error).__name__}: {error}") from error


def _draft(fields: Mapping[str, str]) -> Draft:
    conversation_id = fields["conversation_id"]
    reply_to: Any = fields.get("reply_to")
    return Draft(
        fields["sender_id"],
        fields["client_msg_id"],
        conversation_id,
        int(Kind.SINGLE if conversation_id.startswith("si_") else Kind.GROUP),
        int(fields["msg_type"]),
        fields["content"],
        bytes.fromhex(fields["request_hash"]),
        _MENTIONS.decode(fields["mentions"]) if "mentions" in fields else (),
        None if reply_to is None else int(reply_to),
        fields.get("extra"),
        filtered="filtered" in fields,
        rejected="rejected" in fields,
        server_msg_id=int(fields["server_msg_id"]),
        sent_at=int(fields.get("sent_at", 0)),
    )


def encode_address(address: Address) -> str:
    # neither instances nor connections have a space in their names, nor do users
    return f"{address.instance_id} {address.user_id} {address.conn_id}"


def decode_address(text: str) -> Address | None:
    parts = text.split(" ")
    return Address(*parts) if len(parts) == 3 else None

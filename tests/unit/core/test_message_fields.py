"""The table of a message's fields, and all that has code of its own beside it: model, rows, frames, answers, SDKs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec import structs

from nexo.core import events
from nexo.core.commands import Send
from nexo.core.content import blank_content
from nexo.core.message_fields import BLANKED, DRAFTED, FIELDS, PLAIN, FieldKind, MessageField, Stored, camel
from nexo.core.model import Draft, Kind, Message, MsgType, Quote, Reaction
from nexo.core.shapes import camel_message, message_shape
from nexo.ports import Address, MessageStore
from nexo.service.filter import FilterFile
from nexo.service.send import Sending
from nexo.store import rows, schema
from nexo.two_phase.entries import StreamEntry, decode_entry, encode_entry
from nexo.wire.registry import DIALECTS
from nexo_client.core import messages as sdk

ROOT = Path(__file__).parents[3]
QUOTE = Quote(41, "ben", 1, "before")
FULL = Message(
    server_msg_id=42,
    client_msg_id="c-1",
    conversation_id="si_ann:ben",
    seq=7,
    sender_id="ann",
    msg_type=int(MsgType.QUOTE),
    content='"hello"',
    send_at=1_800_000_000_000,
    mentions=("ben", "cy"),
    reply_to=41,
    quote=QUOTE,
    extra='{"mood":"good"}',
    status=1,
    recalled_at=1_800_000_000_009,
    edited_at=1_800_000_000_005,
    reactions=(Reaction("👍", 2, True),),
    forwarded_from='{"sender_id":"dee","send_at":1700000000000}',
    expires_at=1_800_000_000_010,
    **{field.name: f"some {field.name}" for field in PLAIN},
)  # no message has all of this at once; each field has a value that no other has


def as_clients_see(field: MessageField, in_envelope: bool = False) -> Any:
    value = getattr(FULL, field.name)
    match field.kind:
        case FieldKind.ID:
            return str(value)
        case FieldKind.JSON:
            return json.loads(value)
        case FieldKind.NAMES:
            return list(value)
        case FieldKind.REACTIONS:
            return [{"emoji": "👍", "count": 2, "mine": True}]
        case FieldKind.SOURCE:
            return {"from": "dee", "ts": 1700000000000} if in_envelope else json.loads(value)
    return value


# -- the server ----------------------------------------------------------------------------------------------


def test_a_message_has_the_fields_of_the_table_in_its_order() -> None:
    plain_last = [field.name for field in FIELDS if field not in PLAIN] + [field.name for field in PLAIN]
    own = ["number"]  # for the server itself
    listed = [name for name in Message.__struct_fields__ if name not in own]
    assert listed == plain_last == [field.name for field in FIELDS]
    shown_as_they_are = {FieldKind.NUMBER, FieldKind.SMALL, FieldKind.KEY, FieldKind.TEXT}
    assert {field.kind for field in PLAIN} <= shown_as_they_are


def test_a_draft_has_what_the_table_says_and_becomes_its_message() -> None:
    values = {field.name: getattr(FULL, field.name) for field in DRAFTED}
    draft = Draft(kind=int(Kind.SINGLE), request_hash=b"h", **values)
    message = draft.message(FULL.server_msg_id, FULL.seq, FULL.send_at, FULL.mentions, QUOTE)
    later = dict.fromkeys(("recalled_at", "edited_at", "reactions", "expires_at"))
    assert message == structs.replace(FULL, status=0, **later)


def test_a_row_becomes_the_message_it_was_made_of() -> None:
    row = [
        3 if name == "reactions" else json.dumps(value) if isinstance(value, tuple) else value
        for name, value in ((name, getattr(FULL, name)) for name in rows.MESSAGE)
    ]
    assert rows.message(row, FULL.conversation_id) == structs.replace(FULL, quote=None, reactions=())


def test_a_new_row_has_each_value_in_its_column() -> None:
    written = dict(zip(rows.NEW_MESSAGE, rows.new_rows([(FULL, 3, b"hash", 9)])[0], strict=True))
    assert (written.pop("conv"), written.pop("request_hash"), written.pop("countable_no")) == (3, b"hash", 9)
    assert json.loads(written.pop("mentions")) == list(FULL.mentions)
    assert written == {name: getattr(FULL, name) for name in written}
    assert len(rows.NEW_MESSAGE_TYPES) == len(rows.NEW_MESSAGE)


def test_the_columns_are_those_of_the_table() -> None:
    stored = [field for field in FIELDS if field.stored is not Stored.NEVER]
    columns = schema.messages.columns
    assert {field.name for field in stored} == set(columns.keys()) - {
        "conv",
        "request_hash",
        "countable_no",
        "recall_seq",
        "edit_seq",
        "counted_event",
    }
    for field in stored:
        if field.name != "server_msg_id":  # SQLite has a name of its own for the key of a table
            assert str(columns[field.name].type) == str(schema.MESSAGE_TYPES[field.kind]()), field.name
    assert {field.name for field in stored} == set(rows.MESSAGE)


def test_a_recall_takes_away_everything_that_a_client_may_leave_out() -> None:
    optional = {field.name for field in structs.fields(Draft) if not field.required}
    assert {field.name for field in DRAFTED if field.name in optional} <= {field.name for field in BLANKED}
    assert set(rows.BLANKED) == {field.name for field in BLANKED} - {"quote"}


def test_an_entry_of_a_stream_brings_a_draft_back_as_it_was() -> None:
    values = {field.name: getattr(FULL, field.name) for field in DRAFTED}
    draft = Draft(kind=int(Kind.SINGLE), request_hash=b"hash", server_msg_id=42, filtered=True, accepted_at=6, **values)
    draft.expires_s = 60
    entry = StreamEntry("1-1", draft, 6, 7, "here", Address("here", "ann", "c1"))
    assert decode_entry("1-1", {key.encode(): value.encode() for key, value in fields_of(entry).items()}) == entry


def fields_of(entry: StreamEntry) -> dict[str, str]:
    parts = encode_entry(entry)
    return dict(zip(parts[::2], parts[1::2], strict=True))


SENT_AT = 1_799_999_999_000
SENDS = {
    "nexo.envelope.v1": lambda time: {"type": "SINGLE_CHAT", "clientMsgId": "c", "to": "ben", "body": "x", "ts": time},
    "nexo.request.v1": lambda time: {
        "req_identifier": 1003,
        "data": {"client_msg_id": "c", "recv_id": "ben", "content": "x", "send_at": time},
    },
    "nexo.command.v1": lambda time: {
        "cmd": "chat.send_message",
        "data": {"chat_type": 1, "to_id": "ben", "client_msg_id": "c", "content": "x", "timestamp": time},
    },
}


@pytest.mark.parametrize("name", SENDS)
def test_an_entry_of_a_stream_has_the_time_at_which_the_client_sent_it(name: str) -> None:
    sending = Sending(cast(MessageStore, SimpleNamespace(submit=None)), FilterFile(None, "off"))

    def drafted(time: Any) -> Draft:
        command, _ = DIALECTS[name].decode(json.dumps(SENDS[name](time)).encode(), "ann")
        assert isinstance(command, Send)
        draft = sending.draft("ann", command)
        draft.server_msg_id, draft.accepted_at = 42, 6
        return draft

    for time in (SENT_AT, str(SENT_AT)):
        entry = StreamEntry("1-1", drafted(time), 6)
        fields = fields_of(entry)
        assert fields["sent_at"] == str(SENT_AT)
        assert decode_entry("1-1", {key.encode(): value.encode() for key, value in fields.items()}) == entry
    without = drafted(None)
    assert without.request_hash == drafted(SENT_AT).request_hash == drafted(SENT_AT + 1).request_hash
    for unusable in (None, 0, -5, 1.5, True, "soon", 10**15, [SENT_AT], {"at": SENT_AT}):
        assert "sent_at" not in fields_of(StreamEntry("1-1", drafted(unusable), 6)), unusable
    assert "sent_at" not in rows.NEW_MESSAGE


# -- what clients see ----------------------------------------------------------------------------------------

NAMES = {
    "nexo.envelope.v1": lambda field: field.envelope,
    "nexo.request.v1": lambda field: field.http,
    "nexo.command.v1": lambda field: field.command,
}
# what a frame has besides: where the message goes, and how it was pushed
BESIDES = {"type", "to", "groupId", "recv_id", "group_id", "chat_type", "to_id"}
# in the command dialect, as its own form of the name
RENAMED_VALUES = {("nexo.command.v1", "conversation_id"): "p_ann_ben"}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_frame_has_every_field_under_its_name(name: str) -> None:
    frame = json.loads(DIALECTS[name].encode(events.Pushed(FULL)))
    data = frame.get("data", frame)
    for field in FIELDS:
        if field.kind is FieldKind.QUOTE:
            assert data[NAMES[name](field)]["text"] == QUOTE.text
        else:
            seen = as_clients_see(field, name == "nexo.envelope.v1")
            expected = RENAMED_VALUES.get((name, field.name), seen)
            assert data[NAMES[name](field)] == expected, field.name
    assert set(data) - {NAMES[name](field) for field in FIELDS} <= BESIDES


def test_http_has_every_field_under_its_name_and_in_camel_case_under_those_of_the_envelope() -> None:
    plain, camel_case = (json.loads(msgspec.json.encode(shape)) for shape in (message_shape(FULL), camel_message(FULL)))
    for field in FIELDS:
        if field.kind is not FieldKind.QUOTE:
            assert plain[field.http] == as_clients_see(field), field.name
            assert camel_case[field.envelope] == as_clients_see(field, True), field.name
    assert set(plain) - {field.http for field in FIELDS} <= BESIDES
    assert set(camel_case) - {field.envelope for field in FIELDS} <= BESIDES


# -- the SDKs ------------------------------------------------------------------------------------------------


def test_the_python_sdk_reads_every_field_of_frames_and_of_http() -> None:
    frame = json.loads(DIALECTS["nexo.envelope.v1"].encode(events.Pushed(FULL)))
    shape = json.loads(msgspec.json.encode(message_shape(FULL)))
    from_frame, from_http = sdk.message_from_frame(frame), sdk.message_from_api(shape)
    assert from_frame == from_http
    for field in FIELDS:
        if field.kind is not FieldKind.QUOTE:
            read = msgspec.to_builtins(getattr(from_frame, field.name))
            assert (list(read) if isinstance(read, tuple) else read) == as_clients_see(field), field.name
    assert from_frame.quote is not None


def test_the_python_sdk_blanks_what_the_server_blanks() -> None:
    shape = json.loads(msgspec.json.encode(message_shape(structs.replace(FULL, status=0, recalled_at=None))))
    blanked = sdk.message_from_api(shape).recalled(9)
    for field in BLANKED:
        assert (getattr(blanked, field.name) or None) == (field.default or None), field.name
    assert blanked.content == json.loads(blank_content(FULL.msg_type))


def test_the_javascript_sdk_reads_every_field_of_frames_and_of_http() -> None:
    """Its own suite runs the code; here is whether any field was forgotten."""
    source = ROOT / "clients" / "js" / "src"
    types = re.search(r"@typedef \{object\} Message\n(.*?)\*/", (source / "types.js").read_text(), re.DOTALL)
    code = (source / "core" / "messages.js").read_text()
    from_frame = re.search(r"function messageFromFrame\(.*?\n\}", code, re.DOTALL)
    from_http = re.search(r"function messageFromApi\(.*?\n\}", code, re.DOTALL)
    blanked = re.search(r"function blankCopy\(.*?\n\}", code, re.DOTALL)
    assert types is not None
    assert from_frame is not None
    assert from_http is not None
    assert blanked is not None
    typed = set(re.findall(r"@property \{.*?\} \[?(\w+)", types[1]))
    for field in FIELDS:
        assert camel(field.name) in typed, field.name
        assert re.search(rf"\bframe\.{field.envelope}\b", from_frame[0]), field.name
        assert re.search(rf"\bshape\.{field.http}\b", from_http[0]), field.name
        assert not field.blanked or re.search(rf"\b{camel(field.name)}: ", blanked[0]), field.name

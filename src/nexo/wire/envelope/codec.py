"""The codec of the envelope dialect. It remembers nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from nexo.core import commands, events
from nexo.core.json_reader import UNSTORABLE, read_loosely, unstorable_field, wrong_field
from nexo.errors import ERRORS, NexoError
from nexo.ids import now_ms
from nexo.wire.dialect import BadFrame
from nexo.wire.envelope.answers import ENCODERS, TIMED_ENCODERS
from nexo.wire.envelope.calls import CALL_COMMANDS, call_ref, decode_call
from nexo.wire.envelope.refs import EnvelopeRef
from nexo.wire.envelope.requests import COMMANDS, EnvelopeFrame, auth, check_sender, command_of
from nexo.wire.framing import text_frame
from nexo.wire.handshakes import answer_nothing, echo_nothing, encode_outcome
from nexo.wire.reading import ECHO_MAX_CHARS, read_object

# the error that names a field, where the field's own name differs from it
_FIELD_ERRORS = {
    "from": "bad_user_id",
    "to": "bad_receiver",
    "body": "bad_content",
    "msgSeq": "bad_seq",
    "beginSeq": "bad_seq",
    "endSeq": "bad_seq",
    "replyToServerMsgId": "bad_reply_to",
    "conversations": "bad_conversation_id",
    "subscribe": "bad_user_id",
    "expiresS": "bad_expires",
    "ackType": "unknown_ack_type",
    "type": "missing_type",
}
_decode = msgspec.json.Decoder(EnvelopeFrame).decode
# looked up once: a method of an imported name is looked up at every call
_find, _find_encoder = COMMANDS.get, ENCODERS.get


class EnvelopeCodec:
    name = "nexo.envelope.v1"
    signs_in = True
    confirms = False
    is_binary = False
    catches_up = True
    resyncs = True
    echo_s = 0.0
    encode_outcome = staticmethod(encode_outcome)
    answer_text = staticmethod(answer_nothing)
    echo = staticmethod(echo_nothing)

    frame = staticmethod(text_frame)

    def __init__(self, clock_ms: Callable[[], int] = now_ms) -> None:
        self._clock_ms = clock_ms

    def for_connection(self, token: str | None) -> EnvelopeCodec:
        return self

    def decode(self, frame: bytes, user_id: str | None) -> tuple[commands.Command, EnvelopeRef | None]:
        try:
            found = _decode(frame)
        except RecursionError:
            raise BadFrame(NexoError("bad_json", "nested too deeply"), violation=True) from None
        except (msgspec.DecodeError, ValueError) as error:  # not UTF-8, numbers of thousands of digits
            raise _bad_frame(frame, error) from None
        ref = None
        if found.client_msg_id is not None or found.server_msg_id is not None:
            ref = EnvelopeRef(found.client_msg_id, None if found.server_msg_id is None else str(found.server_msg_id))
        if not found.type:
            raise BadFrame(NexoError("missing_type"), ref, violation=True)
        build = _find(found.type)
        try:
            if build is None:
                if found.type in CALL_COMMANDS:
                    check_sender(found, user_id)
                    return decode_call(found.type, frame), call_ref(found.client_msg_id, frame)
                raise BadFrame(NexoError("unknown_type", f"There is no type {found.type[:40]!r}"), ref, violation=True)
            return command_of(build, found, user_id), ref
        except NexoError as error:
            if found.type in CALL_COMMANDS:
                ref = call_ref(found.client_msg_id, frame)
            raise BadFrame(error, ref, signs_in=build is auth) from None

    def log_fields(self, ref: EnvelopeRef | None) -> Mapping[str, str | int]:
        return {} if ref is None or ref.client_msg_id is None else {"client_msg_id": ref.client_msg_id[:ECHO_MAX_CHARS]}

    def encode(self, event: events.Event, ref: EnvelopeRef | None = None) -> bytes:
        encoder = _find_encoder(type(event))
        if encoder is not None:
            return encoder(event, ref)
        return TIMED_ENCODERS[type(event)](event, ref, self._clock_ms())


def _bad_frame(data: bytes, error: Exception) -> BadFrame:
    """A frame that is not JSON, or whose fields have the wrong types: say which, and echo what there is."""
    found = read_object(data)
    if found is None:
        is_json = isinstance(error, msgspec.ValidationError)
        return BadFrame(NexoError("bad_json", "A frame is a JSON object" if is_json else None), violation=True)
    client_msg_id, server_msg_id = found.get("clientMsgId"), found.get("serverMsgId")
    ref = EnvelopeRef(
        client_msg_id if isinstance(client_msg_id, str) else None,
        str(server_msg_id) if type(server_msg_id) in (str, int) else None,
    )
    kind = found.get("type")
    if isinstance(kind, str) and kind in CALL_COMMANDS:
        ref = call_ref(ref.client_msg_id, data)
    if isinstance(error, msgspec.ValidationError):
        field, fault = wrong_field(error), "has the wrong type"
    else:
        field, fault = unstorable_field(read_loosely(data) or {}) or "", UNSTORABLE
    name = _FIELD_ERRORS.get(field) or "bad_" + re.sub(r"([A-Z])", lambda m: "_" + m.group(1).lower(), field)
    if name == "missing_type" or "type" not in found:
        return BadFrame(NexoError("missing_type", "type must be a string"), ref, violation=True)
    if name not in ERRORS:
        name = "bad_request"
    detail = f"The field {field} {fault}" if field else None
    return BadFrame(NexoError(name, detail), ref, signs_in=found.get("type") == "AUTH")


DIALECT = EnvelopeCodec()

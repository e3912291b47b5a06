"""The envelope dialect, byte by byte: golden frames in both directions, and what no bytes may do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from nexo.core import commands, events
from nexo.core.message_events import bare
from nexo.core.model import DraftText, Head, Message, Page, Quote, Reaction
from nexo.core.shapes import is_important
from nexo.errors import ERRORS, NexoError
from nexo.ids import now_ms
from nexo.wire.dialect import BadFrame
from nexo.wire.envelope.answers import EnvelopeRef
from nexo.wire.envelope.calls import CALL_COMMANDS
from nexo.wire.envelope.codec import DIALECT, EnvelopeCodec
from nexo.wire.envelope.requests import EnvelopeFrame

GOLDEN = Path(__file__).parents[2] / "golden" / "envelope"


def blocks(name: str) -> list[list[str]]:
    """The blocks of a golden file, without the comment at its top."""
    _, _, text = (GOLDEN / name).read_text().partition("\n\n")
    return [block.split("\n") for block in text.rstrip("\n").split("\n\n")]


def shown(value: Any) -> Any:
    """A value as JSON shows it."""
    return json.loads(msgspec.json.encode(value))


def differing(command: msgspec.Struct) -> dict[str, Any]:
    """The fields that are not at their defaults."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(command)}
    found = {}
    for name, value in msgspec.structs.asdict(command).items():
        if value != defaults[name] and not (value in ({}, ()) and name in ("baselines", "mentions")):
            found[name] = shown(value)
    return found


# -- from the client -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks("client.txt"), ids=lambda block: block[0])
def test_a_golden_frame_means_its_command(block: list[str]) -> None:
    _, frame, expected, *echo = block
    command, ref = DIALECT.decode(frame.encode(), "ann")
    name, _, fields = expected.partition(" ")
    assert type(command).__name__ == name
    assert differing(command) == json.loads(fields)
    echoed = {} if ref is None else {key: value for key, value in msgspec.structs.asdict(ref).items() if value}
    assert echoed == (json.loads(echo[0].removeprefix("echo ")) if echo else {})


@pytest.mark.parametrize("block", blocks("refused.txt"), ids=lambda block: block[0])
def test_a_golden_frame_that_is_no_command_is_refused_by_name(block: list[str]) -> None:
    _, frame, expected = block
    verdict, _, echo = expected.partition(" echo ")
    name, *marks = verdict.split()
    with pytest.raises(BadFrame) as refused:
        DIALECT.decode(frame.encode(), "ann")
    bad = refused.value
    assert bad.error.name == name
    assert (bad.violation, bad.signs_in) == ("violation" in marks, "sign-in" in marks)
    given_back = {} if bad.ref is None else msgspec.structs.asdict(bad.ref)
    assert {key: value for key, value in given_back.items() if value} == json.loads(echo or "{}")


def test_every_type_of_a_client_has_a_golden_frame() -> None:
    seen = {json.loads(block[1])["type"] for block in blocks("client.txt")}
    assert seen == {
        *CALL_COMMANDS,
        "AUTH",
        "REAUTH",
        "PING",
        "PONG",
        "SINGLE_CHAT",
        "GROUP_CHAT",
        "ACK",
        "MESSAGE_REVOKE",
        "MESSAGE_EDIT",
        "REACT",
        "PIN",
        "PULL",
        "SYNC",
        "RESEND",
        "TYPING",
        "PRESENCE",
    }


def test_who_is_not_signed_in_has_no_name_to_compare() -> None:
    command, _ = DIALECT.decode(b'{"type":"AUTH","token":"x","from":"ann"}', None)
    assert isinstance(command, commands.Auth)


@pytest.mark.parametrize("field", ["from", "senderId", "sendId", "sender_id", "send_id"])
@pytest.mark.parametrize("kind", ["SINGLE_CHAT", "ACK", "TYPING"])
def test_whoever_claims_to_be_somebody_else_is_refused(kind: str, field: str) -> None:
    frame = {"type": kind, "clientMsgId": "c1", "to": "ben", "body": "x", "ackType": "read", "serverMsgId": "7"}
    DIALECT.decode(json.dumps(frame | {field: "ann"}).encode(), "ann")
    with pytest.raises(BadFrame) as refused:
        DIALECT.decode(json.dumps(frame | {field: "cid"}).encode(), "ann")
    assert refused.value.error.name == "identity_mismatch"
    assert refused.value.ref.client_msg_id == "c1"


# A value that no field takes, except those that take anything.
ANYTHING = {"body", "extra", "ts", "senderId", "sendId", "sender_id", "send_id"}


@pytest.mark.parametrize("field", [name for name in EnvelopeFrame.__struct_encode_fields__ if name not in ANYTHING])
def test_a_wrong_type_is_refused_by_the_error_that_names_the_field(field: str) -> None:
    wrong: Any = {"limit": "x", "msgType": "x", "on": "x"}.get(field, {"x": [None]})
    data = {"type": "PULL", "conversationId": "si_ann:ben", "clientMsgId": "c1"} | {field: wrong}
    with pytest.raises(BadFrame) as refused:
        DIALECT.decode(json.dumps(data).encode(), "ann")
    error = refused.value.error
    expected = {
        "type": "missing_type",
        "clientMsgId": "bad_client_msg_id",
        "serverMsgId": "bad_server_msg_id",
        "conversationId": "bad_conversation_id",
        "msgSeq": "bad_seq",
        "from": "bad_user_id",
        "to": "bad_receiver",
        "groupId": "bad_group_id",
        "token": "bad_token",
        "deviceId": "bad_device_id",
        "baselines": "bad_baselines",
        "ackType": "unknown_ack_type",
        "msgType": "bad_msg_type",
        "mentions": "bad_mentions",
        "replyToServerMsgId": "bad_reply_to",
        "beginSeq": "bad_seq",
        "endSeq": "bad_seq",
        "limit": "bad_limit",
        "cursor": "bad_cursor",
        "conversations": "bad_conversation_id",
        "subscribe": "bad_user_id",
        "on": "bad_request",
        "emoji": "bad_emoji",
        "expiresS": "bad_expires",
    }[field]
    assert error.name == expected
    assert refused.value.violation is (field == "type")
    if field not in ("clientMsgId",):
        assert refused.value.ref == EnvelopeRef("c1")


# -- from the server -----------------------------------------------------------------------------------------

SINGLE = "si_ann:ben"
GROUP = "sg_g_abcdefghijkl"
TEXT = Message(123456789012345678, "c1", SINGLE, 7, "ann", 1, '"hello ✓"', 1700000000000)
QUOTING = Message(
    123456789012345679,
    "c2",
    GROUP,
    8,
    "ben",
    7,
    '"yes"',
    1700000000001,
    ("ann", "cid"),
    123456789012345678,
    Quote(123456789012345678, "ann", 1, "who comes?"),
    '{"k":1}',
)
EVENT = Message(5, None, GROUP, 1, "ann", 101, '{"group_id":"g_abcdefghijkl","name":"team","by":"ann"}', 1700000000002)
RECALL = Message(6, None, SINGLE, 9, "ann", 100, '{"server_msg_id":"123","seq":7,"by":"ann"}', 1700000000003)
EDIT = Message(
    7,
    None,
    SINGLE,
    10,
    "ann",
    110,
    '{"server_msg_id":"123","seq":7,"edited_at":1700000000004,"by":"ann","content":"hi","mentions":["ben"]}',
    1700000000004,
    ("ben",),
)
REACTED = Message(
    8,
    None,
    SINGLE,
    11,
    "ann",
    111,
    '{"server_msg_id":"123","seq":7,"reactions":[{"emoji":"👍","count":1}],'
    '"added":[{"emoji":"👍","user_id":"ben"}],"removed":[]}',
    1700000000005,
)
PIN = Message(9, None, SINGLE, 12, "ben", 112, '{"server_msg_id":"123","seq":7,"on":true,"by":"ben"}', 1700000000006)
CHANGED = Message(
    123, "c3", SINGLE, 7, "ann", 1, '"hi"', 1700000000000, edited_at=1700000000004, reactions=(Reaction("👍", 1, True),)
)
FORWARDED = Message(
    124, "c4", SINGLE, 13, "ann", 1, '"hi"', 1700000000007, forwarded_from='{"sender_id":"cid","send_at":1600000000000}'
)
RECALLED = Message(123, "c3", SINGLE, 7, "ann", 1, '""', 1700000000000, status=1, recalled_at=1700000000003)
HEAD = Head(SINGLE, 9, 1, 7, 8, 2)
SET_HEAD = Head(SINGLE, 9, 1, 7, 8, 2, 3, True, 2, True, 1700000000000, True, 60, DraftText("I", "42"), Raw(b'{"k":1}'))
NOW = 1700000000009
BUSY = NexoError("server_busy", "Wait a little", retry_after_ms=250)


class Told(NamedTuple):
    event: events.Event
    ref: EnvelopeRef | None = None


TOLD: dict[str, Told] = {
    "AUTH_OK": Told(events.SignedIn("ann", "c1f", 30000)),
    "AUTH_FAIL": Told(events.SignInFailed(NexoError("token_expired"))),
    "AUTH_FAIL that may be tried again": Told(events.SignInFailed(BUSY)),
    "PONG": Told(events.Pinged()),
    "SYNC": Told(events.Synced([HEAD])),
    "SYNC of a conversation with settings": Told(events.Synced([SET_HEAD])),
    "SYNC of nothing": Told(events.Synced([])),
    "SYNC with more to come": Told(events.Synced([HEAD], True, "abc")),
    "ACK saved": Told(events.Saved(TEXT)),
    "ACK saved, corrected by the filter": Told(events.Saved(TEXT, True)),
    "ACK accepted": Told(events.Accepted("c1", 42, SINGLE)),
    "ACK revoked": Told(events.Recalled(123, SINGLE, 9), EnvelopeRef("r1", "123")),
    "ACK edited": Told(events.Edited(123, SINGLE, 10, 1700000000004), EnvelopeRef("e1", "123")),
    "ACK edited, corrected by the filter": Told(events.Edited(123, SINGLE, 10, 1700000000004, '"***"')),
    "ACK reacted": Told(events.Reacted(123, SINGLE, (Reaction("👍", 1, True),))),
    "ACK pinned": Told(events.PinChanged(123, SINGLE, 12)),
    "ACK delivered": Told(events.Receipt("delivered", SINGLE, 42, 7, "ben")),
    "ACK read": Told(events.Receipt("read", SINGLE, 42, 7, "ben")),
    "ACK read, to the one who marked it": Told(events.MarkedRead(SINGLE, 7, 0)),
    "SINGLE_CHAT": Told(events.Pushed(TEXT)),
    "SINGLE_CHAT, resent and silent": Told(events.Pushed(TEXT, silent=True, resend=True)),
    "SINGLE_CHAT, provisional": Told(events.Pushed(TEXT, provisional=True)),
    "GROUP_CHAT that quotes and mentions the reader": Told(events.Pushed(QUOTING, important=True)),
    "GROUP_CHAT for one who may not see what it quotes": Told(events.Pushed(QUOTING, quoted=False)),
    "GROUP_EVENT": Told(events.Pushed(EVENT)),
    "MESSAGE_REVOKED": Told(events.Pushed(RECALL)),
    "MESSAGE_REVOKED, resent": Told(events.Pushed(RECALL, resend=True)),
    "MESSAGE_EDITED": Told(events.Pushed(EDIT)),
    "MESSAGE_EDITED that mentions the reader, resent": Told(events.Pushed(EDIT, important=True, resend=True)),
    "MESSAGE_EDITED for one who may not see the message": Told(events.Pushed(bare(EDIT), quoted=False)),
    "REACTIONS": Told(events.Pushed(REACTED)),
    "REACTIONS for one who may not see the message": Told(events.Pushed(bare(REACTED), quoted=False)),
    "PINNED": Told(events.Pushed(PIN)),
    "SINGLE_CHAT, edited and with reactions": Told(events.Pushed(CHANGED)),
    "SINGLE_CHAT, forwarded": Told(events.Pushed(FORWARDED)),
    "MESSAGE_WITHDRAWN": Told(events.Withdrawn(42, SINGLE, "blocked")),
    "PULL_OK": Told(events.Pulled(SINGLE, Page([RECALLED, RECALL], 9, 10, False))),
    "PULL_OK of nothing": Told(events.Pulled(SINGLE, Page([], 0, 1, False))),
    "RESEND_DONE": Told(events.ResendDone(True)),
    "GROUP_NOTIFY": Told(events.Notify(GROUP, 12)),
    "GROUP_NOTIFY to one who is mentioned": Told(events.Notify(GROUP, 12, True)),
    "HEADS": Told(events.HeadsChanged([(SINGLE, 9), (GROUP, 12)])),
    "RESYNC": Told(events.Resync("slow_consumer", 417)),
    "RESYNC of some": Told(events.Resync("push_lost", 417, [SINGLE])),
    "DELETED": Told(events.Deleted(SINGLE, (42, 123), None, 3)),
    "DELETED by clearing": Told(events.Deleted(SINGLE, (), 9, 4)),
    "TYPING": Told(events.IsTyping("ann", SINGLE, True)),
    "PRESENCE": Told(events.Presence([("ann", True, [1, 5]), ("ben", False, [])])),
    "FRIEND_REQUEST": Told(events.ContactRequested(42, "ann", "it is me", 1700000000009)),
    "FRIEND_DECISION": Told(events.ContactDecided(42, "ben", True, 1700000000009)),
    "GROUP_JOIN_REQUEST": Told(events.JoinRequested("g_Team00000001", "ann", "let me in", 1700000000009)),
    "CALL_INVITE_OK": Told(events.CallInvited(42, "c1")),
    "CALL_INVITE": Told(events.CallRinging(call_id=42, user_id="ann", kind="video", sdp="v=0")),
    "CALL_ACCEPT": Told(events.CallAccepted(call_id=42, user_id="ben", sdp="v=0")),
    "CALL_ICE": Told(
        events.CallSignaled(call_id=42, user_id="ben", fields={"candidate": "candidate:1", "sdp_m_line_index": 0})
    ),
    "CALL_END": Told(events.CallEnded(call_id=42, reason="ended", duration_ms=5000)),
    "CALL_TIMEOUT": Told(events.CallTimedOut(call_id=42)),
    "CALL_ERROR": Told(events.Failed(NexoError("busy")), EnvelopeRef("c1", None, True, "42")),
    "ERROR of calls that are switched off": Told(
        events.Failed(NexoError("not_implemented")), EnvelopeRef("c1", None, True, "42")
    ),
    "ERROR out of the blue": Told(events.Failed(NexoError("kicked"))),
    "ERROR that echoes": Told(events.Failed(NexoError("message_not_found")), EnvelopeRef("c1", "42")),
    "ERROR that may be tried again": Told(events.Failed(BUSY), EnvelopeRef("c1")),
    "ERROR about a send that was accepted": Told(events.Failed(NexoError("blocked"), "c1")),
}


@pytest.mark.parametrize("block", blocks("server.txt"), ids=lambda block: block[0])
def test_an_event_is_its_golden_frame(block: list[str]) -> None:
    title, frame = block
    told = TOLD[title]
    assert EnvelopeCodec(lambda: NOW).encode(told.event, told.ref).decode() == frame


@pytest.mark.parametrize("title", [title for title in TOLD if title.startswith(("ACK", "ERROR", "AUTH_FAIL"))])
def test_every_error_and_acknowledgement_has_the_time_of_the_server(title: str) -> None:
    told = TOLD[title]
    before = now_ms()
    ts = json.loads(DIALECT.encode(told.event, told.ref))["ts"]
    assert ts == TEXT.send_at if isinstance(told.event, events.Saved) else before <= ts <= now_ms()


def test_every_event_has_a_golden_frame_or_none_at_all() -> None:
    assert {block[0] for block in blocks("server.txt")} == TOLD.keys()
    told = {type(entry.event) for entry in TOLD.values()}
    silent = {kind for kind in get_args(events.Event) if kind not in told}
    # answers to what cannot be asked in this dialect
    assert silent == {
        events.Done,
        events.TokensIssued,
        events.Registered,
        events.OfflinePulled,
        events.LastMessagesListed,
        events.ConversationsListed,
        events.GroupShown,
        events.GroupGlimpsed,
        events.GroupsListed,
        events.MembersListed,
        events.Joined,
        events.Invited,
        events.ContactAsked,
        events.ContactShown,
        events.ContactsListed,
        events.ContactRequestsListed,
    }
    assert DIALECT.encode(events.Done()) == b""


def test_a_dialect_has_nothing_to_remember_of_a_connection() -> None:
    assert DIALECT.for_connection("token") is DIALECT


# -- whatever comes ------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
types = st.sampled_from(["CALL_X", "ERROR", "", *(json.loads(block[1])["type"] for block in blocks("client.txt"))])
fields = st.sampled_from([name for name in EnvelopeFrame.__struct_encode_fields__ if name != "type"])
likely = st.sampled_from(["read", "42", "ann", "ben", "si_ann:ben", GROUP, 7, -1, 1 << 70, "7", True, [], ["ann"], {}])
frames = st.builds(
    lambda kind, rest: {"type": kind} | rest,
    types | json_values,
    st.dictionaries(fields, likely | json_values, max_size=6),
)


def check_decoding(data: bytes) -> None:
    """A command, or an error of the table that can be told; nothing else."""
    for user_id in (None, "ann"):
        bad: BadFrame | None = None
        try:
            command, ref = DIALECT.decode(data, user_id)
        except BadFrame as refused:
            bad = refused
        if bad is None:
            assert isinstance(command, get_args(commands.Command))
            assert ref is None or isinstance(ref, EnvelopeRef)
        else:
            assert bad.error.name in ERRORS
            for event in (events.Failed(bad.error), events.SignInFailed(bad.error)):
                assert json.loads(DIALECT.encode(event, bad.ref))["reason"] == bad.error.name


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_as_bad_frames(data: bytes) -> None:
    check_decoding(data)


@given(json_values | frames)
def test_arbitrary_json_is_a_command_or_refused(value: Any) -> None:
    check_decoding(json.dumps(value).encode())


@given(frames, st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_damaged_frames_are_refused(frame: dict[str, Any], at: int, damage: bytes) -> None:
    data = json.dumps(frame).encode()
    check_decoding(data[:at] + damage + data[at + len(damage) :])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 60_000,
        b'{"type":' * 9_000,
        b'{"type":"PING","body":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
        b'{"type":"PULL","limit":' + b"9" * 60_000 + b"}",
        b'{"type":"PULL","conversationId":"x","beginSeq":' + b"9" * 60_000 + b"}",
        b'{"type":"SINGLE_CHAT","body":' + b"9" * 60_000 + b"}",
        b'{"type":"SINGLE_CHAT","body":1e999999}',
        b'{"type":"ACK","serverMsgId":1e5}',
        b'\xef\xbb\xbf{"type":"PING"}',
        b"\xff\xfe",
        b'{"type":"\xff"}',
    ],
    ids=lambda data: repr(data[:30]),
)
def test_nasty_frames_are_refused(data: bytes) -> None:
    check_decoding(data)


@given(frames, st.dictionaries(st.text("abcXYZ_", min_size=6, max_size=12), json_values, max_size=3))
def test_unknown_fields_change_nothing(frame: dict[str, Any], unknown: dict[str, Any]) -> None:
    def outcome(value: dict[str, Any]) -> Any:
        try:
            command, ref = DIALECT.decode(json.dumps(value).encode(), "ann")
        except BadFrame as bad:
            return bad.error.name, bad.violation, bad.ref
        return type(command).__name__, shown(command), ref

    assert outcome(unknown | frame) == outcome(frame)


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=50)
messages = st.builds(
    Message,
    server_msg_id=st.integers(1, (1 << 63) - 1),
    client_msg_id=texts | st.none(),
    conversation_id=st.sampled_from([SINGLE, GROUP]),
    seq=st.integers(1, 1 << 53),
    sender_id=st.sampled_from(["ann", "ben"]),
    msg_type=st.sampled_from([1, 2, 6, 7, 101, 109]),
    content=json_values.map(lambda value: msgspec.json.encode(value).decode()),
    send_at=st.integers(0, 1 << 50),
    mentions=st.lists(st.sampled_from(["ann", "ben", "@all"])).map(tuple),
    reply_to=st.integers(1, (1 << 63) - 1) | st.none(),
    quote=st.none() | st.builds(Quote, st.integers(1, 1 << 62), st.just("ann"), st.just(1), texts),
    extra=st.none() | json_values.map(lambda value: msgspec.json.encode(value).decode()),
    status=st.sampled_from([0, 1]),
    recalled_at=st.none() | st.integers(0, 1 << 50),
)


@given(messages, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_a_pushed_message_says_what_it_is(
    message: Message, important: bool, silent: bool, resend: bool, quoted: bool
) -> None:
    frame = json.loads(DIALECT.encode(events.Pushed(message, important, silent, resend, quoted)))
    assert frame["serverMsgId"] == str(message.server_msg_id)
    assert (frame["msgSeq"], frame["ts"], frame["status"]) == (message.seq, message.send_at, message.status)
    assert (frame["from"], frame["clientMsgId"]) == (message.sender_id, message.client_msg_id)
    assert frame["body"] == json.loads(message.content)
    assert frame["extra"] == (None if message.extra is None else json.loads(message.extra))
    assert tuple(frame["mentions"]) == message.mentions
    assert (frame.get("groupId"), frame.get("to")) == (message.group_id, message.recv_id)
    assert [flag for flag in ("important", "silent", "resend") if flag in frame] == [
        flag for flag, on in (("important", important), ("silent", silent), ("resend", resend)) if on
    ]
    assert ("quote" in frame) is (message.quote is not None and quoted)
    pulled = json.loads(DIALECT.encode(events.Pulled(SINGLE, Page([message], 1, 2, False), "ben")))["messages"][0]
    assert pulled.get("important", False) is is_important(message, "ben")
    flags = {"important", "silent", "resend"}
    assert {k: v for k, v in frame.items() if k not in flags | {"quote"}} == {
        k: v for k, v in pulled.items() if k not in {"important", "quote"}
    }

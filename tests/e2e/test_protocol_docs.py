"""The pages of docs/protocol tell the truth: their frames are sent to a real server, and every frame is on them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness import golden
from harness.pages import examples_of, frames_on, play_page
from harness.samples import EVENTS
from nexo.errors import ERRORS
from nexo.wire.registry import DIALECTS

DOCS = Path(__file__).parents[2] / "docs" / "protocol"
PAGES = {name: DOCS / f"{name.split('.')[1]}.md" for name in DIALECTS}
CALLS = DOCS.parent / "calls.md"  # their frames have a page of their own


@pytest.fixture(params=list(PAGES), ids=lambda name: name.split(".")[1])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_the_page_can_be_played(dialect: str) -> None:
    await play_page(PAGES[dialect])


def test_what_cannot_be_played_is_what_the_dialect_makes_of_it(dialect: str) -> None:
    for title, frame in examples_of(PAGES[dialect]).items():
        made = json.loads(DIALECTS[dialect].encode(EVENTS[title]))
        if made.get("type") == "ACK":
            made["ts"] = frame["ts"]  # the time of the server while the test runs
        assert made == frame, title


def test_every_frame_of_the_envelope_dialect_is_on_its_page() -> None:
    sent, told = frames_on(PAGES["nexo.envelope.v1"])
    golden_frames = (golden.ROOT / "envelope" / "client.txt").read_text()
    kinds = set(re.findall(r'^\{"type":"(\w+)"', golden_frames, re.MULTILINE))
    of_calls = {kind for kind in kinds if kind.startswith("CALL_")}
    assert {frame["type"] for frame in sent} >= kinds - of_calls
    pushed = {
        json.loads(payload)["type"] for payload in map(DIALECTS["nexo.envelope.v1"].encode, EVENTS.values()) if payload
    }
    calls = {kind for kind in pushed if kind.startswith("CALL_")}
    assert {frame["type"] for frame in told} >= pushed - calls
    frames_of_calls = set(re.findall(r"`(CALL_[A-Z_]+)", CALLS.read_text()))
    assert frames_of_calls >= of_calls | calls
    acks = {frame["ackType"] for frame in told if frame["type"] == "ACK"}
    assert acks == {"accepted", "saved", "delivered", "read", "revoked", "edited", "reacted", "pinned"}


def test_every_number_of_the_request_dialect_is_on_its_page() -> None:
    sent, told = frames_on(PAGES["nexo.request.v1"])
    assert {frame.get("req_identifier") for frame in sent} >= set(range(1001, 1015))
    answered = {frame.get("req_identifier") for frame in told}
    assert answered >= {*range(1001, 1015), *range(2001, 2019)}


def test_every_command_and_push_of_the_command_dialect_is_on_its_page() -> None:
    sent, told = frames_on(PAGES["nexo.command.v1"])
    files = golden.files("command")
    commands = {name for name, file in files.items() if "requests" in file}
    pushes = {name for name, file in files.items() if "pushes" in file}
    calls = {name for name in commands | pushes if name.startswith("call.")}
    assert {frame.get("cmd") for frame in sent} >= commands - calls
    assert {frame["cmd"] for frame in told} >= (commands | pushes) - calls
    assert set(re.findall(r"`(call\.\w+)`", CALLS.read_text())) >= calls


def test_close_codes_are_those_of_the_table(dialect: str) -> None:
    text = PAGES[dialect].read_text()
    rows = re.findall(r"^\| (\d{4}) \| `(\w+)`", text, re.MULTILINE)
    assert rows, "there is a table of close codes"
    for code, name in rows:
        assert ERRORS[name].close_code == int(code), name


def test_pages_draw_what_happens(dialect: str) -> None:
    """Send, receive with a gap, recall, reconnect and kick: each has its diagram."""
    assert PAGES[dialect].read_text().count("```mermaid\nsequenceDiagram") >= 5

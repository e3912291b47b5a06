"""The documentation says what the code does: generated pages are compared with their generators."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.samples import EVENTS
from nexo.api.routes import ROUTES, errors_of
from nexo.cli import protocol_page
from nexo.cli.docs import RENDERERS, DocsPage
from nexo.config import describe
from nexo.core.journal import ENTRY_TYPES
from nexo.core.model import MsgType
from nexo.errors import ERRORS
from nexo.wire.command.requests import REQUESTS as COMMANDS
from nexo.wire.envelope.calls import CALL_COMMANDS, CallFields
from nexo.wire.envelope.requests import COMMANDS as ENVELOPE_FRAMES
from nexo.wire.envelope.requests import EnvelopeFrame
from nexo.wire.registry import DIALECTS
from nexo.wire.request.requests import REQUESTS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *ROOT.glob("clients/*/README.md"),
        *ROOT.glob("tests/*/README.md"),
        *ROOT.glob("examples/*/README.md"),
    ]
)


@pytest.mark.parametrize("page", DocsPage)
def test_the_page_is_what_the_code_generates(page: DocsPage) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert text == RENDERERS[page]() + "\n", "run: nexo docs --write docs"


def test_every_setting_and_every_error_has_its_row() -> None:
    config, errors = RENDERERS[DocsPage.config](), RENDERERS[DocsPage.errors]()
    for field in describe():
        assert f"| `{field.key}`<br>`{field.env}` |" in config
    for row in ERRORS.values():
        assert f"| {row.number} | `{row.name}` |" in errors


def test_every_call_and_every_error_of_it_is_on_the_page_of_the_http_api() -> None:
    before, *calls = re.split(r"^### (?=[A-Z]+ /)", RENDERERS[DocsPage.http](), flags=re.MULTILINE)
    texts = {text.partition("\n")[0]: text for text in calls}
    assert sorted(texts) == sorted(f"{row.method} {row.path}" for row in ROUTES)
    for row in ROUTES:
        named = set(re.findall(r"`(\w+)`", before + texts[f"{row.method} {row.path}"]))
        assert sorted(errors_of(row) - named) == [], row.path
    titles = re.findall(r"^#+ (.+)$", RENDERERS[DocsPage.http](), re.MULTILINE)
    assert len({title.lower() for title in titles}) == len(titles), "two headings have one address"


def sent_by_the_server(dialect: str, field: str) -> set[object]:
    """The values of a field in all frames that are no answers."""
    return {json.loads(frame)[field] for event in EVENTS.values() if (frame := DIALECTS[dialect].encode(event))}


def test_every_type_of_event_is_on_the_page_of_webhooks() -> None:
    table = (DOCS / "webhooks.md").read_text(encoding="utf-8").partition("## Types")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z]+\.[a-z]+)`", table)) == set(ENTRY_TYPES)


def test_every_frame_number_and_command_is_on_the_page_of_the_protocol() -> None:
    assert protocol_page.ENVELOPE_SENT.keys() == ENVELOPE_FRAMES.keys() | CALL_COMMANDS.keys()
    forms = (*msgspec.structs.fields(EnvelopeFrame), *msgspec.structs.fields(CallFields))
    fields = {field.encode_name for field in forms} | {"delivered", "read", "audio", "video"}
    told = {name for text, _ in protocol_page.ENVELOPE_SENT.values() for name in re.findall(r"`(\w+)`", text)}
    assert told <= fields
    assert protocol_page.ENVELOPE_RECEIVED.keys() == sent_by_the_server("nexo.envelope.v1", "type") | {"CALL_ERROR"}
    assert protocol_page.REQUEST_SENT.keys() == REQUESTS.keys()
    assert protocol_page.REQUEST_RECEIVED.keys() == sent_by_the_server("nexo.request.v1", "req_identifier")
    assert protocol_page.COMMAND_SENT.keys() == COMMANDS.keys()
    assert protocol_page.COMMAND_RECEIVED.keys() == sent_by_the_server("nexo.command.v1", "cmd")
    assert protocol_page.MSG_TYPES.keys() == set(MsgType)
    limits = RENDERERS[DocsPage.protocol]().partition("## Message types")[0]
    named = set(re.findall(r"`((?:bad|body)_\w+)` \|$", limits, re.MULTILINE))
    assert len(named) > 8
    assert named <= ERRORS.keys()


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_file_and_a_heading_that_exist(page: Path) -> None:
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        address, _, anchor = link.partition("#")
        if "://" in link or address.startswith("mailto:"):
            continue
        target = page.parent / address if address else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong, "\n".join(wrong)


def events_logged() -> Iterator[tuple[str, str]]:
    """Every event that the server logs, and the method that logs it."""
    for path in sorted((ROOT / "src" / "nexo").rglob("*.py")):
        if path.relative_to(ROOT / "src" / "nexo").parts[0] in ("bench", "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=writer, attr=method), args=[ast.Constant(value=str(event)), *_]
                ) if ast.unparse(writer) in ("log", "self._log", "delivery_lines"):
                    yield event, method


def test_every_event_without_a_traceback_is_in_the_table_of_log_events() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    table = page.partition("| event | means | do |")[2].partition("Any other event")[0]
    found = {event for event, method in events_logged() if method in ("info", "warning", "error", "write")}
    assert len(found) > 50
    assert sorted(event for event in found if f"`{event}`" not in table) == []
    names = re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)))
    known = {event for event, _ in events_logged()} | {"library_log"}
    assert sorted(name for name in names if name not in known) == [], "events that are not logged any more"

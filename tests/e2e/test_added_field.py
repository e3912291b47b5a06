"""Adding a field to messages: a copy of the sources gets one, in few files, and the field arrives everywhere."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.chat import Refused, fresh_id, world
from harness.dialects import SPEAKERS, Frame, Said, Sent, Speaker, conversation_of
from harness.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
FILES_MAX = 8

MIGRATION = '''"""Messages have a color."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "9999"
down_revision = "{newest}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("messages", sa.Column("color", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")))
'''
ROW = '    _field("color", FieldKind.TEXT, drafted=True, blanked=True, taken=str | None),'
ATTRIBUTE = "    color: str | None = None"


def end_of(tree: ast.Module, name: str) -> int:
    """The line behind which an entry of a table, or an attribute of a class, is added."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value is not None:
            return (node.value.end_lineno or 0) - 1
        if isinstance(node, ast.ClassDef) and node.name == name:
            return max(item.end_lineno or 0 for item in node.body if isinstance(item, ast.AnnAssign))
    raise AssertionError(f"no {name}")


def insert(path: Path, name: str, line: str) -> Path:
    text = path.read_text()
    lines = text.splitlines()
    lines.insert(end_of(ast.parse(text), name), line)
    path.write_text("\n".join(lines) + "\n")
    return path


def add_color(folder: Path) -> set[Path]:
    """A copy of the sources with the new field; the files that had to be edited or added."""
    package = folder / "src" / "nexo"
    shutil.copytree(ROOT / "src" / "nexo", package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "clients").symlink_to(ROOT / "clients")
    versions = package / "store" / "migrations" / "versions"
    newest = max(found[1] for path in versions.glob("*.py") if (found := re.match(r"(\d+)_", path.name)))
    migration = versions / "9999_message_color.py"
    migration.write_text(MIGRATION.format(newest=newest))
    return {
        insert(package / "core" / "message_fields.py", "FIELDS", ROW),
        insert(package / "core" / "model.py", "Message", ATTRIBUTE),
        insert(package / "core" / "model.py", "Draft", ATTRIBUTE),
        migration,
    }


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colored")
    assert len(add_color(folder)) <= FILES_MAX
    return folder


@pytest.fixture
def colored(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is started from here on runs the copy."""
    monkeypatch.setenv("PYTHONPATH", str(copied / "src"))
    return copied


def colors_in(value: Any) -> list[str]:
    """Every color in a frame, from the outside in."""
    if isinstance(value, list):
        return [color for item in value for color in colors_in(item)]
    if not isinstance(value, dict):
        return []
    own = [value["color"]] if "color" in value else []
    return own + [color for item in value.values() for color in colors_in(item)]


async def say_in(color: Any, speaker: Speaker, to: str) -> Sent:
    """Send in the speaker's dialect, with the new field beside those of the message."""
    plain = speaker.send

    async def send(frame: Frame) -> None:
        frame.get("data", frame)["color"] = color
        await plain(frame)

    speaker.send = send  # type: ignore[method-assign]
    try:
        return await speaker.say(to, "hello")
    finally:
        speaker.send = plain  # type: ignore[method-assign]


async def pushed(speaker: Speaker, msg_id: str) -> Frame:
    """The frame that brought a message."""
    said = await speaker.expect(Said, msg_id=msg_id)
    return next(frame for frame in reversed(speaker.frames) if speaker._note(frame) == said)


async def test_a_new_field_is_sent_stored_pushed_and_pulled_in_every_dialect_and_over_http(colored: Path) -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            readers = [await kind.connect(ben) for kind in SPEAKERS.values()]
            sent = {}
            for name, kind in SPEAKERS.items():
                sent[name] = (await say_in(name, await kind.connect(ann), ben.user_id)).msg_id
            sent["http"] = (await ann.send(ben, "hello", color="http"))["server_msg_id"]
            for color, msg_id in sent.items():
                assert [colors_in(await pushed(reader, msg_id)) for reader in readers] == [[color]] * len(readers)

            await ann.send(ben, "without")
            chat = conversation_of(ann.user_id, ben.user_id)
            page = await ben.get("/msg/pull", conversation_id=chat, begin_seq=1)
            assert [message.get("color") for message in page["messages"]] == [*sent, None]
            for reader in readers:
                await reader.history(ann.user_id)
                assert sorted(colors_in(reader.frames[-1])) == sorted(sent), reader.dialect
            assert server.select("SELECT color FROM messages ORDER BY seq") == [*((color,) for color in sent), (None,)]

            await ann.post("/msg/recall", server_msg_id=sent["http"])
            page = await ben.get("/msg/pull", conversation_id=chat, begin_seq=len(sent))
            assert "color" not in page["messages"][0]
            server.check()


async def test_a_new_field_is_checked_and_tells_a_retry_from_another_message(colored: Path) -> None:
    with ServerProcess() as server:
        async with world(server, check_pushes=False) as here:
            ann, ben = await here.people("ann", "ben")
            with pytest.raises(Refused) as refused:
                await ann.send(ben, "hello", color=5)
            assert refused.value.name == "bad_request"
            name = fresh_id()
            first = await ann.send(ben, "hello", color="red", client_msg_id=name)
            assert await ann.send(ben, "hello", color="red", client_msg_id=name) == first
            with pytest.raises(Refused) as refused:
                await ann.send(ben, "hello", color="blue", client_msg_id=name)
            assert refused.value.name == "client_msg_id_reused"


def test_what_is_checked_against_the_table_holds_and_an_sdk_that_forgets_the_field_is_found_out(colored: Path) -> None:
    """Rows, streams, frames and answers have the new field, and the schema is what the migrations make. The SDKs are
    not in the copy, and so they are found out."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    chosen = ["tests/unit/core/test_message_fields.py", "tests/contract/test_schema.py"]
    done = subprocess.run(
        [*command, *chosen, "-k", "test_message_fields or (sqlite and migrations)"],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "AssertionError: color" in done.stdout, done.stdout
    assert re.findall(r"^FAILED .*::(\w+)", done.stdout, re.MULTILINE) == [
        "test_the_python_sdk_reads_every_field_of_frames_and_of_http",
        "test_the_python_sdk_blanks_what_the_server_blanks",
        "test_the_javascript_sdk_reads_every_field_of_frames_and_of_http",
    ]
    assert " passed" in done.stdout

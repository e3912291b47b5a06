"""`nexo import-legacy`: what an older database becomes, on every engine and from every engine."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import servers
from harness.engines import SERVER_ENGINES
from harness.legacy import RECALLED, Past, make
from nexo.config import parse_store_url
from nexo.core.model import Conversation, Member
from nexo.core.unread import unread
from nexo.store import rows
from nexo.store.check import check
from nexo.store.legacy.naming import group_id_of
from nexo.store.transfer.links import source_link

NEXO = Path(sys.executable).with_name("nexo")


def nexo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}
    return subprocess.run([NEXO, *arguments], capture_output=True, text=True, cwd=cwd, env=plain, timeout=120)


def import_(source: str, target: str, cwd: Path, *more: str) -> dict[str, Any]:
    done = nexo("import-legacy", "--from", source, "--to", target, "--json", *more, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


async def look(url: str, statement: str) -> list[tuple[Any, ...]]:
    async with source_link(parse_store_url(url)) as link:
        return await link.read(statement)


def name_of(past: Past, chat: tuple[int, int]) -> str:
    if chat[0] == 2:
        return f"sg_{group_id_of(chat[1])}"
    low, high = sorted(str(user) for user in past.pairs[chat[1]])
    return f"si_{low}:{high}"


async def compare(past: Past, url: str) -> None:
    """Everything that the rules promise, recounted from the old rows."""
    report = await check(parse_store_url(url))
    assert not report.counts, report.findings[:10]
    names = {row[0]: row[1] for row in await look(url, "SELECT id,conversation_id FROM conversations")}
    stored = await look(
        url,
        "SELECT server_msg_id,conv,seq,sender_id,client_msg_id,content,status,msg_type,mentions FROM messages "
        "WHERE msg_type<100 ORDER BY server_msg_id",
    )
    old = {row[0]: row for row in past.rows["t_message"]}
    assert [(row[0], names[row[1]], row[2]) for row in stored] == [
        (message_id, name_of(past, chat), seq) for message_id, chat, seq in past.seqs()
    ]
    for message_id, _, _, sender, client_msg_id, content, status, msg_type, _ in stored:
        row = old[message_id]
        assert sender == str(row[4])
        assert client_msg_id == (row[9] or f"legacy-{message_id}")
        assert status == (1 if row[8] == RECALLED else 0)
        if status:
            assert content in ('""', "{}")
        elif row[6] == 1:
            assert (msg_type, json.loads(content)) == (1, row[7])
        elif row[6] == 2:
            assert (msg_type, json.loads(content)) == (2, json.loads(row[7]))
        else:
            assert (msg_type, json.loads(content)) == (6, {"legacy_type": row[6], "body": row[7]})
    await compare_members(past, url, names)


async def compare_members(past: Past, url: str, names: dict[int, str]) -> None:
    conversations = {
        row[0]: Conversation(*row)
        for row in await look(url, f"SELECT {rows.columns(rows.CONVERSATION)} FROM conversations")
    }
    members = {
        (names[row[0]], row[1]): Member(*row)
        for row in await look(url, f"SELECT {rows.columns(rows.MEMBER)} FROM members")
    }
    expected = list(past.cursors())
    assert len(members) == len(expected)
    for chat, user, delivered, read in expected:
        member = members[name_of(past, chat), str(user)]
        assert (member.delivered_seq, member.read_seq) == (delivered, read), (chat, user)
        assert member.from_seq == 1
        assert unread(member, conversations[member.conv]) == past.unread(chat, user, read)
    owners = {name: user for (name, user), member in members.items() if member.role == 2}
    assert owners == {name_of(past, (2, group)): str(people[0]) for group, people in past.groups.items()}


@pytest.fixture
def legacy_url(engine_name: str, tmp_path: Path) -> Any:
    if engine_name == "sqlite":
        yield f"sqlite:///{tmp_path}/old/legacy.db"
        return
    server = servers.shared.get(SERVER_ENGINES[engine_name])
    url = server.create_database()
    yield url
    server.drop_database(url)


def test_everything_becomes_what_the_rules_say(legacy_url: str, store_url: str, tmp_path: Path) -> None:
    past = Past(1500)
    asyncio.run(make(legacy_url, past.rows))
    report = import_(legacy_url, store_url, tmp_path)
    assert (report["users"], report["messages"]) == (len(past.users), 1500)
    assert report["issues"]["table_not_imported"] == 1
    asyncio.run(compare(past, store_url))


def test_ids_that_cannot_stay_are_reported_and_nothing_is_written_before_they_are_accepted(tmp_path: Path) -> None:
    past = Past(200)
    source, target = f"sqlite:///{tmp_path}/old/legacy.db", f"sqlite:///{tmp_path}/new/nexo.db"
    messages = past.rows["t_message"]
    first, second, third, fourth = (list(row) for row in messages[:4])
    second[4:6] = first[4:6]
    second[1:4] = first[1:4]
    first[9] = second[9] = "twice"
    third[9] = "not ascii é"
    fourth[6:8] = [1, "y" * 5000]
    orphan = [messages[-1][0] + 1, 1, None, None, past.users[0], None, 1, "to nobody", 1, "c", messages[-1][10]]
    messages[:4] = [tuple(first), tuple(second), tuple(third), tuple(fourth)]
    messages.append(tuple(orphan))
    asyncio.run(make(source, past.rows))
    command = ("import-legacy", "--from", source, "--to", target, "--report", "report.jsonl")
    refused = nexo(*command, cwd=tmp_path)
    assert refused.returncode == 1
    assert "report.jsonl" in refused.stderr
    assert "--accept" in refused.stderr
    lines = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text().splitlines()]
    told = {(line["kind"], line["key"]) for line in lines if line["needs_decision"]}
    assert told == {
        ("client_msg_id_changed", str(second[0])),
        ("client_msg_id_changed", str(third[0])),
        ("content_changed", str(fourth[0])),
        ("message_left_out", str(orphan[0])),
    }
    assert next(line["found"] for line in lines if line["kind"] == "content_changed") == "y" * 5000
    assert next(line["found"]["content"] for line in lines if line["kind"] == "message_left_out") == "to nobody"
    assert asyncio.run(look(target, "SELECT name FROM sqlite_master")) == []

    accepted = nexo(*command, "--accept", "--json", cwd=tmp_path)
    assert accepted.returncode == 0, accepted.stderr
    stored = dict(asyncio.run(look(target, "SELECT server_msg_id,client_msg_id FROM messages WHERE msg_type<100")))
    assert len(stored) == 200
    assert stored[first[0]] == "twice"
    assert stored[second[0]] == f"legacy-{second[0]}"


def test_user_ids_can_be_chosen(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old/legacy.db", f"sqlite:///{tmp_path}/new/nexo.db"
    past = Past(50)
    asyncio.run(make(source, past.rows))
    user = past.users[0]
    (tmp_path / "names.json").write_text(json.dumps({str(user): "alice"}))
    done = nexo("import-legacy", "--from", source, "--to", target, "--rename", "names.json", "--accept", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {row[0] for row in asyncio.run(look(target, "SELECT user_id FROM users"))}
    assert "alice" in found
    assert str(user) not in found


def test_a_database_without_the_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    done = nexo(
        "import-legacy",
        "--from",
        f"sqlite:///{tmp_path}/empty.db",
        "--to",
        f"sqlite:///{tmp_path}/new/nexo.db",
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "there is no table" in done.stderr

"""`nexo import-legacy`: what an older database becomes, on every engine and from every engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sqlite3
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from harness import servers
from harness.engines import SERVER_ENGINES
from harness.legacy import RECALLED, Past, make
from nexo import cli
from nexo.config import parse_store_url
from nexo.core.model import Conversation, Member
from nexo.core.unread import unread
from nexo.store import rows
from nexo.store.check import check
from nexo.store.legacy.id_mapping import group_id_of
from nexo.store.legacy.importer import ImportOptions, import_legacy
from nexo.store.transfer.connections import open_source


def nexo(*arguments: str, cwd: Path) -> Result:
    """The command in this process, which saves a second each; `faults/test_copy_kill.py` runs real ones."""
    env = {name: None for name in os.environ if name.startswith("NEXO_")}
    with contextlib.chdir(cwd):
        return CliRunner().invoke(cli.app, arguments, env=env, prog_name="nexo")


def import_(source: str, target: str, cwd: Path, *more: str) -> dict[str, Any]:
    done = nexo("import-legacy", "--from", source, "--to", target, "--json", *more, cwd=cwd)
    assert done.exit_code == 0, done.stderr
    return dict(json.loads(done.stdout))


async def look(url: str, statement: str) -> list[tuple[Any, ...]]:
    async with open_source(parse_store_url(url)) as connection:
        return await connection.read(statement)


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
    messages = past.rows["t_message"]
    # one sender's ids that differ in case only: the same to many an old database, two ids here
    one, other = [i for i, row in enumerate(messages) if row[4] == messages[0][4]][:2]
    for i, client_msg_id in ((one, "Case"), (other, "case")):
        messages[i] = (*messages[i][:9], client_msg_id, *messages[i][10:])
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
    assert refused.exit_code == 1
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
    assert accepted.exit_code == 0, accepted.stderr
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
    assert done.exit_code == 0, done.stderr
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
    assert done.exit_code == 2
    assert "there is no table" in done.stderr


def odd_database(path: Path) -> str:
    """By hand: no t_user, chats without names of their two people, and everything that can be missing missing."""
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE t_single_chat (id INTEGER PRIMARY KEY);
        CREATE TABLE t_single_chat_member (single_chat_id, user_id, last_delivered_msg_id, last_read_msg_id);
        CREATE TABLE t_group (id INTEGER PRIMARY KEY, name, owner_id);
        CREATE TABLE t_group_member (group_id, user_id, role, last_delivered_msg_id, last_read_msg_id);
        CREATE TABLE t_message (id INTEGER PRIMARY KEY, single_chat_id, group_id, from_user_id, to_user_id, body,
            status, client_msg_id, send_time);
        CREATE TABLE t_message_mention (message_id, mentioned_user_id, mention_type);
        -- two chats of the same two, and one that only a message knows
        INSERT INTO t_single_chat VALUES (1), (2);
        INSERT INTO t_single_chat_member VALUES (1,'ann','10',NULL), (1,'bob',NULL,NULL), (2,'bob',30,30),
            (2,'ann',NULL,NULL), (77,'ann',1,1);
        INSERT INTO t_message VALUES (10,1,NULL,'ann','bob','one',1,'a',1700000000000), (20,2,NULL,'bob','ann','two',1,
            'a',1700000000000), (30,1,NULL,'ann','bob','three',4,'b',1600000000000), (40,NULL,NULL,'cid','ann','four',1,
            'c',1700000000), (50,2,NULL,'ann','bob','five',1,NULL,NULL);
        -- a group without owner, one without members, one without messages, one that only a message knows
        INSERT INTO t_group VALUES (5,'five',NULL), (6,'six','dot'), (7,'','eve');
        INSERT INTO t_group_member VALUES (5,'bob',3,NULL,NULL), (5,'ann',2,62,61), (7,'eve',3,NULL,NULL);
        INSERT INTO t_message VALUES (60,NULL,5,'bob',NULL,'@ann',1,'g1',1700000000001), (61,NULL,5,'ann',NULL,'@all',4,
            'g2',1700000000002), (62,NULL,5,'bob',NULL,'all',1,'g3',1700000000003), (63,NULL,5,'bob',NULL,'ann',1,'g4',
            1700000000004), (70,NULL,6,'dot',NULL,'hi',1,'h',1700000000005), (80,NULL,8,'fay',NULL,'x',1,'i',
            1700000000006);
        INSERT INTO t_message_mention VALUES (60,'ann',1), (61,'bob',3), (62,'ann',3), (63,'ann',2), (63,'bob',1);
        """
    )
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


def test_what_is_missing_in_the_old_database_is_made_up_for(tmp_path: Path) -> None:
    source, target = odd_database(tmp_path / "old" / "legacy.db"), f"sqlite:///{tmp_path}/new/nexo.db"
    options = ImportOptions(accept=True)
    report = asyncio.run(
        import_legacy(parse_store_url(source), parse_store_url(target), tmp_path / "r", options, lambda *_: None)
    )
    assert report.good, (report.differences, report.findings)
    assert report.issues["member_left_out"] == 1
    assert report.issues["chats_merged"] == 1
    assert report.issues["group_owner_chosen"] == 4

    def rows_of(statement: str) -> list[tuple[Any, ...]]:
        return asyncio.run(look(target, statement))

    users = [row[0] for row in rows_of("SELECT user_id FROM users ORDER BY user_id")]
    assert users == ["ann", "bob", "cid", "dot", "eve", "fay"]
    merged = rows_of(
        "SELECT m.server_msg_id,m.seq,m.msg_type,m.status,m.send_at FROM messages m JOIN conversations c "
        "ON c.id=m.conv WHERE c.conversation_id='si_ann:bob' ORDER BY m.seq"
    )
    assert [row[:2] for row in merged[:4]] == [(10, 1), (20, 2), (30, 3), (50, 4)]
    assert [row[2:4] for row in merged] == [(1, 0), (1, 0), (1, 1), (1, 0), (100, 0)]
    assert [row[4] - 1700000000000 for row in merged] == [0, 1, 2, 3, 4]
    cursors = rows_of(
        "SELECT c.conversation_id,m.user_id,m.delivered_seq,m.read_seq FROM members m JOIN conversations c "
        "ON c.id=m.conv ORDER BY 1,2"
    )
    assert ("si_ann:bob", "ann", 1, 0) in cursors
    assert ("si_ann:bob", "bob", 3, 3) in cursors
    assert ("si_ann:cid", "ann", 0, 0) in cursors
    groups = {name: owner for name, owner in rows_of("SELECT name,owner_id FROM chat_groups")}
    assert groups == {"five": "ann", "six": "dot", "Group 7": "eve", "Group 8": "fay"}
    # everybody is named at 62 and Ann at 60 and 63; she has read up to 61, and her own @all is none of hers
    unread_mentions = rows_of(
        "SELECT m.user_id,m.mention_unread+c.at_all_count-m.at_all_base FROM members m JOIN conversations c "
        f"ON c.id=m.conv WHERE c.conversation_id='sg_{group_id_of(5)}' ORDER BY 1"
    )
    assert unread_mentions == [("ann", 2), ("bob", 1)]
    silent = rows_of(f"SELECT head_seq,countable FROM conversations WHERE conversation_id='sg_{group_id_of(7)}'")
    assert silent == [(1, 0)]


def number_messages(past: Past, path: Path, *, seed: int = 5) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Gives messages numbers in their chats, with holes, and members cursors that are such numbers and further than
    those that are ids. Returns (delivered, read) by kind, chat and user, as they must become."""
    chance = random.Random(seed)
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE t_message ADD COLUMN msg_seq BIGINT")
    expected: dict[tuple[int, int, int], tuple[int, int]] = {}
    for kind, table in ((1, "t_single_chat_member"), (2, "t_group_member")):
        for column in ("last_delivered_msg_seq", "last_read_msg_seq"):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} BIGINT")
        for row in past.rows[table]:
            key, chat, user = row[0], row[1], row[2]
            numbers = list(accumulate(chance.choice((1, 1, 1, 3)) for _ in past.ids.get((kind, chat), [])))
            numbers = past.__dict__.setdefault("numbers", {}).setdefault((kind, chat), numbers)
            cursors = [chance.choice((None, 0, *numbers, *(number + 1 for number in numbers), 10**12)) for _ in "dr"]
            connection.execute(
                f"UPDATE {table} SET last_delivered_msg_seq=?,last_read_msg_seq=? WHERE id=?", (*cursors, key)
            )
            by_number = [sum(number <= (cursor or 0) for number in numbers) for cursor in cursors]
            by_id = [sum(known <= (cursor or 0) for known in past.ids.get((kind, chat), [])) for cursor in row[-2:]]
            delivered, read = (max(pair) for pair in zip(by_number, by_id, strict=True))
            expected[kind, chat, user] = max(delivered, read), read
    for (kind, chat), ids in past.ids.items():
        for message_id, number in zip(ids, past.__dict__["numbers"][kind, chat], strict=True):
            connection.execute("UPDATE t_message SET msg_seq=? WHERE id=?", (number, message_id))
    connection.commit()
    connection.close()
    return expected


def test_cursors_that_are_numbers_within_their_chats_become_seqs(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old/legacy.db", f"sqlite:///{tmp_path}/new/nexo.db"
    past = Past(600, seed=3)
    asyncio.run(make(source, past.rows))
    expected = number_messages(past, tmp_path / "old" / "legacy.db")
    report = import_(source, target, tmp_path)
    assert "order_changed" not in report["issues"]
    found = asyncio.run(
        look(
            target,
            "SELECT c.conversation_id,m.user_id,m.delivered_seq,m.read_seq FROM members m "
            "JOIN conversations c ON c.id=m.conv",
        )
    )
    wanted = {(name_of(past, (kind, chat)), str(user)): value for (kind, chat, user), value in expected.items()}
    assert {(name, user): (delivered, read) for name, user, delivered, read in found} == wanted
    assert asyncio.run(check(parse_store_url(target))).findings == []


def test_messages_whose_numbers_are_in_another_order_than_their_ids_need_a_decision(tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/old/legacy.db", f"sqlite:///{tmp_path}/new/nexo.db"
    past = Past(200, seed=4)
    asyncio.run(make(source, past.rows))
    number_messages(past, tmp_path / "old" / "legacy.db")
    ids = max(past.ids.values(), key=len)
    connection = sqlite3.connect(tmp_path / "old" / "legacy.db")
    first, second = (
        connection.execute("SELECT msg_seq FROM t_message WHERE id=?", (one,)).fetchone()[0] for one in ids[:2]
    )
    for number, message_id in ((second, ids[0]), (first, ids[1])):
        connection.execute("UPDATE t_message SET msg_seq=? WHERE id=?", (number, message_id))
    connection.commit()
    connection.close()
    refused = nexo("import-legacy", "--from", source, "--to", target, cwd=tmp_path)
    assert refused.exit_code == 1
    assert "order_changed 1" in refused.stderr
    assert import_(source, target, tmp_path, "--accept")["issues"]["order_changed"] == 1


def test_cursors_that_are_numbers_need_numbers_of_messages(tmp_path: Path) -> None:
    source = odd_database(tmp_path / "old" / "legacy.db")
    connection = sqlite3.connect(tmp_path / "old" / "legacy.db")
    connection.execute("ALTER TABLE t_group_member ADD COLUMN last_read_msg_seq")
    connection.close()
    done = nexo("import-legacy", "--from", source, "--to", f"sqlite:///{tmp_path}/new/nexo.db", cwd=tmp_path)
    assert done.exit_code == 2
    assert "msg_seq" in done.stderr

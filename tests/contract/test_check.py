"""`nexo check`: silent about a sound store, precise about a damaged one, and careful when it repairs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, text

from harness.core import found_group, open_test_core, say
from harness.history import PEOPLE, History
from nexo.config import parse_store_url
from nexo.store import check as checking
from nexo.store import migrate, schema
from nexo.store.check import LISTED_PER_KIND, Finding, Report, check

NEXO = Path(sys.executable).with_name("nexo")
SEED = 5
STEPS = 1000
TABLES = [table for name, table in schema.metadata.tables.items() if name not in ("users", "node_leases")]

Row = dict[str, Any]
Rows = dict[str, list[Row]]


class Lively(NamedTuple):
    """A store in which a lot has happened, and places in it where faults can be planted."""

    url: str
    rows: Rows
    group: Row  # an open group's conversation
    closed: Row
    single: Row
    member: Row  # of the group: active, not the owner, has read something
    former: Row  # left it
    returned: Row  # left it and came back
    recalled: Row  # a message in it
    block: Row

    @property
    def name(self) -> str:
        return str(self.group["conversation_id"])

    def message(self, seq: int) -> Row:
        return next(row for row in self.rows["messages"] if (row["conv"], row["seq"]) == (self.group["id"], seq))


def with_connection(url: str, work: Callable[[Connection], Any]) -> Any:
    return asyncio.run(migrate.with_connection(parse_store_url(url), work))


def execute(url: str, *statements: str) -> None:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.execute(text(statement))

    with_connection(url, work)


def read_tables(connection: Connection) -> Rows:
    found = {table.name: connection.execute(table.select().order_by(*table.primary_key)).mappings() for table in TABLES}
    return {name: [dict(row) for row in rows] for name, rows in found.items()}


def write_tables(connection: Connection, rows: Rows) -> None:
    for table in TABLES:
        if rows[table.name]:
            connection.execute(table.insert(), rows[table.name])


def find(url: str, **options: Any) -> Report:
    return asyncio.run(check(parse_store_url(url), **options))


async def live(url: str) -> None:
    async with open_test_core(url, PEOPLE) as core:
        await History(core, SEED).live(STEPS)


def choose_places(rows: Rows) -> Lively:
    """The history must have made them all; when it changes, SEED may have to."""
    chats = {row["id"]: row for row in rows["conversations"]}

    def inside(conv: int, table: str, condition: Callable[[Row], bool]) -> list[Row]:
        return [row for row in rows[table] if row["conv"] == conv and condition(row)]

    for group in chats.values():
        conv = group["id"]
        members = inside(
            conv, "members", lambda row: not row["status"] and row["role"] < 2 and row["read_seq"] > row["from_seq"]
        )
        former = inside(conv, "members", lambda row: row["to_seq"] is not None)
        returned = inside(conv, "members", lambda row: row["has_past"] and row["to_seq"] is None)
        recalled = inside(conv, "messages", lambda row: row["status"] and row["seq"] > 8)
        at_alls = inside(conv, "mentions", lambda row: row["user_id"] == "@all")
        if not group["status"] and members and former and returned and recalled and len(at_alls) > 1:
            break
    else:
        raise AssertionError(f"seed {SEED} makes no group in which everything has happened")
    return Lively(
        "",
        rows,
        group,
        next(row for row in chats.values() if row["status"]),
        max((row for row in chats.values() if row["kind"] == 1), key=lambda row: row["head_seq"]),
        members[0],
        former[0],
        returned[0],
        recalled[0],
        rows["blocks"][0],
    )


@pytest.fixture(scope="module")
def histories() -> dict[str, Lively]:
    """One history per engine, lived by the first test that needs it and copied for the others."""
    return {}


@pytest.fixture
def lively(engine_name: str, core_url: str, histories: dict[str, Lively]) -> Lively:
    if engine_name not in histories:
        asyncio.run(live(core_url))
        histories[engine_name] = choose_places(with_connection(core_url, read_tables))
    else:
        rows = histories[engine_name].rows
        with_connection(core_url, lambda connection: write_tables(connection, rows))
    return histories[engine_name]._replace(url=core_url)


def test_a_sound_store_is_silent(lively: Lively) -> None:
    report = find(lively.url)
    assert (report.counts, report.findings, report.left) == ({}, [], 0)
    assert report.conversations == len(lively.rows["conversations"])
    assert report.messages == len(lively.rows["messages"])


def test_how_much_there_is_is_known_before_it_is_joined(lively: Lively, engine_name: str) -> None:
    """PostgreSQL joins what it never counted row by row, which takes minutes after a burst of messages."""
    find(lively.url)
    if engine_name == "postgresql":
        counted = with_connection(
            lively.url,
            lambda connection: connection.execute(
                text("SELECT reltuples FROM pg_class WHERE oid='messages'::regclass")
            ).scalar(),
        )
        assert counted == len(lively.rows["messages"])


# -- values that follow from others ----------------------------------------------------------------------

OF_CONVERSATIONS = {
    "countable": "countable+3",
    "at_all_count": "at_all_count-1",
    "last_send_at": "last_send_at+1",
    "closed_seq": "1",
    "member_count": "member_count-1",
}
OF_MEMBERS = {
    "read_countable": "read_countable+1",
    "own_above": "own_above+2",
    "last_own_seq": "last_own_seq+1",
    "mention_unread": "mention_unread+1",
    "at_all_base": "at_all_base-1",
    "has_past": "1-has_past",
}
OF_FORMER_MEMBERS = {"to_countable": "to_countable+1", "to_at_all": "to_at_all+1", "left_at": "left_at-1"}


@pytest.mark.parametrize("column", OF_CONVERSATIONS)
def test_a_wrong_counter_of_a_conversation_is_found_and_repaired(lively: Lively, column: str) -> None:
    group = lively.group
    execute(lively.url, f"UPDATE conversations SET {column}={OF_CONVERSATIONS[column]} WHERE id={group['id']}")
    report = find(lively.url)
    assert report.counts == {column: 1}
    (finding,) = report.findings
    assert (finding.conversation_id, finding.expected) == (lively.name, group[column])
    assert finding.found != group[column]
    repair_and_compare(lively, report)


@pytest.mark.parametrize("column", [*OF_MEMBERS, *OF_FORMER_MEMBERS])
def test_a_wrong_counter_of_a_member_is_found_and_repaired(lively: Lively, column: str) -> None:
    member = lively.former if column in OF_FORMER_MEMBERS else lively.member
    changed = (OF_MEMBERS | OF_FORMER_MEMBERS)[column]
    execute(
        lively.url,
        f"UPDATE members SET {column}={changed} WHERE conv={member['conv']} AND user_id='{member['user_id']}'",
    )
    report = find(lively.url)
    assert report.counts == {column: 1}
    (finding,) = report.findings
    assert (finding.conversation_id, finding.user_id) == (lively.name, member["user_id"])
    assert finding.found != finding.expected == member[column]
    repair_and_compare(lively, report)


def test_a_head_below_the_newest_message_is_found_and_repaired(lively: Lively) -> None:
    execute(lively.url, f"UPDATE conversations SET head_seq=head_seq-1 WHERE id={lively.group['id']}")
    report = find(lively.url)
    head_seq = lively.group["head_seq"]
    assert Finding("head_seq", lively.name, found=head_seq - 1, expected=head_seq) in report.findings
    assert find(lively.url, repair=True).left == 0
    assert with_connection(lively.url, read_tables) == lively.rows


def test_wrong_counters_everywhere_are_repaired_at_once(lively: Lively) -> None:
    execute(
        lively.url,
        "UPDATE conversations SET countable=countable+1,member_count=0",
        "UPDATE members SET own_above=own_above+1,read_countable=0",
    )
    report = find(lively.url, repair=True)
    assert report.counts["own_above"] == report.repaired["own_above"] == len(lively.rows["members"])
    assert report.left == 0
    assert with_connection(lively.url, read_tables) == lively.rows


def repair_and_compare(lively: Lively, before: Report) -> None:
    """What was found is repaired, nothing else is touched, and nothing is left."""
    repaired = find(lively.url, repair=True)
    assert (repaired.counts, repaired.repaired, repaired.left) == (before.counts, before.counts, 0)
    assert with_connection(lively.url, read_tables) == lively.rows


# -- what is only reported -------------------------------------------------------------------------------


def check_only_reported(lively: Lively, *expected: Finding) -> None:
    """These are found; repairing leaves the store as it is, and says that something is left."""
    damaged = with_connection(lively.url, read_tables)
    report = find(lively.url)
    for finding in expected:
        assert finding in report.findings
    repaired = find(lively.url, repair=True)
    assert repaired.left == sum(report.counts.values())
    assert with_connection(lively.url, read_tables) == damaged


def test_a_hole_is_found_and_named(lively: Lively) -> None:
    execute(lively.url, f"DELETE FROM messages WHERE conv={lively.group['id']} AND seq IN (4,5)")
    check_only_reported(lively, Finding("seq_hole", lively.name, seq=4, found=6, expected=4))


def test_a_hole_at_either_end_is_found(lively: Lively) -> None:
    head_seq = lively.group["head_seq"]
    execute(lively.url, f"DELETE FROM messages WHERE conv={lively.group['id']} AND seq IN (1,{head_seq})")
    check_only_reported(
        lively,
        Finding("seq_hole", lively.name, seq=1, found=2, expected=1),
        Finding("seq_hole", lively.name, seq=head_seq, found=head_seq, expected=head_seq - 1),
    )


def test_a_wrong_running_number_is_found(lively: Lively) -> None:
    number = lively.message(6)["countable_no"]
    execute(lively.url, f"UPDATE messages SET countable_no=countable_no+5 WHERE conv={lively.group['id']} AND seq=6")
    check_only_reported(lively, Finding("countable_no", lively.name, seq=6, found=number + 5, expected=number))


def test_time_that_stands_still_is_found(lively: Lively) -> None:
    before = lively.message(5)["send_at"]
    execute(lively.url, f"UPDATE messages SET send_at={before} WHERE conv={lively.group['id']} AND seq=6")
    check_only_reported(lively, Finding("send_at", lively.name, seq=6, found=before, expected=before + 1))


def two_of_one_sender(lively: Lively) -> tuple[Row, Row]:
    """Two messages of a sender in the group, one after the other, to which no other row refers."""
    last: dict[str, Row] = {}
    pinned = {row["server_msg_id"] for row in lively.rows["pins"]}
    in_group = [row for row in lively.rows["messages"] if row["conv"] == lively.group["id"] and row["msg_type"] < 100]
    for row in sorted(in_group, key=lambda row: row["seq"]):
        before = last.get(row["sender_id"])
        if before is not None and all(
            not one["status"]
            and one["edited_at"] is None
            and one["reactions"] is None
            and one["server_msg_id"] not in pinned
            for one in (before, row)
        ):
            return before, row
        last[row["sender_id"]] = row
    raise AssertionError("no sender has two messages")


def swap_ids(url: str, earlier: Row, later: Row) -> None:
    set_id = "UPDATE messages SET server_msg_id={} WHERE conv={} AND seq={}"
    execute(
        url,
        set_id.format(1, earlier["conv"], earlier["seq"]),
        set_id.format(earlier["server_msg_id"], later["conv"], later["seq"]),
        set_id.format(later["server_msg_id"], earlier["conv"], earlier["seq"]),
    )


def test_messages_in_another_order_than_they_were_written_are_found(lively: Lively) -> None:
    earlier, later = two_of_one_sender(lively)
    swap_ids(lively.url, earlier, later)
    low, high = earlier["server_msg_id"], later["server_msg_id"]
    wrong = Finding("id_order", lively.name, later["sender_id"], later["seq"], found=low, expected=high + 1)
    check_only_reported(lively, wrong)


@pytest.mark.parametrize("reason", ["accepted messages", "two nodes", "another system"])
def test_ids_that_need_not_ascend_are_not_slandered(lively: Lively, reason: str) -> None:
    earlier, later = two_of_one_sender(lively)
    if reason == "accepted messages":
        swap_ids(lively.url, earlier, later)
        execute(lively.url, "INSERT INTO stream_owners (shard,owner,epoch,expires_at) VALUES (0,'one',1,0)")
    else:
        # one node further and a second earlier; or as from a generator that began to count in 2010
        change = (1 << 12) - (1000 << 22) if reason == "two nodes" else 400_000_000_000 << 22
        row = later if reason == "two nodes" else earlier
        execute(
            lively.url,
            f"UPDATE messages SET server_msg_id=server_msg_id+({change}) WHERE conv={row['conv']} AND seq={row['seq']}",
        )
    assert find(lively.url).counts == {}


def test_a_message_without_conversation_is_found(lively: Lively) -> None:
    execute(lively.url, f"UPDATE messages SET conv=987654321 WHERE conv={lively.single['id']}")
    finding = Finding(
        "messages_without_conversation",
        found=lively.single["head_seq"],
        expected=0,
        detail="conversation 987654321",
    )
    check_only_reported(lively, finding)


CURSORS = {
    "read_beyond_delivered": ("delivered_seq=read_seq-1", "read_seq", lambda row: row["read_seq"] - 1),
    "cursor_below_span": ("read_seq=from_seq-2", "read_seq", lambda row: row["from_seq"] - 1),
}


@pytest.mark.parametrize("kind", CURSORS)
def test_a_cursor_out_of_range_is_found(lively: Lively, kind: str) -> None:
    change, _, expected = CURSORS[kind]
    member = lively.member
    execute(lively.url, f"UPDATE members SET {change} WHERE conv={member['conv']} AND user_id='{member['user_id']}'")
    (finding,) = (finding for finding in find(lively.url).findings if finding.kind == kind)
    assert (finding.conversation_id, finding.user_id) == (lively.name, member["user_id"])
    assert finding.expected == expected(member)


@pytest.mark.parametrize("who", ["member", "former"])
def test_a_cursor_beyond_what_is_visible_is_found_and_left(lively: Lively, who: str) -> None:
    row = getattr(lively, who)
    top = row["to_seq"] or lively.group["head_seq"]
    execute(
        lively.url,
        f"UPDATE members SET delivered_seq={top + 1} WHERE conv={row['conv']} AND user_id='{row['user_id']}'",
    )
    check_only_reported(lively, Finding("cursor_beyond_head", lively.name, row["user_id"], found=top + 1, expected=top))


def test_spans_that_overlap_or_belong_to_nobody_are_found(lively: Lively) -> None:
    row = lively.returned
    (first, *_) = sorted(
        span["from_seq"]
        for span in lively.rows["member_spans"]
        if (span["conv"], span["user_id"]) == (row["conv"], row["user_id"])
    )
    execute(
        lively.url,
        f"UPDATE member_spans SET to_seq={row['from_seq']} "
        f"WHERE conv={row['conv']} AND user_id='{row['user_id']}' AND from_seq={first}",
        f"INSERT INTO member_spans (conv,user_id,from_seq,to_seq) VALUES ({row['conv']},'nobody',3,2)",
    )
    report = find(lively.url)
    assert {"span_overlap", "span_backwards", "span_without_member"} == report.counts.keys()
    assert {finding.user_id for finding in report.findings} == {row["user_id"], "nobody"}


def test_a_span_that_does_not_fit_the_membership_is_found(lively: Lively) -> None:
    row = lively.former
    execute(lively.url, f"UPDATE members SET status=0 WHERE conv={row['conv']} AND user_id='{row['user_id']}'")
    findings = find(lively.url).findings
    assert ("span_status", row["user_id"]) in {(finding.kind, finding.user_id) for finding in findings}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("recalled_not_blank", "content='\"secret\"'"),
        ("recalled_not_blank", "mentions='[]'"),
        ("recall_without_event", "recall_seq=1"),
        ("recall_half_done", "status=0"),
    ],
)
def test_a_recall_that_is_not_whole_is_found(lively: Lively, kind: str, change: str) -> None:
    row = lively.recalled
    execute(lively.url, f"UPDATE messages SET {change} WHERE server_msg_id={row['server_msg_id']}")
    found = [finding for finding in find(lively.url).findings if finding.kind == kind]
    assert [(finding.conversation_id, finding.seq) for finding in found] == [(lively.name, row["seq"])]
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("kind", "table", "change"),
    [
        ("edit_without_event", "messages", "edited_at=edited_at+1"),
        ("edit_without_version", "message_versions", "seq=seq+100000"),
        ("reaction_counts", "reaction_counts", "counted=counted+1"),
        ("pin_without_event", "pins", "event_seq=1"),
    ],
)
def test_a_change_of_a_message_that_is_not_whole_is_found(lively: Lively, kind: str, table: str, change: str) -> None:
    where = "WHERE edited_at IS NOT NULL" if table == "messages" else "WHERE cause=2" if "version" in table else ""
    execute(lively.url, f"UPDATE {table} SET {change} {where}")
    report = find(lively.url)
    assert report.counts.keys() == {kind}
    assert all(finding.conversation_id and finding.seq for finding in report.findings)


def test_pins_and_reactions_of_nothing_are_found(lively: Lively) -> None:
    conv = lively.group["id"]
    execute(
        lively.url,
        f"INSERT INTO pins (conv,server_msg_id,is_on,event_seq) VALUES ({conv},77,1,1)",
        "INSERT INTO reactions (server_msg_id,user_id,emoji) VALUES (77,'user1','x')",
    )
    assert {"pin_without_message", "pin_without_event", "reaction_stray"} == find(lively.url).counts.keys()


def test_a_wrong_last_message_is_found_and_repaired(lively: Lively) -> None:
    execute(
        lively.url, "UPDATE conversations SET last_seq=last_seq+7,last_at=1 WHERE quiet_head=head_seq AND head_seq>0"
    )
    execute(lively.url, "UPDATE conversations SET quiet_head=0 WHERE quiet_head=head_seq AND head_seq>0")
    report = find(lively.url)
    assert {"quiet_head", "last_seq", "last_at"} == report.counts.keys()
    find(lively.url, repair=True)
    assert find(lively.url).counts == {}


def test_a_mention_of_nothing_is_found(lively: Lively) -> None:
    conv = lively.group["id"]
    execute(lively.url, f"INSERT INTO mentions (conv,user_id,seq,sender_id) VALUES ({conv},'user1',99999,'user2')")
    report = find(lively.url)
    assert Finding("mention_without_message", lively.name, "user1", 99999) in report.findings


def test_a_block_without_its_mark_and_a_mark_without_its_block_are_found(lively: Lively) -> None:
    blocker, blocked = lively.block["user_id"], lively.block["blocked_id"]
    unmark = f"UPDATE members SET blocked=0 WHERE user_id='{blocked}' AND peer_id='{blocker}'"
    execute(lively.url, unmark)
    assert find(lively.url).counts == {"block_unmarked": 1, "blocked": 1}
    execute(lively.url, f"DELETE FROM blocks WHERE user_id='{blocker}' AND blocked_id='{blocked}'")
    assert find(lively.url).counts == {}
    execute(lively.url, unmark.replace("blocked=0", "blocked=1"))
    (finding,) = find(lively.url).findings
    assert (finding.kind, finding.user_id, finding.found, finding.expected) == ("blocked", blocked, 1, 0)


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("group_owner", "UPDATE chat_groups SET owner_id='user99' WHERE conv={id}"),
        ("group_owner", "UPDATE members SET role=2 WHERE conv={id}"),
        ("group_owner", "UPDATE members SET role=0 WHERE conv={id}"),
        ("group_status", "UPDATE chat_groups SET status=1 WHERE conv={id}"),
        ("group_missing", "DELETE FROM chat_groups WHERE conv={id}"),
        ("group_name", "UPDATE chat_groups SET group_id='g_somebodyelse' WHERE conv={id}"),
        ("chat_groups_without_conversation", "UPDATE chat_groups SET conv=987654321 WHERE conv={id}"),
    ],
)
def test_a_group_that_does_not_fit_its_conversation_is_found(lively: Lively, kind: str, statement: str) -> None:
    execute(lively.url, statement.format(id=lively.group["id"]))
    assert kind in find(lively.url).counts


def test_a_closed_group_that_went_on_is_found(lively: Lively) -> None:
    execute(lively.url, f"UPDATE conversations SET closed_seq=closed_seq-1 WHERE id={lively.closed['id']}")
    assert find(lively.url).counts == {"closed_seq": 1}


def test_a_single_chat_with_a_wrong_member_is_found(lively: Lively) -> None:
    low = lively.single["conversation_id"].removeprefix("si_").partition(":")[0]
    execute(lively.url, f"UPDATE members SET peer_id='user99' WHERE conv={lively.single['id']} AND user_id='{low}'")
    assert {"single_peer", "single_name"} <= find(lively.url).counts.keys()
    execute(lively.url, f"DELETE FROM members WHERE conv={lively.single['id']} AND user_id='{low}'")
    assert {"single_members", "member_count"} <= find(lively.url).counts.keys()


# -- duplicates: possible only where a key is missing ----------------------------------------------------


def forget_unique_keys(url: str) -> None:
    """`messages` as it would be if its keys had been lost."""
    execute(
        url,
        "CREATE TABLE without_keys AS SELECT * FROM messages",
        "DROP TABLE messages",
        "ALTER TABLE without_keys RENAME TO messages",
    )


def test_duplicates_and_the_missing_keys_are_found(store_url: str) -> None:
    async def send_two() -> None:
        await migrate.upgrade(parse_store_url(store_url))
        async with open_test_core(store_url, ["ann", "bob"]) as core:
            await say(core, "ann", "bob", client_msg_id="one")
            await say(core, "ann", "bob", client_msg_id="two")

    asyncio.run(send_two())
    forget_unique_keys(store_url)
    missing = {f"messages({columns})" for columns in ("server_msg_id", "conv, seq", "sender_id, client_msg_id")}
    report = find(store_url)
    assert report.counts == {"missing_unique_key": 3}
    assert {finding.detail for finding in report.findings} == missing
    execute(
        store_url,
        "CREATE TABLE copied AS SELECT * FROM messages WHERE seq=2",
        "INSERT INTO messages SELECT * FROM copied",
    )
    report = find(store_url)
    assert report.counts["duplicate_key"] == 3
    duplicate = Finding("duplicate_key", found=2, expected=1, detail="messages: sender_id=ann, client_msg_id=two")
    assert duplicate in report.findings
    assert Finding("seq_duplicate", "si_ann:bob", seq=2, found=2, expected=3) in report.findings


# -- how it works ----------------------------------------------------------------------------------------


def test_the_store_is_checked_in_slices_that_leave_nothing_out(lively: Lively, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "SLICE_WEIGHT", 40)
    monkeypatch.setattr(checking, "SLICE_CONVERSATIONS", 3)
    execute(lively.url, "UPDATE conversations SET countable=countable+1")
    seen: list[tuple[int, int]] = []
    report = find(lively.url, repair=True, progress=lambda done, of: seen.append((done, of)))
    assert report.counts == report.repaired == {"countable": len(lively.rows["conversations"])}
    messages = len(lively.rows["messages"])
    assert seen == sorted(seen)
    assert (len(seen) > 10, seen[-1]) == (True, (messages, messages))


def test_everything_is_counted_but_only_so_much_is_listed(lively: Lively) -> None:
    execute(lively.url, "UPDATE messages SET countable_no=0")
    report = find(lively.url)
    assert report.counts["countable_no"] > LISTED_PER_KIND
    assert sum(finding.kind == "countable_no" for finding in report.findings) == LISTED_PER_KIND


async def test_a_store_that_is_being_written_is_not_slandered(core_url: str) -> None:
    """Everything a law compares is written in one transaction and read in one snapshot."""
    async with open_test_core(core_url, PEOPLE) as core:
        group_id, _ = await found_group(core, *PEOPLE)
        done = asyncio.Event()

        async def chat(user_id: str) -> None:
            while not done.is_set():
                message = await say(core, user_id, group_id, mentions=["user1"])
                await core.acknowledging.mark_read("user1", message.conversation_id, seq=message.seq)

        chatting = [asyncio.create_task(chat(user_id)) for user_id in PEOPLE]
        reports = [await check(parse_store_url(core_url)) for _ in range(15)]
        done.set()
        await asyncio.gather(*chatting)
    assert [report.counts for report in reports] == [{}] * 15
    assert reports[-1].messages > reports[0].messages


# -- the command -----------------------------------------------------------------------------------------


def run_check(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("NEXO_")}
    return subprocess.run(
        [NEXO, "check", *arguments], env={**env, "NEXO_STORE__URL": url}, capture_output=True, text=True, timeout=60
    )


def test_the_command_tells_by_its_exit_code_and_in_json(lively: Lively) -> None:
    sound = run_check(lively.url)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert "Nothing is wrong." in sound.stdout
    execute(lively.url, f"UPDATE conversations SET countable=countable+1 WHERE id={lively.group['id']}")
    wrong = run_check(lively.url)
    assert wrong.returncode == 1
    assert f"countable: 1\n  {lively.name}: found {lively.group['countable'] + 1}" in wrong.stdout
    repaired = run_check(lively.url, "--repair", "--json")
    told = json.loads(repaired.stdout)
    assert (repaired.returncode, told["counts"], told["repaired"], told["left"]) == (
        0,
        {"countable": 1},
        {"countable": 1},
        0,
    )
    assert told["findings"][0]["conversation_id"] == lively.name
    assert find(lively.url).counts == {}


def test_a_store_that_cannot_be_checked_is_exit_code_2(store_url: str) -> None:
    done = run_check(store_url)
    assert done.returncode == 2
    assert done.stderr.startswith("nexo: ")
    path = store_url.removeprefix("sqlite:///")
    assert not Path(path).exists(), "looking must not make a database"

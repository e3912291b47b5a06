"""A verdict that cannot go red is worth nothing: every kind of damage has to be seen."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from nexo.bench.counts import Counts, Proof
from nexo.bench.numbering import client_msg_id_of, owner_of
from nexo.bench.verdict import Acknowledged, Comparison, Expectation, StoredRow, judge

SEED = 7
NAME = "si_ann:ben"
COUNT = 6


def row(seq: int, person: int = 0, number: int | None = None) -> StoredRow:
    number = seq - 1 if number is None else number
    return StoredRow(
        seq, str(1000 + seq), client_msg_id_of(SEED, person, number), "ann" if person == 0 else "ben", 1, "hi"
    )


def history() -> list[StoredRow]:
    return [row(seq) for seq in range(1, COUNT + 1)]


def expectation() -> Expectation:
    told = {
        seq: Acknowledged(client_msg_id_of(SEED, 0, seq - 1), str(1000 + seq), "ann") for seq in range(1, COUNT + 1)
    }
    return Expectation(NAME, SEED, 0, told, set(), set())


def findings(expected: Expectation, *histories: list[StoredRow]) -> set[str]:
    proof = Proof()
    comparison = Comparison(expected, proof)
    for user_id, rows in zip(("ann", "ben"), histories, strict=False):
        comparison.see(user_id, rows)
    return set(proof.findings)


def test_histories_that_say_what_was_acknowledged_are_fine() -> None:
    proof = Proof()
    comparison = Comparison(expectation(), proof)
    comparison.see("ann", history())
    comparison.see("ben", history())
    assert proof.findings == {}
    assert (proof.conversations, proof.histories, proof.messages) == (1, 2, 2 * COUNT)


def lose_one(rows: list[StoredRow]) -> None:
    del rows[2]


def lose_the_last(rows: list[StoredRow]) -> None:
    rows.pop()


def store_one_twice(rows: list[StoredRow]) -> None:
    rows.append(row(COUNT + 1, number=3))


def swap_two(rows: list[StoredRow]) -> None:
    rows[1].client_msg_id, rows[2].client_msg_id = rows[2].client_msg_id, rows[1].client_msg_id


def give_them_in_another_order(rows: list[StoredRow]) -> None:
    rows[1], rows[2] = rows[2], rows[1]


def slip_one_in(rows: list[StoredRow]) -> None:
    rows.append(StoredRow(COUNT + 1, "9999", "not-of-this-run", "mallory"))


def change_an_id(rows: list[StoredRow]) -> None:
    rows[0].server_msg_id = "5"


def change_a_body(rows: list[StoredRow]) -> None:
    rows[0].content = "ho"


def change_a_sender(rows: list[StoredRow]) -> None:
    rows[0].sender_id = "ben"


DAMAGES: dict[Callable[[list[StoredRow]], None], set[str]] = {
    lose_one: {"hole", "acknowledged and not stored"},
    lose_the_last: {"acknowledged and not stored"},
    store_one_twice: {"stored twice", "foreign", "sender's order"},
    swap_two: {"not what was acknowledged", "sender's order"},
    give_them_in_another_order: {"seq out of order", "hole", "sender's order"},
    slip_one_in: {"foreign"},
    change_an_id: {"not what was acknowledged"},
    change_a_sender: {"not what was acknowledged"},
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_for_both_is_seen(damage: Callable[[list[StoredRow]], None]) -> None:
    one, other = history(), history()
    damage(one)
    damage(other)
    assert findings(expectation(), one, other) == DAMAGES[damage]


@pytest.mark.parametrize("damage", [*DAMAGES, change_a_body], ids=lambda damage: damage.__name__)
def test_damage_for_the_second_only_is_seen(damage: Callable[[list[StoredRow]], None]) -> None:
    damaged = history()
    damage(damaged)
    assert "histories differ" in findings(expectation(), history(), damaged)


def test_a_refused_message_must_not_be_there() -> None:
    expected = expectation()
    expected.refused = {client_msg_id_of(SEED, 0, COUNT)}
    rows = [*history(), row(COUNT + 1)]
    assert findings(expected, rows, rows) == {"refused and stored"}


def test_a_message_without_an_answer_may_be_there_once() -> None:
    expected = expectation()
    expected.in_doubt = {client_msg_id_of(SEED, 0, COUNT)}
    rows = [*history(), row(COUNT + 1)]
    assert findings(expected, rows, rows) == set()
    twice = [*rows, row(COUNT + 2, number=COUNT)]
    assert "stored twice" in findings(expected, twice, twice)


def test_two_acknowledgements_of_one_place_are_seen() -> None:
    expected = expectation()
    expected.conflicts = ["seq 3 to a and b"]
    assert findings(expected, history()) == {"acknowledged twice"}


def test_events_belong_into_groups_only() -> None:
    event = StoredRow(1, "1001", None, "ann", 101)
    expected = Expectation("sg_g", SEED, 0, {}, set(), set(), is_group=True)
    assert findings(expected, [event]) == set()
    expected.is_group = False
    assert findings(expected, [event]) == {"foreign"}


def test_a_conversation_that_existed_before_is_compared_from_its_head_on() -> None:
    expected = expectation()
    expected.base_seq = 10
    expected.acknowledged = {seq + 10: told for seq, told in expected.acknowledged.items()}
    later = [msgspec.structs.replace(one, seq=one.seq + 10) for one in history()]
    assert findings(expected, later, later) == set()


def test_an_id_knows_its_owner_and_nobody_else_can_make_one() -> None:
    mine = client_msg_id_of(SEED, 3, 9)
    assert owner_of(SEED, mine) == (3, 9)
    assert owner_of(SEED + 1, mine) is None
    assert owner_of(SEED, mine[:-1] + "0") is None
    assert owner_of(SEED, None) is None
    assert owner_of(SEED, "z" * 28) is None


def counts_of_a_good_run() -> Counts:
    return Counts(
        sent=10,
        saved=10,
        expected=10,
        received=10,
        unique=10,
        delivered=10,
        receipts_due=10,
        lost={},
        ended={},
        errors={},
    )


def good_proof() -> Proof:
    return Proof(conversations=1, histories=2, histories_of=2, messages=20, findings={}, samples=[])


def test_a_run_in_which_everything_is_accounted_for_is_green() -> None:
    assert judge(counts_of_a_good_run(), good_proof(), histories_wanted=True).ok


@pytest.mark.parametrize(
    "changes",
    [
        {"saved": 9},
        {"saved": 9, "unanswered": 1},
        {"saved": 9, "refused": 1, "expected": 9, "unique": 9},
        {"unique": 9},
        {"unique": 9, "missing": 1},
        {"unique": 11},
        {"duplicates": 1},
        {"reordered_by_seq": 1},
        {"reordered_by_sender": 1},
        {"reordered_by_id": 1},
        {"foreign": 1},
        {"delivered": 9},
        {"lost": {"4904": 1}},
        {"errors": {"server_busy": 1}},
        {"asked": 2, "answered": 1},
    ],
    ids=str,
)
def test_whatever_does_not_add_up_makes_it_red(changes: dict[str, object]) -> None:
    counts = msgspec.structs.replace(counts_of_a_good_run(), **changes)
    verdict = judge(counts, good_proof(), histories_wanted=True)
    assert not verdict.ok
    assert verdict.reasons


def test_findings_failures_and_uncompared_histories_make_it_red() -> None:
    proof = good_proof()
    proof.note("hole", "somewhere")
    assert not judge(counts_of_a_good_run(), proof, histories_wanted=True).ok
    assert not judge(counts_of_a_good_run(), Proof(), histories_wanted=True).ok
    assert not judge(counts_of_a_good_run(), good_proof(), histories_wanted=True, failures=["gone"]).ok


def test_refusals_can_be_allowed_and_the_order_of_ids_is_told_only_among_several_servers() -> None:
    counts = msgspec.structs.replace(
        counts_of_a_good_run(), saved=9, refused=1, expected=9, unique=9, received=9, delivered=9, receipts_due=9,
        errors={"too_many_requests": 1}, reordered_by_id=1,
    )  # fmt: skip
    verdict = judge(counts, good_proof(), histories_wanted=True, allow_refusals=True, one_server=False)
    assert verdict.ok
    assert len(verdict.notes) == 3

"""What was sent and is not saved: in order, kept, and never sent in the wrong order."""

from __future__ import annotations

import itertools
import random

import pytest

from nexo_client.core.frames import send_frame
from nexo_client.core.ids import MessageIds
from nexo_client.core.options import Options
from nexo_client.core.outbox import Outbox, OutboxItem
from nexo_client.types import Upload

OPTIONS = Options(max_in_flight=4, ack_timeout_ms=1000, backoff_min_ms=100, backoff_max_ms=800)


def an_outbox(*texts: str, chat: str = "si_alice:bob") -> tuple[Outbox, list[OutboxItem]]:
    outbox = Outbox(OPTIONS, random.Random(1))
    return outbox, [put(outbox, text, chat) for text in texts]


def put(outbox: Outbox, text: str, chat: str) -> OutboxItem:
    outgoing = OutboxItem(f"{len(outbox):04}", chat, {"to": "bob", "body": text}, 0)
    outgoing.is_stored = True
    outbox.add(outgoing)
    return outgoing


def texts(taken: list[OutboxItem]) -> list[str]:
    return [outgoing.fields["body"] for outgoing in taken]


def test_only_so_many_are_on_the_wire() -> None:
    outbox, sent = an_outbox("1", "2", "3", "4", "5")
    assert texts(outbox.take(0.0)) == ["1", "2", "3", "4"]
    assert outbox.take(0.0) == []
    outbox.saved(sent[0])
    assert texts(outbox.take(0.0)) == ["5"]


def test_nothing_goes_out_before_it_is_stored_nor_overtakes_what_is_not() -> None:
    outbox, sent = an_outbox("1", "2")
    sent[0].is_stored = False
    assert outbox.take(0.0) == []


def test_after_a_transient_refusal_a_lane_goes_on_from_there_and_others_do_not_wait() -> None:
    outbox, sent = an_outbox("1", "2", "3")
    outbox.take(0.0)
    outbox.saved(sent[0])
    assert not outbox.refused(sent[1], "server_busy", "", 500, 1.0)
    put(outbox, "other", "si_alice:carol")
    assert texts(outbox.take(1.4)) == ["other"]
    due = outbox.deadline(1.4)
    assert due is not None
    assert 1.5 <= due <= 1.625
    assert texts(outbox.take(due)) == ["2", "3"]


def test_without_a_hint_the_pauses_grow() -> None:
    outbox, sent = an_outbox("1")
    now, pauses = 0.0, []
    for _ in range(6):
        outbox.take(now)
        outbox.refused(sent[0], "internal_error", "", None, now)
        due = outbox.deadline(now)
        assert due is not None
        pauses.append(due - now)
        now = due
    assert pauses[0] < 0.2
    assert all(0.4 <= pause <= 0.8 for pause in pauses[3:])


def test_a_final_refusal_ends_one_message_and_not_its_lane() -> None:
    outbox, sent = an_outbox("1", "2")
    outbox.take(0.0)
    assert outbox.refused(sent[0], "blocked", "no", None, 0.0)
    assert (sent[0].state, sent[0].reason) == ("failed", "blocked")
    outbox.saved(sent[1])
    assert list(outbox) == [sent[0]]
    assert outbox.retry(sent[0])
    sent[0].is_stored = True
    assert texts(outbox.take(0.0)) == ["1"]


def test_everything_unanswered_is_sent_again_on_the_next_connection_in_order() -> None:
    outbox, sent = an_outbox("1", "2", "3")
    outbox.take(0.0)
    outbox.saved(sent[1])
    outbox.disconnected()
    assert texts(outbox.take(9.0)) == ["1", "3"]


def test_without_an_answer_it_is_sent_again() -> None:
    outbox, _ = an_outbox("1", "2")
    outbox.take(0.0)
    outbox.repeat_unanswered(0.9)
    assert outbox.take(0.9) == []
    outbox.repeat_unanswered(1.0)
    assert texts(outbox.take(1.0)) == ["1", "2"]


def test_only_what_is_surely_not_stored_can_be_cancelled() -> None:
    outbox, sent = an_outbox("1", "2", "3", "4", "5")
    outbox.take(0.0)
    assert not outbox.cancel(sent[0])
    assert outbox.cancel(sent[4])
    outbox.refused(sent[1], "blocked", "", None, 0.0)
    assert outbox.cancel(sent[1])
    assert texts(list(outbox)) == ["1", "3", "4"]


def test_ids_are_ordered_by_time_also_when_the_clock_goes_back() -> None:
    ids = MessageIds()
    made = [ids.new(wall_ms) for wall_ms in (5, 5, 9, 3, 3, 10)]
    later = MessageIds()
    later.seen(made[-1])
    made.append(later.new(2))
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(len(name) <= 64 for name in made)


def test_a_stored_message_is_restored_as_it_was() -> None:
    outgoing = OutboxItem("c1", "si_alice:bob", {"to": "bob", "body": "hi"}, 7)
    outgoing.state, outgoing.reason = "failed", "blocked"
    again = OutboxItem.from_stored("c1", outgoing.as_stored())
    assert (send_frame(again), again.state, again.reason, again.created_at) == (
        send_frame(outgoing),
        "failed",
        "blocked",
        7,
    )
    assert again.was_on_wire, "nobody knows, so it counts as sent"


def test_an_id_of_ones_own_is_kept_and_does_not_change_the_order() -> None:
    outgoing = OutboxItem("000000000005-000000-a", "si_alice:bob", {"to": "bob", "body": "hi"}, 7, "answer-7")
    assert send_frame(outgoing)["clientMsgId"] == "answer-7"
    again = OutboxItem.from_stored("answer-7", outgoing.as_stored())
    assert (again.client_msg_id, again.order) == ("answer-7", outgoing.order)


# -- sending more slowly ---------------------------------------------------------------------------------------------


def send_all(outbox: Outbox, sent: list[OutboxItem], now: float) -> list[float]:
    """Everything is saved as soon as it is on the wire; the times between."""
    times = []
    while len(outbox):
        for outgoing in outbox.take(now):
            times.append(now)
            outbox.saved(outgoing)
        now = max(now, outbox.deadline(now) or now)
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def test_too_many_requests_slow_everything_down_and_bit_by_bit_it_is_fast_again() -> None:
    outbox, sent = an_outbox(*(str(number) for number in range(200)))
    outbox.take(0.0)
    for outgoing in sent[:4]:
        outbox.refused(outgoing, "too_many_requests", "", 1000, 0.0)  # of one burst: they slow it down once
    put(outbox, "elsewhere", "si_alice:carol")
    assert outbox.take(0.9) == [], "the limit is the user's: other conversations wait as well"
    start = outbox.deadline(0.9)
    assert start is not None
    assert 1.0 <= start <= 1.25
    pauses = send_all(outbox, sent, 1.25)
    assert pauses[0] == pytest.approx(0.04, rel=0.05)
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(pauses))
    assert pauses[-1] == 0


def test_who_runs_into_the_limit_again_and_again_becomes_slower_but_never_stops() -> None:
    outbox, _ = an_outbox(*(str(number) for number in range(20)))
    now, pauses = 0.0, []
    for _ in range(8):
        refused = outbox.take(now)
        for outgoing in refused:
            outbox.refused(outgoing, "too_many_requests", "", 0, now)
        now += 1.0
        (first,) = outbox.take(now)
        outbox.saved(first)
        due = outbox.deadline(now)
        assert due is not None
        pauses.append(due - now)
        now += 1.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1.0


# -- files -----------------------------------------------------------------------------------------------------------


def put_file(outbox: Outbox, chat: str = "si_alice:bob") -> OutboxItem:
    fields = {"to": "bob", "body": {"text": "caption"}, "msgType": 5}
    outgoing = OutboxItem(f"{len(outbox):04}", chat, fields, 0, upload=Upload("a.bin", 100, "/a.bin", 7))
    outgoing.is_stored = True
    outbox.add(outgoing)
    return outgoing


def test_a_message_with_a_file_goes_out_behind_what_was_sent_while_it_was_uploaded() -> None:
    outbox, _ = an_outbox("1")
    file = put_file(outbox)
    later = put(outbox, "2", "si_alice:bob")
    assert texts(outbox.take(0.0)) == ["1", "2"]
    assert (file.state, outbox.uploading()) == ("uploading", [file])
    outbox.uploaded(file, "f_1")
    assert outbox.take(0.0) == [], "it is to be stored first"
    file.is_stored = True
    assert texts(outbox.take(0.0)) == [{"file_id": "f_1", "text": "caption"}]
    assert (file.state, later.state, outbox.uploading()) == ("sending", "sending", [])


def test_an_upload_survives_a_restart_with_its_place() -> None:
    outbox, _ = an_outbox()
    file = put_file(outbox)
    outbox.upload_began(file, "/files/tus/f_1")
    again = OutboxItem.from_stored(file.client_msg_id, file.as_stored())
    assert (again.state, again.upload) == ("uploading", Upload("a.bin", 100, "/a.bin", 7, "/files/tus/f_1"))
    assert not again.was_on_wire


def test_an_upload_that_failed_is_retried_or_cancelled_as_a_whole() -> None:
    outbox, _ = an_outbox()
    file = put_file(outbox)
    outbox.failed(file, "bad_file", "")
    assert (file.state, outbox.uploading()) == ("failed", [])
    assert outbox.retry(file)
    file.is_stored = True
    assert (file.state, outbox.uploading()) == ("uploading", [file])
    assert outbox.cancel(file)
    assert len(outbox) == 0

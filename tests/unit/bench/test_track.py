"""What a connection holds of a conversation, and how it notices what is wrong with what it gets."""

from __future__ import annotations

import random

from nexo.bench.counts import Counts
from nexo.bench.frame import Frame
from nexo.bench.numbering import client_msg_id_of
from nexo.bench.track import Track, digest_of


def frame(seq: int, *, number: int | None = None, person: int = 1, server_msg_id: int | None = None) -> Frame:
    return Frame(
        "SINGLE_CHAT",
        client_msg_id_of(1, person, seq if number is None else number),
        str(1000 + seq if server_msg_id is None else server_msg_id),
        "si_ann:ben",
        seq,
        body="hello",
    )


def take(seqs: list[int]) -> tuple[Track, Counts]:
    track, counts = Track("si_ann:ben"), Counts()
    for seq in seqs:
        track.take(frame(seq), counts, pulled=False)
    return track, counts


def test_in_order_nothing_is_noted_and_nothing_is_kept() -> None:
    track, counts = take(list(range(1, 101)))
    assert track.contiguous == 100
    assert not track.ahead
    assert counts == Counts()
    assert track.missing_below(100) == 0


def test_a_lost_message_is_missing() -> None:
    track, _ = take([1, 2, 4, 5])
    assert (track.contiguous, track.missing_below(5)) == (2, 1)
    assert track.missing_below(7) == 3


def test_a_message_that_comes_twice_is_a_duplicate() -> None:
    _, counts = take([1, 2, 2, 3])
    assert counts.duplicates == 1


def test_after_a_reconnect_it_is_a_repetition() -> None:
    track, counts = take([1, 2])
    track.restless = True
    assert not track.take(frame(2), counts, pulled=False)
    assert (counts.duplicates, counts.repeated) == (0, 1)


def test_messages_out_of_order_are_noted_and_held() -> None:
    track, counts = take([1, 3, 2, 4])
    assert (track.contiguous, counts.reordered_by_seq, counts.duplicates) == (4, 1, 0)


def test_the_order_of_a_sender_and_of_the_ids_is_watched() -> None:
    track, counts = Track("si_ann:ben"), Counts()
    track.take(frame(1, number=5), counts, pulled=False)
    track.take(frame(2, number=4, server_msg_id=1), counts, pulled=False)
    track.take(frame(3, number=0, person=2, server_msg_id=2000), counts, pulled=False)
    assert (counts.reordered_by_sender, counts.reordered_by_id, counts.reordered_by_seq) == (1, 1, 0)


def test_own_messages_take_their_place_between_the_others() -> None:
    track, counts = Track("sg_g"), Counts()
    track.take(frame(1), counts, pulled=False)
    track.take(frame(3), counts, pulled=False)
    assert track.own(2)
    assert not track.own(3), "that is somebody else's"
    assert (track.contiguous, track.mine, track.others) == (3, 1, 2)


def test_the_digest_depends_on_what_was_received_not_on_when() -> None:
    seqs = list(range(1, 30))
    first, _ = take(seqs)
    random.Random(4).shuffle(seqs)
    second, _ = take(seqs)
    assert first.digest == second.digest != 0
    changed = Track("si_ann:ben")
    for seq in range(1, 30):
        one = frame(seq)
        one.body = "hell0" if seq == 7 else one.body
        changed.take(one, Counts(), pulled=False)
    assert changed.digest != first.digest
    assert digest_of(1, "2", "c", "x") != digest_of(1, "2", "c", "y")


def test_what_is_sent_again_comes_behind_what_was_pushed_meanwhile() -> None:
    track, counts = Track("si_ann:ben"), Counts()
    track.take(frame(2), counts, pulled=False)
    again = frame(1)
    again.resend = True
    assert track.take(again, counts, pulled=False)
    assert (track.contiguous, counts) == (2, Counts())

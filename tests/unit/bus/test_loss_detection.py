"""Numbers per publisher and receiver: whatever is lost, doubled or late, a loss is told or there was none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nexo.bus.frames import FRAME_MAX_BYTES, BusFrame, FrameKind, decode_frame, encode_frame, split_payloads
from nexo.bus.loss_detection import FORGET_S, Incoming, Outgoing, Seen

DATA, BEAT, BYE = FrameKind.DATA, FrameKind.HEARTBEAT, FrameKind.GOODBYE


def data(number: int) -> BusFrame:
    return BusFrame(DATA, "a", number, [b"x"])


def test_the_first_number_is_one_and_each_is_one_more() -> None:
    incoming, outgoing = Incoming(1), Outgoing()
    for _ in range(3):
        assert incoming.see(data(outgoing.take("b")), 0) == Seen(True)
    assert incoming.see(BusFrame(BEAT, "a", outgoing.last("b")), 0) == Seen(False)


def test_another_first_number_is_a_loss() -> None:
    assert Incoming(1).see(data(2), 0).loss
    assert Incoming(1).see(BusFrame(BEAT, "a", 1), 0).loss
    assert Incoming(1).see(BusFrame(BYE, "a", 3), 0).loss


def test_what_could_not_be_published_takes_its_number_with_everybody() -> None:
    outgoing = Outgoing()
    outgoing.take("b")
    outgoing.lose(["c"])
    assert (outgoing.last("b"), outgoing.last("c")) == (2, 1)


def test_one_who_comes_back_into_the_list_may_have_missed_something() -> None:
    outgoing = Outgoing()
    outgoing.meet("b")
    assert outgoing.last("b") == 0
    outgoing.meet("b")
    assert outgoing.last("b") == 1


def test_a_frame_that_was_counted_as_lost_is_not_delivered_later() -> None:
    incoming = Incoming(1)
    incoming.see(data(1), 0)
    assert incoming.see(data(3), 0).loss
    assert incoming.see(data(2), 0) == Seen(False)
    assert incoming.see(data(4), 0) == Seen(True)


@given(st.lists(st.sampled_from(["arrives", "lost", "doubled"]), max_size=60))
def test_a_loss_is_told_by_the_next_sign_of_life_exactly_when_there_was_one(fates: list[str]) -> None:
    incoming, outgoing = Incoming(1), Outgoing()
    lost = told = delivered = 0
    for fate in fates:
        frame = data(outgoing.take("b"))
        lost += fate == "lost"
        for _ in range({"arrives": 1, "lost": 0, "doubled": 2}[fate]):
            seen = incoming.see(frame, 0)
            delivered += seen.is_new
            told += bool(seen.loss)
    told += bool(incoming.see(BusFrame(BEAT, "a", outgoing.last("b")), 0).loss)
    assert delivered == len(fates) - lost
    assert (told > 0) == (lost > 0)


def test_silence_is_told_once_and_goodbye_ends_it() -> None:
    incoming = Incoming(1.0)
    incoming.expect("a", 0)  # known from others, never heard itself
    incoming.see(BusFrame(BEAT, "b", 0), 0)
    incoming.see(BusFrame(BYE, "c", 0), 0)
    incoming.expect("c", 0.5)  # an old list still names it
    assert incoming.fallen_silent(1.0) == []
    assert incoming.fallen_silent(1.1) == ["a", "b"]
    assert incoming.fallen_silent(1.2) == []
    assert incoming.is_gone("a")
    assert incoming.is_gone("c")
    incoming.see(BusFrame(BEAT, "a", 0), 1.3)
    assert not incoming.is_gone("a")


def test_nobody_is_silent_who_could_not_be_heard_for_another_reason() -> None:
    incoming = Incoming(1.0)
    incoming.see(BusFrame(BEAT, "a", 0), 0)
    incoming.pardon(5.0)
    assert incoming.fallen_silent(5.5) == []
    assert incoming.fallen_silent(6.1) == ["a"]


def test_what_was_silent_for_very_long_is_forgotten() -> None:
    incoming = Incoming(1.0)
    incoming.see(data(1), 0)
    incoming.fallen_silent(2)
    incoming.fallen_silent(FORGET_S + 1)
    assert not incoming._heard


@given(st.lists(st.integers(0, FRAME_MAX_BYTES + 10), max_size=8))
def test_payloads_are_divided_into_frames_without_losing_order(sizes: list[int]) -> None:
    payloads = [bytes(size) for size in sizes]
    parts = split_payloads(payloads)
    assert [payload for part in parts for payload in part] == payloads
    assert all(part for part in parts)
    assert all(len(part) == 1 or sum(map(len, part)) <= FRAME_MAX_BYTES for part in parts)


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(0, 1 << 60))
def test_a_frame_is_read_as_it_was_written(payloads: list[bytes], number: int) -> None:
    frame = BusFrame(DATA, "i_1", number, payloads)
    assert decode_frame(encode_frame(frame)) == frame

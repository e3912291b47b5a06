"""Where the last messages are: the newest are known, and there are never more than the limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nexo.core.model import Message
from nexo.delivery import receipts
from nexo.delivery.receipts import ReceiptPusher, RecentMessage, RecentMessages
from nexo.ids import now_ms
from nexo.metrics.sending import SendMeter


def test_the_newest_half_is_always_known_and_the_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "RECENT_MAX", 10)
    places = RecentMessages()
    for number in range(1, 100):
        places.add(number, RecentMessage("si_a:b", number, "a", 0.0))
        assert len(places) <= 10
        for known in range(max(1, number - 4), number + 1):
            place = places.get(known)
            assert place is not None
            assert place.seq == known
    assert places.get(1) is None
    assert places.get(100) is None


class Conversations:
    def __init__(self) -> None:
        self.advanced: list[tuple[str, str, int]] = []

    def advance(self, user_id: str, conversation_id: str, *, delivered_seq: int, read_seq: int) -> None:
        self.advanced.append((user_id, conversation_id, delivered_seq))


def test_what_was_pulled_a_moment_ago_is_acknowledged_without_asking_the_database() -> None:
    unused: Any = None
    conversations: Any = Conversations()
    known = ReceiptPusher(unused, unused, conversations, unused, unused, unused, 100, SendMeter(), "here")
    now = now_ms()
    new = Message(71, "c1", "si_ann:ben", 3, "ann", 101, "{}", now - 1000)
    of_a_clock_ahead = Message(72, "c2", "si_ann:ben", 4, "ann", 101, "{}", now + 300_000)
    old = Message(73, "c3", "si_ann:ben", 1, "ann", 101, "{}", now - 3_600_000)
    known.given([new, of_a_clock_ahead, old])
    ben: Any = SimpleNamespace(session=SimpleNamespace(user_id="ben", platform_id=5), last_seen=0.0)
    assert known.acknowledge_known(ben, "delivered", "71")
    assert known.acknowledge_known(ben, "delivered", "72")
    assert not known.acknowledge_known(ben, "delivered", "73"), "the database decides"
    assert conversations.advanced == [("ben", "si_ann:ben", 3), ("ben", "si_ann:ben", 4)]
    assert known.last_seq("si_ann:ben") == 0, "it was not pushed to anybody"

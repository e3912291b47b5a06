"""Where the last messages are: the newest are known, and there are never more than the limit."""

from __future__ import annotations

import pytest

from nexo.gateway import receipts
from nexo.gateway.receipts import Place, Places


def test_the_newest_half_is_always_known_and_the_limit_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receipts, "PLACES_MAX", 10)
    places = Places()
    for number in range(1, 100):
        places.add(number, Place("si_a:b", number, "a", 0.0))
        assert len(places) <= 10
        for known in range(max(1, number - 4), number + 1):
            place = places.get(known)
            assert place is not None
            assert place.seq == known
    assert places.get(1) is None
    assert places.get(100) is None

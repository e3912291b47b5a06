"""The share of conversations with two-phase acknowledgement."""

from __future__ import annotations

import pytest

from nexo.config.tree import TwoPhaseConfig
from nexo.core.model import Draft, Kind
from nexo.two_phase.share import TwoPhaseShare


def drafts(count: int, kind: Kind = Kind.SINGLE) -> list[Draft]:
    return [Draft("ann", f"c{n}", f"si_ann:ben{n}", int(kind), 1, "x", b"h") for n in range(count)]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_the_share_is_of_conversations_and_the_same_ones_stay_in_when_it_grows(share: float) -> None:
    found = TwoPhaseShare(TwoPhaseConfig(enabled=True, share=share))
    taken = [draft.conversation_id for draft in drafts(4000) if found.takes(draft)]
    assert len(taken) == pytest.approx(4000 * share, rel=0.2)
    found.set(min(1.0, share * 1.5))
    assert set(taken) <= {draft.conversation_id for draft in drafts(4000) if found.takes(draft)}


def test_groups_are_in_only_when_the_scope_has_them_and_nothing_is_while_it_is_off() -> None:
    (group,) = drafts(1, Kind.GROUP)
    (single,) = drafts(1)
    assert not TwoPhaseShare(TwoPhaseConfig(enabled=True)).takes(group)
    assert TwoPhaseShare(TwoPhaseConfig(enabled=True, scope="all")).takes(group)
    assert not TwoPhaseShare(TwoPhaseConfig(enabled=False)).takes(single)
    assert not TwoPhaseShare(TwoPhaseConfig(enabled=True, observe=True)).takes(single)

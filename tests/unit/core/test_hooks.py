"""What a webhook wants."""

from __future__ import annotations

import pytest

from harness.core import refused
from nexo.core.hooks import Hook, HookSecret, check_patterns
from nexo.core.webhook_signature import decode_secret, new_secret


def hook(*patterns: str, secrets: tuple[HookSecret, ...] = ()) -> Hook:
    return Hook("h_1", "shop", "http://shop.example/", (), patterns, secrets)


@pytest.mark.parametrize(
    ("patterns", "conversation_id", "expected"),
    [
        ((), "si_a:b", True),
        ((), None, True),
        (("sg_*",), "sg_g_1", True),
        (("sg_*",), "si_a:b", False),
        (("sg_*",), None, False),
        (("si_a:b", "si_*:bot"), "si_x:bot", True),
        (("si_a.b:c",), "si_axb:c", False),
    ],
)
def test_patterns_choose_conversations(patterns: tuple[str, ...], conversation_id: str | None, expected: bool) -> None:
    assert hook(*patterns).wants(conversation_id) is expected


def test_an_expired_secret_signs_no_more() -> None:
    new, old = new_secret(), new_secret()
    made = hook(secrets=(HookSecret(new), HookSecret(old, 1000)))
    assert made.keys(999) == [decode_secret(new), decode_secret(old)]
    assert made.keys(1000) == [decode_secret(new)]


@pytest.mark.parametrize("pattern", ["", "a b", "x" * 141, "si_a/b"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with refused("bad_conversation_id"):
        check_patterns([pattern])
    with refused("bad_conversation_id"):
        check_patterns(f"si_{number}" for number in range(101))

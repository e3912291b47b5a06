"""One emoji and nothing else, by the grammar of Unicode."""

from __future__ import annotations

import pytest

from nexo.core.emoji import check_emoji
from nexo.errors import NexoError

GOOD = {
    "plain": "👍",
    "of the basic plane": "⌚",
    "text by default": "❤",
    "with a variation selector": "❤️",
    "with a skin tone": "👍🏽",
    "family": "👨‍👩‍👧‍👦",
    "profession with a skin tone": "👩🏽‍💻",
    "with a sign": "🤷‍♀️",
    "flag of a region": "🇯🇵",
    "flag of a part": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "rainbow flag": "🏳️‍🌈",
    "keycap": "1️⃣",
    "keycap without a selector": "#⃣",
    "new in Unicode 15": "🫨",
}
BAD = {
    "nothing": "",
    "a letter": "a",
    "a digit": "1",
    "a letter with an accent": "é",
    "Chinese": "好",
    "two": "👍👍",
    "two flags": "🇯🇵🇫🇷",
    "half a flag": "🇯",
    "with a space": "👍 ",
    "with a letter": "👍a",
    "an end that joins nothing": "👍\u200d",
    "a joiner alone": "\u200d",
    "a selector alone": "\ufe0f",
    "two tones": "👍🏽🏽",
    "a line": "👍\n",
    "too long": "🧑🏻‍❤️‍💋‍🧑🏼",
    "very long": "👨" + "\u200d👨" * 500,
    "no text": 7,
}


@pytest.mark.parametrize("emoji", GOOD.values(), ids=GOOD.keys())
def test_an_emoji_is_taken_as_it_is(emoji: str) -> None:
    assert check_emoji(emoji) == emoji


@pytest.mark.parametrize("value", BAD.values(), ids=BAD.keys())
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(NexoError, match="bad_emoji"):
        check_emoji(value)

"""The content filter: what is found, what is masked of the original, and which content is looked at."""

from __future__ import annotations

import copy
import random
import re
import sys
import timeit
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nexo.core import filter as module
from nexo.core.filter import MASK, NO_FILTER, Mode, WordFilter, filter_content, fold


def mask(words: list[str], text: str) -> str:
    verdict = WordFilter(words, "mask").apply(text)
    assert not verdict.rejected
    assert verdict.changed == (verdict.text != text)
    return verdict.text


@pytest.mark.parametrize(
    ("words", "text", "masked"),
    [
        (["bad"], "a bad word", "a *** word"),
        (["bad"], "BAD, Bad, bad", "***, ***, ***"),
        (["bad"], "badbad", "******"),
        (["bad word"], "a bad word", "a ***"),
        (["BAD"], "bad", "***"),
        (["bad"], "ba d", "ba d"),
        (["#bad"], "say #bad", "say ***"),
        (["abc", "cde"], "xabcdex", "x***x"),
        (["abc", "b"], "xabcx", "x***x"),
        (["a", "abc", "c", "bc"], "abc", "***"),
        (["***"], "x *** x", "x *** x"),
        (["坏话"], "这是坏话。", "这是***。"),
        (["bad"], "ｂＡｄ！", "***！"),
        (["bad"], "😀 𝐛𝐚𝐝 😀", "😀 *** 😀"),
        (["straße"], "in der STRASSE 1", "in der *** 1"),
        (["strasse"], "in der Straße 1", "in der *** 1"),
        (["caf\u00e9"], "Cafe\u0301!", "***!"),
        (["cafe\u0301"], "CAF\u00c9!", "***!"),
        (["σίσυφος"], "ΣΊΣΥΦΟΣ", "***"),
        (["가방"], "\u1100\u1161\u1107\u1161\u11bc 안", "*** 안"),
        (["ガ"], "ｶﾞﾊﾞ", "***ﾊﾞ"),
    ],
)
def test_words_are_masked_in_the_original(words: list[str], text: str, masked: str) -> None:
    assert mask(words, text) == masked


@pytest.mark.parametrize(
    ("word", "text", "masked"),
    [
        ("fi", "o\ufb03ce", "o***ce"),  # within the ligature ffi
        ("s", "Straße!", "***tra***e!"),  # ß is two of them
        ("q", "aq\u0303\u0323b", "a***b"),  # the marks go with their letter
        ("e", "caf\u00e9 cafe\u0301", "caf\u00e9 cafe\u0301"),  # é is another letter than e
        ("2", "1\u00bd", "1***"),  # ½ is 1⁄2
        ("i", "\u0130", "***"),  # İ folds to an i and a dot
    ],
)
def test_what_is_matched_in_part_is_masked_whole(word: str, text: str, masked: str) -> None:
    assert mask([word], text) == masked


def test_a_listed_word_is_refused_in_reject_mode() -> None:
    flt = WordFilter(["bad"], "reject")
    assert flt.apply("a BAD word") == ("a BAD word", False, True)
    assert flt.apply("a good word") == ("a good word", False, False)


@pytest.mark.parametrize(
    "flt", [WordFilter(["bad"], "off"), WordFilter([], "mask"), WordFilter([""], "reject"), NO_FILTER]
)
def test_without_words_or_mode_nothing_happens(flt: WordFilter) -> None:
    assert flt.apply("a bad word") == ("a bad word", False, False)


# which content


@pytest.mark.parametrize(
    ("msg_type", "content", "masked"),
    [
        (1, "bad", "***"),
        (7, "so bad", "so ***"),
        (2, {"url": "http://bad/", "name": "bad.png"}, {"url": "http://bad/", "name": "***.png"}),
        (3, {"url": "http://bad/", "name": None}, {"url": "http://bad/", "name": None}),
        (4, {"url": "http://bad/"}, {"url": "http://bad/"}),
        (5, {"name": "bad", "url": "u", "size": 3}, {"name": "***", "url": "u", "size": 3}),
        (
            6,
            {"bad": ["good", "bad", {"x": "bad", "n": 1}], "y": None},
            {"bad": ["good", "***", {"x": "***", "n": 1}], "y": None},
        ),
        (6, {"bad": 1}, {"bad": 1}),
        (101, {"name": "bad"}, {"name": "bad"}),
    ],
)
def test_the_words_of_people_are_filtered_and_nothing_else(msg_type: int, content: Any, masked: Any) -> None:
    before = copy.deepcopy(content)
    assert filter_content(WordFilter(["bad"], "mask"), msg_type, content) == (masked, masked != before, False)
    assert content == before
    assert filter_content(WordFilter(["bad"], "reject"), msg_type, content) == (before, False, masked != before)
    assert filter_content(NO_FILTER, msg_type, content) == (before, False, False)


def test_content_without_listed_words_is_given_back_as_it_is() -> None:
    content = {"a": ["x", {"b": "y"}]}
    assert filter_content(WordFilter(["bad"], "mask"), 6, content)[0] is content


# properties

unhurried = settings(deadline=None)  # a busy machine is no failure

# Characters that join, split, grow and fold, so that random words and texts meet often.
_LETTERS = st.sampled_from(
    "aAbBcC *.éßſıİKﬁﬃǰ½Ⅳ𝐀ａｂ，가각ᄀ坏话"
    "\u0300\u0301\u0323\u0327\u0345\u1161\u11a8\u3099\uff76\uff9e\uffc2\u3133\u09c7\u09be\u0bc6\u0bd7"
)
_TEXTS = st.text(st.one_of(_LETTERS, _LETTERS, st.characters(exclude_categories=["Cs"])), max_size=24)
_WORDS = st.lists(st.text(_LETTERS, min_size=1, max_size=4), max_size=6)


def boundaries(text: str) -> list[int]:
    """By definition, not by walking: where normalizing both sides apart makes no difference, before no mark."""

    def nfkc(part: str) -> str:
        return unicodedata.normalize("NFKC", part)

    def is_mark(character: str) -> bool:
        return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0

    inner = (
        cut
        for cut in range(1, len(text))
        if not is_mark(text[cut]) and nfkc(text[:cut]) + nfkc(text[cut:]) == nfkc(text)
    )
    return [0, *inner, len(text)] if text else [0]


def naive_mask(words: list[str], text: str) -> str:
    """Every word at every place of the folded text, the slow way."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    edges = boundaries(text)
    # How far each boundary is in the folded text.
    reach = [len(unicodedata.normalize("NFKC", text[:edge]).casefold()) for edge in edges]
    hit: set[int] = set()  # segments to mask
    glued: set[int] = set()  # segments that share a match with the one before
    for word in {unicodedata.normalize("NFKC", word).casefold() for word in words}:
        for start in range(len(folded) - len(word) + 1):
            if folded.startswith(word, start):
                touched = [
                    number
                    for number in range(len(edges) - 1)
                    if reach[number] < start + len(word) and reach[number + 1] > start
                ]
                hit.update(touched)
                glued.update(touched[1:])
    pieces = []
    for number in range(len(edges) - 1):
        if number not in hit:
            pieces.append(text[edges[number] : edges[number + 1]])
        elif number not in glued:
            pieces.append(MASK)
    return "".join(pieces)


@unhurried
@given(_WORDS, _TEXTS)
@example(["a"], "aa")
@example(["fi", "if"], "ﬁﬁ")
@example(["\u11a8"], "\u1100\u1161\u11a8")
def test_masking_equals_the_naive_way(words: list[str], text: str) -> None:
    assert mask(words, text) == naive_mask(words, text)


@unhurried
@given(_WORDS, _TEXTS)
def test_modes_agree_on_what_is_listed(words: list[str], text: str) -> None:
    listed = any(fold(word) in fold(text) for word in words)
    # A listed word may look like its mask already.
    assert WordFilter(words, "mask").apply(text).changed == (listed and naive_mask(words, text) != text)
    assert WordFilter(words, "reject").apply(text).rejected == listed


@unhurried
@given(_WORDS.map(lambda words: [word for word in words if "*" not in fold(word)]), _TEXTS)
def test_nothing_listed_is_left_after_masking(words: list[str], text: str) -> None:
    masked = mask(words, text)
    assert not any(fold(word) in fold(masked) for word in words)
    assert mask(words, masked) == masked


@unhurried
@given(_TEXTS)
def test_segments_make_up_the_text_and_fold_apart(text: str) -> None:
    segments = list(module._segments(text))
    assert "".join(segments) == text
    assert "".join(map(fold, segments)) == fold(text) == unicodedata.normalize("NFKC", text).casefold()


_JSON = st.recursive(
    st.none() | st.integers() | st.text("abcé", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@unhurried
@given(_JSON)
def test_in_custom_content_every_string_value_is_filtered(content: Any) -> None:
    flt = WordFilter(["a", "b"], "mask")

    def expected(value: Any) -> Any:
        if isinstance(value, str):
            return flt.apply(value).text
        if isinstance(value, list):
            return [expected(item) for item in value]
        if isinstance(value, dict):
            return {key: expected(item) for key, item in value.items()}
        return value

    assert filter_content(flt, 6, content) == (expected(content), expected(content) != content, False)


@pytest.mark.parametrize("mode", ["mask", "reject"])
def test_a_lone_surrogate_does_no_harm(mode: Mode) -> None:
    assert WordFilter(["bad", "\ud800"], mode).apply("x\udfffx") == ("x\udfffx", False, False)


# what the shortcuts rest on, in the Unicode data of this Python


def all_characters() -> list[str]:
    return [chr(code) for code in range(sys.maxunicode + 1)]


def test_characters_taken_to_stand_alone_never_join_the_one_before() -> None:
    second_of_a_pair = {
        chr(int(parts[1], 16))
        for character in all_characters()
        if len(parts := unicodedata.decomposition(character).split()) == 2 and not parts[0].startswith("<")
    }
    second_of_a_pair.update(map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))))  # Hangul is computed
    for character in filter(module._STANDS_ALONE.match, all_characters()):
        first = unicodedata.normalize("NFKD", character)[0]
        assert not unicodedata.combining(first), hex(ord(character))
        assert first not in second_of_a_pair, hex(ord(character))


def test_every_mark_belongs_to_the_runs_that_are_cut() -> None:
    in_a_run = re.compile(module._LONG_RUN.pattern.partition("{")[0])
    for character in all_characters():
        if unicodedata.combining(unicodedata.normalize("NFKD", character)[0]):
            assert in_a_run.match(character), hex(ord(character))


def test_long_runs_of_marks_are_cut_and_still_masked_exactly() -> None:
    text = "x" * 300 + "bad q" + "\u0301\u0323" * 4000 + "\uff9e\u0301" * 100 + "bad, and caf\u00e9"
    assert max(map(len, module._pieces(text))) < 340
    assert "".join(module._pieces(text)) == text
    assert "".join(map(fold, module._segments(text))) == fold(text)
    flt = WordFilter(["bad", "cafe\u0301"], "mask")
    masked = flt.apply(text).text
    assert masked.startswith("x" * 300 + MASK)
    assert masked.endswith(MASK + ", and " + MASK)


def test_a_clean_message_costs_microseconds_with_thousands_of_words() -> None:
    seeded = random.Random(7)
    words = ["".join(chr(seeded.randrange(0x4E00, 0x9FA5)) for _ in range(3)) for _ in range(2000)]
    flt = WordFilter(words, "mask")
    text = ("Shall we meet tomorrow at nine in front of the big library? " * 4)[:200]
    best_s = min(timeit.repeat(lambda: flt.apply(text), number=100, repeat=10)) / 100
    # Some 3 µs on an idle machine; without the detour over bytes it would be over 100.
    assert best_s < 50e-6

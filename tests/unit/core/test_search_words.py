"""Words of texts and questions: folding, what is found, what is shown of it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexo.core.search_query import SNIPPET_CHARS, Lookup, parse_question
from nexo.core.search_text import MediaKind, media_kind, search_text
from nexo.core.search_words import FOLDED_MAX_CHARS, TERM_MAX_CHARS, fold, folded_places, terms_of
from nexo.errors import NexoError

# letters that fold in unlike ways, with what surrounds words
ALPHABET = "aBz09 ._-\n\"'éÉñß́İıΣςйДж中文字日本語ひらガが゛ﾞｶﾞー한국어각ㄱกำदिक्ไ😀👍🏽‍👩️ﬁＡ①"
texts = st.text(alphabet=ALPHABET, max_size=40) | st.text(max_size=30)


@pytest.mark.parametrize(
    ("text", "query", "is_found"),
    [
        ("Hello World", "wor", True),
        ("Hello World", "orld", False),
        ("Hello World", "world hello", True),
        ("Hello World", "world moon", False),
        ("Hello World", '"hello world"', True),
        ("Hello World", '"hello wor"', False),
        ("Hello,  World", '"hello world"', False),
        ("Hello \n World", '"hello world"', True),
        ("a cat.", '"cat."', True),
        ("a concat.", '"cat."', False),
        ("Crème Brûlée", "creme BRULEE", True),
        ("creme", "crème", True),
        ("Straße", "strasse", True),
        ("ＦＵＬＬ width ①", "full 1", True),
        ("今天天气很好", "天气", True),
        ("今天天气很好", "气", True),
        ("今天天气很好", "气天", False),
        ("今天天气很好", "很好", True),
        ("今天 天气", "天天", False),
        ("買い物リスト", "リス", True),
        ("ﾃﾞｰﾀ", "データ", True),
        ("データ", "テータ", False),
        ("한국어 공부", "국어", True),
        ("用iPhone手机", "iphone 手机", True),
        ("用iPhone手机", "phone", False),
        ("good 👍🏽 job", "👍", True),
        ("family 👨‍👩‍👧", "👩", True),
        ("हिन्दी भाषा", "हिन्", True),
        ("foo_bar-baz", "bar", True),
        ("say “hi there”", "“hi there”", True),
        ("it is 3.14", "3.14", True),
        ('say "so', '"so', True),
    ],
)
def test_words_are_found_by_their_beginning_and_runs_anywhere(text: str, query: str, is_found: bool) -> None:
    question = parse_question(query)
    assert question.matches(text) is is_found
    if is_found:
        assert all(_is_indexed(lookup, terms_of(text)) for lookup in question.lookups)


def _is_indexed(lookup: Lookup, terms: set[str]) -> bool:
    return any(term == lookup.term or (lookup.is_prefix and term.startswith(lookup.term)) for term in terms)


@given(texts, texts)
@example("x" * 40 + "y", "x" * 40)
def test_the_index_names_every_message_that_matches(text: str, query: str) -> None:
    try:
        question = parse_question(query)
    except NexoError:
        return
    if question.matches(text):
        assert all(_is_indexed(lookup, terms_of(text)) for lookup in question.lookups)


@given(texts, st.data())
def test_a_part_of_a_text_is_found_in_it(text: str, data: st.DataObject) -> None:
    words = fold(text).split()
    if not words:
        return
    chosen = data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3))
    try:
        question = parse_question(" ".join(chosen).replace('"', " "))
    except NexoError:
        return
    assert question.matches(text)


@given(texts)
def test_terms_hold_nothing_that_separates_them(text: str) -> None:
    for term in terms_of(text):
        assert 0 < len(term) <= TERM_MAX_CHARS
        assert not set(term) & set(" \t\n\"'.:*()")
        assert term.isascii() is False or term.isalnum()


@given(texts)
def test_what_a_snippet_marks_is_what_was_asked_for(text: str) -> None:
    for word in fold(text).replace('"', " ").split()[:2]:
        try:
            question = parse_question(word)
        except NexoError:
            continue
        snippet = question.snippet(text)
        assert snippet.text in text
        ends = [0, *(place for pair in snippet.ranges for place in pair), len(snippet.text)]
        assert ends == sorted(ends)
        if text == unicodedata.normalize("NFC", text) and folded_places(text) is not None:
            assert snippet.ranges
            assert all(fold(snippet.text[low:high]) for low, high in snippet.ranges)


def test_a_snippet_of_a_long_text_shows_the_first_place_and_what_is_around_it() -> None:
    text = "x" * 500 + " Ünïcode " + "y" * 500
    snippet = parse_question("unicode").snippet(text)
    ((low, high),) = snippet.ranges
    assert (snippet.text[low:high], len(snippet.text)) == ("Ünïcode", SNIPPET_CHARS)
    assert low == 40


def _calls_of(work: Callable[[], object]) -> int:
    """Returns how many functions are called: what it costs, on a machine of any speed."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (
            "\ufdfa" * 3900 + " \u0644 \u0644\u0644 \u0644\u0647",
            "\u0644 \u0644\u0644 \u0644\u0647",
        ),  # folds to eighteen
        ("xa" * 2000 + " a aa aaa", "a aa aaa"),  # letters that begin no word
        ("a  " * 1300 + " b", '"' + "a " * 100 + 'b"'),
        ("中文" * 2000, "中 文 中文"),
    ],
)
def test_no_text_makes_a_question_expensive(text: str, query: str) -> None:
    question = parse_question(query)
    assert _calls_of(lambda: question.matches(text)) < 200
    assert _calls_of(lambda: question.snippet(text)) < 6 * len(text) + 1000
    assert len(fold(text)) <= 2 * FOLDED_MAX_CHARS


@pytest.mark.parametrize("query", ["", " ", "!?", '""', "x" * 257, "a " * 33 + "".join(f" w{i}" for i in range(40))])
def test_a_question_without_words_or_with_too_many_is_refused(query: str) -> None:
    with pytest.raises(NexoError, match="bad_query"):
        parse_question(query)


def test_names_and_captions_of_files_are_searched() -> None:
    content = '{"url":"https://x/y","name":"Report 2024.pdf","size":3}'
    assert search_text(5, content, '{"caption":"for you"}') == "Report 2024.pdf\nfor you"
    assert search_text(6, '{"title":"Vote","text":"today","x":1}') == "Vote\ntoday"
    assert (
        search_text(8, '{"title":"Chat","items":[{"content":"hi"},{"content":{"name":"a.png"}}]}') == "Chat\nhi\na.png"
    )
    assert search_text(100, '{"server_msg_id":"1"}') == ""


def test_the_kind_of_media_follows_from_type_and_text() -> None:
    assert media_kind(2, "") == MediaKind.PHOTO
    assert media_kind(1, "see HTTPS://example.com/x") == MediaKind.LINK
    assert media_kind(1, "no link: http:// here") == 0
    assert media_kind(6, "https://example.com") == 0

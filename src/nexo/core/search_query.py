"""A question to search: which entries of the index it asks for, which texts it matches, and which part of them is
shown.

A word is found by its beginning. Text in writing without spaces is found anywhere. Text in quotation marks is found
exactly. The index only names candidates: `Question.matches` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from nexo.core.search_words import (
    NO_WORD_BEFORE,
    NO_WORD_BEHIND,
    TERM_MAX_CHARS,
    Token,
    fold,
    is_word_char,
    pairs_of,
    places_until,
    tokens,
)
from nexo.errors import NexoError

QUERY_MAX_CHARS = 256
PARTS_MAX = 32
LOOKUPS_MAX = 16
SNIPPET_CHARS = 160
BEFORE_CHARS = 40  # of a snippet, before the first place that matches

Range = tuple[int, int]
_QUOTATION_MARKS = str.maketrans("“”„‟", '""""')


class Lookup(NamedTuple):
    """A term of the index, or with `is_prefix` all that begin with it."""

    term: str
    is_prefix: bool


class Snippet(NamedTuple):
    """A part of a text. `ranges` are the places that match, in characters from its beginning, ends excluded."""

    text: str
    ranges: list[Range]


class _Part(NamedTuple):
    # What may stand around a word is a part of the pattern: a text can have thousands of places that are none, and a
    # step of Python for each of them would block everything else.
    pattern: re.Pattern[str]

    def first(self, folded: str) -> int | None:
        found = self.pattern.search(folded)
        return None if found is None else found.start()

    def places(self, folded: str, begin: int, end: int) -> Iterator[Range]:
        """Returns the places that begin in this range."""
        spans = (found.span() for found in self.pattern.finditer(folded, begin))
        return takewhile(lambda span: span[0] < end, spans)


def _part(words: list[str], *, starts_word: bool, ends_word: bool) -> _Part:
    """Returns the part that these words make, one behind the other. The text is looked for before what stands around
    it, which is slower to compare; spaces that were passed are not tried again."""
    first, *others = map(re.escape, words)
    before = NO_WORD_BEFORE.format(first) if starts_word else ""
    return _Part(re.compile(r"\s++".join((first + before, *others)) + (NO_WORD_BEHIND if ends_word else "")))


class Question(NamedTuple):
    parts: tuple[_Part, ...]
    lookups: tuple[Lookup, ...]  # every match has all of them

    def matches(self, text: str) -> bool:
        folded = fold(text)
        return all(part.first(folded) is not None for part in self.parts)

    def snippet(self, text: str) -> Snippet:
        """Returns the part of a matching text that shows why it matches."""
        folded = fold(text)
        begins = [place for part in self.parts if (place := part.first(folded)) is not None]
        first = min(begins, default=0)
        # where each character of the folded text begins in the text: as far as the snippet can reach
        places = range(len(text) + 1) if text.isascii() else places_until(text, folded, first, SNIPPET_CHARS)
        if not begins or not places:
            return Snippet(text[:SNIPPET_CHARS], [])
        shown_from = 0
        if len(text) > SNIPPET_CHARS:
            shown_from = max(0, min(places[first] - BEFORE_CHARS, len(text) - SNIPPET_CHARS))
        shown_to = min(len(text), shown_from + SNIPPET_CHARS)
        known = len(places) - 1
        found = (place for part in self.parts for place in part.places(folded, first, known))
        ranges = _merged([_in_text(places, low, min(high, known)) for low, high in found])
        shown = [(low - shown_from, min(high, shown_to) - shown_from) for low, high in ranges if low < shown_to]
        return Snippet(text[shown_from:shown_to], shown)


def _in_text(places: Sequence[int], start: int, end: int) -> Range:
    low, high = places[start], places[end]
    while end + 1 < len(places) and (high <= low or places[end] == places[end - 1]):
        end += 1  # within a character that folds to several: all of it
        high = places[end]
    return low, high


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def parse_question(query: str) -> Question:
    """Raises `bad_query` for one that is too long, or asks for nothing."""
    if len(query) > QUERY_MAX_CHARS:
        raise NexoError("bad_query", f"A question has at most {QUERY_MAX_CHARS} characters")
    pieces = fold(query.translate(_QUOTATION_MARKS)).split('"')
    parts: list[_Part] = []
    lookups: list[Lookup] = []
    for i, piece in enumerate(pieces):
        is_quoted = i % 2 == 1 and i + 1 < len(pieces)  # one that is not closed does not count
        words = list(tokens(piece))
        if is_quoted and words:
            parts.append(_exactly(piece))
        for token in words:
            if not is_quoted:
                parts.append(_part([token.text], starts_word=not token.is_run, ends_word=False))
            lookups += _lookups(token, is_quoted)
    if not parts:
        raise NexoError("bad_query", "A question needs a letter, a digit or another character that can be searched")
    if len(parts) > PARTS_MAX:
        raise NexoError("bad_query", f"A question has at most {PARTS_MAX} words")
    return Question(tuple(dict.fromkeys(parts)), tuple(dict.fromkeys(lookups))[:LOOKUPS_MAX])


def _exactly(piece: str) -> _Part:
    words = piece.split()
    return _part(words, starts_word=is_word_char(words[0][0]), ends_word=is_word_char(words[-1][-1]))


def _lookups(token: Token, is_quoted: bool) -> list[Lookup]:
    if not token.is_run:
        return [Lookup(token.text[:TERM_MAX_CHARS], not is_quoted)]
    if len(token.text) == 1:
        return [Lookup(token.text, True)]
    return [Lookup(pair, False) for pair in pairs_of(token.text)]

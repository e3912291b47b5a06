"""A question to search: which entries of the index it asks for, which texts it matches, and which part of them is
shown.

A word is found by its beginning. Text in writing without spaces is found anywhere. Text in quotation marks is found
exactly. The index only names candidates: `Question.matches` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from nexo.core.search_words import (
    TERM_MAX_CHARS,
    Token,
    fold,
    folded_places,
    is_word_char,
    pairs_of,
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
    pattern: re.Pattern[str]
    starts_word: bool  # no letter may stand before it
    ends_word: bool  # nor behind it

    def places(self, folded: str) -> Iterator[Range]:
        for found in self.pattern.finditer(folded):
            start, end = found.span()
            if self.starts_word and start and is_word_char(folded[start - 1]):
                continue
            if self.ends_word and end < len(folded) and is_word_char(folded[end]):
                continue
            yield start, end


class Question(NamedTuple):
    parts: tuple[_Part, ...]
    lookups: tuple[Lookup, ...]  # every match has all of them

    def matches(self, text: str) -> bool:
        folded = fold(text)
        return all(next(part.places(folded), None) is not None for part in self.parts)

    def snippet(self, text: str) -> Snippet:
        """Returns the part of a matching text that shows why it matches."""
        folded = fold(text)
        found = sorted(place for part in self.parts for place in part.places(folded))
        ranges = _merged(_in_text(text, folded, found))
        first = ranges[0][0] if ranges else 0
        start = 0 if len(text) <= SNIPPET_CHARS else max(0, min(first - BEFORE_CHARS, len(text) - SNIPPET_CHARS))
        end = min(len(text), start + SNIPPET_CHARS)
        shown = [(low - start, min(high, end) - start) for low, high in ranges if start <= low < end]
        return Snippet(text[start:end], shown)


def _in_text(text: str, folded: str, found: list[Range]) -> list[Range]:
    if text.isascii():
        return found
    places = folded_places(text)
    if places is None or len(places) != len(folded) + 1:
        return []
    ranges = []
    for start, end in found:
        low, high = places[start], places[end]
        while high <= low or (end < len(folded) and places[end] == places[end - 1]):
            end += 1  # within a character that folds to several: all of it
            high = places[end]
        ranges.append((low, high))
    return ranges


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
                parts.append(_Part(re.compile(re.escape(token.text)), not token.is_run, False))
            lookups += _lookups(token, is_quoted)
    if not parts:
        raise NexoError("bad_query", "A question needs a letter, a digit or another character that can be searched")
    if len(parts) > PARTS_MAX:
        raise NexoError("bad_query", f"A question has at most {PARTS_MAX} words")
    return Question(tuple(dict.fromkeys(parts)), tuple(dict.fromkeys(lookups))[:LOOKUPS_MAX])


def _exactly(piece: str) -> _Part:
    words = piece.split()
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    return _Part(pattern, is_word_char(words[0][0]), is_word_char(words[-1][-1]))


def _lookups(token: Token, is_quoted: bool) -> list[Lookup]:
    if not token.is_run:
        return [Lookup(token.text[:TERM_MAX_CHARS], not is_quoted)]
    if len(token.text) == 1:
        return [Lookup(token.text, True)]
    return [Lookup(pair, False) for pair in pairs_of(token.text)]

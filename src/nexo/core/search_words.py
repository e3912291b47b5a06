"""Words of a text, the same for the index of search and for its questions.

Case, accents and compatibility forms are folded. In writing with spaces a word is a run of letters and digits, and is
found by its beginning. In Chinese, Japanese, Korean and other writing without spaces, and among emoji, every run of
characters is found: such a run is indexed as its pairs of characters side by side, and its last one alone.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

# Of a folded text; what is behind it is not searched. No message has more in ordinary writing, but there are characters
# that fold to eighteen.
FOLDED_MAX_CHARS = 16_384
TERM_MAX_CHARS = 32  # of a word in the index; what follows is compared with the message itself

# writing without spaces, and emoji: every character counts by itself
_UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"  # Thai, Lao, Burmese; Korean letters; Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u3099-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua48c"
    "\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u00a9\u00ae\u2190-\u21ff\u2300-\u23ff\u2500-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\U0001f000-\U0001faff"
)
_INDIC = "\u0900-\u0963\u0966-\u0dff"  # with vowel signs, which are no letters by themselves
_WORD = rf"(?:[^\W_{_UNSPACED}]|[{_INDIC}])"
_TOKENS = re.compile(f"([{_UNSPACED}]+)|{_WORD}+")
# For patterns: no word ends where the text begins that is put between the braces, and has just been found; none begins.
NO_WORD_BEFORE, NO_WORD_BEHIND = f"(?<!{_WORD}{{}})", f"(?!{_WORD})"
_word_char = re.compile(_WORD).fullmatch
_ascii_words = re.compile("[a-z0-9]+").findall

_VARIATIONS = (0xFE00, 0xFE0F), (0xE0001, 0xE01EF)  # and tags
_MARKS_END = 0x1E94B  # no mark is above it
_KANA_VOICED = "\uff9e\uff9f"  # of half width: they join the character before them


class Token(NamedTuple):
    start: int
    text: str
    is_run: bool  # of writing without spaces


@cache
def _drop() -> Callable[[str, str], str]:
    """Returns a substitution for accents and characters that are not shown. Vowel signs and the voiced marks of
    Japanese stay: they make another word."""
    found: list[str] = []
    for code in range(0xAD, _MARKS_END):
        combining = unicodedata.combining(chr(code))
        is_accent = 10 <= combining <= 36 or combining >= 200
        if is_accent or unicodedata.category(chr(code)) == "Cf":
            found.append(chr(code))
    listed = re.escape("".join(found))
    ranges = "".join(f"{chr(low)}-{chr(high)}" for low, high in _VARIATIONS)
    return re.compile(f"[{listed}{ranges}]").sub


def fold(text: str) -> str:
    """Returns the text as it is compared."""
    if text.isascii():
        return text.lower()
    composed = unicodedata.normalize("NFKC", text)[:FOLDED_MAX_CHARS]
    plain = unicodedata.normalize("NFKD", composed.casefold())
    return unicodedata.normalize("NFKC", _drop()("", plain))


def tokens(folded: str) -> Iterator[Token]:
    """Returns the words and runs of a folded text, in order."""
    for found in _TOKENS.finditer(folded):
        yield Token(found.start(), found[0], found[1] is not None)


def is_word_char(character: str) -> bool:
    return _word_char(character) is not None


def terms_of(text: str) -> set[str]:
    """Returns what a text is indexed by."""
    folded = fold(text)
    if folded.isascii():
        return {word[:TERM_MAX_CHARS] for word in _ascii_words(folded)}
    found: set[str] = set()
    for token in tokens(folded):
        if token.is_run:
            found.update(pairs_of(token.text))
            found.add(token.text[-1])
        else:
            found.add(token.text[:TERM_MAX_CHARS])
    return found


def pairs_of(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def folded_places(text: str) -> list[int] | None:
    """Returns for each character of the folded text, and for its end, where it begins in the text. None in the rare
    case that folding part by part gives another result."""
    folded = fold(text)
    return places_until(text, folded, len(folded), 0)


def places_until(text: str, folded: str, first: int, more: int) -> list[int] | None:
    """As `folded_places`, up to `more` characters of the text behind the place `first` of the folded one."""
    places: list[int] = []
    last = len(text)
    for start, part in _parts(text):
        if start >= last:
            return [*places, start]
        piece = _fold_part(part)
        if not folded.startswith(piece, len(places)):
            return None
        places.extend([start] * len(piece))
        if last == len(text) and len(places) > first:
            last = start + len(part) + more
    return [*places, len(text)] if len(places) == len(folded) else None


@lru_cache(8192)
def _fold_part(part: str) -> str:
    return fold(part)


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Returns the pieces of a text that fold by themselves: a character and what joins it."""
    start = 0
    for i in range(1, len(text) + 1):
        if i == len(text) or not _joins(text[i]):
            yield start, text[start:i]
            start = i


def _joins(character: str) -> bool:
    code = ord(character)
    if code < 0x300 or code > sys.maxunicode:
        return False
    is_korean_part = 0x1160 <= code <= 0x11FF
    return is_korean_part or character in _KANA_VOICED or unicodedata.combining(character) != 0

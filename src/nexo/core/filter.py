"""The content filter: finds listed words in messages, and masks or refuses them.

Words and text are compared after NFKC and case folding. Both change lengths, so a match in the folded text is mapped
back to the part of the original text that it was made from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise
from typing import Any, Literal, NamedTuple

import ahocorasick

from nexo.core.model import MsgType

Mode = Literal["mask", "reject", "off"]
MASK = "***"

_TEXT_TYPES = frozenset((MsgType.TEXT, MsgType.QUOTE))
_MEDIA_TYPES = frozenset((MsgType.IMAGE, MsgType.VIDEO, MsgType.AUDIO, MsgType.FILE))

# Characters of common scripts that never join the one before them when normalized: Latin, Greek and
# Cyrillic, ideographs and kana with their punctuation, Hangul syllables, full-width forms. It only saves
# time: any other character is tested. A test proves the list against the Unicode data in use.
_STANDS_ALONE = re.compile(
    "[\0-\u02ff\u0370-\u0482\u048a-\u0590\u3000-\u3029\u3030-\u3098\u309d-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9d]"
)
_HARMLESS_CHARS = 256
# A character that joins the one before it as a mark is no letter or digit, except two Japanese signs.
_LONG_RUN = re.compile("[\\W\uff9e\uff9f]{30}(?=[\\W\uff9e\uff9f])")
_FULL_WIDTH = re.compile("[\u3000\uff01-\uff5e]")


class FilterVerdict(NamedTuple):
    text: str
    changed: bool
    rejected: bool


class WordFilter:
    def __init__(self, words: Iterable[str], mode: Mode) -> None:
        self.mode = mode
        self._automaton: Any = None
        keys = {_as_bytes(fold(word)) for word in words} - {""}
        if keys and mode != "off":
            self._automaton = ahocorasick.Automaton(ahocorasick.STORE_LENGTH)
            for key in keys:
                self._automaton.add_word(key)
            self._automaton.make_automaton()

    @property
    def is_empty(self) -> bool:
        return self._automaton is None

    def apply(self, text: str) -> FilterVerdict:
        if self._automaton is None:
            return FilterVerdict(text, False, False)
        searched = text.lower() if text.isascii() else _as_bytes(fold(text))
        # Nearly every message ends here: only messages with a listed word pay for mapping back.
        if next(self._automaton.iter(searched), None) is None:
            return FilterVerdict(text, False, False)
        if self.mode == "reject":
            return FilterVerdict(text, False, True)
        masked = self._mask(text, searched)
        return FilterVerdict(masked, masked != text, False)

    def _mask(self, text: str, searched: str) -> str:
        stretches = _merged((end - length + 1, end + 1) for end, length in self._automaton.iter(searched))
        if not text.isascii():
            stretches = _in_original(text, stretches)
        pieces: list[str] = []
        position = 0
        for start, end in stretches:
            pieces += (text[position:start], MASK)
            position = end
        return "".join((*pieces, text[position:]))


NO_FILTER = WordFilter((), "off")


def filter_content(flt: WordFilter, msg_type: int, content: Any) -> tuple[Any, bool, bool]:
    """Returns (content, changed, rejected). The argument is not altered; masking makes a copy.

    Written text is in texts and quotes, in the name and the caption of media, and in every string of a custom object
    (its keys are the application's).
    """
    if msg_type in _TEXT_TYPES or msg_type == MsgType.CUSTOM:
        return _filter_value(flt, content)
    if msg_type in _MEDIA_TYPES and isinstance(content, dict):
        written = {key: content[key] for key in ("name", "text") if key in content}
        masked, changed, rejected = _filter_value(flt, written)
        return ({**content, **masked} if changed else content), changed, rejected
    return content, False, False


def _filter_value(flt: WordFilter, value: Any) -> tuple[Any, bool, bool]:
    if isinstance(value, str):
        return flt.apply(value)
    if not isinstance(value, (dict, list)):
        return value, False, False
    changes: dict[Any, Any] = {}
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        masked, changed, rejected = _filter_value(flt, item)
        if rejected:
            return value, False, True
        if changed:
            changes[key] = masked
    if not changes:
        return value, False, False
    if isinstance(value, dict):
        return {**value, **changes}, True, False
    return [changes.get(index, item) for index, item in enumerate(value)], True, False


def fold(text: str) -> str:
    """Returns the form in which words and texts are compared."""
    return "".join(map(_fold_piece, _pieces(text)))


def _fold_piece(text: str) -> str:
    # One full-width comma makes normalizing a Chinese message six times slower than replacing it beforehand.
    narrow = _FULL_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    return unicodedata.normalize("NFKC", narrow).casefold()


def _pieces(text: str) -> list[str]:
    """Returns the text with very long runs of marks cut: normalizing sorts each run in quadratic time.

    Uncut, one message of 16 KiB could block the event loop for a tenth of a second.
    """
    if len(text) <= _HARMLESS_CHARS:
        return [text]
    cuts = [found.end() for found in _LONG_RUN.finditer(text)]
    return [text[start:end] for start, end in pairwise((0, *cuts, len(text)))]


def _as_bytes(folded: str) -> str:
    """Returns UTF-8 with one character per byte, the input of the automaton.

    The automaton visits the children of a node one by one. With two thousand Chinese words at the root this takes
    106 µs for a message of 200 characters, and 4 µs with at most 256 children. The matches are the same: in UTF-8 no
    word begins inside a character.
    """
    return folded.encode("utf-8", "surrogatepass").decode("latin-1")


def _merged(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges overlapping stretches, which are given in the order of their ends."""
    merged: list[tuple[int, int]] = []
    for start, end in stretches:
        while merged and start < merged[-1][1]:
            start = min(start, merged.pop()[0])
        merged.append((start, end))
    return merged


def _in_original(text: str, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Maps stretches of the folded bytes back to stretches of the original, widened to whole segments."""
    segments = list(_segments(text))
    origins = list(accumulate(map(len, segments), initial=0))
    # For each byte of the folded text, the segment it comes from.
    owners = [number for number, segment in enumerate(segments) for _ in _as_bytes(fold(segment))]
    return _merged((origins[owners[start]], origins[owners[end - 1] + 1]) for start, end in stretches)


def _segments(text: str) -> Iterator[str]:
    """Yields the smallest pieces that can be normalized independently of each other.

    Folded one by one and joined, they give the folded text: case folding looks at single characters only.
    """
    for piece in _pieces(text):
        segment = ""
        for character in piece:
            if segment and _begins_segment(segment, character):
                yield segment
                segment = character
            else:
                segment += character
        if segment:
            yield segment


def _begins_segment(before: str, character: str) -> bool:
    if _STANDS_ALONE.match(character):
        return True
    first = unicodedata.normalize("NFKD", character)[0]
    if unicodedata.combining(first):
        return False
    # Some characters that are not marks join all the same: the vowels and finals of Hangul, for example.
    apart = unicodedata.normalize("NFKC", before) + unicodedata.normalize("NFKC", character)
    return unicodedata.normalize("NFKC", before + character) == apart

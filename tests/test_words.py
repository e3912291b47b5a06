"""Plain words, checked: the short list of words that do not belong in code, comments, messages and pages.

A reader from any country should understand each sentence at once. Every violation of a run is listed, with its place.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

PLACES = (
    "src/nexo/**/*",
    "clients/*/src/**/*",
    "clients/*/README.md",
    "docs/**/*.md",
    "deploy/**/*",
    "deploy/.env.example",
    "examples/**/*",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
TEXTS = {".py", ".js", ".mjs", ".ts", ".css", ".html", ".lua", ".mako", ".md", ".yaml", ".yml", ".conf", ".service"}
TEXT_NAMES = {"Dockerfile", ".env.example"}

# Word or phrase → what to write instead.
WORDS = {
    "whoever": "the caller, the owner, any instance that …",
    "whomever": "name the receiver",
    "whichever": "any, the one that",
    "somebody": "a user, a client, a caller",
    "someone else": "another user, another process",
    "everybody": "all members, all clients",
    "nobody": "no client, no instance",
    "nothing but": "only",
    "those who": "members that, clients that",
    "who are": "that are",
    "told": "sent to, notified, reported",
    "tells": "sends, reports, states",
    "said": "stated, sent",
    "came": "arrived, was received",
    "went": "was sent, was removed, failed",
    "here and there": "name the places",
    "elsewhere": "on other instances, in other code",
    "comes back": "returns, is returned",
    "goes on": "continues",
    "a while": "name the time, or: a short time",
    "the others": "other instances, other callers",
    "telegram": "cluster message",
    "telegrams": "cluster messages",
    "neighbour": "sibling, other message of the batch",
    "neighbours": "siblings, other messages of the batch",
    "seed": "the legacy API, or the name of the route",
    "lets go": "releases",
    "is good for": "is valid for, suits",
    "of its own accord": "without a request",
}

# Files (a pattern) → word → why it is right there. "*" is every word.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "src/nexo/web/i18n/*.js": {
        "nobody": "texts for people, and their keys",
        "everybody": "texts for people, and their keys",
        "whoever": "texts for people",
        "told": "texts for people",
        "somebody": "texts for people",
        "those who": "texts for people",
    },
    "src/nexo/web/js/components/picker.js": {"nobody": "the key of a text"},
    "src/nexo/web/js/views/results.js": {"nobody": "the key of a text"},
    "src/nexo/web/js/views/settings.js": {"everybody": "a value of the API", "nobody": "a value of the API"},
    "src/nexo/web/admin/console-texts.js": {"everybody": "texts for people"},
    "src/nexo/core/people.py": {"everybody": "a value of the API", "nobody": "a value of the API"},
    "docs/http.md": {"everybody": "a value of the API", "nobody": "a value of the API"},
    "docs/people.md": {"everybody": "a value of the API", "nobody": "a value of the API"},
    "clients/js/src/types.js": {"everybody": "a value of the API", "nobody": "a value of the API"},
    "clients/python/src/nexo_client/types.py": {"everybody": "a value of the API", "nobody": "a value of the API"},
    "src/nexo/bench/*.py": {"seed": "the start value of a generator of random numbers"},
    "src/nexo/web/js/views/shell.js": {"elsewhere": "a field of the dialog `signed in elsewhere`"},
    "src/nexo/web/js/dialogs/account.js": {"elsewhere": "ids of the dialog `signed in elsewhere`"},
    "src/nexo/cli/bench.py": {"seed": "the start value of a generator of random numbers"},
}

# A phrase may be broken over two lines, the second of which may begin with the mark of a comment.
GAP = r"\s+(?:(?:#|//|--|\*)\s*)?"
# longer ones first, so that a phrase is found before a word in it
PHRASES = (GAP.join(phrase.split()) for phrase in sorted(WORDS, key=len, reverse=True))
WRONG = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.IGNORECASE)


class Found(NamedTuple):
    file: str
    line: int
    word: str


@cache
def found() -> list[Found]:
    """Every word of the list, in every file that the rule is for."""
    return [
        Found(path.relative_to(ROOT).as_posix(), text.count("\n", 0, match.start()) + 1, plain(match[0]))
        for place in PLACES
        for path in sorted(ROOT.glob(place))
        if path.is_file() and (path.suffix in TEXTS or path.name in TEXT_NAMES)
        for text in (path.read_text(encoding="utf-8"),)
        for match in WRONG.finditer(text)
    ]


def plain(phrase: str) -> str:
    return re.sub(r"[\s#*/-]+", " ", phrase).lower()


def is_allowed(one: Found) -> bool:
    return any(fnmatch(one.file, place) and {one.word, "*"} & words.keys() for place, words in EXCEPTIONS.items())


def test_the_words_are_plain() -> None:
    wrong = [f"{one.file}:{one.line} {one.word!r}: write {WORDS[one.word]}" for one in found() if not is_allowed(one)]
    if wrong:
        pytest.fail(f"{len(wrong)} words that do not belong:\n" + "\n".join(wrong), pytrace=False)


def test_every_exception_is_needed() -> None:
    unused = [
        f"{place}: {word}"
        for place, words in EXCEPTIONS.items()
        for word in words
        if not any(fnmatch(one.file, place) and word in ("*", one.word) for one in found())
    ]
    assert not unused, "\n".join(unused)


def test_phrases_are_found_over_the_end_of_a_line_and_words_only_as_a_whole() -> None:
    assert [plain(match[0]) for match in WRONG.finditer("# Those\n    # who are told; saved_elsewhere, seeds")] == [
        "those who",
        "told",
    ]

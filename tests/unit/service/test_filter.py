"""The word list file: its form, and how changes to it are taken over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from nexo.errors import StartupError
from nexo.service.filter import FilterFile, load_words


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("bad\n", encoding="utf-8")
    return path


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_there_is_one_word_per_line_and_blank_lines_are_ignored(words: Path) -> None:
    words.write_bytes(b"\xef\xbb\xbfbad\r\n\n  two words \n#tag\n\xe5\x9d\x8f\n \n")
    assert load_words(words) == ["bad", "two words", "#tag", "坏"]


def test_a_line_that_is_not_utf8_is_named(words: Path) -> None:
    words.write_bytes(b"bad\ncaf\xe9\n")
    with pytest.raises(StartupError) as caught:
        load_words(words)
    assert str(caught.value) == f"line 2 of the word list {words} (filter.file) is not UTF-8"


@pytest.mark.parametrize("read", [load_words, lambda path: FilterFile(path, "mask")])
def test_a_missing_file_is_named(tmp_path: Path, read: type[FilterFile]) -> None:
    with pytest.raises(StartupError) as caught:
        read(tmp_path / "none.txt")  # type: ignore[call-arg]
    assert str(tmp_path / "none.txt") in str(caught.value)


def test_a_changed_file_is_read_again_once_a_second(words: Path, clock: Clock) -> None:
    file = FilterFile(words, "mask", clock)
    first = file.current()
    assert first.apply("bad evil").text == "*** evil"
    words.write_text("evil\n", encoding="utf-8")
    clock.now_s += 0.9
    assert file.current() is first
    clock.now_s += 0.2
    assert file.current().apply("bad evil").text == "bad ***"


def test_an_unchanged_file_is_not_read_again(words: Path, clock: Clock) -> None:
    file = FilterFile(words, "mask", clock)
    first = file.current()
    clock.now_s += 60
    assert file.current() is first


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_noticed(words: Path, clock: Clock) -> None:
    file = FilterFile(words, "mask", clock)
    status = words.stat()
    other = words.with_suffix(".new")
    other.write_text("sad\n", encoding="utf-8")
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(words)
    clock.now_s += 2
    assert file.current().apply("bad sad").text == "bad ***"


def test_the_old_list_stays_while_the_new_one_cannot_be_read_and_it_is_logged_once(words: Path, clock: Clock) -> None:
    file = FilterFile(words, "mask", clock)
    words.write_bytes(b"caf\xe9\n")
    with capture_logs() as logs:
        for _ in range(3):
            clock.now_s += 2
            assert file.current().apply("bad").text == "***"
        words.unlink()
        clock.now_s += 2
        assert file.current().apply("bad").text == "***"
    assert ["is not UTF-8" in entry["reason"] for entry in logs] == [True, False]
    words.write_text("evil\n", encoding="utf-8")
    clock.now_s += 2
    assert file.current().apply("bad evil").text == "bad ***"


def test_without_a_file_or_switched_off_nothing_is_filtered(tmp_path: Path, clock: Clock) -> None:
    for file in (FilterFile(None, "mask", clock), FilterFile(tmp_path / "none.txt", "off", clock)):
        clock.now_s += 2
        assert file.current().apply("bad") == ("bad", False, False)

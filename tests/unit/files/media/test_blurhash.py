from __future__ import annotations

from nexo.files.media.blurhash import blurhash

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"


def number(text: str) -> int:
    value = 0
    for digit in text:
        value = value * 83 + DIGITS.index(digit)
    return value


def test_a_placeholder_has_28_characters_of_ascii() -> None:
    pixels = [(x * 8, y * 8, 100) for y in range(24) for x in range(32)]
    made = blurhash(pixels, 32, 24)
    assert len(made) == 28
    assert made.isascii()
    assert number(made[0]) == (4 - 1) + (3 - 1) * 9


def test_a_tall_picture_has_more_waves_downwards() -> None:
    assert number(blurhash([(1, 2, 3)] * 8, 2, 4)[0]) == (3 - 1) + (4 - 1) * 9


def test_the_mean_colour_of_one_colour_is_that_colour() -> None:
    assert number(blurhash([(200, 16, 64)] * 16, 4, 4)[2:6]) == (200 << 16) + (16 << 8) + 64


def test_waves_show_where_it_is_light() -> None:
    """The first wave runs across: its amplitude is positive where the left side is lighter."""
    left_is_light = [(255, 255, 255) if x < 16 else (0, 0, 0) for _ in range(32) for x in range(32)]
    right_is_light = [(0, 0, 0) if x < 16 else (255, 255, 255) for _ in range(32) for x in range(32)]
    first = [number(blurhash(pixels, 32, 32)[6:8]) // (19 * 19) for pixels in (left_is_light, right_is_light)]
    assert first[0] > 9 > first[1]

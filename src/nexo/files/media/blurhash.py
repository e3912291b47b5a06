"""The placeholder of a picture: a BlurHash, 28 characters that say how its colours are spread.

The format is public and has decoders for every platform. Its parts, each a number with the base 83: how many waves
there are in either direction, the largest amplitude, the mean colour, then the amplitudes of the waves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~"

Colour = tuple[float, float, float]

_LINEAR = [value / 255 / 12.92 if value <= 10 else ((value / 255 + 0.055) / 1.055) ** 2.4 for value in range(256)]


def blurhash(pixels: Sequence[tuple[int, int, int]], width: int, height: int) -> str:
    """Returns the hash of a picture, given row by row. A small copy is enough: about 32 pixels a side."""
    across, down = (4, 3) if width >= height else (3, 4)
    linear = [(_LINEAR[red], _LINEAR[green], _LINEAR[blue]) for red, green, blue in pixels]
    waves_x = [[cos(pi * i * x / width) for x in range(width)] for i in range(across)]
    waves_y = [[cos(pi * j * y / height) for y in range(height)] for j in range(down)]
    factors = [_factor(linear, waves_x[i], waves_y[j], i == j == 0) for j in range(down) for i in range(across)]
    mean, waves = factors[0], factors[1:]
    largest = max(abs(part) for wave in waves for part in wave)
    step = max(0, min(82, int(largest * 166 - 0.5)))
    scale = (step + 1) / 166
    return "".join(
        (
            _digits((across - 1) + (down - 1) * 9, 1),
            _digits(step, 1),
            _digits(_mean_value(mean), 4),
            *(_digits(_wave_value(wave, scale), 2) for wave in waves),
        )
    )


def _factor(linear: list[Colour], wave_x: list[float], wave_y: list[float], is_mean: bool) -> Colour:
    red = green = blue = 0.0
    place = 0
    for at_y in wave_y:
        for at_x in wave_x:
            weight = at_x * at_y
            colour = linear[place]
            red += weight * colour[0]
            green += weight * colour[1]
            blue += weight * colour[2]
            place += 1
    share = (1 if is_mean else 2) / len(linear)
    return red * share, green * share, blue * share


def _mean_value(colour: Colour) -> int:
    red, green, blue = (_standard(part) for part in colour)
    return (red << 16) + (green << 8) + blue


def _standard(part: float) -> int:
    """Returns a linear share of a colour as a byte of sRGB."""
    part = max(0.0, min(1.0, part))
    shown = part * 12.92 if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055
    return int(shown * 255 + 0.5)


def _wave_value(wave: Colour, scale: float) -> int:
    value = 0
    for part in wave:
        share = part / scale
        root = abs(share) ** 0.5 * (1 if share >= 0 else -1)
        value = value * 19 + max(0, min(18, int(root * 9 + 9.5)))
    return value


def _digits(value: int, count: int) -> str:
    return "".join(_DIGITS[value // 83 ** (count - 1 - place) % 83] for place in range(count))

"""Plots as inline SVG, drawn by hand: nothing to load, and they look the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 14, 14, 30


class PlotLine(msgspec.Struct):
    name: str
    values: list[float | None]
    tone: str  # a CSS class


def nice_step(span: float, wanted: int = 5) -> float:
    """1, 2 or 5 times a power of ten, so that about `wanted` steps cover the span."""
    if span <= 0:
        return 1.0
    rough = span / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)


def number(value: float) -> str:
    """Short enough for an axis."""
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    if value >= 1000:
        return f"{value / 1000:.1f}k".replace(".0k", "k")
    if value >= 10 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2g}"


def _frame(inner: str, label: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}" class="plot">{inner}</svg>'


def _grid(highest: float, unit: str) -> tuple[str, float]:
    """Horizontal lines with their numbers; and the top of the scale."""
    step = nice_step(highest)
    top = max(step, math.ceil(highest / step - 1e-9) * step)
    parts = []
    for i in range(round(top / step) + 1):
        y = _y(i * step, top)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(i * step)}</text>')
    parts.append(f'<text class="unit" x="{_LEFT + 6}" y="{_TOP + 10}">{escape(unit)}</text>')
    return "".join(parts), top


def _y(value: float, top: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - value / top)


def _x(share: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * share


def time_plot(times_s: Sequence[float], lines: Sequence[PlotLine], unit: str, warmup_s: float, label: str) -> str:
    """Lines over the seconds of a run; the warm-up is shaded."""
    values = [value for line in lines for value in line.values if value is not None]
    if not values or len(times_s) < 2:
        return ""
    grid, top = _grid(max(values) or 1.0, unit)
    step_s = times_s[1] - times_s[0]
    end_s = times_s[-1] + step_s
    parts = [grid]
    if warmup_s:
        width = _x(min(1.0, warmup_s / end_s)) - _LEFT
        height = HEIGHT - _TOP - _BOTTOM
        parts.insert(0, f'<rect class="warmup" x="{_LEFT}" y="{_TOP}" width="{width:.1f}" height="{height}"/>')
    mark = nice_step(end_s, 8)
    for i in range(int(end_s / mark + 1e-9) + 1):
        x = _x(i * mark / end_s)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{i * mark:g} s</text>')
    for line in lines:
        path = _path(times_s, line.values, step_s, end_s, top)
        parts.append(f'<path class="line {line.tone}" d="{path}"><title>{escape(line.name)}</title></path>')
    return _frame("".join(parts), label)


def _path(times_s: Sequence[float], values: Sequence[float | None], step_s: float, end_s: float, top: float) -> str:
    path, pen_down = [], False
    for at_s, value in zip(times_s, values, strict=True):
        if value is None:
            pen_down = False
            continue
        path.append(f"{'L' if pen_down else 'M'}{_x((at_s + step_s / 2) / end_s):.1f} {_y(value, top):.1f}")
        pen_down = True
    return "".join(path)


def bars(counts: Sequence[int], edges: Sequence[str], unit: str, label: str) -> str:
    """A histogram; `edges` has the text below each bar's left side, empty for none."""
    if not any(counts):
        return ""
    grid, top = _grid(max(counts), unit)
    width = (WIDTH - _LEFT - _RIGHT) / len(counts)
    parts = [grid]
    for i, (count, edge) in enumerate(zip(counts, edges, strict=True)):
        x = _LEFT + i * width
        if count:
            y = _y(count, top)
            height = max(1.0, HEIGHT - _BOTTOM - y)
            parts.append(
                f'<rect class="bar" x="{x + 0.5:.1f}" y="{HEIGHT - _BOTTOM - height:.1f}" width="{width - 1:.1f}" '
                f'height="{height:.1f}"><title>{count:,}</title></rect>'
            )
        if edge:
            parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{edge}</text>')
    return _frame("".join(parts), label)


def percentile_plot(points: Sequence[tuple[float, float]], unit: str, label: str) -> str:
    """Latency against the share of messages that had it, the rare ones stretched: each nine takes the same room."""
    if not points:
        return ""
    grid, top = _grid(max(value for _, value in points) or 1.0, unit)
    marks = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99)
    far = math.log10(100 / (100 - marks[-1]))
    parts = [grid]
    for mark in marks:
        x = _x(math.log10(100 / (100 - mark)) / far)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        anchor = "end" if mark == marks[-1] else "middle"
        parts.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{mark:g} %</text>')
    path: list[str] = []
    for percent, value in points:
        share = min(1.0, math.log10(100 / max(1e-9, 100 - percent)) / far)
        path.append(f"{'L' if path else 'M'}{_x(share):.1f} {_y(value, top):.1f}")
    parts.append(f'<path class="line p99" d="{"".join(path)}"/>')
    return _frame("".join(parts), label)


def growth_plot(xs: Sequence[float], lines: Sequence[PlotLine], unit: str, label: str) -> str:
    """How something changes as something else grows by powers of ten."""
    values = [value for line in lines for value in line.values if value is not None]
    if not values or len(xs) < 2:
        return ""
    grid, top = _grid(max(values) or 1.0, unit)
    low, high = math.log10(xs[0]), math.log10(xs[-1])
    places = [_x(0.04 + 0.92 * (math.log10(x) - low) / (high - low)) for x in xs]
    parts = [grid]
    for place, x in zip(places, xs, strict=True):
        text = f"{x / 1e6:g}M" if x >= 1e6 else number(x)
        parts.append(f'<text class="tick" x="{place:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{text}</text>')
    for line in lines:
        known = [(x, _y(y, top)) for x, y in zip(places, line.values, strict=True) if y is not None]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in known)
        parts.append(f'<path class="line {line.tone}" d="M{path}"><title>{escape(line.name)}</title></path>')
        parts += [f'<circle class="dot {line.tone}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in known]
    return _frame("".join(parts), label)

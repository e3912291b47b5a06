"""The alert rules of deploy/grafana, evaluated over scrapes of real processes: the part of PromQL that the rules use.

An expression outside of it is an error, not silence. `for:` is left out: an alert counts as firing when its
expression has a result.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

RULES = Path(__file__).parents[2] / "deploy" / "grafana" / "alerts.yml"

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Scrape = dict[tuple[str, Labels], float]

_TOKEN = re.compile(r'\s*(\d+(?:\.\d+)?(?![\w.])|"[^"]*"|[a-z_][a-z0-9_]*|=~|!~|==|!=|[-+*/<>=(){}\[\],]|\d+[smh])')
_AGGREGATIONS: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def rules() -> dict[str, str]:
    """Every alert with its expression."""
    return dict(re.findall(r"- alert: (\w+)\n\s+expr: (.+)", RULES.read_text(encoding="utf-8")))


class Prometheus:
    """Scrapes addresses as the job `nexo` and evaluates the rules over what it has."""

    def __init__(self, **targets: str) -> None:
        self._targets = targets
        self._scrapes: list[tuple[float, Scrape]] = []

    def scrape(self) -> None:
        found: Scrape = {}
        for instance, address in self._targets.items():
            place = frozenset({("job", "nexo"), ("instance", instance)})
            try:
                with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:
                    text = answer.read().decode()
            except (urllib.error.URLError, OSError):
                found["up", place] = 0
                continue
            found["up", place] = 1
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    found[sample.name, place | frozenset(sample.labels.items())] = sample.value
        self._scrapes.append((time.monotonic(), found))

    def firing(self, alert: str) -> Vector:
        """What the expression of an alert finds now."""
        result = _Evaluation(rules()[alert], self._scrapes).run()
        assert isinstance(result, dict), alert
        return result

    def scrape_firing(self, alert: str) -> Vector:
        self.scrape()
        return self.firing(alert)


class _Evaluation:
    def __init__(self, expression: str, scrapes: list[tuple[float, Scrape]]) -> None:
        self._scrapes = scrapes
        self._tokens: list[str] = []
        at = 0
        expression = expression.strip()
        while at < len(expression):
            match = _TOKEN.match(expression, at)
            assert match is not None, f"{expression!r} has more than this evaluator knows, at {at}"
            self._tokens.append(match[1])
            at = match.end()

    def run(self) -> Vector | float:
        result = self._comparison()
        assert not self._tokens, self._tokens
        return result

    def _next(self, expected: str | None = None) -> str:
        token = self._tokens.pop(0)
        assert expected in (None, token), (expected, token)
        return token

    def _peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _comparison(self) -> Vector | float:
        left = self._quotient()
        if self._peek() not in (">", "<", "==", "!="):
            return left
        sign, right = self._next(), self._quotient()
        assert isinstance(left, dict)
        assert isinstance(right, float)
        return {labels: value for labels, value in left.items() if _COMPARISONS[sign](value, right)}

    def _quotient(self) -> Vector | float:
        left = self._factor()
        while self._peek() == "/":
            self._next()
            right = self._factor()
            assert isinstance(left, dict)
            assert isinstance(right, dict)
            left = {
                labels: value / right[labels] if right[labels] else math.nan
                for labels, value in left.items()
                if labels in right
            }
        return left

    def _factor(self) -> Vector | float:
        token = self._next()
        if token == "(":
            inner = self._comparison()
            self._next(")")
            return inner
        if token[0].isdigit():
            return float(token)
        if token in _AGGREGATIONS:
            self._next("by")
            kept = self._names()
            self._next("(")
            inner = self._comparison()
            self._next(")")
            assert isinstance(inner, dict)
            return _aggregate(token, kept, inner)
        if token in ("rate", "increase"):
            self._next("(")
            grown, seconds = self._growth()
            self._next(")")
            return {labels: value / seconds if token == "rate" else value for labels, value in grown.items()}
        if token == "histogram_quantile":
            self._next("(")
            share = float(self._next())
            self._next(",")
            inner = self._comparison()
            self._next(")")
            assert isinstance(inner, dict)
            return _quantile(share, inner)
        return _select(self._scrapes[-1][1], token, self._matchers())

    def _growth(self) -> tuple[Vector, float]:
        name, matchers = self._next(), self._matchers()
        self._next("[")
        length = self._next()
        self._next("]")
        newest = self._scrapes[-1][0]
        window = [one for one in self._scrapes if newest - one[0] <= int(length[:-1]) * _SECONDS[length[-1]]]
        series = [_select(found, name, matchers) for _, found in window]
        grown: Vector = {}
        for labels in series[-1]:
            values = [one[labels] for one in series if labels in one]
            # a counter that starts again starts at zero
            steps = (new - old if new >= old else new for old, new in itertools.pairwise(values))
            grown[labels] = sum(steps)
        return grown, max(newest - window[0][0], 1e-9)

    def _names(self) -> list[str]:
        self._next("(")
        names = []
        while (token := self._next()) != ")":
            if token != ",":
                names.append(token)
        return names

    def _matchers(self) -> list[tuple[str, str, str]]:
        if self._peek() != "{":
            return []
        self._next()
        found = []
        while (token := self._next()) != "}":
            if token != ",":
                found.append((token, self._next(), self._next().strip('"')))
        return found


def _select(scrape: Scrape, name: str, matchers: list[tuple[str, str, str]]) -> Vector:
    def suits(labels: Labels) -> bool:
        values = dict(labels)
        for label, sign, wanted in matchers:
            value = values.get(label, "")
            is_equal = value == wanted if "~" not in sign else re.fullmatch(wanted, value) is not None
            if is_equal is sign.startswith("!"):
                return False
        return True

    return {labels: value for (found, labels), value in scrape.items() if found == name and suits(labels)}


def _aggregate(operation: str, kept: list[str], inner: Vector) -> Vector:
    groups: dict[Labels, list[float]] = {}
    for labels, value in inner.items():
        groups.setdefault(frozenset(pair for pair in labels if pair[0] in kept), []).append(value)
    return {labels: float(_AGGREGATIONS[operation](values)) for labels, values in groups.items()}


def _quantile(share: float, inner: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for labels, value in inner.items():
        rest = frozenset(pair for pair in labels if pair[0] != "le")
        groups.setdefault(rest, []).append((float(dict(labels)["le"]), value))
    found: Vector = {}
    for labels, pairs in groups.items():
        buckets = sorted(pairs)
        rank = share * buckets[-1][1]
        if rank:
            below = 0.0
            for number, (bound, count) in enumerate(buckets):
                if count >= rank:
                    start = buckets[number - 1][0] if number else 0.0
                    inside = (rank - below) / (count - below)
                    found[labels] = start if math.isinf(bound) else start + (bound - start) * inside
                    break
                below = count
    return found

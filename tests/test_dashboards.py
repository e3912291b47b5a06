"""The Grafana dashboard and the alert rules speak only of metrics and labels that exist; each alert is explained."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexo.metrics.families import FAMILIES, MetricKind

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "deploy" / "grafana"
_NAME = re.compile(r"\b((?:nexo|process|python)_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
_ENDINGS = ("_bucket", "_sum", "_count")
_EVERYWHERE = {"job", "instance", "le"}


def dashboard() -> Any:
    return json.loads((FOLDER / "nexo.json").read_text(encoding="utf-8"))


def expressions() -> Iterator[str]:
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", []))
    yield from (variable["query"]["query"] for variable in dashboard()["templating"]["list"][1:])
    yield from (one["expr"] for one in dashboard()["annotations"]["list"])
    yield from alerts().values()


def alerts() -> dict[str, str]:
    text = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
    return dict(re.findall(r"- alert: (\w+)\n\s+expr: (.+)", text))


def family_of(name: str) -> str:
    for ending in _ENDINGS:
        plain = name.removesuffix(ending)
        if plain != name and plain in FAMILIES and FAMILIES[plain].kind is MetricKind.HISTOGRAM:
            return plain
    return name


@pytest.mark.parametrize("expression", sorted(set(expressions()) - {'up{job="nexo"} == 0'}))
def test_an_expression_speaks_of_what_there_is(expression: str) -> None:
    found = _NAME.findall(expression)
    assert found
    known: set[str] = set(_EVERYWHERE)
    for name, selector in found:
        family = FAMILIES.get(family_of(name))
        assert family is not None, name
        assert (family.kind is MetricKind.HISTOGRAM) is (family_of(name) != name), f"{name} is exposed in parts"
        known |= set(family.labels)
        assert set(re.findall(r"(\w+)\s*[=!]~?\"", selector)) <= set(family.labels) | _EVERYWHERE, expression
        if family.kind is MetricKind.COUNTER:
            assert re.search(rf"(rate|increase|changes)\({name}", expression), f"{name} only ever grows"
    for labels in re.findall(r"by \(([^)]*)\)", expression):
        assert {label.strip() for label in labels.split(",")} <= known, expression


def test_panels_do_not_lie_over_each_other_and_have_their_own_ids() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_every_metric_that_tells_of_trouble_is_on_the_dashboard() -> None:
    shown = {family_of(name) for expression in expressions() for name, _ in _NAME.findall(expression)}
    assert {name for name in FAMILIES if name.startswith("nexo_")} - shown <= {"nexo_canary_seconds"}


def test_every_alert_is_explained() -> None:
    page = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    assert [name for name in alerts() if f"`{name}`" not in page] == []
    assert len(alerts()) > 10

"""The two SDKs have the same modules: `core/send-rate.js` there is `core/send_rate.py` here."""

from __future__ import annotations

import re
from pathlib import Path

CLIENTS = Path(__file__).parents[2] / "clients"
JAVASCRIPT = CLIENTS / "js" / "src"
PYTHON = CLIENTS / "python" / "src" / "nexo_client"

ONLY_JAVASCRIPT = {
    "conversation_views": "one event for all changes of a microtask; in Python a part of the client",
    "random": "browsers have several sources, Python has the module random",
    "camel_case": "the HTTP API has snake_case names, which are Python's own",
    "locks": "several tabs of a browser share one session and one outbox",
    "network": "a browser reports when it is offline or its page is hidden",
    "core/timers": "callbacks at named times; in Python each part returns its deadline",
    "storage/fallback": "browsers refuse to store in private windows",
    "storage/indexeddb": "the storage of browsers",
}
ONLY_PYTHON = {
    "api_calls": "bundles what JavaScript's client imports one by one",
    "conversation_work": "what conversations need of the client; in JavaScript they ask it",
}


def modules(source: Path, suffix: str, entry: str) -> set[str]:
    """Names without the suffix, in snake_case; the file that only exports others is left out."""
    paths = (path.relative_to(source).with_suffix("") for path in source.rglob(f"*{suffix}"))
    return {path.as_posix().replace("-", "_") for path in paths if path.name != entry}


def test_the_modules_have_the_same_names() -> None:
    there = modules(JAVASCRIPT, ".js", "index")
    here = modules(PYTHON, ".py", "__init__")
    assert sorted(there - here) == sorted(ONLY_JAVASCRIPT)
    assert sorted(here - there) == sorted(ONLY_PYTHON)


def test_classes_stand_in_the_module_of_the_same_name_in_both() -> None:
    """The class that gives a module its name: `SendRate` in send-rate.js and send_rate.py."""
    wrong = []
    for name in sorted(modules(JAVASCRIPT, ".js", "index") & modules(PYTHON, ".py", "__init__")):
        there = (JAVASCRIPT / f"{name.replace('_', '-')}.js").read_text()
        here = (PYTHON / f"{name}.py").read_text()
        kind = "".join(word.capitalize() for word in name.rpartition("/")[2].split("_"))
        is_there = re.search(rf"export class {kind}\b|@typedef \{{object\}} {kind}\n", there) is not None
        if is_there != (re.search(rf"^class {kind}\b", here, re.MULTILINE) is not None):
            wrong.append(f"{name}: {kind}")
    assert not wrong, wrong

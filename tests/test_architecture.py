"""The shape of the code, checked: who may import whom, and the habits that keep it readable.

Every rule collects all its violations, so that one run shows the whole list.
"""

from __future__ import annotations

import ast
import graphlib
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from nexo.errors import ERRORS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nexo"
MAX_LINES = 600

# What each part may import besides itself; `errors` and `ids` are open to all others.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "ids": set(),
    "config": set(),
    "core": set(),
    "ports": {"core"},
    "logs": set(),
    "metrics": set(),
    "wire": {"core"},
    "service": {"core", "ports", "config", "metrics"},
    "store": {"core", "ports", "config", "metrics"},
    "bus": {"core", "ports", "config", "metrics"},
    "pipeline": {"core", "ports", "service", "config", "metrics", "bus"},
    "gateway": {"core", "ports", "wire", "service", "config", "metrics"},
    "api": {"core", "ports", "service", "config", "metrics"},
    "client": {"core", "wire"},
    "bench": {"client", "config"},
    "web": set(),
}
ALLOWED["supervisor"] = set()
ALLOWED["app"] = set(ALLOWED)
ALLOWED["cli"] = set(ALLOWED)
ALLOWED["__main__"] = {"cli"}

# Libraries that only one place may know, so that replacing one touches nothing else.
HOMES = {
    "alembic": ("nexo.store",),
    "asyncmy": ("nexo.store",),
    "asyncpg": ("nexo.store",),
    "sqlalchemy": ("nexo.store",),
    "sqlite3": ("nexo.store",),
    "redis": ("nexo.bus", "nexo.pipeline"),
    "picows": ("nexo.gateway.picows_link",),
    "websockets": ("nexo.gateway.websockets_link", "nexo.client"),
    "prometheus_client": ("nexo.metrics",),
}
# `core` and `wire` compute; whatever waits, or talks to something, is for others.
PURE = ("nexo.core", "nexo.wire")
IMPURE = {"asyncio", "http", "os", "pathlib", "socket", "ssl", "subprocess", "threading", "urllib", "uvloop"}

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of Nexo by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(), filename=str(path))
    return found


@cache
def imports_of(name: str) -> list[tuple[int, str]]:
    """Line and full name of all that a module imports; `from package import module` counts as the module."""
    return sorted(set(_imports_in(name)))


def _imports_in(name: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield node.lineno, inner if inner in modules() else node.module


def part_of(name: str) -> str:
    """`nexo.store.batch` belongs to the part `store`; `nexo` itself to none."""
    return name.split(".")[1] if "." in name else ""


def is_inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def test_every_part_has_a_place_in_the_table() -> None:
    assert {part_of(name) for name in modules()} - {""} <= set(ALLOWED)


def test_the_table_itself_has_no_cycle() -> None:
    list(graphlib.TopologicalSorter(ALLOWED).static_order())


def test_parts_import_only_what_the_table_allows() -> None:
    wrong = []
    for name in modules():
        part = part_of(name)
        allowed = {"", part} | ALLOWED.get(part, set())
        if part not in ("", "errors"):
            allowed.add("errors")
        if part not in ("", "errors", "ids"):
            allowed.add("ids")
        for line, imported in imports_of(name):
            if is_inside(imported, "nexo") and part_of(imported) not in allowed:
                wrong.append(f"{name}:{line} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_dialects_do_not_import_each_other() -> None:
    dialects = ("nexo.wire.envelope", "nexo.wire.request", "nexo.wire.command")
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in modules()
        for line, imported in imports_of(name)
        for dialect in dialects
        if is_inside(name, dialect) and is_inside(imported, *dialects) and not is_inside(imported, dialect)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_registry_knows_the_dialects() -> None:
    dialects = ("nexo.wire.envelope", "nexo.wire.request", "nexo.wire.command")
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in modules()
        if name != "nexo.wire.registry" and not is_inside(name, *dialects)
        for line, imported in imports_of(name)
        if is_inside(imported, *dialects)
    ]
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_in_their_homes() -> None:
    wrong = [
        f"{name}:{line} imports {imported}, which is for {' and '.join(HOMES[library])}"
        for name in modules()
        for line, imported in imports_of(name)
        if (library := imported.split(".")[0]) in HOMES and not is_inside(name, *HOMES[library])
    ]
    assert not wrong, "\n".join(wrong)


def test_core_and_wire_do_no_input_or_output() -> None:
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in modules()
        for line, imported in imports_of(name)
        if is_inside(name, *PURE) and imported.split(".")[0] in IMPURE
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_stand_at_the_top_and_are_absolute() -> None:
    wrong = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                wrong.append(f"{name}:{node.lineno} is a relative import")
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                inner = (child for child in ast.walk(node) if isinstance(child, ast.Import | ast.ImportFrom))
                wrong += [f"{name}:{child.lineno} imports inside a function" for child in inner]
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith("TYPE_CHECKING"):
                wrong.append(f"{name}:{node.lineno} uses TYPE_CHECKING")
    assert not wrong, "\n".join(wrong)


def test_there_are_no_import_cycles() -> None:
    graph = {
        name: {imported for _, imported in imports_of(name) if imported in modules() and imported != name}
        for name in modules()
    }
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        # graphlib tells it from the imported to the importing one
        pytest.fail("import cycle: " + " → ".join(reversed(error.args[1])), pytrace=False)


def test_names_say_what_a_module_is_for() -> None:
    assert [name for name in modules() if FORBIDDEN_NAMES & set(name.split("."))] == []


def test_modules_are_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert long == {}


def test_every_error_that_is_raised_is_in_the_table() -> None:
    wrong = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Name(id="NexoError") | ast.Attribute(attr="NexoError"),
                    args=[ast.Constant(value=str(error)), *_],
                ) if error not in ERRORS:
                    wrong.append(f"{name}:{node.lineno} raises {error}")
    assert not wrong, "\n".join(wrong)


def test_the_paths_in_the_architecture_page_exist() -> None:
    page = ROOT / "ARCHITECTURE.md"
    files = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if ".venv" not in path.parts]
    # A path in backticks, or a Python file named anywhere; /readyz and the like are addresses, not paths.
    named = set(re.findall(r"`(\w[\w.-]*/[\w./-]*)`", page.read_text())) | set(
        re.findall(r"(?<![\w/])\w[\w/]*\.py\b", page.read_text())
    )
    missing = [path for path in named if not any(f"/{file}".endswith(f"/{path.rstrip('/')}") for file in files)]
    assert not missing, "\n".join(sorted(missing))


def test_whatever_is_imported_is_installed_with_the_server() -> None:
    """The tests' environment has more; `make run` gets only what pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {_canonical(re.split(r"[\[<>=!~ ]", name)[0]) for name in project["dependencies"]}
    owners = packages_distributions()
    wrong = []
    for name in modules():
        for line, imported in imports_of(name):
            top = imported.split(".")[0]
            if top == "nexo" or top in sys.stdlib_module_names:
                continue
            if not named & {_canonical(owner) for owner in owners.get(top, ())}:
                wrong.append(f"{name}:{line} imports {imported}")
    assert not wrong, "\n".join(wrong)


def _canonical(distribution: str) -> str:
    return distribution.lower().replace("_", "-")

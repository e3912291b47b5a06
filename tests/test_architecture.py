"""The shape of the code, checked: who may import whom, and the habits that keep it readable.

Every rule collects all its violations, so that one run shows the whole list.
"""

from __future__ import annotations

import ast
import graphlib
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import nexo
import nexo_client
from nexo.errors import ERRORS
from nexo.wire.registry import DIALECTS

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "src" / "nexo"
SDK = ROOT / "clients" / "python" / "src" / "nexo_client"
MAX_LINES = 500
MAX_IMPORTS = 20

# What each part may import besides itself; `errors` and `ids` are open to all others.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "ids": set(),
    "config": set(),
    "core": set(),
    "ports": {"core"},
    "logs": set(),
    "control": {"config"},
    "metrics": set(),
    "background": {"metrics"},
    "collector": {"metrics"},
    "wire": {"core"},
    "service": {"core", "ports", "config", "metrics"},
    "store": {"background", "core", "ports", "config", "metrics"},
    "bus": {"background", "core", "ports", "config", "metrics"},
    "two_phase": {"background", "core", "ports", "service", "config", "metrics", "bus"},
    "journal": {"background", "core", "ports", "config", "metrics"},
    "outgoing": set(),
    "hooks": {"background", "core", "ports", "service", "config", "metrics", "journal", "outgoing"},
    "search": {"background", "core", "config", "metrics", "journal"},
    "calls": {"background", "core", "ports", "config", "metrics"},
    "push": {"background", "core", "ports", "config", "metrics", "journal", "outgoing"},
    "files": {"core", "ports", "service", "config", "metrics"},
    "transport": {"config", "core", "metrics"},
    "delivery": {"background", "core", "logs", "ports", "wire", "service", "config", "metrics"},
    "cluster": {"background", "core", "ports", "wire", "service", "config", "metrics", "delivery"},
    "gateway": {
        "background",
        "core",
        "ports",
        "wire",
        "service",
        "config",
        "metrics",
        "delivery",
        "cluster",
        "transport",
        "logs",
        "calls",
    },
    "api": {"background", "calls", "core", "files", "logs", "ports", "service", "config", "metrics"},
    "openim": {"api", "background", "config", "core", "delivery", "files", "metrics", "ports", "service", "wire"},
    "bench": {"config"},
    "web": set(),
}
ALLOWED["supervisor"] = set()
ALLOWED["assembly"] = set(ALLOWED)
ALLOWED["app"] = set(ALLOWED)
ALLOWED["cli"] = set(ALLOWED)
ALLOWED["__main__"] = {"cli"}

# Libraries that only one place may know, so that replacing one touches nothing else.
HOMES = {
    "alembic": ("nexo.store",),
    "asyncmy": ("nexo.store.engines.mysql",),
    "asyncpg": ("nexo.store.engines.postgres",),
    "sqlalchemy": ("nexo.store",),
    "sqlite3": ("nexo.store.engines.sqlite",),
    "redis": ("nexo.bus", "nexo.two_phase"),
    "picows": ("nexo.transport.picows_endpoint",),
    "httpx": ("nexo.cli.demo_bots", "nexo.files.s3", "nexo.service.jwks_address", "nexo_client.http"),
    "cryptography": ("nexo.service.external_keys", "nexo.push"),
    "h2": ("nexo.outgoing.http2_client",),
    "websockets": ("nexo.transport.websockets_endpoint", "nexo.cli.demo_bots", "nexo_client.websocket"),
    "prometheus_client": ("nexo.metrics",),
    "PIL": ("nexo.files.media.pictures",),
}
# A scheme of `store.url`, or what SQLAlchemy calls its dialects.
ENGINE = re.compile(r"(sqlite|mysql|mariadb|postgres|postgresql)(\+\w+)?(:/*)?", re.IGNORECASE)
ENGINE_HOMES = ("nexo.store.engines", "nexo.config.store_url")
# `core` and `wire` compute; whatever waits, or talks to something, is for others.
PURE = ("nexo.core", "nexo.wire", "nexo_client.core")
IMPURE = {"asyncio", "http", "os", "pathlib", "socket", "ssl", "subprocess", "threading", "urllib", "uvloop"}

# `nexo.wire.envelope` of the codec in `nexo.wire.envelope.codec`.
DIALECT_PACKAGES = tuple(type(dialect).__module__.rpartition(".")[0] for dialect in DIALECTS.values())

# Where a task may be started without `nexo.background`, and who learns of its exception.
BARE_TASKS = {
    "nexo.api.downloads": "the answer watches whether its client has left, and awaits it at its end",
    "nexo.api.dispatch": "the request awaits the call and the end of its connection, and gets the exception",
    "nexo.api.health": "the requests that share a canary await it",
    "nexo.background": "it is the place that starts tasks",
    "nexo.bus.sentinels": "one question per sentinel; the search for the master awaits or cancels them",
    "nexo.bench": "the load generator: its run awaits them and fails with them",
    "nexo.cli.demo": "the users of the demo, awaited when it ends",
    "nexo.cli.demo_bots": "a group of tasks, which fails with each of them",
    "nexo.hooks.before_send": "one question that logs its own exception; its lane is decided by it",
    "nexo.hooks.delivery": "one request that logs its own exception; the delivery awaits it at its end",
    "nexo.journal.holding": "the service that holds the lease awaits them and raises their exception",
    "nexo.push.push": "the service that holds the lease awaits them and raises their exception",
    "nexo.push.sender": "one request that logs its own exception; the sender awaits it at its end",
    "nexo.openim.notices": "the pushes that need the notification await it",
    "nexo.store.engines.hosts": "one connection attempt per host; the search awaits or cancels them",
    "nexo.service.external_keys": "the tokens that need a new key await it; it logs its own exception",
    "nexo.store.database": "the caller awaits the change; without one its outcome is in the database",
    "nexo.store.transfer.table_pages": "the next page, awaited by the copy",
    "nexo.supervisor": "it awaits them and raises their exception",
    "nexo.transport.server": "`serve` awaits them",
    "nexo.transport.status_server": "`start` raises its exception, a callback logs a later one",
    "nexo.transport.upgrade": "a callback answers the client and logs the exception",
    "nexo.two_phase.coalesce": "the callers get its exception",
    "nexo.two_phase.permissions": "one question that logs its own exception; the send is decided without it",
    "nexo.two_phase.shard_reader": "the callers get its exception",
    "nexo.two_phase.shard_worker": "a group of tasks, which fails with each of them",
}

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the server and of the Python SDK by its dotted name."""
    found = {}
    for source in (SERVER, SDK):
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = ast.parse(path.read_text(), filename=str(path))
    return found


def server_modules() -> list[str]:
    return [name for name in modules() if is_inside(name, "nexo")]


def sdk_modules() -> list[str]:
    return [name for name in modules() if is_inside(name, "nexo_client")]


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
    assert {part_of(name) for name in server_modules()} - {""} <= set(ALLOWED)


def test_the_table_itself_has_no_cycle() -> None:
    list(graphlib.TopologicalSorter(ALLOWED).static_order())


def test_parts_import_only_what_the_table_allows() -> None:
    wrong = []
    for name in server_modules():
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
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in modules()
        for line, imported in imports_of(name)
        for dialect in DIALECT_PACKAGES
        if is_inside(name, dialect) and is_inside(imported, *DIALECT_PACKAGES) and not is_inside(imported, dialect)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_registry_knows_the_dialects() -> None:
    wrong = [
        f"{name}:{line} imports {imported}"
        for name in modules()
        if name != "nexo.wire.registry" and not is_inside(name, *DIALECT_PACKAGES)
        for line, imported in imports_of(name)
        if is_inside(imported, *DIALECT_PACKAGES)
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


def test_only_the_engines_know_their_names() -> None:
    """Other code asks for a capability (`store/engines/kind.py`). A name that stands alone in a string is there to be
    compared or looked up. Migrations have column types per engine, but do not ask for it either."""
    wrong = []
    for name, tree in modules().items():
        if is_inside(name, *ENGINE_HOMES):
            continue
        places = ast.walk(tree)
        if is_inside(name, "nexo.store.migrations"):
            places = (part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node))
        wrong += [
            f"{name}:{node.lineno} names {node.value}"
            for node in places
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENGINE.fullmatch(node.value)
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


def test_tasks_are_started_by_the_background_or_have_a_reason() -> None:
    """A task that no other code waits for may end unseen."""
    found = {
        name: node.lineno
        for name in server_modules()
        for node in ast.walk(modules()[name])
        if isinstance(node, ast.Attribute | ast.Name)
        and ast.unparse(node).split(".")[-1] in ("create_task", "ensure_future")
    }
    wrong = [f"{name}:{line} starts a task" for name, line in found.items() if not is_inside(name, *BARE_TASKS)]
    assert not wrong, "\n".join(wrong)
    unused = [name for name in BARE_TASKS if not any(is_inside(place, name) for place in found)]
    assert not unused, f"no task is started in {unused}"


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
        for source in (SERVER, SDK)
        for path in source.rglob("*.py")
        if (lines := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert long == {}


def test_no_module_imports_more_of_the_project_than_a_reader_can_hold() -> None:
    wide = {
        name: len(imported)
        for name in modules()
        if len(imported := {found for _, found in imports_of(name) if found in modules() and found != name})
        > MAX_IMPORTS
    }
    assert wide == {}


def test_no_two_public_classes_of_a_distribution_have_one_name() -> None:
    homes: dict[tuple[str, str], list[str]] = {}
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault((name.split(".")[0], node.name), []).append(name)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


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


PAGES_WITH_PATHS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/add-a-feature.md")

# What one message passes most often, as `bench/trunk.py` counts it.
TRUNK = (
    "gateway/connection.py",
    "wire/envelope/requests.py",
    "gateway/sends.py",
    "ids.py",
    "store/committer.py",
    "store/engines/sqlite/driver.py",
    "store/batch.py",
    "store/engines/sqlite/statements.py",
    "wire/envelope/answers.py",
    "delivery/fanout.py",
)


@cache
def files() -> frozenset[str]:
    """Every file and folder of the repository, as a path from its root, without what is installed or built."""
    found = set()
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in (".git", ".venv", "node_modules", "__pycache__")]
        place = Path(folder).relative_to(ROOT).as_posix()
        found |= {f"{place}/{name}".removeprefix("./") for name in (*folders, *names)}
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES_WITH_PATHS)
def test_the_paths_in_the_pages_for_developers_exist(page: str) -> None:
    # A path in backticks, or a Python file named anywhere; /readyz and the like are addresses, not paths.
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w[\w.-]*/[\w./-]*)`", text)) | set(re.findall(r"(?<![\w/])\w[\w/]*\.py\b", text))
    missing = [path for path in named if not any(f"/{file}".endswith(f"/{path.rstrip('/')}") for file in files())]
    assert named
    assert not missing, "\n".join(sorted(missing))


def test_the_table_of_parts_has_every_part_above_what_it_imports() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page.partition("## The parts")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(rows) == sorted(set(ALLOWED) - {"__main__"})
    above = {
        f"{part_of(imported)} is above {part}"
        for part in rows
        for module in server_modules()
        if part_of(module) == part
        for _, imported in imports_of(module)
        if is_inside(imported, "nexo") and part_of(imported) in rows[: rows.index(part)]
    }
    assert not above, "\n".join(sorted(above))


def test_the_walk_of_one_message_names_every_file_of_the_trunk() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walk = page.partition("## One message, end to end")[2].partition("\n## ")[0]
    assert [name for name in TRUNK if f"`src/nexo/{name}`" not in walk] == []


def test_whatever_is_imported_is_installed_with_the_server() -> None:
    """The tests' environment has more; `make run` gets only what pyproject.toml names."""
    wrong = foreign_imports(server_modules(), "nexo", ROOT / "pyproject.toml")
    assert not wrong, "\n".join(wrong)


def test_the_sdk_imports_only_its_three_dependencies() -> None:
    wrong = foreign_imports(sdk_modules(), "nexo_client", ROOT / "clients" / "python" / "pyproject.toml")
    assert not wrong, "\n".join(wrong)
    assert dependencies(ROOT / "clients" / "python" / "pyproject.toml") == {"httpx", "msgspec", "websockets"}


def dependencies(project_file: Path) -> set[str]:
    project = tomllib.loads(project_file.read_text(encoding="utf-8"))["project"]
    return {_canonical(re.split(r"[\[<>=!~ ]", name)[0]) for name in project["dependencies"]}


def foreign_imports(names: list[str], package: str, project_file: Path) -> list[str]:
    """Imports of modules that are neither the package's own, nor Python's, nor of a declared dependency."""
    declared = dependencies(project_file)
    owners = packages_distributions()
    wrong = []
    for name in names:
        for line, imported in imports_of(name):
            top = imported.split(".")[0]
            if top == package or top in sys.stdlib_module_names:
                continue
            if not declared & {_canonical(owner) for owner in owners.get(top, ())}:
                wrong.append(f"{name}:{line} imports {imported}")
    return wrong


def test_the_server_and_both_sdks_have_one_version() -> None:
    package = json.loads((ROOT / "clients" / "js" / "package.json").read_text(encoding="utf-8"))
    assert nexo_client.__version__ == nexo.__version__ == package["version"]


def _canonical(distribution: str) -> str:
    return distribution.lower().replace("_", "-")

"""Nothing grows without a bound: the table of docs/operate.md and the code, compared.

Every attribute of a class of the server that is created as an empty container (`self.x: dict[…] = {}`, `deque()`,
`set()`, …) can grow. Each has to be named in that table, in its column "where", or below in `FILLED_ONCE`, with the
reason why a client cannot make it grow. So a new queue or cache makes this test fail until its bound is written down.
The column "bound" names constants of that module, which are looked up and compared with the number beside them, or
settings, which must exist; the column "metric" names metrics, which must exist. A changed bound makes this test fail
until the page says the same. Programs that are no server (the bench, the command line, copying and importing stores)
are left out.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from nexo.config import describe
from nexo.metrics.families import FAMILIES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "nexo"
PAGE = ROOT / "docs" / "operate.md"
NO_SERVER = (
    "bench/",
    "cli/",
    "store/transfer/",
    "openim/export/",
    "store/legacy/",
    "store/migrations/",
    "supervisor.py",
)
CONTAINERS = {
    "dict",
    "list",
    "set",
    "deque",
    "OrderedDict",
    "bytearray",
    "SimpleQueue",
    "Queue",
    "Tally",
    "defaultdict",
}

AT_START = "filled when the server starts"
OF_CODE = "has an entry per name in the code"
FILLED_ONCE = {
    **dict.fromkeys(
        (
            "api.dispatch.Dispatch._answers",
            "api.documentation._document",
            "api.dispatch.Dispatch._open_paths",
            "assembly.messaging.Troubles.parts",
            "background.Background._all_services",
            "journal.housekeeping.Housekeeping.chores",
            "background.Background._services",
            "cluster.health.ClusterHealth._running",
            "cluster.messages._decoder",
            "journal.journal.Journal._loops",
            "journal.journal.Journal._running",
            "journal.journal.Journal._woken",
            "metrics.exposition.Metrics._sources",
            "metrics.exposition._bounds",
            "metrics.http.HttpMeter._others",
            "store.engines.hosts.Hosts._silent",
            "store.engines.sqlite.driver.SqliteEngine._threads",
            "store.publish_seam.PublishSeam._listeners",
            "two_phase.acceptor.Acceptor._services",
            "two_phase.shard_owner.ShardOwner._held",
            "two_phase.shard_owner.ShardOwner._running",
            "two_phase.shard_reader.ShardReader._tasks",
            "two_phase.two_phase.TwoPhaseService._services",
            "transport.server.Server.before_stop",
        ),
        AT_START,
    ),
    **dict.fromkeys(
        (
            "api.middleware.Context.added",
            "background.Background._failed_jobs",
            "files.collecting.Collecting.done",
            "files.receiving.Receiving.outcomes",
            "files.serving.Serving.outcomes",
            "background.Background._restarts",
            "bus.redis.RedisBus._losses",
            "cluster.database_watch.DatabaseWatch._reasons",
            "core.search_words._drop",
            "delivery.frames.Frames._made",
            "delivery.frames.Frames.plain",
            "delivery.receipts.ReceiptPusher._kinds",
            "delivery.receipts.ReceiptPusher._acks",
            "delivery.receipts.ReceiptPusher._refused",
            "files.media.reader.Reader._results",
            "metrics.http.HttpMeter._requests",
            "metrics.http.HttpMeter._taken",
            "metrics.http.HttpMeter.errors",
            "metrics.live.LiveStats._errors",
            "metrics.live.Totals.buckets",
            "metrics.live.Totals.numbers",
            "metrics.scripts.ScriptMeter.failures",
            "metrics.sending.SendMeter.results",
            "metrics.sending.SendMeter.troubles",
            "metrics.traffic.Traffic.closed",
            "metrics.traffic.Traffic.dropped",
            "metrics.traffic.Traffic.errors",
            "metrics.traffic.Traffic.opened",
            "metrics.traffic.Traffic.refusals",
            "metrics.traffic.Traffic.requests",
            "metrics.traffic.Traffic.resyncs",
            "metrics.two_phase.AcceptMeter.fates",
            "metrics.two_phase.SaveMeter.failures",
            "openim.notices.OpenimNotices._results",
            "wire.openim.protobuf.Table.by_key",
            "outgoing.http2_client.tls_h2",
            "outgoing.http_client.tls",
            "store.engines.mysql.sql.percent",
            "store.replica.Replica._results",
            "store.engines.postgres.sql.numbered",
            "transport.http_watch.HttpWatch.ended",
        ),
        OF_CODE,
    ),
}


def containers() -> Iterator[str]:
    """Yields `module.Class.attribute` of every attribute that begins as an empty container."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(NO_SERVER):
            continue
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                for attribute in _growing(node):
                    yield f"{module}.{node.name}.{attribute}"
            elif isinstance(node, ast.FunctionDef) and any("cache" in ast.dump(d) for d in node.decorator_list):
                yield f"{module}.{node.name}"


def _growing(owner: ast.ClassDef) -> set[str]:
    found = set()
    for node in ast.walk(owner):
        targets: list[ast.expr] = []
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets
        pairs = [(target, node.value) for target in targets]
        if targets and isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(targets[0].elts, node.value.elts, strict=False))
        for target, value in pairs:
            is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
            if is_own and target.value.id == "self" and _is_empty(value):  # type: ignore[union-attr, attr-defined]
                found.add(target.attr)  # type: ignore[attr-defined]
    return found


def _is_empty(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, ast.List):
        return not value.elts
    if isinstance(value, ast.Call):
        called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return called in CONTAINERS and not value.args
    return False


def table() -> list[list[str]]:
    """Returns the rows: what, where, bound, at the bound, metric."""
    chapter = PAGE.read_text(encoding="utf-8").partition("## What is bounded\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in chapter.splitlines() if line.startswith("|")
    ]
    assert len(rows) > 40, "the table is gone"
    return rows[2:]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def module_of(name: str) -> str:
    """Returns the module of `module`, `module.function` or `module.Class.attribute`."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        path = SOURCE.joinpath(*parts[:size])
        if path.with_suffix(".py").exists():
            return ".".join(("nexo", *parts[:size]))
    raise AssertionError(f"{name} is not in src/nexo")


def test_everything_that_can_grow_is_in_the_table() -> None:
    found = set(containers())
    named = {name for row in table() for name in names_in(row[1])}
    assert sorted(found - named - FILLED_ONCE.keys()) == [], "name it in docs/operate.md, with its bound"
    attributes = {name for name in named if name.split(".")[-2][:1].isupper() or "_Batch" in name}
    assert sorted(attributes - found) == [], "these are gone: remove them from docs/operate.md"
    assert sorted(FILLED_ONCE.keys() - found) == [], "these are gone: remove them here"
    assert not named & FILLED_ONCE.keys()


def test_the_bounds_are_those_of_the_code() -> None:
    settings = {field.key for field in describe()}
    wrong = []
    for what, where, bound, _, _ in table():
        modules = {module_of(name) for name in names_in(where)}
        assert bound, what
        for name in names_in(bound):
            if name in settings:
                continue
            home, _, constant = name.rpartition(".")
            values = [
                getattr(importlib.import_module(module), constant)
                for module in ({module_of(home)} if home else modules)
                if hasattr(importlib.import_module(module), constant)
            ]
            stated = re.search(rf"`{re.escape(name)}` = ([\d,]+)", bound)
            if not values or stated is None or {int(stated[1].replace(",", ""))} != set(values):
                wrong.append(f"{what}: {name} is {values}, the page says {stated and stated[1]}")
    assert wrong == []


def test_every_bound_has_a_metric_or_a_reason_for_none() -> None:
    for what, _, _, _, metric in table():
        named = names_in(metric)
        assert named or metric.startswith("none: "), what
        assert [name for name in named if name not in FAMILIES] == [], what

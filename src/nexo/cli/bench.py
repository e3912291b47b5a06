"""`nexo bench`: load for a server, and proof that what it acknowledged under load is true."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from nexo.bench import view
from nexo.bench.capacity import CapacitySearch, Objective, parse_objective, try_result
from nexo.bench.http import ServerAddress
from nexo.bench.plan import NOT_GIVEN, Account, Acks, DialectName, Plan, Scenario, Verify, check_plan, completed
from nexo.bench.report import write_report
from nexo.bench.result import Result, ServerFacts
from nexo.bench.run import GeneratorFailed, TargetServer, measure
from nexo.bench.server import OwnServer, own_server
from nexo.cli.output import console, progress
from nexo.config import parse_store_url
from nexo.errors import StartupError

app = typer.Typer(add_completion=False)

_SERVER, _WHO, _LOAD = "The server", "Who takes part", "The load"
_OWN = "the scenario's"
_ODD, _VERDICT, _OUTPUT = "Slow and faulty clients", "Proof", "Output"
EXIT_RED = 1  # something is not accounted for


@app.command()
def bench(
    scenario: Annotated[Scenario, typer.Argument(help="What the clients do.")],
    urls: Annotated[
        list[str] | None,
        typer.Option(
            "--url", help="A running server; again for more instances. None: one is started.", rich_help_panel=_SERVER
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long to measure.", rich_help_panel=_LOAD)] = 10.0,
    warmup: Annotated[
        float, typer.Option(help="Seconds before that which are not counted.", rich_help_panel=_LOAD)
    ] = 1.0,
    pairs: Annotated[
        int, typer.Option(help="Pairs of a sender and a receiver.", rich_help_panel=_WHO, show_default=_OWN)
    ] = 0,
    groups: Annotated[int, typer.Option(help="Groups.", rich_help_panel=_WHO, show_default=_OWN)] = 0,
    members: Annotated[int, typer.Option(help="Members of each group.", rich_help_panel=_WHO, show_default=_OWN)] = 0,
    senders: Annotated[
        int, typer.Option(help="Members of each group who send.", rich_help_panel=_WHO, show_default=_OWN)
    ] = 0,
    connections: Annotated[
        int, typer.Option(help="Connections, for connect and ping.", rich_help_panel=_WHO, show_default=_OWN)
    ] = 0,
    missed: Annotated[
        int,
        typer.Option(
            help="Messages that each client missed, in scenarios that reconnect.",
            rich_help_panel=_WHO,
            show_default=_OWN,
        ),
    ] = 0,
    preload: Annotated[
        int, typer.Option(help="Messages that are stored before anything is measured.", rich_help_panel=_LOAD)
    ] = 0,
    rate: Annotated[
        float | None,
        typer.Option(
            help="Open loop: messages per second in all, sent on schedule. 0: closed loop.", rich_help_panel=_LOAD
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="Closed loop: sends under way per sender (8; http-send 1).", rich_help_panel=_LOAD),
    ] = None,
    ramp: Annotated[float, typer.Option(help="Seconds over which the load grows.", rich_help_panel=_LOAD)] = 0.0,
    burst: Annotated[
        int, typer.Option(help="Open loop: so many at once, instead of evenly spread.", rich_help_panel=_LOAD)
    ] = 1,
    poisson: Annotated[
        bool, typer.Option(help="Open loop: random pauses, the same rate on average.", rich_help_panel=_LOAD)
    ] = False,
    body: Annotated[int, typer.Option(help="Characters per message.", rich_help_panel=_LOAD, show_default=_OWN)] = 0,
    acks: Annotated[
        Acks | None,
        typer.Option(
            help="Delivery receipts: each message, coalesced (ten times a second), or none.", rich_help_panel=_LOAD
        ),
    ] = None,
    flap: Annotated[
        float, typer.Option(help="Share of connections that are cut and reconnect.", rich_help_panel=_ODD)
    ] = 0.0,
    flap_every: Annotated[
        float, typer.Option(help="Seconds between the cuts of one connection.", rich_help_panel=_ODD)
    ] = 2.0,
    slow: Annotated[float, typer.Option(help="Share of receivers that read slowly.", rich_help_panel=_ODD)] = 0.0,
    slow_rate: Annotated[int, typer.Option(help="Bytes per second that they read.", rich_help_panel=_ODD)] = 20_000,
    stalled: Annotated[
        float, typer.Option(help="Share of receivers that do not read at all.", rich_help_panel=_ODD)
    ] = 0.0,
    dialect: Annotated[
        DialectName, typer.Option(help="What the clients speak.", rich_help_panel=_LOAD)
    ] = DialectName.envelope,
    processes: Annotated[int, typer.Option(help="Generator processes.", rich_help_panel=_LOAD)] = 1,
    users_file: Annotated[
        Path | None,
        typer.Option(
            help="Existing users, `user_id password` per line, instead of registering some.", rich_help_panel=_WHO
        ),
    ] = None,
    store: Annotated[
        str, typer.Option(help="Own server: its database; none: SQLite in a temporary folder.", rich_help_panel=_SERVER)
    ] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Own server: a setting, e.g. group.strategy.mode=push.", rich_help_panel=_SERVER),
    ] = None,
    pin: Annotated[
        bool, typer.Option(help="Own server on one core, generator on all other cores.", rich_help_panel=_SERVER)
    ] = False,
    server_pids: Annotated[
        list[int] | None,
        typer.Option(
            "--server-pid", help="Processes whose CPU and memory count (with --url).", rich_help_panel=_SERVER
        ),
    ] = None,
    verify: Annotated[
        Verify, typer.Option(help="Histories to compare: all, or those of 16 members.", rich_help_panel=_VERDICT)
    ] = Verify.all,
    drain: Annotated[
        float, typer.Option(help="Seconds to wait at the end for what is still on its way.", rich_help_panel=_VERDICT)
    ] = 30.0,
    check: Annotated[
        bool, typer.Option(help="Own server: run `nexo check` on its store at the end.", rich_help_panel=_VERDICT)
    ] = True,
    allow_refusals: Annotated[
        bool, typer.Option(help="Refused sends (rate limits) are no fault.", rich_help_panel=_VERDICT)
    ] = False,
    allow_restarts: Annotated[
        bool,
        typer.Option(
            help="Servers or the database are restarted meanwhile: lost connections and refused sends are no fault, "
            "anything missing is.",
            rich_help_panel=_VERDICT,
        ),
    ] = False,
    find_capacity: Annotated[
        bool, typer.Option(help="Raise the rate until the objective breaks.", rich_help_panel=_VERDICT)
    ] = False,
    objective: Annotated[
        str, typer.Option(help="For --find-capacity, in ms: p99=50, received.p95=20 …", rich_help_panel=_VERDICT)
    ] = "p99=50",
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write the result as JSON; - prints it.", rich_help_panel=_OUTPUT),
    ] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report with plots.", rich_help_panel=_OUTPUT)
    ] = None,
) -> None:
    """Put a server under load and prove that everything it acknowledged is true.

    Without --url a server is started on a temporary folder, without limits. Every run ends with a verdict: all that
    was sent is accounted for, was delivered once and in order, and the histories of all participants say the same as
    the acknowledgements. Exit code 0: so it is; 1: it is not, and the figures do not count.
    """
    plan = Plan(
        scenario=scenario, urls=[str(_address(url)) for url in urls or []], seconds=seconds, warmup_s=warmup,
        step_s=_step(seconds + warmup), pairs=pairs, groups=groups, members=members, senders=senders,
        connections=connections, missed=missed, preload=preload, window=window or 0,
        rate=rate if rate is not None else 0.0 if window else NOT_GIVEN, ramp_s=ramp, burst=burst, poisson=poisson,
        body_bytes=body, flap_share=flap, flap_every_s=flap_every, slow_share=slow, slow_bytes_per_s=slow_rate,
        stalled_share=stalled, drain_s=drain, allow_refusals=allow_refusals, allow_restarts=allow_restarts,
        accounts=_read_users(users_file),
        seed=secrets.randbits(40), run_id=secrets.token_hex(3),
        acks=acks or (Acks.coalesced if groups or scenario in _IN_GROUPS else Acks.each),
        verify=verify, dialect=dialect,
    )  # fmt: skip
    plan = completed(plan)
    if find_capacity and not plan.is_open_loop:
        plan.rate = 500.0
    problems = check_plan(plan)
    if problems:
        raise StartupError("\n".join(problems))
    with ExitStack() as stack:
        server_cores, own_cores = _cores(pin)
        target, own = _target(stack, plan, store, settings or [], server_pids or [], server_cores)
        runner = Runner(plan, target, own if check else None, processes, own_cores)
        if find_capacity:
            result = runner.find_capacity(parse_objective_or_stop(objective))
        else:
            result = runner.run(plan)
    if json_file is not None and str(json_file) != "-":
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
    if html_file is not None:
        write_report(html_file, result, runner.trials)
    if json_file is not None and str(json_file) == "-":
        typer.echo(msgspec.json.format(msgspec.json.encode(result), indent=1).decode())
    else:
        view.print_result(console, result)
        if find_capacity:
            runner.print_capacity(console)
    if not result.verdict.ok:
        raise typer.Exit(EXIT_RED)


_IN_GROUPS = (Scenario.group, Scenario.slow_consumers, Scenario.mixed)
_SERIES_STEPS = 120


class Runner:
    """Runs a plan once, or again and again at other rates."""

    def __init__(
        self, plan: Plan, target: TargetServer, checked: OwnServer | None, processes: int, cores: set[int] | None
    ) -> None:
        self._plan = plan
        self._target = target
        self._checked = checked
        self._processes = processes
        self._cores = cores
        self._search: CapacitySearch | None = None
        self._objective: Objective | None = None

    @property
    def trials(self) -> CapacitySearch | None:
        return self._search

    def run(self, plan: Plan) -> Result:
        title = f"nexo bench {plan.scenario}"
        try:
            with view.LiveView(progress, plan, title, self._target.pids) as live:
                result = asyncio.run(measure(plan, self._target, self._processes, live.watch, self._cores))
        except GeneratorFailed as error:
            raise StartupError(str(error)) from None
        if self._checked is not None:
            wrong = self._checked.check_store()
            if wrong:
                result.verdict.ok = False
                result.verdict.reasons.append(f"nexo check: {wrong[:2000]}")
        return result

    def find_capacity(self, objective: Objective) -> Result:
        """The result at the highest rate that held; of the lowest tried, when none did."""
        self._objective = objective
        self._search = search = CapacitySearch(self._plan.rate)
        results: list[tuple[float, Result]] = []
        while search.next_rate is not None:
            rate = search.next_rate
            plan = msgspec.structs.replace(self._plan, rate=rate, run_id=secrets.token_hex(3))
            result = self.run(plan)
            trial = try_result(rate, result, objective)
            search.note(trial)
            results.append((rate, result))
            view.print_trial(progress, trial)
        best = search.best
        wanted = best.rate if best is not None else min(rate for rate, _ in results)
        result = next(result for rate, result in results if rate == wanted)
        result.trials = search.trials
        if best is None:
            result.verdict.ok = False
            result.verdict.reasons.append(f"{objective} did not hold at any rate that was tried")
        return result

    def print_capacity(self, to: Console) -> None:
        if self._search is not None and self._objective is not None:
            last = self._search.trials[-1] if self._search.trials else None
            view.print_capacity(to, self._objective, self._search.best, last)


def parse_objective_or_stop(text: str) -> Objective:
    try:
        return parse_objective(text)
    except ValueError as error:
        raise StartupError(str(error)) from None


def _address(url: str) -> ServerAddress:
    try:
        return ServerAddress(url)
    except ValueError as error:
        raise StartupError(str(error)) from None


def _step(whole_s: float) -> float:
    """A quarter of a second, or as much more as keeps the series at a length that can be drawn."""
    step_s = 0.25
    while whole_s / step_s > _SERIES_STEPS:
        step_s *= 2
    return step_s


def _read_users(path: Path | None) -> list[Account]:
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StartupError(f"cannot read {path}: {error.strerror}") from error
    accounts = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        user_id, _, password = line.strip().partition(" ")
        if not password:
            raise StartupError(f"{path}:{number} is not `user_id password`")
        accounts.append(Account(user_id, password))
    return accounts


def _cores(pin: bool) -> tuple[set[int] | None, set[int] | None]:
    cores = sorted(os.sched_getaffinity(0))
    if not pin:
        return None, None
    if len(cores) < 2:
        raise StartupError("--pin needs two cores")
    return set(cores[:1]), set(cores[1:])


def _target(
    stack: ExitStack, plan: Plan, store: str, settings: list[str], pids: list[int], cores: set[int] | None
) -> tuple[TargetServer, OwnServer | None]:
    """The server to measure: the one that is there, or one of its own."""
    if plan.urls:
        if store or settings:
            raise StartupError("--store and --set are for a server that is started for the run, not for --url")
        return TargetServer(ServerFacts(False, "unknown", {}), pids), None
    pairs = dict(_setting(text) for text in settings)
    own = stack.enter_context(own_server(store, pairs, cores))
    plan.urls = [own.url]
    shown = parse_store_url(store).redacted() if store else "SQLite in a temporary folder"
    return TargetServer(ServerFacts(True, shown, pairs), [own.pid, *pids], str(own.data)), own


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise StartupError(f"--set takes key=value, not {text}")
    return key, value

"""What a run is to do, as one struct: made by the command line, divided among the generator processes."""

from __future__ import annotations

from enum import StrEnum

import msgspec

NOT_GIVEN = -1.0
MAX_USERS = 1 << 20  # a person's number has five hexadecimal digits in a client_msg_id


class Scenario(StrEnum):
    connect = "connect"
    ping = "ping"
    single = "single"
    group = "group"
    http_send = "http-send"
    reconnect_storm = "reconnect-storm"
    slow_consumers = "slow-consumers"
    offline_catch_up = "offline-catch-up"
    history = "history"
    mixed = "mixed"


class DialectName(StrEnum):
    envelope = "envelope"
    request = "request"
    command = "command"


class Acks(StrEnum):
    """How receivers acknowledge: each message at once, the latest ten times a second, or nothing."""

    each = "each"
    coalesced = "coalesced"
    none = "none"


class Verify(StrEnum):
    """Whose histories are compared: those of all persons, or of some members of each group."""

    all = "all"
    sample = "sample"


# The clients that missed messages share their senders.
COMING_BACK = (Scenario.reconnect_storm, Scenario.offline_catch_up)
CLIENTS_PER_SENDER = 20
# These end when every client has its messages, not after a time.
UNTIMED = (Scenario.connect, *COMING_BACK)
USERS_OF_CONNECTIONS = 200
WINDOW = 8


class Account(msgspec.Struct):
    user_id: str
    password: str


class Plan(msgspec.Struct, kw_only=True):
    """Absent values have been filled in by `completed`."""

    scenario: Scenario
    urls: list[str] = []
    dialect: DialectName = DialectName.envelope
    seconds: float = 10.0
    warmup_s: float = 1.0
    step_s: float = 1.0  # of the series over time

    # who: pairs of a sender and a receiver, groups, or plain connections
    pairs: int = 0
    groups: int = 0
    members: int = 0
    senders: int = 0  # of each group
    connections: int = 0

    # how: closed loop with a window, or open loop with a rate
    window: int = 0
    rate: float = NOT_GIVEN
    ramp_s: float = 0.0
    burst: int = 1
    poisson: bool = False
    body_bytes: int = 0
    acks: Acks = Acks.each

    # what is odd about some of them
    flap_share: float = 0.0
    flap_every_s: float = 2.0
    slow_share: float = 0.0
    slow_bytes_per_s: int = 20_000
    stalled_share: float = 0.0
    preload: int = 0  # messages that are stored before the run, in all
    missed: int = 0  # messages per client of the scenarios about coming back

    # proving it
    verify: Verify = Verify.all
    drain_s: float = 30.0
    allow_refusals: bool = False
    allow_restarts: bool = False  # of servers and databases: clients return, and nothing may be missing
    accounts: list[Account] = []
    seed: int = 0
    first_user: int = 0  # the number of this process' first person
    run_id: str = ""

    @property
    def people(self) -> int:
        """Number of persons, each with its own connection."""
        senders = -(-self.pairs // CLIENTS_PER_SENDER) if self.scenario in COMING_BACK else self.pairs
        return self.pairs + senders + self.groups * self.members + self.connections

    @property
    def users(self) -> int:
        """Idle connections and pings may share users; all other connections have a user each."""
        return self.people - self.connections + min(self.connections, USERS_OF_CONNECTIONS)

    @property
    def is_open_loop(self) -> bool:
        return self.rate > 0


def completed(plan: Plan) -> Plan:
    """With the scenario's defaults for whatever was left at zero."""
    defaults = _DEFAULTS[plan.scenario]
    changes: dict[str, object] = {"rate": 0.0} if plan.rate == NOT_GIVEN else {}
    changes |= {} if plan.window else {"window": WINDOW}
    changes |= {name: value for name, value in defaults.items() if _is_absent(name, getattr(plan, name))}
    if plan.scenario is Scenario.slow_consumers and not plan.slow_share and not plan.stalled_share:
        changes |= {"slow_share": 0.2, "stalled_share": 0.2}
    if plan.scenario is Scenario.mixed and not plan.flap_share:
        changes |= {"flap_share": 0.1}
    if not plan.body_bytes:  # slow readers have to be given something to be slow with
        changes |= {"body_bytes": 4000 if plan.scenario is Scenario.slow_consumers else 100}
    if plan.scenario in UNTIMED:
        changes |= {"warmup_s": 0.0}
    return msgspec.structs.replace(plan, **changes)


def _is_absent(name: str, value: float) -> bool:
    return value == NOT_GIVEN if name == "rate" else value == 0  # a rate of nothing is a closed loop


_DEFAULTS: dict[Scenario, dict[str, float]] = {
    Scenario.connect: {"connections": 1000},
    Scenario.ping: {"connections": 100},
    Scenario.single: {"pairs": 100},
    Scenario.http_send: {"pairs": 64, "window": 1},
    Scenario.group: {"groups": 1, "members": 200, "senders": 20, "rate": 100.0},
    Scenario.reconnect_storm: {"pairs": 500, "missed": 20},
    Scenario.slow_consumers: {"groups": 10, "members": 10, "senders": 2, "rate": 200.0},
    Scenario.offline_catch_up: {"pairs": 10, "missed": 1000},
    Scenario.history: {"pairs": 20, "missed": 500},
    Scenario.mixed: {"pairs": 50, "groups": 5, "members": 20, "senders": 4, "rate": 300.0},
}


def check_plan(plan: Plan) -> list[str]:
    """Returns what is wrong with the plan, in words."""
    problems = []
    if plan.people > MAX_USERS:
        problems.append(f"{plan.people} users are more than a run can number ({MAX_USERS})")
    if plan.groups and plan.members < 3:
        problems.append("a group has at least three members")
    if plan.senders > plan.members:
        problems.append(f"{plan.senders} senders do not fit into a group of {plan.members}")
    if plan.accounts and len(plan.accounts) < plan.users:
        problems.append(f"this run needs {plan.users} users, the file has {len(plan.accounts)}")
    if plan.slow_share + plan.stalled_share > 0.9:
        problems.append("at least a tenth of the receivers has to read at full speed")
    if plan.body_bytes < 24 or plan.body_bytes > 4096:
        problems.append("a body has 24 to 4096 characters: it carries the time at which it was to be sent")
    if plan.scenario is Scenario.ping and plan.dialect != "envelope":
        problems.append("only the envelope dialect has a PING")
    if plan.scenario is Scenario.http_send and (plan.groups or plan.flap_share):
        problems.append("http-send is for pairs whose senders stay")
    if plan.seconds <= 0 or plan.window < 1 or plan.burst < 1 or plan.rate < 0:
        problems.append("seconds, window and burst are positive")
    return problems


def divided(plan: Plan, processes: int) -> list[Plan]:
    """One plan per generator process. Pairs and groups stay whole; the rate is shared in proportion to the senders."""
    processes = max(1, min(processes, plan.pairs + plan.groups + plan.connections))
    shares = []
    first, first_group = 0, 0
    senders = _senders(plan)
    for number in range(processes):
        part = msgspec.structs.replace(
            plan,
            pairs=_share(plan.pairs, processes, number),
            groups=_share(plan.groups, processes, processes - 1 - number),
            connections=_share(plan.connections, processes, number),
            first_user=first,
            seed=plan.seed + number,
        )
        share = _senders(part) / senders if senders else 0.0
        part.rate, part.preload = plan.rate * share, round(plan.preload * share)
        part.accounts = plan.accounts[first : first + part.people]
        first += part.people
        first_group += part.groups
        if part.people:
            shares.append(part)
    return shares


def _share(count: int, processes: int, number: int) -> int:
    return count // processes + (number < count % processes)


def _senders(plan: Plan) -> int:
    return plan.pairs + plan.groups * plan.senders + plan.connections

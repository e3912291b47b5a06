"""Identifiers: their form, how conversations are named, and the time-ordered message id generator."""

from __future__ import annotations

import re
import secrets
import string
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from nexo.errors import NexoError

AT_ALL = "@all"  # means every member in `mentions`, so it cannot be a user id

RESERVED_PREFIX = "nexo."  # users of the server itself, in any case of letters
CANARY_IDS = ("nexo.canary", "nexo.canary.echo")  # send and receive the message of /readyz
MODERATOR_ID = "nexo.moderator"  # shown as the author of what a key did, which is no user

_USER_ID = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_GROUP_ID = re.compile(r"g_[A-Za-z0-9]{12}")
_ALPHANUMERIC = string.ascii_letters + string.digits


def is_user_id(value: str) -> bool:
    return _USER_ID.fullmatch(value) is not None and value != AT_ALL


def check_user_id(value: str, field: str = "user_id") -> None:
    if not is_user_id(value):
        raise NexoError(f"bad_{field}", f"{field} must be 1-64 of A-Z a-z 0-9 . _ @ - (and not {AT_ALL})")


def is_reserved(user_id: str) -> bool:
    """Returns whether this id belongs to the server: no client can register it."""
    return user_id[: len(RESERVED_PREFIX)].lower() == RESERVED_PREFIX


def check_new_user_id(value: str) -> None:
    """As `check_user_id`; ids of the server itself are refused too."""
    check_user_id(value)
    if is_reserved(value):
        raise NexoError("bad_user_id", f"Ids that begin with {RESERVED_PREFIX} belong to the server")


def check_client_msg_id(value: str) -> None:
    if not value:
        raise NexoError("missing_client_msg_id")
    # asked for every send: a regular expression takes three times as long
    is_good = len(value) <= 64 and value.isascii() and value.isprintable()
    if not is_good or value[0] == " " or value[-1] == " ":
        raise NexoError(
            "bad_client_msg_id", "client_msg_id must be 1-64 printable ASCII characters without outer spaces"
        )


def is_group_id(value: str) -> bool:
    return _GROUP_ID.fullmatch(value) is not None


def new_group_id() -> str:
    return "g_" + "".join(secrets.choice(_ALPHANUMERIC) for _ in range(12))


def new_user_id() -> str:
    return "u" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(11))


def new_session_id() -> str:
    return secrets.token_urlsafe(18)


def new_instance_id() -> str:
    """Returns an id for one process, from its start to its end."""
    return f"i_{secrets.token_hex(8)}"


def single_conversation_id(a: str, b: str) -> str:
    # ids are ASCII, so comparing strings compares bytes
    return f"si_{a}:{b}" if a < b else f"si_{b}:{a}"


def group_conversation_id(group_id: str) -> str:
    return f"sg_{group_id}"


def peers_of(conversation_id: str) -> tuple[str, str] | None:
    """The two users of a single chat, or None for anything else."""
    if not conversation_id.startswith("si_"):
        return None
    low, colon, high = conversation_id[3:].partition(":")
    if not colon or not low < high or not is_user_id(low) or not is_user_id(high):
        return None
    return low, high


def group_of(conversation_id: str) -> str | None:
    """The group of a group conversation, or None for anything else."""
    group_id = conversation_id[3:]
    return group_id if conversation_id.startswith("sg_") and is_group_id(group_id) else None


def is_conversation_id(value: str) -> bool:
    return peers_of(value) is not None or group_of(value) is not None


def peer_of(conversation_id: str, user_id: str) -> str | None:
    """Returns the other user of a single chat of `user_id`."""
    peers = peers_of(conversation_id)
    if peers is None or user_id not in peers:
        return None
    return peers[1] if peers[0] == user_id else peers[0]


def peer_in(conversation_id: str, user_id: str) -> str | None:
    """As `peer_of`, for the id of an existing conversation, whose form was checked when it was created."""
    if not conversation_id.startswith("si_"):
        return None
    low, _, high = conversation_id[3:].partition(":")
    return high if user_id == low else low if user_id == high else None


def parse_server_msg_id(value: str | int, field: str = "server_msg_id") -> int:
    """Ids travel as strings; anything that is not a positive 63-bit number cannot exist."""
    if isinstance(value, str):
        number = int(value) if value.isascii() and value.isdigit() and len(value) <= 19 else 0
    else:
        number = value if isinstance(value, int) and not isinstance(value, bool) else 0
    if not 0 < number < 1 << 63:
        raise NexoError(f"bad_{field}", f"{field} is a string of digits")
    return number


def now_ms() -> int:
    return time.time_ns() // 1_000_000


NODE_BITS = 10
COUNTER_BITS = 12
COUNTER_MAX = (1 << COUNTER_BITS) - 1
MAX_NODES = 1 << NODE_BITS
EPOCH_MS = 1_704_067_200_000  # 2024-01-01: 41 bits of milliseconds last until 2093


class IdGenerator:
    """Message ids: milliseconds, node, counter. Never repeats, also when the clock steps back.

    A node number is leased (`store/leases.py`); the lease states after which millisecond its holder may
    count, so that two holders in succession never meet, and until when it is valid.
    """

    def __init__(self, node: int, not_before_ms: int = 0, clock: Callable[[], int] = now_ms) -> None:
        self._set_node(node)
        self._clock = clock
        self._last_ms = not_before_ms
        self._counter = COUNTER_MAX  # the previous holder may have used up that millisecond
        self._lock = threading.Lock()

    def _set_node(self, node: int) -> None:
        if not 0 <= node < MAX_NODES:
            raise ValueError(f"node must be 0..{MAX_NODES - 1}")
        self._node = node << COUNTER_BITS

    def take(self, count: int) -> list[int]:
        """`count` fresh ids, ascending."""
        with self._lock:
            return self._take(count, self._clock())

    def _take(self, count: int, now: int) -> list[int]:
        """Call with the lock held."""
        if now > self._last_ms:
            self._last_ms, self._counter = now, -1
        ids: list[int] = []
        while (missing := count - len(ids)) > 0:
            if self._counter >= COUNTER_MAX:  # borrow from the future rather than wait
                self._last_ms, self._counter = self._last_ms + 1, -1
            some = min(missing, COUNTER_MAX - self._counter)
            first = ((self._last_ms - EPOCH_MS) << 22) | self._node | (self._counter + 1)
            ids += range(first, first + some)
            self._counter += some
        return ids

    @property
    def last_ms(self) -> int:
        return self._last_ms


_UPTIME = time.CLOCK_BOOTTIME if hasattr(time, "CLOCK_BOOTTIME") else time.CLOCK_MONOTONIC


class Lease(NamedTuple):
    """A node number, and the times for which it is held."""

    node: int
    used_ms: int  # the last millisecond that the holder before may have used
    until_ms: int  # the last one that this holder may


class LeasedIds(IdGenerator):
    """The id generator of a process; its node number is leased while the database is open."""

    def __init__(self, lease: Lease, ends_at: float, holder: str, ask_again: Callable[[], None]) -> None:
        """`ask_again` is called, in any thread, when the lease is over before it was renewed."""
        super().__init__(lease.node, lease.used_ms)
        self.holder = holder
        self._ask_again = ask_again
        self.extend(lease, ends_at)

    def extend(self, lease: Lease, ends_at: float) -> None:
        """The same number for some more time, or another one after the old one was lost. `ends_at` is by `uptime_s`,
        counted from when it was asked for: the answer may have been read much later."""
        with self._lock:
            self.node = lease.node
            self._set_node(lease.node)
            self._until_ms = lease.until_ms
            self._ends_at = ends_at

    def move(self, lease: Lease, ends_at: float) -> None:
        with self._lock:
            if lease.used_ms >= self._last_ms:
                self._last_ms, self._counter = lease.used_ms, COUNTER_MAX
        self.extend(lease, ends_at)

    @property
    def clock_ms(self) -> int:
        """Returns the time that the next id would contain."""
        return max(self._clock(), self._last_ms)

    def take(self, count: int) -> list[int]:
        """Raises NexoError("server_busy") when another process may hold this number by now: this one stood still,
        could not reach the database for too long, or its clock was put forward."""
        with self._lock:
            now = self._clock()
            last_ms = self._last_ms
            # what is borrowed from the future is a millisecond per 4096 ids
            shown_ms = (now if now > last_ms else last_ms) + count
            if shown_ms < self._until_ms and time.clock_gettime(_UPTIME) < self._ends_at:
                return self._take(count, now)
        self._ask_again()
        raise NexoError("server_busy", "The lease for message ids has to be renewed", retry_after_ms=500)


def uptime_s() -> float:
    """Continues while this process or the whole machine sleeps, and never steps back."""
    return time.clock_gettime(_UPTIME)


def time_of(server_msg_id: int) -> int:
    """The millisecond in which an id was made."""
    return (server_msg_id >> 22) + EPOCH_MS

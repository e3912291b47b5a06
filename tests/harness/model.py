"""What Nexo should answer, worked out the slow way: a log of messages per conversation, and counting.

Nothing here is shared with the code under test; every number is recounted from the log when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

EVENT_FROM = 100


@dataclass
class Entry:
    seq: int
    sender: str
    msg_type: int
    content: str = ""
    mentions: tuple[str, ...] = ()
    reply_to: int | None = None  # seq of the target
    recalled: bool = False
    expired: bool = False

    @property
    def countable(self) -> bool:
        return self.msg_type < EVENT_FROM


@dataclass
class Span:
    low: int
    high: int | None = None


@dataclass
class Person:
    spans: list[Span] = field(default_factory=list)
    role: int = 0
    delivered: int = 0
    read: int = 0
    deleted: set[int] = field(default_factory=set)
    cleared: int = 0
    noted: tuple[int, int] = (0, 0)  # delivered and read that were acknowledged and not written yet

    @property
    def active(self) -> bool:
        return bool(self.spans) and self.spans[-1].high is None


class Chat:
    """A conversation and everybody's part in it."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.people: dict[str, Person] = {}

    @property
    def head(self) -> int:
        return len(self.log)

    # -- what happens ----------------------------------------------------------------------------------

    def add(self, sender: str, msg_type: int = 1, content: str = "", **fields: object) -> Entry:
        entry = Entry(self.head + 1, sender, msg_type, content, **fields)  # type: ignore[arg-type]
        self.log.append(entry)
        if entry.countable:
            self._settle(sender)
        return entry

    def let_in(self, user: str, low: int, role: int = 0) -> None:
        person = self.people.setdefault(user, Person())
        person.spans.append(Span(low))
        person.role = role
        person.delivered = person.read = low - 1

    def see_out(self, user: str, high: int) -> None:
        self.people[user].spans[-1].high = high
        self.people[user].role = 0

    def note(self, user: str, delivered: int, read: int) -> None:
        person = self.people[user]
        person.noted = (max(person.noted[0], delivered), max(person.noted[1], read))

    def write_noted(self) -> None:
        for user, person in self.people.items():
            delivered, read = person.noted
            person.noted = (0, 0)
            self.advance(user, delivered, read)

    def advance(self, user: str, delivered: int, read: int) -> None:
        person = self.people[user]
        last = self.last_visible(user)
        person.read = max(person.read, min(read, last))
        person.delivered = max(person.delivered, min(delivered, last))
        self._settle(user)
        person.delivered = max(person.delivered, person.read)
        self._settle(user)

    def _settle(self, user: str) -> None:
        """Cursors step over one's own messages that come right after them."""
        person = self.people[user]
        person.delivered = self._over_own(user, person.delivered)
        person.read = self._over_own(user, person.read)

    def _over_own(self, user: str, cursor: int) -> int:
        while cursor < self.last_visible(user):
            following = self.log[cursor]
            if following.sender != user or not following.countable:
                break
            cursor += 1
        return cursor

    # -- what can be seen ------------------------------------------------------------------------------

    def last_visible(self, user: str) -> int:
        high = self.people[user].spans[-1].high
        return self.head if high is None else high

    def sees(self, user: str, seq: int) -> bool:
        if user not in self.people or not 1 <= seq <= self.head:
            return False
        return any(span.low <= seq <= (span.high or self.head) for span in self.people[user].spans)

    def visible(self, user: str) -> list[Entry]:
        return [entry for entry in self.log if self.sees(user, entry.seq)]

    def shows(self, user: str, seq: int) -> bool:
        """Whether the user may see it, and has neither deleted nor cleared it."""
        person = self.people.get(user)
        return person is not None and self.sees(user, seq) and seq > person.cleared and seq not in person.deleted

    def shown(self, user: str) -> list[Entry]:
        return [entry for entry in self.log if self.shows(user, entry.seq)]

    def quoted(self, user: str, entry: Entry) -> bool:
        """Whether this reader gets a quote with this message."""
        if entry.recalled or entry.expired or entry.reply_to is None:
            return False
        target = self.log[entry.reply_to - 1]
        return self.shows(user, entry.reply_to) and not target.recalled and not target.expired

    def unread(self, user: str) -> int:
        return sum(1 for entry in self._above_read(user))

    def unread_mentions(self, user: str) -> int:
        return sum(1 for entry in self._above_read(user) if user in entry.mentions or "@all" in entry.mentions)

    def _above_read(self, user: str) -> list[Entry]:
        read = self.people[user].read
        return [e for e in self.shown(user) if e.seq > read and e.countable and e.sender != user]

    def undelivered(self, user: str) -> list[int]:
        return [entry.seq for entry in self.shown(user) if entry.seq > self.people[user].delivered]

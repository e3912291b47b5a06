"""Finds lost frames between instances, by numbers per publisher and receiver, and publishers that are silent. Pure.

The publisher numbers its frames for each receiver, also frames that it could not publish. The receiver expects the next
number, and a sign of life of every publisher that it knows, until the GOODBYE of that publisher.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from msgspec import Struct

from nexo.bus.frames import BusFrame, FrameKind

FORGET_S = 600.0  # a silent publisher's number is kept for as long: it may only have been stopped
LEFT_MAX = 1000


class Outgoing:
    """The last number used for each receiver."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def take(self, receiver: str) -> int:
        number = self._last[receiver] = self._last.get(receiver, 0) + 1
        return number

    def last(self, receiver: str) -> int:
        return self._last.get(receiver, 0)

    def lose(self, receivers: Iterable[str]) -> None:
        """Skip a number for all receivers after a failed publication: each detects the gap."""
        for receiver in set(receivers) | self._last.keys():
            self.take(receiver)

    def meet(self, receiver: str) -> None:
        """Start publishing to this receiver. One that was known before may have missed frames: a skipped number makes
        it detect that."""
        if receiver in self._last:
            self.take(receiver)
        else:
            self._last[receiver] = 0


class Heard(Struct):
    number: int
    at: float
    is_silent: bool = False
    is_heard: bool = False  # a frame of it has arrived


class Seen(Struct, frozen=True):
    is_new: bool  # to be delivered
    loss: str = ""


class Incoming:
    """What was received from each publisher. Times are of a monotonic clock."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._heard: dict[str, Heard] = {}
        self._left: OrderedDict[str, None] = OrderedDict()

    def expect(self, publisher: str, now: float) -> None:
        """Expect signs of life of this publisher: it is in the list of instances."""
        if publisher not in self._left:
            self._heard.setdefault(publisher, Heard(0, now))

    def see(self, frame: BusFrame, now: float) -> Seen:
        heard = self._heard.get(frame.publisher)
        if heard is None:
            if frame.publisher in self._left:
                return Seen(False)
            heard = self._heard[frame.publisher] = Heard(0, now)
        heard.at = now
        heard.is_silent = False
        heard.is_heard = True
        expected = heard.number + (frame.kind is FrameKind.DATA)
        # late: counted as lost before, and its receivers have got RESYNC
        is_late = frame.number < expected
        loss = f"{frame.number - expected} frames missing" if frame.number > expected else ""
        heard.number = max(heard.number, frame.number)
        if frame.kind is FrameKind.GOODBYE:
            self._forget(frame.publisher)
        return Seen(frame.kind is FrameKind.DATA and not is_late, loss)

    def _forget(self, publisher: str) -> None:
        del self._heard[publisher]
        self._left[publisher] = None
        if len(self._left) > LEFT_MAX:
            self._left.popitem(last=False)

    def fallen_silent(self, now: float) -> list[str]:
        """Returns the publishers that have become silent, each once."""
        found = []
        for publisher, heard in list(self._heard.items()):
            if not heard.is_silent and now - heard.at > self._silence_s:
                heard.is_silent = True
                found.append(publisher)
            elif now - heard.at > FORGET_S:
                del self._heard[publisher]
        return found

    def is_gone(self, publisher: str) -> bool:
        """Returns whether the publisher is silent or has sent GOODBYE."""
        heard = self._heard.get(publisher)
        return publisher in self._left or (heard is not None and heard.is_silent)

    def misses(self, publisher: str) -> bool:
        """Returns whether nothing arrives from the publisher although it has not sent GOODBYE."""
        heard = self._heard.get(publisher)
        return publisher not in self._left and (heard is None or heard.is_silent or not heard.is_heard)

    def has_heard(self, publishers: Iterable[str]) -> bool:
        return all(name not in self._heard or self._heard[name].is_heard for name in publishers)

    def pardon(self, now: float) -> None:
        """Restart the clock of every publisher: this process itself could not receive anything."""
        for heard in self._heard.values():
            heard.at = now

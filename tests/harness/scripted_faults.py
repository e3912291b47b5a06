"""What a scenario may do to frames on their way, and the line on which it does it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from websockets.server import ServerProtocol

Frame = dict[str, Any]


@dataclass
class Rule:
    """Applies to the next `times` frames in `direction` whose fields are those of `match`, after `skip` of them."""

    direction: str  # in: from the client; out: to it; http: a request
    match: Frame
    do: str
    times: int
    skip: int
    options: Frame

    def fits(self, frame: Frame) -> bool:
        return self.times > 0 and is_part_of(self.match, frame)


def is_part_of(wanted: Any, found: Any) -> bool:
    """Objects have at least the wanted fields; a list stands for any of its values."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(is_part_of(value, found.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        return found in wanted
    return bool(wanted == found)


DOINGS = {
    "in": ("drop", "cut", "cut_after", "refuse"),
    "out": ("drop", "duplicate", "delay", "hold", "cut", "cut_after", "cut_inside"),
    "http": ("refuse", "cut", "cut_after", "delay"),
}


class Rules:
    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(self, given: Frame) -> None:
        """`{"out": {"type": "ACK"}, "do": "drop", "times": 1, "skip": 0, …}`"""
        given = dict(given)
        direction = next(name for name in DOINGS if name in given)
        match, do = given.pop(direction), given.pop("do")
        if do not in DOINGS[direction]:
            raise ValueError(f"no rule for {direction} can {do}")
        self._rules.append(Rule(direction, match, do, given.pop("times", 1), given.pop("skip", 0), given))

    def clear(self) -> None:
        self._rules.clear()

    def apply(self, direction: str, frame: Frame) -> Rule | None:
        for rule in self._rules:
            if rule.direction == direction and rule.fits(frame):
                if rule.skip:
                    rule.skip -= 1
                    continue
                rule.times -= 1
                return rule
        return None


class Line:
    """A WebSocket whose bytes are in our hands, so that it can break anywhere."""

    def __init__(self, writer: asyncio.StreamWriter, protocol: ServerProtocol) -> None:
        self._writer = writer
        self.protocol = protocol
        self.is_cut = False

    def send(self, frame: Frame) -> bool:
        """Whether it went out."""
        data = self._encode(frame)
        if data:
            self._writer.write(data)
        return bool(data)

    def send_half(self, frame: Frame) -> None:
        """A part of the frame, enough to look like one, and then nothing ever again."""
        data = self._encode(frame)
        if data:
            self._writer.write(data[: len(data) // 2])
            self._writer.transport.write_eof()
        self.is_cut = True

    def _encode(self, frame: Frame) -> bytes:
        if self.is_cut or self._writer.is_closing() or self.protocol.state.name != "OPEN":
            return b""
        self.protocol.send_text(json.dumps(frame).encode())
        return b"".join(self.protocol.data_to_send())

    def flush(self) -> None:
        """What the protocol itself has to say: the handshake, pongs, its part of closing."""
        for data in self.protocol.data_to_send():
            if data:
                self._writer.write(data)
            elif self._writer.can_write_eof():
                self._writer.write_eof()

    def close(self, code: int, reason: str) -> None:
        if self.protocol.state.name == "OPEN":
            self.protocol.send_close(code, reason)
            self.flush()

    def cut(self) -> None:
        self.is_cut = True
        self._writer.transport.abort()

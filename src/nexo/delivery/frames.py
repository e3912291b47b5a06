"""The frames of one message, encoded once per dialect and variant and shared by all its receivers."""

from __future__ import annotations

from typing import NamedTuple

from nexo.core import events
from nexo.core.message_events import bare, target_of
from nexo.core.model import QUIET_TYPES, Message, Sent
from nexo.wire.dialect import Dialect


class Needed(NamedTuple):
    """What a member has to see to get a message completely: these seqs. `hidden_from` are the members that deleted one
    of them."""

    seqs: tuple[int, ...]
    hidden_from: tuple[str, ...] = ()


class Frames:
    """The frames of one event, each encoded when the first connection of its kind needs it."""

    __slots__ = ("_bare", "_made", "_message", "plain")

    def __init__(self, message: Message, bare: Message | None = None) -> None:
        """`bare` is what receivers get who may not see what the message refers to; None: the same without its quote."""
        self._message = message
        self._bare = bare or message
        self.plain: dict[str, bytes] = {}  # by dialect: with the quote, and no flag
        self._made: dict[tuple[str, bool, bool, bool], bytes] = {}

    def get_plain(self, dialect: Dialect) -> bytes:
        frame = self.plain[dialect.name] = self.get(dialect, False, False, True)
        return frame

    def get(self, dialect: Dialect, important: bool, silent: bool, quoted: bool) -> bytes:
        key = (dialect.name, important, silent, quoted)
        frame = self._made.get(key)
        if frame is None:
            pushed = events.Pushed(self._message if quoted else self._bare, important, silent, False, quoted)
            frame = self._made[key] = dialect.frame(dialect.encode(pushed))
        return frame


def frames_of(message: Message) -> Frames:
    return Frames(message, bare(message)) if message.msg_type in QUIET_TYPES else Frames(message)


def seqs_of_quote(sent: Sent) -> Needed | None:
    """Returns the seqs that a member has to see to get the quote: those of its target and of the target's last edit."""
    if sent.quoted_seq is None:
        return None
    edits = () if sent.quoted_edit_seq is None else (sent.quoted_edit_seq,)
    return Needed((sent.quoted_seq, *edits), sent.unquoted_for)


def seqs_of_event(event: Message) -> Needed | None:
    """Returns the seqs that a member has to see to get more than a bare event; None where all get the same."""
    return Needed((target_of(event)[1],)) if event.msg_type in QUIET_TYPES else None

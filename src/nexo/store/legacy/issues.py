"""Everything that cannot be imported as it is, one line of JSON each in a file for the operator.

A *note* changes nothing that people see. A *decision* does: as long as it is not accepted, nothing is written.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec

from nexo.errors import StartupError

# kind → whether the operator has to accept it, and what it means
KINDS: dict[str, tuple[bool, str]] = {
    "user_id_changed": (True, "a user id that Nexo does not allow gets another one"),
    "client_msg_id_changed": (True, "a client_msg_id that Nexo does not allow, or that its sender used before"),
    "content_changed": (True, "content that Nexo does not allow is cut or cleaned; the line has all of it"),
    "message_left_out": (True, "a message that belongs to no possible conversation; the line has all of it"),
    "member_left_out": (True, "a member row that belongs to no chat, or is there twice"),
    "order_changed": (True, "messages whose msg_seq and id are in different orders; they are in the order of ids"),
    "group_id_changed": (False, "groups get ids of Nexo's form; the old one is kept in the group's extra"),
    "group_left_out": (False, "a group without members and messages"),
    "group_owner_chosen": (False, "a group had no owner among its members; its oldest admin or member is it now"),
    "user_without_row": (False, "a user who is referred to but has no row in t_user; gets one, without a password"),
    "password_not_usable": (False, "users whose password hash Nexo cannot check: set a new one"),
    "chats_merged": (False, "two single chats of the same two people are one conversation now"),
    "type_changed": (False, "messages of types that Nexo does not know, kept as custom messages"),
    "without_client_msg_id": (False, "messages without client_msg_id get one made of their id"),
    "ids_ahead": (False, "message ids of another clock: newer messages will have smaller ids; seq is what orders"),
    "no_times": (False, "t_message has no time column: messages are numbered from 1970"),
    "deletion_left_out": (True, "messages that a user deleted for oneself, who sees them again"),
    "clearing_left_out": (True, "conversations that a user emptied, or joined later, who sees all of it"),
    "notification_left_out": (False, "notices of the old server about groups, friends and reading"),
    "setting_left_out": (False, "settings of users that are not imported"),
    "table_not_imported": (False, "rows that have no place in Nexo"),
}


class Issue(msgspec.Struct, omit_defaults=True):
    kind: str
    needs_decision: bool
    table: str = ""
    key: str = ""
    found: Any = None
    becomes: Any = None
    count: int = 0


class Issues:
    """Writes the report. Only its owner may read it: it can hold messages."""

    def __init__(self, path: Path | None = None) -> None:
        """Without a path everything is counted and nothing is written, for a pass that would only repeat the report."""
        self.path = path
        self.counts: dict[str, int] = {}
        self._file: IO[bytes] | None = None
        self._encode = msgspec.json.Encoder(enc_hook=str).encode

    def __enter__(self) -> Issues:
        assert self.path is not None
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartupError(f"the report {self.path} cannot be written: {error.strerror}") from error
        self._file = open(descriptor, "wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(
        self, kind: str, table: str = "", key: object = "", found: Any = None, becomes: Any = None, count: int = 0
    ) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + max(1, count)
        if self._file is not None:
            needs_decision, _ = KINDS[kind]
            line = Issue(kind, needs_decision, table, str(key), _storable(found), _storable(becomes), count)
            self._file.write(self._encode(line) + b"\n")

    @property
    def decisions(self) -> dict[str, int]:
        return {kind: count for kind, count in self.counts.items() if KINDS[kind][0]}


def _storable(value: Any) -> Any:
    """JSON has no lone surrogates; a report about one must still be written."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {key: _storable(item) for key, item in value.items()}
    return value

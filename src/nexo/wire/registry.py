"""All dialects, and which one a connection speaks."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from nexo.errors import NexoError
from nexo.wire.command import codec as command
from nexo.wire.command.requests import REQUESTS as COMMANDS
from nexo.wire.dialect import Dialect
from nexo.wire.envelope import codec as envelope
from nexo.wire.request import codec as request
from nexo.wire.request.requests import REQUESTS

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (envelope.DIALECT, request.DIALECT, command.DIALECT)
}

PATHS: dict[str, Dialect] = {"/ws": envelope.DIALECT, "/ws/cmd": command.DIALECT}
# the query of a handshake that only one dialect has
QUERIES: dict[str, Dialect] = {"send_id": request.DIALECT, "v": request.DIALECT}

# for the documentation: the fields of `data` by number, and by command with whether it may precede signing in
REQUEST_FORMS: dict[int, type[Struct]] = {number: row.form for number, row in REQUESTS.items()}
COMMAND_FORMS: dict[str, tuple[type[Struct], bool]] = {name: (row.form, row.for_all) for name, row in COMMANDS.items()}


def choose(path: str, query: Collection[str], subprotocols: Collection[str]) -> tuple[Dialect, str | None]:
    """The dialect and the subprotocol to confirm: the first of those offered that is known, else by path and
    by the names in the query."""
    if path not in PATHS:
        raise NexoError("not_found", f"WebSockets are at {' and '.join(PATHS)}")
    for name in subprotocols:
        if name in DIALECTS:
            return DIALECTS[name], name
    if subprotocols:
        offered, known = ", ".join(subprotocols)[:200], ", ".join(DIALECTS)
        raise NexoError("bad_request", f"No known WebSocket subprotocol among {offered}; this server has {known}")
    if path == "/ws":
        for name in query:
            if name in QUERIES:
                return QUERIES[name], None
    return PATHS[path], None

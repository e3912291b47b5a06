"""All dialects, and which one a connection speaks."""

from __future__ import annotations

from nexo.wire import envelope
from nexo.wire.dialect import Dialect

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (envelope.DIALECT,)}


def choose(path: str, query: str, subprotocols: tuple[str, ...]) -> tuple[Dialect, str | None] | None:
    """The dialect by subprotocol, else by path; None when none of the subprotocols is known."""
    for name in subprotocols:
        if name in DIALECTS:
            return DIALECTS[name], name
    if subprotocols:
        return None
    return DIALECTS[envelope.DIALECT.name], None

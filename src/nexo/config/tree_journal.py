"""Settings of the journal and of search, which reads it. Part of `tree.py`."""

from __future__ import annotations

from typing import Annotated

from nexo.config.fields import Section, about


class JournalConfig(Section, frozen=True):
    retention_h: Annotated[
        int, about("How long the journal of what was committed is kept; a consumer that lags more loses entries.", ge=1)
    ] = 72
    takeover_s: Annotated[
        int, about("Within this time another instance takes over the consumers of one that stopped.", ge=1, le=300)
    ] = 10
    poll_ms: Annotated[
        int, about("How often a consumer looks for what other instances have committed.", ge=10, le=10_000)
    ] = 250
    pollers_max: Annotated[
        int, about("Calls of `GET /server/events` that may be under way on one instance.", ge=1, le=100_000)
    ] = 200


class SearchConfig(Section, frozen=True):
    enabled: Annotated[bool | None, about("Messages can be searched. Left out: if the database is embedded.")] = None

"""Settings of webhooks, and of the question before a send. Part of `tree.py`."""

from __future__ import annotations

from typing import Annotated

from nexo.config.fields import Section, about


class BeforeSendConfig(Section, frozen=True):
    url: Annotated[
        str, about("Asked before a message is written: it allows, rejects or replaces the content. Empty: off.")
    ] = ""
    secret: Annotated[
        str,
        about(
            "Signs the questions, as webhooks are signed: `whsec_` and 24 to 64 bytes in base64. Empty: not signed.",
            secret="value",
        ),
    ] = ""
    timeout_ms: Annotated[int, about("How long an answer is waited for.", ge=10, le=10_000)] = 500
    fail_open: Annotated[
        bool, about("Without an answer a message is sent as it is; otherwise it is refused `server_busy`.")
    ] = True
    types: Annotated[list[int], about("Message types that are asked about; empty: all.")] = []
    connections: Annotated[int, about("Questions under way at a time.", ge=1, le=1000)] = 32
    queue_max: Annotated[int, about("Sends that may wait for an answer; for more there is none.", ge=1)] = 1000


class HooksConfig(Section, frozen=True):
    give_up_h: Annotated[
        int, about("A webhook that refuses an event for this long is paused and reported.", ge=1, le=8760)
    ] = 72
    allow_private: Annotated[bool, about("Webhooks may have addresses that are private, loopback or link-local.")] = (
        False
    )
    deliver: Annotated[
        bool, about("This server delivers webhooks; switch it off where other instances on the same database do.")
    ] = True
    timeout_s: Annotated[int, about("How long an answer of a webhook is waited for.", ge=1, le=60)] = 10
    connections: Annotated[int, about("Requests to one webhook at a time.", ge=1, le=64)] = 8
    rotation_h: Annotated[
        int, about("How long the old secret of a webhook signs too, after it was rotated.", ge=0, le=8760)
    ] = 24
    max_hooks: Annotated[int, about("Webhooks that may be added.", ge=1, le=10_000)] = 100
    before_send: BeforeSendConfig = BeforeSendConfig()

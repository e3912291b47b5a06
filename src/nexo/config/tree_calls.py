"""Settings of calls. Part of `tree.py`."""

from __future__ import annotations

from typing import Annotated

from nexo.config.fields import Section, about


class CallsConfig(Section, frozen=True):
    enabled: Annotated[bool, about("Users may call each other; otherwise CALL frames are `not_implemented`.")] = True
    ring_s: Annotated[int, about("Seconds until a call that is not answered ends as missed.", ge=1, le=600)] = 30
    gone_s: Annotated[
        int, about("Seconds after which a call ends whose caller or callee has no connection any more.", ge=1, le=600)
    ] = 15
    max_s: Annotated[
        int, about("Seconds after which a call ends in any case: devices may have left it silently.", ge=60)
    ] = 43_200
    invites_per_min: Annotated[int, about("Calls that one user may begin; 0: any number.", ge=0)] = 30
    stun: Annotated[
        list[str], about("Addresses of STUN servers for `GET /call/ice`, such as `stun:turn.example.org:3478`.")
    ] = []
    turn: Annotated[
        list[str],
        about("Addresses of TURN servers for `GET /call/ice`, such as `turn:turn.example.org:3478?transport=udp`."),
    ] = []
    turn_secret: Annotated[
        str, about("The secret shared with the TURN servers (`static-auth-secret` of coturn).", secret="value")
    ] = ""
    turn_ttl_s: Annotated[int, about("Seconds for which credentials of TURN are valid.", ge=60, le=604_800)] = 86_400

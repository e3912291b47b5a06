"""Settings of OpenIM's clients; part of the tree in `tree.py`."""

from __future__ import annotations

from typing import Annotated

from nexo.config.fields import Section, about


class OpenimConfig(Section, frozen=True):
    enabled: Annotated[
        bool, about("OpenIM's SDKs may connect to `/openim`. It costs nothing while there is no such client.")
    ] = True
    secret: Annotated[
        str,
        about(
            "The secret by which a product's backend gets an admin token (`/openim/auth/get_admin_token`), as with "
            "OpenIM; empty: only keys of Nexo open the calls for backends.",
            secret="value",
        ),
    ] = ""
    token_days: Annotated[
        int,
        about("Days that a token lives which a backend gets for a user; OpenIM's SDKs cannot renew one.", ge=1, le=30),
    ] = 30

"""Settings of push notifications. Part of `tree.py`."""

from __future__ import annotations

from typing import Annotated, Literal

from nexo.config.fields import Section, about


class WebPushConfig(Section, frozen=True):
    enabled: Annotated[bool, about("Browsers can register for Web Push.")] = True
    subject: Annotated[
        str,
        about(
            "How push services reach the operator: a `mailto:` or `https:` address. Some refuse one that is made up."
        ),
    ] = "mailto:operator@example.com"
    private_key: Annotated[
        str,
        about(
            "The VAPID key: PEM text, or the path of a file with it. Empty: made at the first start and kept, in the "
            "data folder of an embedded database, otherwise in the database.",
            secret="value",
        ),
    ] = ""


class ApnsConfig(Section, frozen=True):
    key_file: Annotated[str, about("The signing key from Apple (`AuthKey_….p8`). Empty: APNs is off.")] = ""
    key_id: Annotated[str, about("The ID of that key.")] = ""
    team_id: Annotated[str, about("The ID of the team that has the key.")] = ""
    topic: Annotated[str, about("The bundle ID of the app.")] = ""
    url: Annotated[
        str, about("Apple's server; apps signed for development need https://api.sandbox.push.apple.com.")
    ] = "https://api.push.apple.com"


class FcmConfig(Section, frozen=True):
    service_account_file: Annotated[
        str, about("The JSON key of a service account of the Firebase project. Empty: FCM is off.")
    ] = ""
    url: Annotated[str, about("Google's server.")] = "https://fcm.googleapis.com"


class PushHookConfig(Section, frozen=True):
    url: Annotated[
        str, about("Notifications of the kind `hook` are posted to this address, http or https. Empty: off.")
    ] = ""
    secret: Annotated[
        str,
        about(
            "Signs them, as webhooks are signed: `whsec_` and 24 to 64 bytes in base64. Empty: not signed.",
            secret="value",
        ),
    ] = ""


class PushConfig(Section, frozen=True):
    wait_ms: Annotated[
        int, about("How long a connection has to take a message before it is pushed.", ge=0, le=600_000)
    ] = 3000
    content: Annotated[
        Literal["full", "sender", "none"],
        about("What a notification shows: the text, only who has written, or only that there is a message."),
    ] = "full"
    deliver: Annotated[
        bool, about("This server sends notifications; switch it off where other instances on the same database do.")
    ] = True
    ttl_h: Annotated[
        int,
        about(
            "How long a notification is kept for a device that is off, and tried again while a service fails.",
            ge=1,
            le=672,
        ),
    ] = 24
    timeout_s: Annotated[int, about("How long an answer of a push service is waited for.", ge=1, le=60)] = 10
    connections: Annotated[int, about("Requests to the services of one kind at a time.", ge=1, le=1000)] = 64
    max_per_user: Annotated[
        int, about("Devices that a user may have registered; the oldest is removed for a new one.", ge=1, le=1000)
    ] = 20
    web: WebPushConfig = WebPushConfig()
    apns: ApnsConfig = ApnsConfig()
    fcm: FcmConfig = FcmConfig()
    hook: PushHookConfig = PushHookConfig()

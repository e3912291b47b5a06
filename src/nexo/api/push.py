"""Handlers and routes: devices that are registered for push."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from nexo.api.requests import ApiRequest, DeviceId, Nothing, form, given
from nexo.api.route import Caller, Route, Services, route
from nexo.core.push import KINDS

Kind = Annotated[str, form(enum=list(KINDS))]
Token = Annotated[str, Meta(description="Of the device, as the service has given it; for `apns`, `fcm` and `hook`.")]
SubscriptionJson = Annotated[
    dict[str, Any], Meta(description="The browser's `PushSubscription` as JSON: `{endpoint, keys: {p256dh, auth}}`.")
]


class RegisterPushRequest(ApiRequest, frozen=True):
    kind: Kind
    device_id: DeviceId
    token: Token | UnsetType = UNSET
    subscription: SubscriptionJson | UnsetType = UNSET
    lang: Annotated[str, form(maxLength=35, description="Of the texts: `en` (default) or `zh`.")] = "en"


class UnregisterPushRequest(ApiRequest, frozen=True):
    kind: Kind | UnsetType = UNSET
    device_id: DeviceId | UnsetType = UNSET
    token: Token | UnsetType = UNSET
    subscription: SubscriptionJson | UnsetType = UNSET


class PushRegistered(Struct):
    kind: str
    device_id: str
    lang: str


class PushRemoved(Struct):
    removed: int


class WebPushKey(Struct):
    """`public_key` is the `applicationServerKey` of browsers."""

    public_key: str


class PushConfigReply(Struct):
    """`kinds` are those that this server can reach; `web` is null without Web Push."""

    kinds: list[str]
    web: WebPushKey | None


async def config(services: Services, caller: Caller, request: Nothing) -> PushConfigReply:
    devices = services.push
    return PushConfigReply(devices.kinds, WebPushKey(devices.public_key) if devices.public_key else None)


async def register(services: Services, caller: Caller, request: RegisterPushRequest) -> PushRegistered:
    made = await services.push.register(
        caller.session,
        request.kind,
        given(request.token),
        given(request.subscription),
        request.device_id,
        request.lang,
    )
    return PushRegistered(*made)


async def unregister(services: Services, caller: Caller, request: UnregisterPushRequest) -> PushRemoved:
    removed = await services.push.unregister(
        caller.session,
        given(request.kind),
        given(request.token),
        given(request.subscription),
        given(request.device_id),
    )
    return PushRemoved(removed)


PUSH_ROUTES: tuple[Route, ...] = (
    route(
        "GET", "/push/config", config, Nothing, PushConfigReply,
        "Which kinds of push this server sends, and the key for browsers",
    ),
    route(
        "POST", "/push/register", register, RegisterPushRequest, PushRegistered,
        "Register this device for push; it ends with the session", "missing_token", "missing_subscription",
        by_key=False,
    ),
    route(
        "POST", "/push/unregister", unregister, UnregisterPushRequest, PushRemoved,
        "End the registration of this session, or of another device of yours", by_key=False,
    ),
)  # fmt: skip

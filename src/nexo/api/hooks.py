"""Handlers of `/server/hooks`: webhooks of a product's backend. A webhook is addressed by its name or short id."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field, structs

from nexo.api.requests import ApiRequest, Nothing, form
from nexo.api.route import Caller, Services
from nexo.api.shapes import Empty
from nexo.core.hooks import Hook
from nexo.service.hooks import HookTrial


class AddHookRequest(ApiRequest, frozen=True):
    url: Annotated[str, form(maxLength=2048, description="http or https.")]
    types: Annotated[list[str], Meta(description="Only events of these types; none: all.")] = []  # noqa: RUF012
    conversations: Annotated[
        list[str], Meta(description="Only events of these conversations; `*` stands for any characters: `sg_*`.")
    ] = []  # noqa: RUF012
    name: Annotated[str, form(maxLength=64, description="Absent: the short id.")] = ""

    error_names = {"conversations": "conversation_id"}  # noqa: RUF012


class ReplayRequest(ApiRequest, frozen=True):
    start: Annotated[
        str, Meta(description="A cursor of `/server/events`, `begin`, a time (`2026-05-01T12:00`) or an age (`2h`).")
    ] = field(name="from")

    error_names = {"start": "cursor"}  # noqa: RUF012


class HookShape(Struct):
    """`failing_since` 0: the receiver takes what it is sent."""

    hook_id: str
    name: str
    url: str
    types: list[str]
    conversations: list[str]
    status: str
    reason: str
    failing_since: int
    created_at: int


class HookList(Struct):
    hooks: list[HookShape]


class HookTested(HookTrial, frozen=True):
    """The answer to the test event; `status` 0: there was none."""


class HookWithSecret(HookShape):
    """The secret is not shown again."""

    secret: str


def hook_shape(hook: Hook) -> HookShape:
    return HookShape(
        hook.hook_id,
        hook.name,
        hook.url,
        list(hook.types),
        list(hook.conversations),
        hook.status.word,
        hook.reason,
        hook.failing_since,
        hook.created_at,
    )


async def add(services: Services, caller: Caller, request: AddHookRequest) -> HookWithSecret:
    hook, secret = await services.backend.hooks.add(
        request.url, request.types, request.conversations, request.name, caller.actor
    )
    return HookWithSecret(**structs.asdict(hook_shape(hook)), secret=secret)


async def entries(services: Services, caller: Caller, request: Nothing) -> HookList:
    return HookList([hook_shape(hook) for hook in await services.backend.hooks.all()])


async def test(services: Services, caller: Caller, request: Nothing) -> HookTested:
    return HookTested(*structs.astuple(await services.backend.hooks.test(caller.path_id)))


async def pause(services: Services, caller: Caller, request: Nothing) -> HookShape:
    return hook_shape(await services.backend.hooks.pause(caller.path_id, caller.actor))


async def resume(services: Services, caller: Caller, request: Nothing) -> HookShape:
    return hook_shape(await services.backend.hooks.resume(caller.path_id, caller.actor))


async def replay(services: Services, caller: Caller, request: ReplayRequest) -> HookShape:
    return hook_shape(await services.backend.hooks.replay(caller.path_id, request.start, caller.actor))


async def rotate(services: Services, caller: Caller, request: Nothing) -> HookWithSecret:
    hook, secret = await services.backend.hooks.rotate(caller.path_id, caller.actor)
    return HookWithSecret(**structs.asdict(hook_shape(hook)), secret=secret)


async def remove(services: Services, caller: Caller, request: Nothing) -> Empty:
    await services.backend.hooks.remove(caller.path_id, caller.actor)
    return Empty()

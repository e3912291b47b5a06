"""Handlers: the server itself."""

from __future__ import annotations

from msgspec import Struct

from nexo.api import requests
from nexo.api.route import Caller, Services


class Alive(Struct):
    status: str = "alive"


class Ready(Struct):
    status: str = "ready"


async def alive(services: Services, caller: Caller, request: requests.Nothing) -> Alive:
    return Alive()


async def ready(services: Services, caller: Caller, request: requests.Nothing) -> Ready:
    await services.health.check_ready()
    return Ready()

"""The HTTP API on a port of its own, and short words for calling it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from harness.store import make_config
from nexo.api.app import make_api
from nexo.api.routes import ROUTES, errors_of
from nexo.app import Core, open_core
from nexo.core.model import Sent
from nexo.metrics import families
from nexo.metrics.exposition import Metrics
from nexo.ports import GroupChange, Recall
from nexo.service.accounts import Accounts
from nexo.service.limits import Limits
from nexo.store.account_store import SqlAccounts

PASSWORD = "correct horse"
SECRET = "a secret of the tests, which nobody else uses"

_ERRORS = {(row.method, row.path): errors_of(row) for row in ROUTES}
# what the HTTP layer itself may say on any path
_OF_THE_LAYER = {"not_found", "method_not_allowed", "internal_error", "body_too_long"}

_numbers = itertools.count(1)

MET: set[tuple[str, str, str]] = set()  # method, path and outcome ("ok" or an error) of all calls so far


class SilentPublisher:
    """Tells nobody, and remembers what it was to tell."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def message_saved(self, sent: Sent, origin: object | None) -> None:
        self.told.append(("message_saved", sent))

    def group_changed(self, change: GroupChange) -> None:
        self.told.append(("group_changed", change))

    def recalled(self, recall: Recall) -> None:
        self.told.append(("recalled", recall))

    def conversation_read(self, user_id: str, conversation_id: str, read_seq: int, unread: int) -> None:
        self.told.append(("conversation_read", (user_id, conversation_id, read_seq, unread)))

    def audience_changed(self, conversation_id: str) -> None:
        self.told.append(("audience_changed", conversation_id))

    def take(self) -> list[tuple[str, Any]]:
        told, self.told = self.told, []
        return told


class SomeOnline:
    """Those named are connected, on platform 5."""

    def __init__(self, *user_ids: str) -> None:
        self._user_ids = user_ids

    async def online(self, user_ids: Sequence[str]) -> list[tuple[str, bool, Sequence[int]]]:
        return [(user_id, user_id in self._user_ids, [5] if user_id in self._user_ids else []) for user_id in user_ids]


class Answer(NamedTuple):
    status: int
    body: Any
    headers: httpx.Headers

    @property
    def data(self) -> Any:
        assert self.body["err_code"] == 0, self.body
        return self.body["data"]

    @property
    def error(self) -> str:
        assert self.body["err_code"] != 0, self.body
        return str(self.body["err_msg"])


class Api:
    """A running API. Whatever is called through it may refuse only with what the table documents."""

    def __init__(self, core: Core, accounts: Accounts, limits: Limits, publisher: SilentPublisher) -> None:
        self.core = core
        self.accounts = accounts
        self.limits = limits
        self.publisher = publisher
        self.tokens: dict[str, str] = {}
        self.failure: Exception | None = None  # what the canary raises
        self.canaries = 0
        self.http: httpx.AsyncClient

    async def canary(self) -> None:
        self.canaries += 1
        if self.failure is not None:
            raise self.failure

    async def sign_up(self, *user_ids: str) -> None:
        for user_id in user_ids:
            await self.accounts.register(PASSWORD, user_id, nickname=user_id.title())
            self.tokens[user_id] = (await self.accounts.login(user_id, PASSWORD)).access_token

    async def request(self, caller: str | None, method: str, path: str, **options: Any) -> Answer:
        headers = dict(options.pop("headers", {}))
        if caller is not None:
            headers["Authorization"] = f"Bearer {self.tokens[caller]}"
        response = await self.http.request(method, path, headers=headers, **options)
        is_json = response.headers.get("content-type") == "application/json" and method != "HEAD"
        body: Any = response.json() if is_json else response.text
        if response.status_code >= 400:
            documented = _ERRORS.get((method, path.partition("?")[0]), set()) | _OF_THE_LAYER
            assert body["err_msg"] in documented, f"{method} {path} does not document {body}"
        outcome = body["err_msg"] if response.status_code >= 400 else "ok"
        MET.add((method, path.partition("?")[0], outcome))
        return Answer(response.status_code, body, response.headers)

    async def get(self, caller: str | None, path: str, /, **query: Any) -> Answer:
        return await self.request(caller, "GET", path, params=query)

    async def post(self, caller: str | None, path: str, /, **fields: Any) -> Answer:
        return await self.request(caller, "POST", path, json=fields)

    async def put(self, caller: str | None, path: str, /, **fields: Any) -> Answer:
        return await self.request(caller, "PUT", path, json=fields)


async def send(api: Api, sender: str, target: str, content: Any = "hello", **fields: Any) -> Any:
    """To a user, or to a group (its id tells), under a new client_msg_id; what was answered."""
    where = "group_id" if target.startswith("g_") else "recv_id"
    fields = {"client_msg_id": f"c{next(_numbers)}", where: target, "content": content, **fields}
    return (await api.post(sender, "/msg/send", **fields)).data


async def make_group(api: Api, owner: str, *members: str, **fields: Any) -> Any:
    return (await api.post(owner, "/group/create", name="team", member_ids=list(members), **fields)).data


@asynccontextmanager
async def open_api(
    store_url: str, users: Iterable[str] = (), *, online: SomeOnline | None = None, **settings: object
) -> AsyncIterator[Api]:
    """A server on a free port, on a migrated database (`core_url`), with these users signed in."""
    config = make_config(store_url, **settings)
    async with open_core(config) as core:
        accounts = Accounts(SqlAccounts(core.store.database), config, SECRET)
        api = Api(core, accounts, Limits(config), SilentPublisher())
        metrics = Metrics()
        metrics.add(lambda: [families.SENDS(1, "saved")])  # to be found again
        app = make_api(
            config=config,
            accounts=accounts,
            sending=core.sending,
            acknowledging=core.acknowledging,
            conversations=core.conversations,
            groups=core.groups,
            publisher=api.publisher,
            online=online or SomeOnline(),
            limits=api.limits,
            canary=api.canary,
            expose=metrics.expose,
        )
        try:
            await api.sign_up(*users)
            async with serve(app) as address, httpx.AsyncClient(base_url=address, timeout=30) as api.http:
                yield api
        finally:
            accounts.close()


@asynccontextmanager
async def serve(app: ASGIApp) -> AsyncIterator[str]:
    """Run an application in this loop; its address. Uvicorn's own server, but without its main loop, which
    notices only every 100 ms that it is to stop."""
    config = uvicorn.Config(app, http="httptools", ws="none", lifespan="off", log_config=None, proxy_headers=False)
    config.load()
    state = ServerState()

    def protocol() -> asyncio.Protocol:
        return config.http_protocol_class(config=config, server_state=state, app_state={})  # type: ignore[call-arg]

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=5)

"""The HTTP API on a port of its own, and short words for calling it."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from harness.commits import CommitLog
from harness.store import make_config
from nexo.api.app import make_api
from nexo.api.asgi import ASGIApp
from nexo.api.routes import ROUTES, errors_of
from nexo.assembly.accounts import make_accounts
from nexo.assembly.backend import make_backend
from nexo.assembly.core import Core, open_core
from nexo.assembly.files import make_files
from nexo.assembly.hooks import make_gate, make_hooks
from nexo.assembly.people import make_actions
from nexo.assembly.push import make_push
from nexo.assembly.search import make_search
from nexo.background import Background
from nexo.calls.calls import Calls
from nexo.core.events import CallFrame
from nexo.core.tracing import TracesFound
from nexo.files.files import Files
from nexo.journal.journal import Journal
from nexo.metrics import families
from nexo.metrics.exposition import Metrics
from nexo.push.push import PushService
from nexo.search.search import Search
from nexo.service.accounts import Accounts
from nexo.service.backend import Backend
from nexo.service.limits import Limits
from nexo.service.people import People
from nexo.service.push import PushDevices
from nexo.store.sql_calls import SqlCalls

PASSWORD = "correct horse"
SECRET = "a secret of the tests, which nobody else uses"

_PATHS = {row.path for row in ROUTES}
_ERRORS = {(row.method, row.path): errors_of(row) for row in ROUTES}
# what the HTTP layer itself may say on any path
_OF_THE_LAYER = {"not_found", "method_not_allowed", "internal_error", "body_too_long"}

_numbers = itertools.count(1)

MET: set[tuple[str, str, str]] = set()  # method, path and outcome ("ok" or an error) of all calls so far


class SomeOnline:
    """Those named are connected, on platform 5."""

    def __init__(self, *user_ids: str) -> None:
        self._user_ids = user_ids

    async def online(self, viewer_id: str, user_ids: Sequence[str]) -> list[tuple[str, bool, Sequence[int]]]:
        return [(user_id, user_id in self._user_ids, [5] if user_id in self._user_ids else []) for user_id in user_ids]


class NoneConnected:
    """No user is connected: no call can begin."""

    async def among(self, user_ids: Collection[str]) -> set[str]:
        return set()


class NoPushes:
    """No frame of a call goes anywhere."""

    def __init__(self) -> None:
        self.on_answer_wanted: Callable[[int], None] = lambda call_id: None

    def push_call(self, user_id: str, event: CallFrame) -> None: ...

    def push_call_here(self, user_id: str, event: CallFrame) -> None: ...

    def ask_for_answer(self, call_id: int) -> None: ...


class Connected:
    """The users that have a connection, for push; tests change them."""

    def __init__(self) -> None:
        self.users: set[str] = set()

    async def online(self, user_ids: Collection[str]) -> set[str]:
        return self.users & set(user_ids)


class NoTraces:
    """No instance remembers anything."""

    async def ask(self, server_msg_id: int, user_ids: Sequence[str]) -> TracesFound:
        return TracesFound([], [])


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


def open_path(path: str) -> str:
    """Returns the path as the route table has it."""
    path = path.partition("?")[0]
    if path in _PATHS:
        return path
    return re.sub(r"^(/server/\w+|/files/tus|/files)/[^/]+", r"\1/{id}", path)


class Api:
    """A running API. Whatever is called through it may refuse only with what the table documents."""

    def __init__(self, core: Core, accounts: Accounts, limits: Limits, publisher: CommitLog) -> None:
        self.core = core
        self.accounts = accounts
        self.limits = limits
        self.publisher = publisher
        self.tokens: dict[str, str] = {}
        self.failure: Exception | None = None  # what the canary raises
        self.canaries = 0
        self.http: httpx.AsyncClient
        self.backend: Backend
        self.files: Files
        self.push: PushService
        self.devices: PushDevices
        self.calls: Calls
        self.connected = Connected()
        self.people: People
        self.search: Search

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
            headers["Authorization"] = f"Bearer {self.tokens.get(caller, caller)}"
        response = await self.http.request(method, path, headers=headers, **options)
        is_json = response.headers.get("content-type") == "application/json" and method != "HEAD"
        body: Any = response.json() if is_json else response.text
        if response.status_code >= 400:
            documented = _ERRORS.get((method, open_path(path)), set()) | _OF_THE_LAYER
            assert body["err_msg"] in documented, f"{method} {path} does not document {body}"
        outcome = body["err_msg"] if response.status_code >= 400 else "ok"
        MET.add((method, open_path(path), outcome))
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


async def make_key(api: Api, name: str = "shop", *scopes: str, **more: Any) -> str:
    """Returns the text of a new key; the scope of the same name as the key if none is given."""
    _, text = await api.backend.keys.add(name, scopes or (name,), **more)
    return text


def need_whole_file(request: pytest.FixtureRequest) -> None:
    """Skips a tally over a file of which only some tests were chosen; CI runs them all, or fails."""
    here = {item.originalname for item in request.session.items if item.path == request.path}  # type: ignore[attr-defined]
    missing = {name for name in vars(request.module) if name.startswith("test_")} - here
    if missing:
        assert "CI" not in os.environ, f"CI runs the whole file, without {missing}"
        pytest.skip("only with all tests of this file")


def check_tally(request: pytest.FixtureRequest, handlers: ModuleType, *, without: Sequence[str] = ()) -> None:
    """Takes a test with an engine, so that it runs behind the tests of that engine in one process. Fails unless the
    tests of a file have called every route of a module of handlers, and met each documented error;
    not `user_deleted`, which no call leads to yet."""
    need_whole_file(request)
    rows = [row for row in ROUTES if row.handler.__module__ == handlers.__name__]
    wanted = {(row.method, row.path, outcome) for row in rows for outcome in ("ok", *row.errors)}
    assert sorted(entry for entry in wanted - MET if entry[2] not in ("user_deleted", *without)) == []


async def make_group(api: Api, owner: str, *members: str, **fields: Any) -> Any:
    return (await api.post(owner, "/group/create", name="team", member_ids=list(members), **fields)).data


@asynccontextmanager
async def open_api(
    store_url: str, users: Iterable[str] = (), *, online: SomeOnline | None = None, **settings: object
) -> AsyncIterator[Api]:
    """A server on a free port, on a migrated database (`core_url`), with these users signed in. Requests per second
    are not limited unless the settings say so: a fast machine would meet the limit."""
    config = make_config(store_url, **{"limits__requests_per_s": 0, **settings})
    background = Background()
    async with open_core(config, background) as core:
        accounts = make_accounts(config, core.store, SECRET)
        api = Api(core, accounts, Limits(config), CommitLog())
        journal = Journal(core.store.journal, config, background, "api")
        hooks = make_hooks(config, core.store, journal, background)
        if config.hooks.before_send.url:
            core.sending.gate = make_gate(config, core.sending)
        api.backend = make_backend(config, core.store, accounts, SECRET, journal, hooks, NoTraces())
        api.search = search = make_search(config, core.store, journal, background)
        api.files = make_files(config, core.store, core.words)
        pushing = await make_push(config, core.store, journal, api.connected, background)
        api.push = pushing.push
        core.store.seam.attach(journal)
        journal.start()
        hooks.start()
        search.start()
        pushing.push.start()
        core.store.seam.attach(api.publisher)
        metrics = Metrics()
        metrics.add(lambda: [families.SENDS(1, "saved")])  # to be found again
        actions = make_actions(core, accounts, api.limits)
        api.people = actions.people
        api.devices = pushing.devices
        api.calls = Calls(
            config.calls,
            SqlCalls(core.store.database, core.store.seam, config),
            NoneConnected(),
            pushing.push,
            api.limits,
            NoPushes(),
        )
        app = make_api(
            config=config,
            actions=actions,
            online=online or SomeOnline(),
            canary=api.canary,
            expose=metrics.expose,
            backend=api.backend,
            search=search,
            files=api.files,
            calls=api.calls,
            push=pushing.devices,
        )
        try:
            await api.sign_up(*users)
            async with serve(app) as address, httpx.AsyncClient(base_url=address, timeout=30) as api.http:
                yield api
        finally:
            await pushing.push.stop()
            await search.stop()
            await hooks.stop()
            await journal.stop()
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

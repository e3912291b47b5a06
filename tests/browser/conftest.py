"""One browser and one server per file."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext

from harness.browser import Api, People, chromium
from harness.server_process import ServerProcess

# Two windows of Firefox beside the other workers take longer than a test may wait for them.
collect_ignore = [] if os.environ.get("NEXO_LONG_TESTS") else ["test_firefox.py"]


@pytest.fixture(scope="module")  # while it is open, Playwright's event loop runs, and no coroutine test can
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[ServerProcess]:
    with ServerProcess() as running:
        yield running


@pytest.fixture
def api(server: ServerProcess) -> Iterator[Api]:
    api = Api(server.address)
    yield api
    api.close()


@pytest.fixture(scope="module")
def homes(server: ServerProcess) -> Iterator[dict[str, BrowserContext]]:
    kept: dict[str, BrowserContext] = {}
    yield kept
    for context in kept.values():
        context.close()


@pytest.fixture
def people(browser: Browser, server: ServerProcess, homes: dict[str, BrowserContext]) -> Iterator[People]:
    people = People(browser, server.address, homes)
    yield people
    people.close()

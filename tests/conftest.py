"""Fixtures and hooks for all tests: coroutine tests, databases per engine, servers that may be missing."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings
from xdist.remote import Producer

from harness import servers
from harness.coroutines import as_plain_function
from harness.engines import SERVER_ENGINES, EngineTally, engine_of
from harness.migrated import migrated_database
from harness.workers import ByFileAndEngine, longest_first, mark_slow
from nexo.cli import output as cli_output

# The default prints every local variable of a traceback, which can hold up the event loop for seconds.
_render = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _render])

# A slow machine is no failure; a real one can be replayed from what is printed.
settings.register_profile("nexo", deadline=None, print_blob=True)
settings.load_profile("nexo")

IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_configure(config: pytest.Config) -> None:
    # A selection (-m, -k, a path) may leave an engine out on purpose; the whole suite may not.
    whole_suite = (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and not config.option.markexpr
        and not config.option.keyword
        and not config.option.lf
    )
    is_worker = hasattr(config, "workerinput")
    config.pluginmanager.register(
        EngineTally(every_engine_must_run=IN_CI and whole_suite and not is_worker), "engine-tally"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_slow(items)
    if hasattr(config, "workerinput"):
        longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileAndEngine:
    return ByFileAndEngine(config, log)


@pytest.fixture(autouse=True, scope="session")
def _commands_leave_logs_alone() -> Iterator[None]:
    """A command sets logs up for its process, once and for all. Here that is the process of all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli_output, "set_up_logs", lambda level: None)
        yield


@pytest.fixture(params=["sqlite", *(pytest.param(engine, marks=pytest.mark.servers) for engine in SERVER_ENGINES)])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Parametrises a test over the database engines."""
    return str(request.param)


@pytest.fixture
def store_url(engine_name: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty database of the engine; for SQLite the file does not exist yet."""
    if engine_name == "sqlite":
        yield f"sqlite:///{tmp_path}/nexo.db"
        return
    server = servers.shared.get(SERVER_ENGINES[engine_name])
    url = server.create_database()
    yield url
    server.drop_database(url)


@pytest.fixture
def core_url(engine_name: str, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with Nexo's schema and no rows: cheaper than migrating a fresh one."""
    with migrated_database(engine_name, tmp_path) as url:
        yield url


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the servers that will be needed while the tests that need none already run."""
    if session.config.option.collectonly:
        return
    engines = {engine_of(item) for item in session.items}
    for engine, kind in SERVER_ENGINES.items():
        if engine in engines:
            # Daemons: a run that ends early does not wait for servers that nobody needs any more.
            threading.Thread(target=_start_ahead, args=(kind,), name=f"start-{engine}", daemon=True).start()


def _start_ahead(kind: type[servers.Server]) -> None:
    with contextlib.suppress(servers.ServerUnavailable):  # it is remembered and told to each test
        servers.shared.get(kind)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests may be coroutine functions, also under @given."""
    function = pyfuncitem.obj
    hypothesis = getattr(function, "hypothesis", None)
    if hypothesis is not None and inspect.iscoroutinefunction(hypothesis.inner_test):
        hypothesis.inner_test = as_plain_function(hypothesis.inner_test)
        return None
    if not inspect.iscoroutinefunction(function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters}
    as_plain_function(function)(**arguments)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    with _skipped_without_server():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    with _skipped_without_server():
        yield


@contextlib.contextmanager
def _skipped_without_server() -> Iterator[None]:
    """On a developer's machine a missing server skips what needs it; CI must have them all."""
    try:
        yield
    except servers.ServerUnavailable as error:
        if IN_CI:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        raise pytest.skip.Exception(str(error)) from None

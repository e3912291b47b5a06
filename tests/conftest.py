"""Fixtures and hooks for all tests: coroutine tests, databases per engine, servers that may be missing."""

from __future__ import annotations

import contextlib
import inspect
import os
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

from harness import logs, servers
from harness.coroutines import as_plain_function, release_what_failed
from harness.engines import SERVER_ENGINES, EngineTally, engine_of
from harness.migrated import migrated_database
from harness.workers import ByFileAndEngine, longest_first, mark_slow, shuffle_files

LOGS = logs.set_up_for_tests()

# A slow machine is no failure; a real one can be replayed from what is printed.
settings.register_profile("nexo", deadline=None, print_blob=True)
settings.load_profile("nexo")

# Any word: the files run in an order that depends on it. Tests that disturb each other are found so.
SHUFFLE = os.environ.get("NEXO_SHUFFLE", "")
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_configure(config: pytest.Config) -> None:
    # A selection (-m, -k, a path) may leave an engine out on purpose; the whole suite may not.
    whole_suite = (
        config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and not config.option.markexpr
        and not config.option.keyword
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
    if SHUFFLE:
        shuffle_files(items, SHUFFLE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFileAndEngine:
    return ByFileAndEngine(config, log)


@pytest.fixture(autouse=True, scope="session")
def _variables_of_tests_are_no_settings() -> Iterator[None]:
    """NEXO_LONG_TESTS and the like, which files of tests have read when they were collected. Nexo refuses what it does
    not know, and commands are also called in this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("NEXO_")]:
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True)
def _logs_stay_as_they_are() -> Iterator[None]:
    """A command that a test calls may set logs up for its process, which is the process of all tests."""
    with logs.restored(LOGS):
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
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """What a failed test leaves open is closed now, and not reported as the failure of the next one."""
    failed_before = item.session.testsfailed
    result = yield
    if item.session.testsfailed > failed_before:
        release_what_failed()
    return result


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

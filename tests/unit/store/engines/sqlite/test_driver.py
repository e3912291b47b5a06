"""The log of SQLite is emptied in quiet times, and errors for want of room say so."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from harness.waiting import until
from nexo.config import parse_store_url
from nexo.store.engine import Script, do
from nexo.store.engines.sqlite import driver, kind
from nexo.store.engines.sqlite.driver import SqliteEngine


async def test_the_log_is_given_back_to_the_disk_in_quiet_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "IDLE_S", 0.3)
    engine = SqliteEngine(tmp_path / "nexo.db")
    log = tmp_path / "nexo.db-wal"

    def make_table() -> Script[None]:
        yield do("CREATE TABLE t (n BLOB)")

    def fill() -> Script[None]:
        yield do("INSERT INTO t VALUES (randomblob(?))", 2 * driver.IDLE_BYTES)

    await engine.start()
    try:
        await engine.write_once(make_table)
        for _ in range(3):
            await engine.write_once(fill)
        assert log.stat().st_size > driver.IDLE_BYTES
        await until(lambda: log.stat().st_size == 0, "emptied")
        await engine.write_once(fill)  # and goes on from there
    finally:
        await engine.stop()


@pytest.mark.parametrize(("is_full", "advice"), [(True, "make room on its disk"), (False, "its disk fails")])
def test_a_failure_to_write_on_a_full_disk_reads_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool, advice: str
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"  # what SQLite makes of its shared memory that cannot grow
    monkeypatch.setattr(driver, "DISK_FULL_BYTES", 1 << 62 if is_full else 0)
    url = parse_store_url(f"sqlite:///{tmp_path}/nexo.db")
    assert kind.KIND.advice_on(error, url).startswith(advice)

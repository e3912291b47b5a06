"""The campaign of `bench/campaign.py` in small: a few faults of one topology. The long form is run by hand; a seed that
has found a violation is kept here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.servers

SCRIPT = Path(__file__).parents[2] / "bench" / "campaign.py"
LONG = bool(os.environ.get("NEXO_LONG_TESTS"))
SHORT = [("postgresql", "single", 5, 4)]
ALL = [
    *SHORT,
    ("mariadb", "single", 40, 21),
    ("pair", "sentinel", 30, 22),
    ("postgresql", "cluster", 40, 23),
    ("galera", "sentinel", 30, 11),
]


@pytest.mark.parametrize(("database", "redis", "faults", "seed"), ALL if LONG else SHORT)
def test_every_law_holds_whatever_is_lost(database: str, redis: str, faults: int, seed: int) -> None:
    arguments = ["--database", database, "--redis", redis, "--faults", str(faults), "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments, "--seconds", "900"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(rf"\| {seed} \| {faults} \| ([\d,]+) \| 0 \|", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1].replace(",", "")) > 10 * faults, "users could send all the time"

"""Logs: one line per event, from any part of the server."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import logging
from nexo.logs import set_up_logs
set_up_logs("info", as_json=True)
try:
    raise ConnectionError("no way\\nto the database")
except ConnectionError:
    logging.getLogger("driver").exception("Failed to connect to %s", "it")
logging.getLogger("driver").warning("two\\nlines")
logging.getLogger("driver").info("of no interest")
"""


def test_what_libraries_log_is_one_line_each_with_the_error_and_where_it_was_raised() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    failed, warned = [json.loads(line) for line in done.stderr.splitlines()]
    assert (failed["event"], failed["logger"], failed["says"]) == ("library_log", "driver", "Failed to connect to it")
    assert (failed["level"], failed["error"]) == ("error", "ConnectionError: no way\nto the database")
    assert failed["where"].endswith(":6")
    assert (warned["level"], warned["says"]) == ("warning", "two\nlines")


SWITCHED = """
import structlog
from nexo.logs import delivery_lines, set_log_level, set_up_logs
set_up_logs("info", as_json=True)
log, bound = structlog.get_logger(), structlog.get_logger().bind(conn="c1")
log.debug("1 hidden")
log.info("1 shown")
set_log_level("debug")
log.debug("2 shown")
bound.debug("2 bound")
set_log_level("warning")
log.info("3 hidden")
bound.info("3 hidden")
log.warning("3 shown")
set_log_level("info")
delivery_lines.write("4 hidden", "ann", "si_ann:ben")
delivery_lines.choose(0.0, ["ann"], ["sg_g1"])
delivery_lines.write("4 user", "ann", "si_ann:ben")
delivery_lines.write("4 conversation", "ben", "sg_g1")
delivery_lines.write("4 hidden", "ben", "si_ann:ben")
delivery_lines.choose(0.5)
for _ in range(1000):
    delivery_lines.write("5 sampled", "ben", "si_ann:ben")
"""


def test_the_level_and_the_chosen_acknowledgements_change_while_the_process_runs() -> None:
    done = subprocess.run([sys.executable, "-c", SWITCHED], capture_output=True, text=True, check=True)
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    sampled = events.count("5 sampled")
    assert [event for event in events if event != "5 sampled"] == [
        "1 shown",
        "2 shown",
        "2 bound",
        "3 shown",
        "4 user",
        "4 conversation",
    ]
    assert 400 < sampled < 600

"""The README's commands do what it says, typed as it says."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from harness.server_process import ServerProcess

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:8900"


def shell(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_message_of_the_readme_is_saved(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    run, add_people, first_message = (
        next(block for block in blocks if word in block) for word in ("make run", "user add", "/msg/send")
    )
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert run.strip() == "make run"
    assert "$(BIN)/nexo serve" in makefile  # what `make run` ends with; here on a port of its own
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    with ServerProcess(data=tmp_path / "data", bare=True) as server:
        shell(add_people, tmp_path)
        answer = json.loads(shell(first_message.replace(ADDRESS, f"127.0.0.1:{server.port}"), tmp_path))
    assert answer["err_code"] == 0
    assert answer["data"]["status"] == "saved"
    assert (answer["data"]["conversation_id"], answer["data"]["seq"]) == ("si_alice:bob", 1)

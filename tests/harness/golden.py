"""Golden frames: readable files that say what a dialect's frames mean and what events look like in it.

A file has, each where it applies: `requests` (a frame, who sends it, and the command it is), `answers` (an
event of `harness/samples.py` as the answer to the first request), `refused` (a frame, the error, and how it is
answered), `pushes` (an event, as it is pushed). The sentences in `detail` are left out. The SDKs read the same
files. The envelope dialect has blocks of text in their place, which `tests/unit/wire/test_envelope.py` reads.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.samples import ANN, EVENTS
from nexo.core import commands, events
from nexo.wire.dialect import BadFrame, Dialect
from nexo.wire.registry import DIALECTS

ROOT = Path(__file__).parents[1] / "golden"

Case = dict[str, Any]


def short(name: str) -> str:
    """`envelope` of `nexo.envelope.v1`: the folder of its golden frames."""
    return name.split(".")[1]


def frames(dialect: str) -> list[Case]:
    """What a client may send in a dialect: every golden frame that is a command."""
    if (blocks := ROOT / dialect / "client.txt").exists():
        return [json.loads(line) for line in blocks.read_text().splitlines() if line.startswith("{")]
    requests = (case["frame"] for file in files(dialect).values() for case in file.get("requests", []))
    return [frame for frame in requests if isinstance(frame, dict)]


def files(dialect: str) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / dialect).glob("*.json"))}


def cases(dialect: str, kind: str) -> list[Any]:
    """The cases of one kind, for `parametrize`."""
    found = []
    for name, file in files(dialect).items():
        for i, case in enumerate(file.get(kind, [])):
            first = file["requests"][0] if kind == "answers" else None
            found.append(pytest.param(case if first is None else {**case, "to": first}, id=f"{name}-{i}"))
    return found


def all_cases(kind: str) -> list[Any]:
    """The cases of one kind in all dialects that have such files, each behind the name of its dialect."""
    return [
        pytest.param(name, *param.values, id=f"{short(name)}-{param.id}")
        for name in DIALECTS
        for param in cases(short(name), kind)
    ]


def told(command: commands.Command) -> dict[str, Any]:
    """A command as a golden file writes it: its name, and the fields that are not their defaults."""
    fields = {
        field.name: getattr(command, field.name)
        for field in msgspec.structs.fields(command)
        if getattr(command, field.name) not in (field.default, {})
    }
    if isinstance(command, commands.WithToken):
        fields["command"] = told(command.command)
    return {type(command).__name__: json.loads(msgspec.json.encode(fields))}


def check_request(codec: Dialect, case: Case) -> None:
    command, _ = codec.decode(encoded(case["frame"]), case.get("as", ANN))
    assert told(command) == case["command"]


def check_answer(codec: Dialect, case: Case) -> None:
    _, ref = codec.decode(encoded(case["to"]["frame"]), case["to"].get("as", ANN))
    assert plain(codec.encode(EVENTS[case["event"]], ref)) == case["frame"]


def check_refusal(codec: Dialect, case: Case) -> None:
    with pytest.raises(BadFrame) as caught:
        codec.decode(encoded(case["frame"]), case.get("as", ANN))
    bad = caught.value
    assert (bad.error.name, bad.violation) == (case["error"], case.get("violation", False))
    assert plain(codec.encode(events.Failed(bad.error), bad.ref)) == case["answer"]


def check_push(codec: Dialect, case: Case) -> None:
    assert plain(codec.encode(EVENTS[case["event"]])) == case["frame"]


def encoded(frame: Any) -> bytes:
    """Text stands for itself, so that a golden file can hold what is no JSON."""
    return frame.encode() if isinstance(frame, str) else json.dumps(frame).encode()


def plain(payload: bytes) -> Any:
    """What a frame says, without the sentence for people in it; None where nothing is said."""
    if not payload:
        return None
    frame = json.loads(payload)
    packed = isinstance(frame.get("data"), str)
    data = json.loads(base64.b64decode(frame["data"])) if packed else frame.get("data")
    if isinstance(data, dict) and "detail" in data:
        del data["detail"]
        frame["data"] = base64.b64encode(json.dumps(data).encode()).decode() if packed else data
    return frame
